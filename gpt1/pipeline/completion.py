"""A stage's word that its command has ended well, for the case that DVC is ended before it has
recorded that.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from gpt1.base.files import LOGS, files_under, looks, read_json, write_json

# the variable that asks a stage for its mark: what its inputs look like, and the stage's name
ASKED = "GPT1_MARK"
WATCHED = ("params.yaml", "dvc.yaml")


def path_of(name: str) -> Path:
    """Where the mark of a stage lies."""
    return LOGS / "run" / f"{name}.finished"


def ask(name: str, reads: Sequence[str]) -> dict[str, str]:
    """The variable that asks a stage, which is about to start, for its mark."""
    path_of(name).unlink(missing_ok=True)
    return {ASKED: f"{looks([*reads, *WATCHED])} {name}"}


def leave() -> None:
    """In the stage's own process, at its very end: leave the mark, where one was asked for. Other
    ranks leave none.
    """
    inputs, _, name = os.environ.get(ASKED, "").partition(" ")
    if name and "RANK" not in os.environ:
        write_json(path_of(name), inputs)


def stands(name: str, reads: Sequence[str], writes: Sequence[str]) -> bool:
    """Whether the stage's command ended well, its inputs look as they did, and its outputs are
    there, untouched since.
    """
    try:
        ended = path_of(name).stat().st_mtime_ns
        return (
            read_json(path_of(name)) == looks([*reads, *WATCHED])
            and all(Path(path).exists() for path in writes)
            and all(file.stat().st_mtime_ns <= ended for file in files_under(writes))
        )
    except (OSError, ValueError):
        return False
