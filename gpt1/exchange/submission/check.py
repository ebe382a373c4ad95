"""A whole submission, a zip or a folder of its files, checked for what GLUE's server would refuse;
nothing is unpacked to disk.
"""

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.exchange.submission.board import BY_NAME, FILES, wrong_in
from gpt1.tasks.rows import quoted

MOST_ZIP_BYTES = 8 << 20  # the eleven files uncompressed take 4 MB
MOST_WRONG = 30  # lines that a person reads
MOST_MEMBERS = 300
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,  # for one that wants a password
    ValueError,
    OSError,
)
ALONE = "zip the eleven files alone, in no folder: zip -X FILE *.tsv"

Member = tuple[str, bytes | str]  # a file's name, and its bytes or what is wrong with it


def wrong_with(path: Path) -> list[str]:
    """What the server would refuse, a line each, in the files' order; none where all is well.

    Raises UserError where `path` is neither a folder nor a zip that can be opened, or is far too
    large.
    """
    of_files: dict[str, str | None] = {}
    of_others: dict[str, None] = {}
    for name, content in _of_folder(path) if path.is_dir() else _of_zip(path):
        *folders, last = re.split(r"[/\\]", name)
        if name not in BY_NAME:
            top = f"{folders[0]}/" if folders else last
            of_others[f"{quoted(top)}: expected only the files' names, found another; {ALONE}"] = (
                None
            )
            of_files.setdefault(last, None)  # a file in a folder is told of but once
        elif name in of_files:
            of_files[name] = "expected it once, found it twice; leave one out"
        else:
            wrong = content if isinstance(content, str) else wrong_in(BY_NAME[name], content)
            of_files[name] = wrong
    lines = [*of_others]
    for file in FILES:
        wrong = of_files.get(
            file.name,
            f"expected {file.rows} predictions, found no such file; the server wants all"
            f" {len(FILES)} files: gpt1 submission make --fill gives constant answers for what"
            " lacks",
        )
        lines += [f"{file.name}: {wrong}"] if wrong else []
    more = [f"and {len(lines) - MOST_WRONG} more like these"] if len(lines) > MOST_WRONG else []
    return lines[:MOST_WRONG] + more


def _of_folder(folder: Path) -> Iterator[Member]:
    for path in sorted(folder.iterdir()):
        if path.name not in BY_NAME:
            yield f"{path.name}/" if path.is_dir() else path.name, b""
        elif not path.is_file():
            yield (
                path.name,
                "expected a plain file, found something else; put the file itself there",
            )
        else:
            try:
                with path.open("rb") as file:
                    yield path.name, file.read(BY_NAME[path.name].most_bytes + 1)
            except OSError as error:
                yield path.name, f"cannot be read ({error.strerror}); make it readable"


def _of_zip(path: Path) -> Iterator[Member]:
    """The members of a zip. Raises UserError where it is none."""
    expected = f"{path}: expected a zip or a folder of the {len(FILES)} files, found"
    if not path.is_file():
        raise UserError(f"{expected} none; gpt1 submission make FILE makes one")
    if (size := path.stat().st_size) > MOST_ZIP_BYTES:
        raise UserError(f"{expected} {size:,} bytes, more than {MOST_ZIP_BYTES:,}; {ALONE}")
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE as error:
        raise UserError(
            f"{expected} none that can be read, or one cut short ({_said(error)}); make it again:"
            " zip -X FILE *.tsv"
        ) from None
    with archive:
        if (many := len(archive.infolist())) > MOST_MEMBERS:
            raise UserError(f"{expected} {many:,} files; {ALONE}")
        yield from (_of_entry(archive, entry) for entry in archive.infolist())


def _of_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Member:
    """One member, read as far as it may be long."""
    name, kind = entry.filename, stat.S_IFMT(entry.external_attr >> 16)
    if name not in BY_NAME:
        return name, b""
    if kind not in (0, stat.S_IFREG):
        return name, f"expected a plain file, found a link or a device; {ALONE}"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return name, f"expected it deflated, found compression {entry.compress_type}; {ALONE}"
    try:
        with archive.open(entry) as content:
            return name, content.read(BY_NAME[name].most_bytes + 1)
    except DAMAGE as error:
        return name, f"expected a whole file without password, found none ({_said(error)}); {ALONE}"


def _said(error: Exception) -> str:
    """What an error says, fit for a line on a terminal."""
    return quoted(str(error) or type(error).__name__)
