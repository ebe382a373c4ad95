"""What can be brought: each source's folder names, files, origin and licence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter


@dataclass(frozen=True)
class SourceLayout:
    """One way in which a source is distributed: files of one folder; `exported`: splits of a
    Hugging Face export.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    exported: bool = False


@dataclass(frozen=True)
class Source:
    """One source of official files."""

    name: str
    folders: tuple[str, ...]  # names under which people have it
    origin: str
    licence: str
    how_to_get: str = ""
    layouts: tuple[SourceLayout, ...] = ()  # the first that is complete counts
    every: tuple[str, ...] = ()  # patterns of files that are all taken, without a layout
    # {file that `acquire` writes: folder of small JSON files}
    combined_folders: Mapping[str, str] = field(default_factory=dict)
    other_file_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def way(self) -> str:
        """Say how to get it."""
        brings = f"gpt1 profile PROFILE --download {self.name} brings it to data/raw/{self.name}"
        return self.how_to_get or brings

    def official(self, name: str) -> str:
        """Return the name by which people know a file."""
        return f"{self.combined_folders[name]}/*.txt" if name in self.combined_folders else name

    @property
    def expected(self) -> str:
        """The required files in words."""
        names = dict.fromkeys(
            "a Hugging Face export (.parquet or .jsonl)"
            if layout.exported
            else ", ".join(map(self.official, layout.required))
            for layout in sorted(self.layouts, key=attrgetter("exported"))
        )
        return " or ".join(names) or f"{self.every[0]} files"


MADE_UP = "made up by gpt1.town"


def is_made_up(folder: str) -> bool:
    """Return whether a folder of `sources` is the made-up town's."""
    return folder == "town"


BOOKS = Source(
    name="books",
    folders=(
        "books",
        "BooksCorpus",
        "bookcorpus",
        "bookcorpusopen",
        "PG-19",
        "pg19",
        "gutenberg",
    ),
    every=(
        "*.txt",
        "*.txt.utf8",
        "*.txt.utf-8",
        "*.txt.gz",
        "*.txt.zst",
        "*.jsonl",
        "*.jsonl.gz",
        "*.jsonl.zst",
        "*.parquet",
    ),
    origin=(
        "books as plain text, one file a book, brought by whoever runs this (the paper used"
        " BooksCorpus)"
    ),
    licence="as the books' (PG-19: public domain in the USA; BookCorpusOpen: its authors')",
    how_to_get=(
        "gpt1 profile PROFILE --download books brings PG-19; or put books, one UTF-8 .txt file"
        " each, into data/raw/books (BooksCorpus: https://yknzhu.wixsite.com/mbweb)"
    ),
)

OPENAI_BPE = Source(
    name="openai_bpe",
    folders=("openai_bpe", "finetune-transformer-lm/model"),
    layouts=(SourceLayout(("encoder_bpe_40000.json", "vocab_40000.bpe")),),
    origin="https://github.com/openai/finetune-transformer-lm, folder model",
    licence="MIT",
)

OFFICIAL = Source(
    name="official",
    folders=("official",),
    layouts=(SourceLayout(("weights.safetensors", "vocab.json", "merges.txt", "import.json")),),
    origin=(
        "weights that gpt1 import took over: the authors'"
        " (https://github.com/openai/finetune-transformer-lm), or as import.json says"
    ),
    licence="MIT, where they are the authors'",
    how_to_get=(
        "gpt1 profile PROFILE --download official brings the authors'; or gpt1 import FOLDER, their"
        " folder model or a Hugging Face openai-gpt folder, which fills data/raw/official"
    ),
)

SOURCES: dict[str, Source] = {source.name: source for source in (BOOKS, OPENAI_BPE, OFFICIAL)}
