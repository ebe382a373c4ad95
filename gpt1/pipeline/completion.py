"""A stage's word that its command has ended well, for the case that DVC is ended before it has
recorded that.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gpt1.base.files import LOGS, fingerprint, read_json, write_json

# the variable that asks a stage for its mark: what its inputs look like, and the stage's name
ASKED = "GPT1_MARK"
WATCHED = ("params.yaml", "dvc.yaml")


def path_of(name: str) -> Path:
    """Where the mark of a stage lies."""
    return LOGS / "run" / f"{name}.finished"


def files_under(paths: Iterable[str]) -> Iterator[Path]:
    """The files that lie under files and folders; links to folders are followed where they are
    given, as DVC does.
    """
    for path in map(Path, paths):
        yield from (
            file
            for file in [path, *sorted(path.rglob("*"))]
            if file.is_file() and "__pycache__" not in file.parts
        )


def looks(paths: Sequence[str]) -> str:
    """Sixteen digits that stand for the files under `paths` by size and time of last change, as
    DVC's own memory of hashes does.
    """
    facts = []
    for file in files_under(paths):
        with suppress(OSError):
            facts.append([str(file), file.stat().st_size, file.stat().st_mtime_ns])
    return fingerprint(facts)


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
