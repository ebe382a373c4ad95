"""The shared cache of downloads in the user's cache folder: whole files, files in the making, and a
ledger of the sha256 that each file had when it was first downloaded.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import write_json
from gpt1.base.locks import locked
from gpt1.base.settings import setting
from gpt1.sources.addresses import Checksum, Remote

CHUNK_BYTES = 1 << 20
LEDGER = "ledger.json"
FIRST_USE = "the first download into this cache"


def offline() -> bool:
    """Whether nothing may be asked of the network."""
    return setting("GPT1_OFFLINE") == "1"


def cache_folder() -> Path:
    """The user's cache of downloads; GPT1_CACHE moves it."""
    from platformdirs import user_cache_path

    given = setting("GPT1_CACHE")
    return (Path(given).expanduser() if given else user_cache_path("gpt1")) / "downloads"


def digest(path: Path, kind: str) -> str:
    """Hexadecimal checksum of a file: sha256, md5, or git's name of its bytes."""
    summed = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        summed.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(CHUNK_BYTES):
            summed.update(block)
    return summed.hexdigest()


def read_ledger(cache: Path) -> dict[str, dict[str, object]]:
    """{source/file: sha256, bytes, address} as recorded. Raises UserError where the ledger is
    damaged.
    """
    path = cache / LEDGER
    try:
        ledger = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        ledger = None
    if not isinstance(ledger, dict) or not all(
        isinstance(row, dict) and isinstance(row.get("sha256"), str) for row in ledger.values()
    ):
        raise UserError(
            f"{path}: expected the checksums of what was downloaded before, found something else;"
            " take the file away, and they are recorded anew"
        )
    return ledger


def expected(cache: Path, source: str, remote: Remote) -> tuple[Checksum, ...]:
    """The checksums that a file must have: the published one, and where that is no sha256 the one
    recorded at first use.
    """
    published = () if remote.checksum is None else (remote.checksum,)
    row = read_ledger(cache).get(f"{source}/{remote.name}")
    if row is None or (published and published[0].kind == "sha256"):
        return published
    return (*published, Checksum("sha256", str(row["sha256"]), FIRST_USE))


def record(cache: Path, source: str, remote: Remote, path: Path, address: str) -> None:
    """Write down the sha256 of a file that came whole, unless it was written down before; for one
    run at a time.
    """
    with locked(cache / f".{LEDGER}.lock"):
        ledger = read_ledger(cache)
        if f"{source}/{remote.name}" not in ledger:
            row: dict[str, object] = {
                "sha256": digest(path, "sha256"),
                "bytes": path.stat().st_size,
                "address": address,
            }
            write_json(cache / LEDGER, ledger | {f"{source}/{remote.name}": row})


def difference(path: Path, remote: Remote, wanted: tuple[Checksum, ...]) -> str:
    """What of a file is not as expected, in words; empty where all is."""
    size = path.stat().st_size
    if remote.bytes_ is not None and size != remote.bytes_:
        return f"expected {remote.bytes_:,} bytes, found {size:,}"
    for checksum in wanted:
        if (found := digest(path, checksum.kind)) != checksum.value:
            whose = (
                f"recorded at {FIRST_USE} (published anew? take its row out of {LEDGER} there)"
                if checksum.publisher == FIRST_USE
                else f"published by {checksum.publisher}"
            )
            return f"expected {checksum.kind} {checksum.value}, {whose}, found {found}"
    return ""


@dataclass(frozen=True)
class Partial:
    """A file in the making, and beside it what its bytes are of: address, the server's mark of that
    version, bytes in all.
    """

    path: Path

    @property
    def about(self) -> Path:
        """Where that is written."""
        return self.path.with_name(f"{self.path.name}.json")

    @property
    def size(self) -> int:
        """Bytes that are there."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def remembered(self, address: str) -> dict[str, object]:
        """What is known of the bytes that are there, if they are of this address; else nothing."""
        try:
            about = json.loads(self.about.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return about if isinstance(about, dict) and about.get("address") == address else {}

    def remember(self, address: str, mark: str, bytes_: int | None) -> None:
        """Write down what the bytes to come are of."""
        write_json(self.about, {"address": address, "mark": mark, "bytes": bytes_})

    def drop(self) -> None:
        """Take both away."""
        self.path.unlink(missing_ok=True)
        self.about.unlink(missing_ok=True)


@contextmanager
def opened(partial: Partial, mode: str) -> Iterator[Callable[[bytes], object]]:
    """A function that writes to the partial file. It raises UserError where the disk takes no more;
    what it took stays, to go on from.
    """

    def write(block: bytes) -> None:
        left = memoryview(block)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise UserError(
                f"{partial.path} cannot be written ({error.strerror}); make room, or set GPT1_CACHE"
                " to a folder on another disk; what came is kept"
            ) from None

    with partial.path.open(mode, buffering=0) as file:
        yield write
