"""Archives unpacked safely: plain files within one folder, up to a size and a number."""

import gzip
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from gpt1.base.errors import UserError

SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")
CHUNK_BYTES = 1 << 20
GZIP = b"\x1f\x8b"
MOST_FILES = 250_000  # RACE, the one of most files, has 28,000


def is_archive(path: Path) -> bool:
    """Return whether `unpack` takes a file of this name."""
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def unpack(archive: Path, folder: Path, max_bytes: int) -> None:
    """Unpack an archive into a new folder; after an error nothing of it is left.

    Raises UserError for links, devices, names that are absolute, hold `..` or differ in case alone,
    more than `max_bytes` bytes or MOST_FILES files, and damage.
    """
    folder.mkdir(parents=True)
    left, names = max_bytes, set[str]()
    try:
        for name, content in _files(archive):
            if name.startswith("/") or ".." in name.split("/"):
                raise _refused(archive, f"{name!r}, which would leave the folder")
            folded = str(Path(name)).casefold()  # many disks know no case
            if folded in names or len(names) == MOST_FILES:
                raise _refused(archive, f"{name!r} twice, or more than {MOST_FILES:,} files")
            names.add(folded)
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with content as reader, target.open("wb") as writer:
                while block := reader.read(CHUNK_BYTES):
                    left -= len(block)
                    if left < 0:
                        raise UserError(
                            f"{archive} unpacks to more than {max_bytes} bytes; check what it is, "
                            "or raise acquire.max_unpacked_bytes in params.yaml"
                        )
                    writer.write(block)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, Exception) and not isinstance(error, UserError):
            raise UserError(
                f"{archive} cannot be unpacked ({error or type(error).__name__}): get it again,"
                " make room on the disk, or unpack it by hand and put there what it holds"
            ) from None
        raise


def _refused(archive: Path, what: str) -> UserError:
    return UserError(
        f"{archive} holds {what}; expected plain files inside it, each once: get the official"
        " archive again"
    )


def _files(archive: Path) -> Iterator[tuple[str, AbstractContextManager[IO[bytes]]]]:
    """Yield name and content of every file. Raises UserError for links and devices."""
    if archive.name.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as zip_:
            for info in zip_.infolist():
                if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise _refused(archive, f"{info.filename!r}, which is a link or a device")
                name = info.filename.replace("\\", "/")  # as old Windows programs write it
                if not name.endswith("/"):
                    try:
                        yield name, zip_.open(info)
                    except NotImplementedError:  # Deflate64, of Windows' Explorer, is 9
                        raise ValueError(f"compression method {info.compress_type}") from None
        return
    with archive.open("rb") as file:
        packed = file.read(2) == GZIP  # some browsers unpack what they save
    with (
        (gzip.open if packed else open)(archive, "rb") as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        for member in tar:
            if not member.isdir():
                content = tar.extractfile(member) if member.isreg() else None
                if content is None:
                    raise _refused(archive, f"{member.name!r}, which is a link or a device")
                yield member.name, content
            # memory for one member, however many there are
            tar.members.clear()  # type: ignore[attr-defined]
        while stream.read(CHUNK_BYTES):  # to the checksum at its end: tarfile takes a broken header
            pass  # for the end of the archive
