"""What the next update needs is made by a thread while one is at work."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import torch

Made = TypeVar("Made")


class Ahead(Generic[Made]):
    """What `make` gives for each update in turn, up to the last one; made on behalf of a device."""

    def __init__(self, make: Callable[[int], Made], device: torch.device, last: int) -> None:
        def begin() -> None:  # or the thread would take memory of the first GPU
            if device.type == "cuda":
                torch.cuda.set_device(device)

        self.thread = ThreadPoolExecutor(1, "batches", begin)
        self.make, self.last = make, last
        self.next: tuple[int, Future[Made]] | None = None

    def take(self, update: int) -> Made:
        """That of an update; the next one is begun. Raises what making it has raised."""
        if self.next is None or self.next[0] != update:
            self.next = update, self.thread.submit(self.make, update)
        found = self.next[1].result()
        self.next = (
            (update + 1, self.thread.submit(self.make, update + 1)) if update < self.last else None
        )
        return found

    def drop(self) -> None:
        """Forget what was made ahead: it is to be made otherwise."""
        self.next = None

    def close(self) -> None:
        """Wait for what is being made; the thread is no more."""
        self.thread.shutdown()
