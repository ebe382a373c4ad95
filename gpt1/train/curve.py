"""The curve of a run: one JSON object a line, on disk as soon as it is known, cut back to a checkpoint when a run goes on."""

import json
from pathlib import Path


class Curve:
    """Appends to a JSONL file; only the first `lines` of what is there already are kept. Without a path it only counts."""

    def __init__(self, path: Path | None, lines: int) -> None:
        self.path, self.lines = path, lines
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:lines] if lines else []
            path.write_text("".join(kept), encoding="utf-8")

    def add(self, point: dict[str, float]) -> None:
        """Append one point."""
        self.lines += 1
        if self.path is not None:
            with self.path.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(point) + "\n")
