"""Archives unpacked safely: nothing leaves the folder, nothing but plain files and folders, no more
bytes or files than allowed.
"""

import gzip
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO

from gpt1.base.errors import UserError

SUFFIXES = (".tar.gz", ".tgz", ".zip")  # both kinds carry checksums
CHUNK_BYTES = 1 << 20
MOST_FILES = 250_000  # RACE, the one of most files, has 28,000
MOST_RATIO = 100  # text packs some ten times smaller; zeros a thousand times
FREE_BYTES = 64 << 20  # so many may come of an archive whatever its ratio
LONGEST_HEADER = 1 << 20  # of a tar member: tarfile would take the memory that a header names
DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    gzip.BadGzipFile,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    LookupError,
    struct.error,
)  # the last ones of slips in the libraries


def is_archive(path: Path) -> bool:
    """Whether a file's name is that of an archive that `unpack` takes."""
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def unpack(archive: Path, folder: Path, max_bytes: int) -> None:
    """Unpack a .tar.gz, .tgz or .zip into a new folder; on any error nothing of it is left.

    Raises UserError for a member that is a link or a device or whose name is absolute, holds `..`
    or differs from another's in case alone, for more than `max_bytes` bytes in all or MOST_FILES
    files, and for an archive that is cut short, damaged or made to burst.
    """
    folder.mkdir(parents=True)
    left, names = max_bytes, set[str]()
    try:
        for name, content in (
            _zip_files(archive) if archive.name.lower().endswith(".zip") else _tar_files(archive)
        ):
            _remember(archive, name, names)
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                while block := content.read(CHUNK_BYTES):
                    left -= len(block)
                    if left < 0:
                        raise UserError(
                            f"{archive} unpacks to more than {max_bytes} bytes; check what it is, "
                            "or raise acquire.max_unpacked_bytes in params.yaml"
                        )
                    _refuse_burst(archive, max_bytes - left)
                    file.write(block)
    except DAMAGE as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(
            f"{archive} cannot be unpacked ({error or type(error).__name__}): "
            "it is cut short or damaged; get it again"
        ) from None
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(
            f"{archive} cannot be unpacked: {error.strerror or error}; make room and make it"
            " readable, or get it again"
        ) from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _inside(archive: Path, name: str) -> PurePosixPath:
    """A member's name as a relative path. Raises UserError where it would leave the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in name.replace("\\", "/").split("/") or path == PurePosixPath():
        raise UserError(
            f"{archive} holds {name!r}, which would leave the folder; expected names inside it, get"
            " the official archive again"
        )
    return path


def _remember(archive: Path, name: PurePosixPath, names: set[str]) -> None:
    """Raise UserError for one file too many, or a name that was there: one of the two would replace
    the other.
    """
    folded = str(name).casefold()  # many disks know no case
    if folded in names:
        raise UserError(
            f"{archive} holds {str(name)!r} twice, or in two spellings; expected each file once,"
            " get the official archive again"
        )
    names.add(folded)
    if len(names) > MOST_FILES:
        raise UserError(
            f"{archive} holds more than {MOST_FILES:,} files, expected an official archive; unpack"
            " it yourself if it is one"
        )


def _refuse_burst(archive: Path, unpacked: int) -> None:
    """Raise UserError where so many unpacked bytes are more than any text gives."""
    if unpacked > max(FREE_BYTES, MOST_RATIO * archive.stat().st_size):
        raise UserError(
            f"{archive} unpacks to more than {MOST_RATIO} times its size, as no text does; check"
            " what it is, and unpack it yourself if all is well"
        )


def _refuse(archive: Path, name: str, kind: str) -> UserError:
    return UserError(
        f"{archive} holds {name!r}, which is {kind}; expected plain files and folders only, get the"
        " official archive again"
    )


class _Watched:
    """The bytes in a gzip file, for tarfile: no read is longer than a header may be, and no more
    come than from a text.
    """

    def __init__(self, archive: Path, stream: gzip.GzipFile) -> None:
        self.archive, self.stream = archive, stream
        self.tell = stream.tell

    def read(self, size: int) -> bytes:
        """At most `size` bytes. Raises TarError where that is more than LONGEST_HEADER."""
        if not 0 <= size <= LONGEST_HEADER:
            raise tarfile.ReadError("a header that is longer than any file's name")
        return self.stream.read(size)

    def seek(self, position: int) -> None:
        """Go to a position, in steps. Raises UserError where the way is too long."""
        while (place := self.stream.tell()) < position:
            _refuse_burst(self.archive, place)
            if self.stream.seek(min(position, place + CHUNK_BYTES)) == place:
                break
        self.stream.seek(position)


def _tar_files(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """(relative path, content) of every plain file in a tar archive, in its order."""
    with (
        gzip.open(archive) as stream,
        tarfile.open(
            fileobj=_Watched(archive, stream),  # type: ignore[call-overload]
            mode="r:",
        ) as tar,
    ):
        for member in tar:
            if member.isdir():
                continue
            if not member.isfile() or member.issparse():
                kind = (
                    "a link"
                    if member.issym() or member.islnk()
                    else "a file with holes"
                    if member.isfile()
                    else "a device"
                )
                raise _refuse(archive, member.name, kind)
            content = tar.extractfile(member)
            assert content is not None  # a plain file has content
            yield _inside(archive, member.name), content
            tar.members.clear()  # memory for one member, however many there are
        while stream.read(
            CHUNK_BYTES
        ):  # to the checksum at its end: tarfile takes a broken header for the end of the archive
            _refuse_burst(archive, stream.tell())


def _zip_files(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """(relative path, content) of every plain file in a zip archive, in its order."""
    with zipfile.ZipFile(archive) as zip_:
        members = zip_.infolist()
        for one, other in pairwise(sorted(members, key=lambda member: member.header_offset)):
            if one.header_offset + one.compress_size > other.header_offset:
                raise zipfile.BadZipFile(
                    f"{one.filename!r} and {other.filename!r} lie on the same bytes"
                )
        for member in members:
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise _refuse(
                    archive, member.filename, "a link" if kind == stat.S_IFLNK else "a device"
                )
            if member.compress_type not in (
                zipfile.ZIP_STORED,
                zipfile.ZIP_DEFLATED,
            ):  # others may ask for gigabytes
                raise zipfile.BadZipFile("packed by another method than deflate")
            with zip_.open(member) as content:
                yield _inside(archive, member.filename), content
