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
from typing import NamedTuple

from gpt1.base.errors import UserError
from gpt1.exchange.submission.board import BY_NAME, FILES, BoardFile
from gpt1.exchange.submission.rows import wrong_in
from gpt1.tasks.rows import shown

MOST_ZIP_BYTES = 8 << 20  # the eleven files uncompressed take 4 MB
MOST_WRONG = 30  # lines that a person reads
MOST_MEMBERS = 300
OTHER_ARCHIVES = {
    b"\x1f\x8b": "gzip",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "rar",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"(\xb5/\xfd": "zstd",
}
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Member(NamedTuple):
    """A file of a submission: its bytes, or why it cannot be read."""

    name: str
    content: bytes = b""
    wrong: str | None = None


def wrong_with(path: Path) -> list[str]:
    """What the server would refuse, a line each, in the files' order; none where all is well.

    Raises UserError where `path` is neither a folder nor a zip that can be opened, or is far too
    large.
    """
    members = _of_folder(path) if path.is_dir() else _of_zip(path)
    seen: set[str] = set()
    about_files: dict[str, str] = {}
    about_others: dict[str, None] = {}
    for member in members:
        if member.name in BY_NAME and member.name in seen:
            about_files[member.name] = (
                f"{member.name}: expected it once, found it twice; leave one out"
            )
        elif member.name in BY_NAME:
            seen.add(member.name)
            wrong = member.wrong or wrong_in(BY_NAME[member.name], member.content)
            about_files |= {member.name: f"{member.name}: {wrong}"} if wrong else {}
        else:
            line, meant = _misplaced(member.name)
            seen |= {meant} if meant else set()
            about_others[line] = None
    for file in FILES:
        if file.name not in seen:
            about_files[file.name] = (
                f"{file.name}: expected {file.rows} predictions, found no such file; the server"
                f" wants all {len(FILES)} files: gpt1 submission make --fill gives constant answers"
                " for what lacks"
            )
    found = [*about_others, *(about_files[file.name] for file in FILES if file.name in about_files)]
    return (
        found
        if len(found) <= MOST_WRONG
        else [*found[:MOST_WRONG], f"and {len(found) - MOST_WRONG} more like these"]
    )


def _misplaced(name: str) -> tuple[str, str | None]:
    """What is wrong with a name that is none of the eleven, and the file that is meant, if any."""
    *folders, last = re.split(r"[/\\]", name.rstrip("/\\")) or [""]
    if "__MACOSX" in (*folders, last):
        return (
            (
                "__MACOSX: expected only the eleven files, found a folder that macOS added; zip"
                " them by zip -X FILE *.tsv"
            ),
            None,
        )
    if folders or name != last:
        meant = last if last in BY_NAME else None
        top = folders[0] if folders else last
        return (
            (
                f"{shown(top + '/')}: expected the files themselves, found a folder; go into it and"
                " zip them there: zip -X ../FILE *.tsv"
            ),
            meant,
        )
    simple = _simplified(last)
    near = next((file.name for file in FILES if _simplified(file.name) == simple), None)
    if near:
        return (
            (
                f"{shown(last)}: expected the name {near}; rename it, capitals, hyphens and ending"
                " as here"
            ),
            near,
        )
    return f"{shown(last)}: expected only the eleven files, found another; leave it out", None


def _simplified(name: str) -> str:
    """A file's name without its ending, capitals and signs."""
    return re.sub("[^a-z0-9]", "", name.lower().rpartition(".")[0] or name.lower())


def _of_folder(folder: Path) -> Iterator[Member]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield Member(f"{path.name}/")
        elif path.name not in BY_NAME:
            yield Member(path.name)
        elif not path.is_file():
            yield Member(
                path.name,
                wrong="expected a plain file, found something else; put the file itself there",
            )
        else:
            try:
                with path.open("rb") as file:
                    yield _bounded(path.name, file.read(BY_NAME[path.name].most_bytes + 1))
            except OSError as error:
                yield Member(
                    path.name, wrong=f"cannot be read ({error.strerror}); make it readable"
                )


def _bounded(name: str, content: bytes) -> Member:
    """A file's member, where it has no more bytes than it may."""
    file = BY_NAME[name]
    return (
        Member(name, content)
        if len(content) <= file.most_bytes
        else Member(name, wrong=_too_large(file))
    )


def _too_large(file: BoardFile, found: int | None = None) -> str:
    return (
        f"expected at most {file.most_bytes:,} bytes, {file.rows} rows, found"
        f" {f'{found:,}' if found else 'more'}; write an index and a prediction a row, nothing else"
    )


def _of_zip(path: Path) -> Iterator[Member]:
    """The members of a zip. Raises UserError where it is none."""
    try:
        plain, size, start = stat.S_ISREG(path.stat().st_mode), path.stat().st_size, b""
        if plain:
            with path.open("rb") as file:
                start = file.read(8)
    except FileNotFoundError:
        raise UserError(
            f"{path}: expected a zip or a folder of the {len(FILES)} files, found none; "
            "gpt1 submission make FILE makes one"
        ) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); make it readable") from None
    if not plain or not size:
        raise UserError(
            f"{path}: expected a zip, found"
            f" {'an empty file' if plain else 'something that is no file'}; make it again"
        )
    if size > MOST_ZIP_BYTES:
        raise UserError(
            f"{path}: expected a zip of at most {MOST_ZIP_BYTES:,} bytes, found {size:,}; zip the"
            f" {len(FILES)} files alone"
        )
    other = next((name for magic, name in OTHER_ARCHIVES.items() if start.startswith(magic)), None)
    if other:
        raise UserError(
            f"{path}: expected a zip, found a {other} file; the server takes no other archive: zip"
            " -X FILE *.tsv"
        )
    try:
        archive = zipfile.ZipFile(path)
    except DAMAGE as error:
        raise UserError(
            f"{path}: expected a zip, found none, or one cut short ({_said(error)}); "
            "make it again: zip -X FILE *.tsv"
        ) from None
    with archive:
        if (many := len(archive.infolist())) > MOST_MEMBERS:
            raise UserError(
                f"{path}: expected {len(FILES)} files, found {many:,}; zip those files alone: zip"
                " -X FILE *.tsv"
            )
        yield from (_of_entry(archive, entry) for entry in archive.infolist())


def _of_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Member:
    """One member, read as far as it may be long."""
    file, kind = BY_NAME.get(entry.filename), stat.S_IFMT(entry.external_attr >> 16)
    if file is None:
        return Member(entry.filename)
    if kind not in (0, stat.S_IFREG):
        return Member(
            file.name, wrong="expected a plain file, found a link or a device; zip the file itself"
        )
    if entry.flag_bits & 0x1:
        return Member(
            file.name,
            wrong="expected no password, found the file encrypted; zip the files without one",
        )
    if entry.compress_type not in METHODS:
        return Member(
            file.name,
            wrong=(
                f"expected it stored or deflated, found compression method {entry.compress_type}; "
                "zip it by zip -X FILE *.tsv"
            ),
        )
    if entry.file_size > file.most_bytes:
        return Member(file.name, wrong=_too_large(file, entry.file_size))
    try:
        with archive.open(entry) as content:
            return _bounded(file.name, content.read(file.most_bytes + 1))
    except DAMAGE as error:
        return Member(
            file.name,
            wrong=f"expected a whole file, found it damaged ({_said(error)}); make the zip again",
        )


def _said(error: Exception) -> str:
    """What an error says, fit for a line on a terminal."""
    return shown(str(error)) if str(error) else type(error).__name__
