"""Where official files can be downloaded: addresses in order (the official one first), size and
checksum with the place that published it.

A checksum stands here only where somebody published it. Where none is, or a weaker one than sha256,
the sha256 of the first download is recorded in the cache and holds from then on
(gpt1/sources/cache.py). What may not be downloaded by a program is not here.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["sha256", "md5", "git"]


@dataclass(frozen=True)
class Checksum:
    """A published checksum and who published it, where. git: the name that git gives the bytes,
    sha1 of "blob <bytes>\\0" and the bytes.
    """

    kind: Kind
    value: str
    publisher: str


@dataclass(frozen=True)
class Remote:
    """One file to download: its name here, addresses that give the same bytes, bytes where
    published, checksum where published.
    """

    name: str
    addresses: tuple[str, ...]
    bytes_: int | None = None
    checksum: Checksum | None = None


TFDS = "TensorFlow Datasets, url_checksums/{}.txt"
DATASETS = "Hugging Face datasets, {}/dataset_infos.json"
TORCHTEXT = "torchtext, datasets/{}.py"
GIT = "the repository openai/finetune-transformer-lm itself, as the name of the file's bytes"
GLUE = "https://dl.fbaipublicfiles.com/glue/data/{}"
SENTEVAL = "https://dl.fbaipublicfiles.com/senteval/senteval_data/{}"
AUTHORS = (
    "https://raw.githubusercontent.com/openai/finetune-transformer-lm/master/model/{}",
    "https://github.com/openai/finetune-transformer-lm/raw/master/model/{}",
)
PRONOUNS = (
    "https://www.hlt.utdallas.edu/~vince/data/emnlp12/{}",
    "http://www.hlt.utdallas.edu/~vince/data/emnlp12/{}",
    "https://s3.amazonaws.com/datasets.huggingface.co/definite_pronoun_resolution/{}",
)
STS = "http://ixa2.si.ehu.eus/stswiki/images/4/48/Stsbenchmark.tar.gz"
SCITAIL = (
    "http://data.allenai.org.s3.amazonaws.com/downloads/SciTailV1.1.zip",
    "https://s3-us-west-2.amazonaws.com/data.allenai.org/downloads/SciTailV1.1.zip",
    "https://ai2-public-datasets.s3.amazonaws.com/scitail/SciTailV1.1.zip",
)
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


def _published(publisher: str, bytes_: int, sha256: str, *addresses: str) -> Remote:
    """A file of published size and sha256; its name is the first address's last part."""
    name = addresses[0].rpartition("/")[2]
    return Remote(name, addresses, bytes_, Checksum("sha256", sha256, publisher))


def _glue(file: str, bytes_: int, sha256: str) -> Remote:
    """A file of GLUE."""
    return _published(DATASETS.format("glue"), bytes_, sha256, GLUE.format(file))


def _released(*names: str) -> tuple[Remote, ...]:
    """Files that the authors released."""
    return tuple(
        Remote(
            name,
            tuple(one.format(name) for one in AUTHORS),
            checksum=Checksum("git", RELEASED[name], GIT),
        )
        for name in names
    )


def _mrpc(file: str, bytes_: int, sha256: str) -> Remote:
    return _published(TFDS.format("glue"), bytes_, sha256, SENTEVAL.format(file))


def _pronouns(file: str, bytes_: int, sha256: str) -> Remote:
    publisher = TFDS.format("definite_pronoun_resolution")
    return _published(publisher, bytes_, sha256, *(one.format(file) for one in PRONOUNS))


DOWNLOADS: dict[str, tuple[Remote, ...]] = {
    "openai_bpe": _released("encoder_bpe_40000.json", "vocab_40000.bpe"),
    "official": _released(*RELEASED),
    "snli": (
        _published(
            TFDS.format("snli"),
            94550081,
            "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
            "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
        ),
    ),
    "mnli": (
        _glue(
            "MNLI.zip",
            312783507,
            "e7c1d896d26ed6caf700110645df426cc2d8ebf02a5ab743d5a5c68ac1c83633",
        ),
        _glue("AX.tsv", 222257, "0e13510b1bb14436ff7e2ee82338f0efb0133ecf2e73507a697dc210db3f05fd"),
    ),
    "qnli": (
        _glue(
            "QNLIv2.zip",
            10627589,
            "e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5",
        ),
    ),
    "rte": (
        _glue(
            "RTE.zip", 697150, "6bf86de103ecd335f3441bd43574d23fef87ecc695977a63b82d5efb206556ee"
        ),
    ),
    "wnli": (
        _glue(
            "WNLI.zip", 28999, "ae0e8e4d16f4d46d4a0a566ec7ecceccfd3fbfaa4a7a4b4e02848c0f2561ac46"
        ),
    ),
    "scitail": (
        _published(
            DATASETS.format("scitail"),
            14174621,
            "3fccd37350a94ca280b75998568df85fc2fc62843a3198d644fcbf858e6943d5",
            *SCITAIL,
        ),
    ),
    "mrpc": (
        _mrpc(
            "msr_paraphrase_train.txt",
            1047044,
            "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89",
        ),
        _mrpc(
            "msr_paraphrase_test.txt",
            441275,
            "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784",
        ),
    ),
    "qqp": (
        _glue(
            "QQP-clean.zip",
            41696084,
            "40e7c862c04eb26ee04b67fd900e76c45c6ba8e6d8fab4f8f1f8072a1a3fbae0",
        ),
    ),
    "stsb": (
        Remote(
            "Stsbenchmark.tar.gz",
            (STS, f"https://web.archive.org/web/20220101000000id_/{STS.replace('.eus/', '.es/')}"),
            None,
            Checksum("md5", "4eb0065aba063ef77873d3a9c8088811", TORCHTEXT.format("stsb")),
        ),
    ),
    "sst2": (
        _glue(
            "SST-2.zip", 7439277, "d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa"
        ),
    ),
    "cola": (
        _glue(
            "CoLA.zip", 376971, "f212fcd832b8f7b435fb991f101abf89f96b933ab400603bf198960dfc32cbff"
        ),
    ),
    "dprd": (
        _pronouns(
            "test.c.txt", 67044, "cf1cf025e1d59a5b363e6dcfbd5a13aae8a9830831ac16fd7f865aca7a1559d8"
        ),
        _pronouns(
            "train.c.txt",
            160408,
            "c310158d0cbac1a556e3284e6c167f4478271d8d50b0b9d15dfe428c905a0867",
        ),
    ),
}
