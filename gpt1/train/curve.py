"""The curve of a run: one JSON object a line, on disk as soon as it is known, cut back to a
checkpoint when a run goes on.
"""

import json
import os
import sys
from pathlib import Path

from gpt1.base.errors import UserError


class Curve:
    """Appends to a JSONL file; only the first `lines` of what is there already are kept. Without a
    path it only counts.

    Lines for which the disk has no room wait in memory. Raises UserError where fewer than `lines`
    lines are there.
    """

    def __init__(self, path: Path | None, lines: int) -> None:
        self.path, self.lines, self.waiting, self.bytes_ = path, lines, "", 0
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            kept = [
                line
                for line in path.read_bytes().splitlines(keepends=True)[:lines]
                if line.endswith(b"\n")
            ]
            if len(kept) < lines:
                raise UserError(
                    f"{path}: expected the {lines} lines up to the last checkpoint, found"
                    f" {len(kept)}; delete the folder {path.parent} to start the run again"
                )
            self.bytes_ = sum(map(len, kept))
            os.truncate(path, self.bytes_)

    def add(self, point: dict[str, float]) -> None:
        """Append one point."""
        self.lines += 1
        if self.path is not None:
            already, self.waiting = (
                self.waiting,
                self.waiting + json.dumps(point, allow_nan=False) + "\n",
            )
            try:
                self.write()
            except OSError as error:
                if not already:
                    print(
                        f"{self.path} cannot be written ({error.strerror}): its lines wait in"
                        " memory, training goes on",
                        file=sys.stderr,
                        flush=True,
                    )

    def write(self) -> None:
        """Put on disk what waits. Raises OSError where that cannot be; a part that went there is
        cut off by the next try.
        """
        if self.waiting and self.path is not None:
            with self.path.open("r+b") as file:
                file.truncate(self.bytes_)
                file.seek(self.bytes_)
                written = file.write(self.waiting.encode())
            self.bytes_, self.waiting = self.bytes_ + written, ""
