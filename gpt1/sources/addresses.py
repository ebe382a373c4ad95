"""Where official files can be downloaded, with commits or published checksums."""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class HubFiles:
    """Files of a data set on the Hub; patterns: of paths; title: of a corpus."""

    repository: str
    revision: str
    patterns: tuple[str, ...]
    title: str = ""


# Of original addresses the published checksums: sha256, md5 or, of 40 digits, git's name of the
# bytes.
Origin = HubFiles | Mapping[str, str]
BOOK_SETS = {  # repository, title, files, tokens of all (at 4.5 bytes a token)
    "pg19": ("emozilla/pg19", "PG-19", 23, 2.4e9),
    "bookcorpusopen": ("lucadiliello/bookcorpusopen", "BookCorpusOpen", 1, 1.4e9),
}
TERMS = {
    "race": (
        "RACE may be used for non-commercial research only, and no part of it may be sold or"
        " exploited; its passages belong to others (https://www.cs.cmu.edu/~glai1/data/race)"
    )
}
# The names that git gives the authors' released files; gpt1/exchange/incoming.py knows them too.
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
GLUE = "nyu-mll/glue", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"


def book_files(name: str, revision: str, tokens: float) -> HubFiles:
    """Choose as many files of a set of books as hold `tokens` tokens."""
    repository, title, files, whole = BOOK_SETS[name]
    count = math.ceil(min(max(tokens, 1) / whole, 1) * files)
    if count == files:
        return HubFiles(repository, revision, ("data/train-*",), title)
    patterns = tuple(f"data/train-{number:05d}-of-*" for number in range(count))
    return HubFiles(repository, revision, patterns, f"{count} of {files} files of {title}")


def _released(*names: str) -> dict[str, str]:
    folder = "https://raw.githubusercontent.com/openai/finetune-transformer-lm/master/model"
    return {f"{folder}/{name}": RELEASED[name] for name in names}


DOWNLOADS: dict[str, Origin] = {
    "openai_bpe": _released("encoder_bpe_40000.json", "vocab_40000.bpe"),
    "official": _released(*RELEASED),
    "snli": HubFiles(
        "stanfordnlp/snli", "cdb5c3d5eed6ead6e5a341c8e56e669bb666725b", ("plain_text/*",)
    ),
    "mnli": HubFiles(*GLUE, ("mnli/*", "ax/*")),
    **{
        name: HubFiles(*GLUE, (f"{name}/*",))
        for name in ("qnli", "rte", "mrpc", "qqp", "sst2", "cola")
    },
    "race": HubFiles(
        "ehovy/race", "2fec9fd81f1dc971569a9b729c43f2f0e6436637", ("middle/*", "high/*")
    ),
    "scitail": {
        "http://data.allenai.org.s3.amazonaws.com/downloads/SciTailV1.1.zip": (
            "3fccd37350a94ca280b75998568df85fc2fc62843a3198d644fcbf858e6943d5"
        )
    },
    "stsb": {
        "http://ixa2.si.ehu.eus/stswiki/images/4/48/Stsbenchmark.tar.gz": (
            "4eb0065aba063ef77873d3a9c8088811"
        )
    },
    "dprd": {
        "https://www.hlt.utdallas.edu/~vince/data/emnlp12/test.c.txt": (
            "cf1cf025e1d59a5b363e6dcfbd5a13aae8a9830831ac16fd7f865aca7a1559d8"
        ),
        "https://www.hlt.utdallas.edu/~vince/data/emnlp12/train.c.txt": (
            "c310158d0cbac1a556e3284e6c167f4478271d8d50b0b9d15dfe428c905a0867"
        ),
    },
}
