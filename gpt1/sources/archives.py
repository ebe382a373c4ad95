"""Archives unpacked safely: nothing leaves the folder, nothing but plain files and folders, no more bytes than allowed."""

import gzip
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from gpt1.errors import UserError

SUFFIXES = (".tar.gz", ".tgz", ".zip")  # both kinds carry checksums
CHUNK_BYTES = 1 << 20
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError, NotImplementedError, RuntimeError)


def is_archive(path: Path) -> bool:
    """Whether a file's name is that of an archive that `unpack` takes."""
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def unpack(archive: Path, folder: Path, max_bytes: int) -> None:
    """Unpack a .tar.gz, .tgz or .zip into a new folder; on any error nothing of it is left.

    Raises UserError for a member that is a link or a device or whose name is absolute or holds `..`, for more than `max_bytes`
    bytes in all, and for an archive that is cut short or damaged.
    """
    folder.mkdir(parents=True)
    left = max_bytes
    try:
        for name, content in _zip_files(archive) if archive.name.lower().endswith(".zip") else _tar_files(archive):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                while block := content.read(CHUNK_BYTES):
                    left -= len(block)
                    if left < 0:
                        raise UserError(f"{archive} unpacks to more than {max_bytes} bytes; check what it is, "
                                        "or raise acquire.max_unpacked_bytes in params.yaml")
                    file.write(block)
    except DAMAGE as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(f"{archive} cannot be unpacked ({error or type(error).__name__}): "
                        "it is cut short or damaged; get it again") from None
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(f"{archive} cannot be unpacked: {error.strerror}; make room and make it readable") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _inside(archive: Path, name: str) -> PurePosixPath:
    """A member's name as a relative path. Raises UserError where it would leave the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in name.replace("\\", "/").split("/") or path == PurePosixPath():
        raise UserError(f"{archive} holds {name!r}, which would leave the folder; expected names inside it, get the official archive again")
    return path


def _refuse(archive: Path, name: str, kind: str) -> UserError:
    return UserError(f"{archive} holds {name!r}, which is {kind}; expected plain files and folders only, get the official archive again")


def _tar_files(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """(relative path, content) of every plain file in a tar archive, in its order."""
    with gzip.open(archive) as stream, tarfile.open(fileobj=stream) as tar:
        for member in tar:
            if member.isdir():
                continue
            if not member.isfile():
                raise _refuse(archive, member.name, "a link" if member.issym() or member.islnk() else "a device")
            content = tar.extractfile(member)
            assert content is not None  # a plain file has content
            yield _inside(archive, member.name), content
        while stream.read(CHUNK_BYTES):  # to the checksum at its end: tarfile takes a broken header for the end of the archive
            pass


def _zip_files(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """(relative path, content) of every plain file in a zip archive, in its order."""
    with zipfile.ZipFile(archive) as zip_:
        for member in zip_.infolist():
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise _refuse(archive, member.filename, "a link" if kind == stat.S_IFLNK else "a device")
            with zip_.open(member) as content:
                yield _inside(archive, member.filename), content
