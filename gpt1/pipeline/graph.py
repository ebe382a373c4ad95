"""DVC's graph, read in process: which stages there are, which are out of date, what dvc.lock says
of them.
"""

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.pipeline import mark
from gpt1.pipeline.schedule import Stage, choose

LOCK_FILE = Path("dvc.lock")
CLAIMS = Path(".dvc/tmp/rwlock")  # who reads and writes what, as DVC's processes tell one another
PATIENCE_SECONDS = 15.0  # what a killed DVC held is free when the system has cleared it away
WRITING_SECONDS = 3.0  # more than any process takes to write its claims
NETWORK_ROOM = "gpt1/model"


def has_network(reads: Iterable[str]) -> bool:
    """Whether a stage that depends on these paths runs a network, and so heeds GPT1_THREADS."""
    return any(f"{read}/".startswith(f"{NETWORK_ROOM}/") for read in reads)


class BusyError(UserError):
    """Another DVC command is at work here."""


class BrokenClaimsError(BusyError):
    """DVC's claims cannot be read: they are being written now, or whoever wrote them was killed."""


@contextmanager
def repository() -> Iterator[Any]:
    """DVC's repository here, locked. Raises UserError where DVC cannot read its files, BusyError
    while another DVC command is at work.
    """
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.repo import Repo
    from dvc.rwlock import RWLockFileCorruptedError, RWLockFileFormatError

    logging.getLogger("dvc").setLevel(
        logging.ERROR
    )  # that a killed run left a lock is no news: DVC heals it
    try:
        with Repo(".") as repo, repo.lock:
            yield repo
    except LockError:
        raise BusyError(
            "another DVC command is at work here; run this again when it has ended"
        ) from None
    except (RWLockFileCorruptedError, RWLockFileFormatError) as error:
        raise BrokenClaimsError(str(error)) from None
    except DvcException as error:
        raise UserError(f"DVC cannot tell what is out of date: {error}") from error


def read_graph(targets: Collection[str]) -> tuple[dict[str, Stage], list[str]]:
    """Every stage of DVC's graph, and the names of the targets and all that they need; of these it
    is known which are out of date.

    A stage whose command ended well but which DVC, killed, did not record is recorded, not run
    again. Raises UserError for an unknown target, where DVC cannot read its files, or while another
    DVC command is at work.
    """
    began = time.monotonic()
    while True:
        try:
            stages, chosen = _read(targets)
        except BusyError as busy:
            waited = time.monotonic() - began
            if isinstance(busy, BrokenClaimsError) and waited > WRITING_SECONDS:
                CLAIMS.unlink(missing_ok=True)
            elif waited > PATIENCE_SECONDS:
                raise
            time.sleep(1)
            continue
        unrecorded = [
            stages[name]
            for name in chosen
            if stages[name].stale and mark.stands(name, stages[name].reads, stages[name].writes)
        ]
        if not [stage for stage in unrecorded if record(stage)]:
            return stages, chosen


def _read(targets: Collection[str]) -> tuple[dict[str, Stage], list[str]]:
    with repository() as repo:
        graph = {stage.addressing: stage for stage in repo.index.stages}
        stages = {}
        for name, stage in graph.items():
            reads = tuple(os.path.relpath(dep.fs_path) for dep in stage.deps)
            writes = tuple(os.path.relpath(out.fs_path) for out in stage.outs)
            needs = frozenset(need.addressing for need in repo.index.graph.successors(stage))
            stages[name] = Stage(name, needs, reads, writes, trains=has_network(reads))
        chosen = choose(stages, targets)
        for name in chosen:
            stages[name] = replace(stages[name], stale=graph[name].changed())
    return stages, chosen


def record(stage: Stage) -> bool:
    """Have DVC record a stage that ended well, without running it; whether that went well."""
    commit = [
        sys.executable,
        "-m",
        "dvc",
        "--wait-for-lock",
        "commit",
        "--force",
        "--quiet",
        stage.name,
    ]
    done = subprocess.run(commit, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    mark.path_of(stage.name).unlink(missing_ok=True)
    return done.returncode == 0


def recorded_outputs() -> dict[str, str]:
    """What dvc.lock says of each stage's outputs, as text; a stage that is absent there, or is
    being written now, is absent here.
    """
    text = LOCK_FILE.read_text(encoding="utf-8") if LOCK_FILE.exists() else ""
    return dict(
        re.findall(r"^  (\S+):\n(?:    .*\n)*?    outs:\n((?:    .*\n)+)", text, re.MULTILINE)
    )
