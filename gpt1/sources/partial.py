"""A file in the making: its bytes, and beside them what they are bytes of, so that only the same
version is gone on with.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import write_json


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
