"""Hugging Face exports on disk: of clones (mnli/train-00000-of-00001.parquet, also under data/), of
the Hub's conversion (train/0000.parquet), and others (train.jsonl).
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gpt1.base.errors import UserError
from gpt1.base.files import is_hidden
from gpt1.sources.definitions import SourceLayout

SUFFIXES = ("parquet", "jsonl", "json")  # the first says what its labels mean
OTHER_NAMES = {"validation": ("validation", "dev", "valid")}
_PART = re.compile(
    r"(?P<stem>.+?)(-(?P<number>\d{5,6})-of-(?P<parts>\d{5,6}))?\.(parquet|jsonl|json)"
)


def find_export(layout: SourceLayout, base: Path) -> dict[str, Path] | None:
    """Return {name that `acquire` gives a file: its place}, or None where a split is missing.
    Raises UserError for missing parts.
    """
    for suffix in SUFFIXES:
        parts = {name: _parts(base, PurePosixPath(name), suffix) for name in layout.required}
        if all(parts.values()):
            parts |= {name: _parts(base, PurePosixPath(name), suffix) for name in layout.optional}
            return {
                f"{name}-{number:05d}-of-{len(files):05d}.{suffix}": file
                for name, files in parts.items()
                for number, file in enumerate(files)
            }
    return None


def kept_files(folder: Path, name: str) -> list[str]:
    """Return the files of a split, in order, as `acquire` keeps them."""
    split = folder / name
    for suffix in SUFFIXES:
        if parts := [*_matching(split.parent, split.name, suffix)]:
            whole = len(parts) == int(parts[0][0]["parts"])
            return [path.relative_to(folder).as_posix() for _, path in parts] if whole else []
    return []


def _parts(base: Path, name: PurePosixPath, suffix: str) -> list[Path]:
    """Return the files of a split, in order: in the folder itself, or in one of the split's
    name.
    """
    folder = base / name.parent
    if not folder.is_dir():  # the Hub has ax/ beside mnli/
        folder = base.parent / name.parent
    for split in OTHER_NAMES.get(name.name, (name.name,)):
        if (whole := folder / f"{split}.{suffix}").is_file():
            return [whole]
        for place, stem in ((folder, split), (folder / split, None)):
            if parts := [*_matching(place, stem, suffix)]:
                return _complete(place, split, parts)
    return []


def _matching(folder: Path, stem: str | None, suffix: str) -> Iterator[tuple[re.Match[str], Path]]:
    """Yield the parts in a folder: those of a stem, or (None) all."""
    pattern = f"{stem}-*.{suffix}" if stem else f"*.{suffix}"
    for path in sorted(folder.glob(pattern)):
        match = _PART.fullmatch(path.name)
        if (
            match
            and not is_hidden(path.name)
            and (stem is None or (match["stem"] == stem and match["number"]))
            and path.is_file()
        ):
            yield match, path


def _complete(folder: Path, split: str, parts: list[tuple[re.Match[str], Path]]) -> list[Path]:
    """Return the parts' paths. Raises UserError where their numbers are not whole."""
    numbered = [
        (int(match["number"]), int(match["parts"])) for match, _ in parts if match["number"]
    ]
    if numbered and numbered != [(number, len(parts)) for number in range(len(parts))]:
        raise UserError(
            f"{folder}: expected {numbered[0][1]} parts of {split}, from {parts[0][1].name} on,"
            f" found {len(parts)} files; bring all parts of one export, or take these away"
        )
    return [path for _, path in parts]
