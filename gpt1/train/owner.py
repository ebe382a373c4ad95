"""Whose a run's folder of checkpoints is, on a disk that several machines share: the process's that
took it last.

A machine that Prefect's server believes dead has its stage sent to another one, and may live on:
it would write into the curve and remove the checkpoints of the run that has taken its place. No
lock would help, as the one that lives on holds it.
"""

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from gpt1.base.errors import UserError

OWNER = "owner"  # the file in the folder
THIS_PROCESS = f"{platform.node()}, process {os.getpid()} ({uuid4().hex})"


class TakenOverError(UserError):
    """Another process has taken a run's folder, or finished the run and removed it."""


def take(folders: Iterable[Path]) -> None:
    """Make runs' folders, from now on, this process's; whoever had one finds out before it writes
    there.
    """
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        own = folder / f".{OWNER}-{uuid4().hex}"  # two may take it at the same moment
        own.write_text(THIS_PROCESS, encoding="utf-8")
        own.replace(folder / OWNER)


def check(folder: Path) -> None:
    """Raise TakenOverError where a run's folder is another process's. One that nobody has taken is
    everybody's.
    """
    try:
        owner = (folder / OWNER).read_text(encoding="utf-8")
    except FileNotFoundError:
        owner = THIS_PROCESS if folder.is_dir() else ""
    if owner != THIS_PROCESS:
        what = f"taken over by {owner.partition(' (')[0]}" if owner else "finished by another"
        raise TakenOverError(
            f"{folder} was {what} while this process was at work on the same run: this one ends,"
            " and leaves it alone; there is nothing to do"
        )
