"""The official files of a source: found, copied, described."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gpt1.base.errors import DISK_FULL, UserError
from gpt1.base.files import link_or_copy, parse_json, sha256_file
from gpt1.sources.archives import is_archive, unpack
from gpt1.sources.definitions import Source
from gpt1.sources.find import find_files, place_of, small_files

SHOWN_ENTRIES = 8
BINARY = (".parquet", ".gz", ".zst")  # their bytes have no lines


def unreadable(path: Path, error: OSError) -> UserError:
    """Return the error for an unreadable file. Raises `error` itself where the disk is full."""
    if error.errno in DISK_FULL:
        raise error
    return UserError(
        f"{path} cannot be read ({error.strerror}); make it readable to you, or take it away"
    )


def locate(source: Source, raw: Path, spare: Path, max_bytes: int) -> dict[str, Path]:
    """Find the official files under `raw`, or in its archives, unpacked into `spare`. Raises
    UserError where they are incomplete.
    """
    try:
        entries = sorted(raw.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{raw} is not there; expected a folder, or a link to one, with {source.expected}:"
            f" {source.way}"
        ) from None
    except OSError as error:
        raise unreadable(raw, error) from None
    if files := find_files(source, raw):
        return files
    for archive in filter(is_archive, entries):
        unpack(archive, spare / archive.name, max_bytes)
        if not source.every and (files := find_files(source, spare / archive.name)):
            beside = {  # GLUE gives its diagnostic set by itself, not in the archive
                name: place
                for layout in source.layouts
                if not layout.exported and {*layout.required} <= {*files}
                for name in layout.optional
                if (place := place_of(source, name, raw))
            }
            return beside | files
    if source.every and spare.is_dir() and (files := find_files(source, spare)):
        return files
    found = [entry.name for entry in entries]
    found += [f"{path.relative_to(spare)}" for path in sorted(spare.rglob("*")) if path.is_file()]
    names = ", ".join(found[:SHOWN_ENTRIES]) + ", …" * (len(found) > SHOWN_ENTRIES)
    raise UserError(f"{raw}: expected {source.expected}; found {names or 'nothing'}; {source.way}")


def copy(source: Source, file: str, place: Path, target: Path) -> dict[str, object]:
    """Copy an official file, or combine a folder of small ones; return its row of the manifest.
    Raises UserError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if file in source.combined_folders:
            combine_files(place, target)
        elif (whole := place.resolve()).parent.name == "blobs":  # of the Hub's cache
            link_or_copy(str(whole), str(target))  # nothing lies twice on the disk
        else:
            shutil.copyfile(place, target)
    except OSError as error:
        raise unreadable(Path(error.filename or place), error) from None
    row = {"sha256": sha256_file(target), "bytes": target.stat().st_size}
    if target.suffix in BINARY:
        return row
    with target.open("rb") as reader:
        return row | {"rows": sum(1 for _ in reader)}


def combine_files(origin: Path, target: Path) -> None:
    """Write each JSON file of a folder as one line, with its name as "file"; of one that is no JSON
    object {"file", "unreadable": why}.
    """
    with target.open("w", encoding="utf-8", newline="\n") as writer:
        for path in small_files(origin):
            try:
                passage = parse_json(path.read_bytes())
            except ValueError:
                passage = {"unreadable": "not JSON"}
            if not isinstance(passage, dict):
                passage = {"unreadable": "no JSON object"}
            passage["file"] = f"{origin.parent.name}/{origin.name}/{path.name}"
            writer.write(json.dumps(passage) + "\n")


@contextmanager
def named_as_brought(origins: Mapping[Path, Path]) -> Iterator[None]:
    """Name, in a UserError of the block, the files that a person brought."""
    try:
        yield
    except UserError as error:
        line = str(error)
        for made, origin in origins.items():
            line = line.replace(str(made), str(origin))
        raise UserError(line) from None
