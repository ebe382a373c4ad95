"""Finished seeds of a stage, kept in the folder of its run: a killed stage repeats only the seed it
was in, and one whose DVC was killed before it noted the outputs repeats none.

The folder of a seed, and what it means when its stage starts:

- not there, or without state.json: to be trained;
- state.json: trained in a stage that has not ended, taken as it is if the code is the same;
- state.json and `ended`: its stage has ended and DVC may not have noted it yet. With the same code
  it is the output, with other code it is trained anew. It goes when a later training ends and its
  files have no second name, a hard link, among the outputs any more.
"""

import os
import shutil
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import CHECKPOINTS, read_json, write_json, writing_folder
from gpt1.train import checkpoint

STATE, ENDED = "state.json", "ended"


def note_finished(folder: Path, code: str) -> None:
    """Write state.json, which says what code made a seed, into its folder before that is whole."""
    write_json(folder / STATE, {"code": code})


def is_finished(folder: Path, code: str, accept: bool) -> bool:
    """Whether an earlier run has kept this seed. Raises UserError where other code made it and its
    stage has not ended.
    """
    ended = (folder / ENDED).exists()
    try:
        code_then = str(read_json(folder / STATE)["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    # Its outputs stand already; other code means that DVC wants it trained again.
    if ended and code_then != code:
        return False
    checkpoint.check_code(code_then, code, folder.parent, accept)
    if ended:
        print(
            f"{folder} is trained: its files are the outputs (delete it to train)", file=sys.stderr
        )
    return True


def put_seeds(places: Mapping[Path, Path], out: Path) -> None:
    """Put the outputs of kept seeds in their places, which are `out` or lie below it, as a whole.
    Raises UserError where one is missing.
    """
    with writing_folder(out) as new:
        for folder, place in places.items():
            if not folder.is_dir():
                raise UserError(
                    f"{folder} went away while the stage ran; run the same command again"
                )
            shutil.copytree(
                folder,
                new / place.relative_to(out),
                copy_function=checkpoint.link_or_copy,
                ignore=shutil.ignore_patterns(STATE, ENDED),
                dirs_exist_ok=True,
            )


def end_seeds(folders: Collection[Path]) -> None:
    """A stage has ended. Without DVC the folders of its runs go. With it they stay, for DVC has yet
    to note the stage and may be killed before: until a later training ends, and the outputs are no
    second names of theirs any more.
    """
    # A second name means that the outputs are hard links of these files, which cost no room; one
    # name means that DVC has its own copy by now.
    for mark in CHECKPOINTS.glob(f"*/seed-*/{ENDED}"):
        with suppress(OSError):  # another stage has removed it
            # Outputs on another disk are copies from the start, before DVC has noted them.
            if mark.parent not in folders and mark.with_name("summary.json").stat().st_nlink == 1:
                _remove(mark.parent)
    for folder in folders:
        if "DVC_STAGE" in os.environ:
            (folder / ENDED).touch()
        else:
            _remove(folder)


def _remove(seed: Path) -> None:
    (seed / STATE).unlink()  # first: what a kill leaves is not taken for whole
    shutil.rmtree(seed.parent)
