"""Hugging Face exports on disk: train.parquet, or its parts (train-00000-of-00002.parquet, …), or
JSON lines of such names.
"""

from itertools import product
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.sources.definitions import SourceLayout

SUFFIXES = (".parquet", ".jsonl", ".json")  # the first says what its labels mean
OTHER_NAMES = {"validation": ("validation", "dev", "valid")}
NUMBER = "[0-9]" * 5


def find_export(layout: SourceLayout, base: Path) -> dict[str, Path] | None:
    """Return {name that `acquire` gives a file: its place}, or None where a split is missing.
    Raises UserError for missing parts.
    """
    splits = {name: split_files(base, name) for name in (*layout.required, *layout.optional)}
    if not all(splits[name] for name in layout.required):
        return None
    return {
        f"{name}-{number:05d}-of-{len(files):05d}{file.suffix}": file
        for name, files in splits.items()
        for number, file in enumerate(files)
    }


def split_files(base: Path, name: str) -> list[Path]:
    """Return the files of a split, in order. Raises UserError where some are missing."""
    folder, stem = (base / name).parent, Path(name).name
    if not folder.is_dir():  # the Hub has ax/ beside mnli/
        folder = (base.parent / name).parent
    for suffix, split in product(SUFFIXES, OTHER_NAMES.get(stem, (stem,))):
        if (whole := folder / f"{split}{suffix}").is_file():
            return [whole]
        if parts := sorted(folder.glob(f"{split}-{NUMBER}-of-{NUMBER}{suffix}")):
            numbers = {path.stem[-5:] for path in parts}
            if numbers != {f"{len(parts):05d}"}:
                raise UserError(
                    f"{folder}: expected {int(min(numbers))} parts of {split}, from"
                    f" {parts[0].name} on, found {len(parts)} files; bring all parts of one export,"
                    " or take these away"
                )
            return parts
    return []
