"""Finished seeds of a stage, kept in the folder of its run until the stage ends: a killed one
repeats only the seed it was in.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file, write_json, writing_folder
from gpt1.train import checkpoint

STATE = "state.json"


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file of a seed but its state."""
    return {
        path.relative_to(folder).as_posix(): sha256_file(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / STATE
    }


def note_finished(folder: Path, summary: Mapping[str, Any], code: Mapping[str, str]) -> None:
    """Write state.json beside a seed's outputs, to know them whole by."""
    state = {"code": dict(code), "summary": dict(summary), "sha256": digests(folder)}
    write_json(folder / STATE, state)


def finished_seed(folder: Path, code: Mapping[str, str], accept: bool) -> dict[str, Any] | None:
    """Summary of a seed kept by an earlier run, or None. Raises UserError where other code made
    it.
    """
    try:
        state = read_json(folder / STATE)
        if dict(state["sha256"]) != digests(folder):
            return None
        code_then, summary = dict(state["code"]), dict[str, Any](state["summary"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    checkpoint.check_code(code_then, code, folder.parent, accept)
    return summary


def put_seeds(kept: Mapping[Path, Path], out: Path) -> None:
    """Put the outputs of kept seeds in their places, which are `out` or lie below it, as a whole.
    Raises UserError where one is missing.
    """
    with writing_folder(out) as new:
        for folder, place in kept.items():
            if not folder.is_dir():
                raise UserError(
                    f"{folder} went away while the stage ran; run the same command again"
                )
            shutil.copytree(
                folder,
                new / place.relative_to(out),
                copy_function=checkpoint.link_or_copy,
                ignore=shutil.ignore_patterns(STATE),
                dirs_exist_ok=True,
            )
