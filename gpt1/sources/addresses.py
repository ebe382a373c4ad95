"""Where official files can be downloaded: the official address, the checksum with the place that
published it, and the size where it was published. What no program may download is not here.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Remote:
    """One file to download: its address, whose last part names it, its checksum and who published
    that, bytes where published. kind git: the name that git gives the bytes, sha1 of
    "blob <bytes>\\0" and the bytes.
    """

    address: str
    kind: Literal["sha256", "md5", "git"]
    checksum: str
    publisher: str
    bytes_: int | None = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.address.rpartition("/")[2]


TFDS = "TensorFlow Datasets, url_checksums/{}.txt"
DATASETS = "Hugging Face datasets, {}/dataset_infos.json"
# The names that git gives the authors' released files; gpt1/exchange/authors.py knows them too.
RELEASED: dict[str, str] = {
    "params_0.npy": "84d83ac1f1cc878f56f33b167482c184491875d2",
    "params_1.npy": "0f19f4d4cda3d8f908e3faffd2cb2a8b9a4039da",
    "params_2.npy": "25bc19c72fdff69505a828ec6d73b32063532148",
    "params_3.npy": "5b2e6958d42a930966c9d602a012eb846ca67c83",
    "params_4.npy": "87ad158987e307e6aa64952610f466d750b73bc7",
    "params_5.npy": "74f3853316bba327229605dbedfe921996f11448",
    "params_6.npy": "5ef44e40bc076d0c9686d1273d54cbc16c3f0980",
    "params_7.npy": "d8d5c8d3bee9b20a677605ac1fe6c7af4df57c94",
    "params_8.npy": "f980f4b393716f396ae5ae6401708dcf4f270dc9",
    "params_9.npy": "d389eb2074dd74754444b8062aba78b49f6a9053",
    "params_shapes.json": "29fac299ae848d7e447be84a33345edcf1b5353c",
    "encoder_bpe_40000.json": "9dc3f0af5a80956e57dc8d9401e16dfadcade7c2",
    "vocab_40000.bpe": "0023a687b3d4d0b795a5e97cc914bdabb5a253df",
}


def _published(address: str, bytes_: int, sha256: str, publisher: str) -> tuple[Remote]:
    return (Remote(address, "sha256", sha256, publisher, bytes_),)


def _glue(file: str, bytes_: int, sha256: str) -> tuple[Remote]:
    address = f"https://dl.fbaipublicfiles.com/glue/data/{file}"
    return _published(address, bytes_, sha256, DATASETS.format("glue"))


def _mrpc(file: str, bytes_: int, sha256: str) -> tuple[Remote]:
    address = f"https://dl.fbaipublicfiles.com/senteval/senteval_data/{file}"
    return _published(address, bytes_, sha256, TFDS.format("glue"))


def _pronouns(file: str, bytes_: int, sha256: str) -> tuple[Remote]:
    address = f"https://www.hlt.utdallas.edu/~vince/data/emnlp12/{file}"
    return _published(address, bytes_, sha256, TFDS.format("definite_pronoun_resolution"))


def _released(*names: str) -> tuple[Remote, ...]:
    """Files that the authors released."""
    folder = "https://raw.githubusercontent.com/openai/finetune-transformer-lm/master/model"
    publisher = (
        "the repository openai/finetune-transformer-lm itself, as the name of the file's bytes"
    )
    return tuple(Remote(f"{folder}/{name}", "git", RELEASED[name], publisher) for name in names)


DOWNLOADS: dict[str, tuple[Remote, ...]] = {
    "openai_bpe": _released("encoder_bpe_40000.json", "vocab_40000.bpe"),
    "official": _released(*RELEASED),
    "snli": _published(
        "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
        94550081,
        "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
        TFDS.format("snli"),
    ),
    "mnli": (
        *_glue(
            "MNLI.zip",
            312783507,
            "e7c1d896d26ed6caf700110645df426cc2d8ebf02a5ab743d5a5c68ac1c83633",
        ),
        *_glue(
            "AX.tsv", 222257, "0e13510b1bb14436ff7e2ee82338f0efb0133ecf2e73507a697dc210db3f05fd"
        ),
    ),
    "qnli": _glue(
        "QNLIv2.zip", 10627589, "e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5"
    ),
    "rte": _glue(
        "RTE.zip", 697150, "6bf86de103ecd335f3441bd43574d23fef87ecc695977a63b82d5efb206556ee"
    ),
    "wnli": _glue(
        "WNLI.zip", 28999, "ae0e8e4d16f4d46d4a0a566ec7ecceccfd3fbfaa4a7a4b4e02848c0f2561ac46"
    ),
    "scitail": _published(
        "http://data.allenai.org.s3.amazonaws.com/downloads/SciTailV1.1.zip",
        14174621,
        "3fccd37350a94ca280b75998568df85fc2fc62843a3198d644fcbf858e6943d5",
        DATASETS.format("scitail"),
    ),
    "mrpc": (
        *_mrpc(
            "msr_paraphrase_train.txt",
            1047044,
            "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89",
        ),
        *_mrpc(
            "msr_paraphrase_test.txt",
            441275,
            "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784",
        ),
    ),
    "qqp": _glue(
        "QQP-clean.zip",
        41696084,
        "40e7c862c04eb26ee04b67fd900e76c45c6ba8e6d8fab4f8f1f8072a1a3fbae0",
    ),
    "stsb": (
        Remote(
            "http://ixa2.si.ehu.eus/stswiki/images/4/48/Stsbenchmark.tar.gz",
            "md5",
            "4eb0065aba063ef77873d3a9c8088811",
            "torchtext, datasets/stsb.py",
        ),
    ),
    "sst2": _glue(
        "SST-2.zip", 7439277, "d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa"
    ),
    "cola": _glue(
        "CoLA.zip", 376971, "f212fcd832b8f7b435fb991f101abf89f96b933ab400603bf198960dfc32cbff"
    ),
    "dprd": (
        *_pronouns(
            "test.c.txt", 67044, "cf1cf025e1d59a5b363e6dcfbd5a13aae8a9830831ac16fd7f865aca7a1559d8"
        ),
        *_pronouns(
            "train.c.txt",
            160408,
            "c310158d0cbac1a556e3284e6c167f4478271d8d50b0b9d15dfe428c905a0867",
        ),
    ),
}
