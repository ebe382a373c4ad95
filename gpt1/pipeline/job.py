"""One stage at work: its `dvc repro --single-item`, its log, and what became of it."""

import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpt1.base.errors import TEMPORARY_STATUS
from gpt1.base.files import LOGS
from gpt1.pipeline import completion
from gpt1.pipeline.graph import record
from gpt1.pipeline.process_group import DVC, end_orphans
from gpt1.pipeline.schedule import Stage

How = Literal["run", "elsewhere", "from DVC's cache", "recorded", "unchanged", "failed"]
OUT_OF_MEMORY = re.compile(
    r"OutOfMemoryError|out of memory\. Tried|DefaultCPUAllocator: can't allocate|MemoryError"
)
EXITED = re.compile(
    r"exited with (-?\d+)$", re.MULTILINE
)  # what DVC says of a stage; through a shell, 128 and more stand for signals
OF_MACHINE = re.compile(
    "|".join(map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EROFS))) + "|read RWLock-file"
)
OF_OTHERS = {
    signal.SIGKILL,
    signal.SIGBUS,
    signal.SIGSEGV,
}  # signals that no one asked for an end by
KERNEL_COUNTS = Path("/proc/vmstat")


@dataclass(frozen=True)
class Ended:
    """What became of a stage: how it ended; where it failed, why in one line, whether it may go
    better, with less memory, next time, and whether any other stage would fail as well.
    """

    how: How
    why: str = ""
    lost: bool = False
    out_of_memory: bool = False
    of_machine: bool = False

    @property
    def well(self) -> bool:
        """Whether its results are there."""
        return self.how != "failed"


def log_of(name: str) -> Path:
    """Where a stage's own output goes."""
    return LOGS / "run" / f"{name}.log"


class StageProcess:
    """A stage at work here: its `dvc repro --single-item` in a process group, through this
    environment's DVC (gpt1/pipeline/dvc.py) and with its python first on PATH; its output in its
    log.
    """

    def __init__(self, stage: Stage, variables: Mapping[str, str], group: int) -> None:
        self.stage, self.group, self.kills = stage, group, out_of_memory_kills()
        programs = f"{Path(sys.executable).parent}{os.pathsep}"
        environment = {
            **os.environ,
            "PATH": programs + os.environ.get("PATH", os.defpath),
            **variables,
            **completion.ask(stage.name, stage.reads),
        }
        command = ["--wait-for-lock", "repro", "--single-item", stage.name]
        log_of(stage.name).parent.mkdir(parents=True, exist_ok=True)
        with log_of(stage.name).open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *DVC, *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=group,
            )

    def ended(self, ending: bool) -> Ended | None:
        """What became of it, None while it is at work; `ending`: whether it was asked to end."""
        status = self.process.poll()
        if status is None:
            return None
        if status < 0:  # DVC was killed
            end_orphans(self.group)
        return outcome(self.stage, status, self.kills, ending)


def out_of_memory_kills() -> int:
    """How many processes the kernel has ended for want of memory since it started; 0 where it does
    not tell.
    """
    text = KERNEL_COUNTS.read_text(encoding="ascii") if KERNEL_COUNTS.is_file() else ""
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return int(found[1]) if found else 0


def outcome(stage: Stage, status: int, kills_before: int, ending: bool) -> Ended:
    """What became of a stage whose DVC ended with `status`; `ending`: whether it had been asked to
    end.

    One whose command had ended well, and which DVC alone did not record, is recorded now.
    """
    said = log_of(stage.name).read_text(encoding="utf-8", errors="replace")
    if status == 0:
        completion.path_of(stage.name).unlink(missing_ok=True)
        return Ended(
            "run"
            if "Running stage '" in said
            else "from DVC's cache"
            if "is cached" in said
            else "unchanged"
        )
    if completion.stands(stage.name, stage.reads, stage.writes) and record(stage):
        return Ended("recorded")
    number, starved = signal_of(status, said), out_of_memory_kills() > kills_before
    memory = not ending and (starved or bool(OUT_OF_MEMORY.search(said)))
    lost = not ending and (
        memory or number in OF_OTHERS or f"exited with {TEMPORARY_STATUS}\n" in said
    )
    of_machine = bool(OF_MACHINE.search(said)) or (
        status > 0 and not number and f"failed to reproduce '{stage.name}'" not in said
    )  # DVC, which did not come to the stage
    why = why_it_failed(stage.name, number, said, memory)
    return Ended("failed", why, lost, memory, of_machine)


def signal_of(status: int, said: str) -> int:
    """The number of the signal that ended DVC, or the stage under it; 0 for none."""
    exited = [int(found) for found in EXITED.findall(said)][-1:]
    return (
        -status
        if status < 0
        else next((-code if code < 0 else max(0, code - 128) for code in exited), 0)
    )


def why_it_failed(name: str, number: int, said: str, out_of_memory: bool) -> str:
    """One line on a failed stage: its last `error:`, else the signal that ended it, else the last
    line before DVC's own; and its log.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.partition("error:")[2].strip() for line in lines if line.startswith("error:")]
    own = [line for line in lines if not line.startswith("ERROR: failed to reproduce")]
    reason = (own or lines or ["it ended without a word"])[-1]
    if errors:
        reason = errors[-1]
    elif out_of_memory:
        reason = (
            "it took more memory than there is: set GPT1_MICRO_BATCH lower, or have fewer stages"
            " side by side"
        )
    elif number:
        reason = f"it was ended by signal {number}"
    return f"{name}: {reason} (log: {log_of(name)})"
