"""`acquire`: the official files of one source, from data/raw/<source> to data/acquire, with a
manifest; nothing else is taken along. A task's files are read once, so that what `encode` could
not read is found here.
"""

import errno
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from gpt1.base.errors import TemporaryError, UserError
from gpt1.base.files import DATA, read_json, stage_folder, write_json, writing_folder
from gpt1.params.schema import read_params
from gpt1.sources.archives import is_archive, unpack
from gpt1.sources.find import find_files
from gpt1.sources.table import SOURCES, Source, is_made_up
from gpt1.tasks.pronouns import DPRD
from gpt1.tasks.readers import check_task
from gpt1.tasks.table import TASKS

CHUNK_BYTES = 1 << 20
SHOWN_ENTRIES = 8
BINARY = (".parquet", ".arrow", ".gz", ".zst")  # their bytes have no lines
MADE_UP = "made up by gpt1.demo"
READ = TASKS | {DPRD.name: DPRD}  # by later stages, row by row
DOWNLOADED = "download.json"  # what the stage `download` says of its files
MAY_PASS = {
    errno.EIO,
    errno.ESTALE,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
}


def source_named(name: str) -> Source:
    """The source of that name. Raises UserError where there is none."""
    sources = SOURCES | {name: task.source for name, task in TASKS.items()}
    if name not in sources:
        raise UserError(f"expected one source of {', '.join(sources)}; found {name}")
    return sources[name]


def unreadable(path: Path, error: OSError) -> UserError:
    """What to say of a file that cannot be read: a network disk may be back when the stage is tried
    again.
    """
    kind, cure = (
        (TemporaryError, "try again")
        if error.errno in MAY_PASS
        else (UserError, "make it readable to you, or take it away")
    )
    return kind(f"{path} cannot be read ({error.strerror}); {cure}")


def locate(source: Source, raw: Path, spare: Path, max_bytes: int) -> dict[str, Path]:
    """Where the official files lie: under `raw`, or in its archives, which are unpacked into
    `spare`.

    Raises UserError naming the expected files and what was found where they are not complete.
    """
    try:
        entries = sorted(raw.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{raw} is not there; expected a folder, or a link to one, with {source.expected}:"
            f" {source.how_to_get}"
        ) from None
    except OSError as error:
        raise unreadable(raw, error) from None
    if files := find_files(source, raw):
        return files
    for archive in filter(is_archive, entries if not source.every else []):
        unpack(archive, spare / archive.name, max_bytes)
        if files := find_files(source, spare / archive.name):
            return beside(source, raw, files) | files
    names = [entry.name for entry in entries]
    found = ", ".join(names[:SHOWN_ENTRIES]) + (
        f" and {len(names) - SHOWN_ENTRIES} more" if len(names) > SHOWN_ENTRIES else ""
    )
    raise UserError(
        f"{raw}: expected {source.expected}; found {found or 'nothing'}; {source.how_to_get}"
    )


def beside(source: Source, raw: Path, files: Collection[str]) -> dict[str, Path]:
    """Optional files of the layout of `files` that lie beside an archive, not in it: GLUE gives its
    diagnostic set by itself.
    """
    names = {
        name
        for layout in source.layouts
        if not layout.exported and {*layout.required} <= {*files}
        for name in layout.optional
    }
    places = {
        name: [raw / one for one in (name, *source.also.get(name, ())) if (raw / one).is_file()]
        for name in sorted(names)
    }
    return {name: there[0] for name, there in places.items() if there}


def copy_file(origin: Path, target: Path) -> dict[str, object]:
    """Copy a file byte for byte; its row in the manifest."""
    digest, bytes_, rows, last = hashlib.sha256(), 0, 0, b"\n"
    try:
        with origin.open("rb") as reader, target.open("wb") as writer:
            while block := reader.read(CHUNK_BYTES):
                writer.write(block)
                digest.update(block)
                bytes_, rows, last = bytes_ + len(block), rows + block.count(b"\n"), block[-1:]
    except OSError as error:
        raise unreadable(origin, error) from None
    counted = {} if target.suffix in BINARY else {"rows": rows + (last != b"\n")}
    return {"sha256": digest.hexdigest(), "bytes": bytes_, **counted}


def combine_files(origin: Path, target: Path) -> dict[str, object]:
    """Write each small JSON file of a folder as one line, its name added as "file"; the row of the
    whole in the manifest.

    A file that is no JSON object becomes {"file", "unreadable": why}: the reader counts it, so that
    none is lost in silence.
    """
    with target.open("w", encoding="utf-8", newline="\n") as writer:
        for path in sorted(origin.glob("*.txt")):
            try:
                passage = json.loads(path.read_bytes())
            except OSError as error:
                raise unreadable(path, error) from None
            except (ValueError, RecursionError):
                passage = {"unreadable": "not JSON"}
            if not isinstance(passage, dict):
                passage = {"unreadable": "no JSON object"}
            writer.write(
                json.dumps(passage | {"file": f"{origin.parent.name}/{origin.name}/{path.name}"})
                + "\n"
            )
    with target.open("rb") as reader:
        digest = hashlib.file_digest(reader, "sha256").hexdigest()
        reader.seek(0)
        return {"sha256": digest, "bytes": target.stat().st_size, "rows": sum(1 for _ in reader)}


@contextmanager
def told_of(origins: Mapping[Path, Path]) -> Iterator[None]:
    """A UserError of the block names the files that a person brought, not what was made of them."""
    try:
        yield
    except UserError as error:
        line = str(error)
        for made, origin in origins.items():
            line = line.replace(str(made), str(origin))
        raise UserError(line) from None


def main(name: str) -> None:
    """Find, copy, read, describe: one source."""
    params = read_params()
    source = source_named(name)
    if source.name not in params.sources:
        raise UserError(
            f"params.yaml has no row sources.{source.name}; compose it anew with gpt1 profile"
        )
    row = params.sources[source.name]
    raw = DATA / row.folder / source.name
    with writing_folder(stage_folder("acquire", row.group, source.name)) as folder:
        spare = folder / ".unpacked"
        manifest: dict[str, object] = {}
        places = locate(source, raw, spare, params.acquire.max_unpacked_bytes)
        for file, place in tqdm(places.items(), desc=source.name, unit="file", disable=None):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            take: Callable[[Path, Path], dict[str, object]] = (
                combine_files if file in source.combined else copy_file
            )
            manifest[file] = take(place, folder / file)
        if name in READ:
            limit = params.encode.max_unreadable_fraction
            with told_of({folder / file: place for file, place in places.items()} | {spare: raw}):
                check_task(READ[name], folder, limit)
        shutil.rmtree(spare, ignore_errors=True)
        about = {
            "source": source.name,
            "origin": MADE_UP if is_made_up(row.folder) else source.origin,
            "licence": "MIT" if is_made_up(row.folder) else source.licence,
            "files": manifest,
        }
        downloaded = read_json(raw / DOWNLOADED)["files"] if row.folder == "download" else None
        write_json(
            folder / "manifest.json", about | ({"downloaded": downloaded} if downloaded else {})
        )
    print(f"{source.name}: {len(manifest)} files from {raw}", file=sys.stderr)
