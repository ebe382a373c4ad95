"""The one reader of DVC's graph: which stages there are, for any parameters; which are out of date;
what dvc.lock says of them.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from gpt1.base.errors import UserError
from gpt1.params.yaml import read_yaml
from gpt1.pipeline import code, completion, up_to_date
from gpt1.pipeline.schedule import Stage, choose, group

DVC_FILE, LOCK_FILE = Path("dvc.yaml"), Path("dvc.lock")
CLAIMS = Path(".dvc/tmp/rwlock")  # who reads and writes what, as DVC's processes tell one another
PATIENCE_SECONDS = 15.0  # what a killed DVC held is free when the system has cleared it away
WRITING_SECONDS = 3.0  # more than any process takes to write its claims
LOCK_FILE_PAUSES = (0.1, 0.3)  # seconds before each further look
NETWORK_ROOM = "gpt1/model"
Value = TypeVar("Value")


class BusyError(UserError):
    """Another DVC command is at work here."""


class BrokenClaimsError(BusyError):
    """DVC's claims cannot be read: they are being written now, or whoever wrote them was killed."""


@contextmanager
def repository(*, lock: bool = True, wait: bool = False) -> Iterator[Any]:
    """DVC's repository here, locked unless `lock` is False; `wait`: for other DVC commands to end.

    Raises UserError where DVC cannot read its files, BusyError while another command is at work.
    """
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.repo import Repo
    from dvc.rwlock import RWLockFileCorruptedError, RWLockFileFormatError

    from gpt1.pipeline.dvc import quicken

    quicken()
    code.refresh()
    logging.getLogger("dvc").setLevel(logging.CRITICAL)  # what matters is raised
    try:
        with Repo(".", _wait_for_lock=wait) as repo, repo.lock if lock else nullcontext():
            yield repo
    except LockError:
        raise BusyError(
            "another DVC command is at work here; run this again when it has ended"
        ) from None
    except (RWLockFileCorruptedError, RWLockFileFormatError) as error:
        raise BrokenClaimsError(str(error)) from None
    except DvcException as error:
        raise UserError(
            f"DVC cannot tell what is out of date: {error}; dvc doctor and dvc status say more"
        ) from error


def read_graph(targets: Collection[str]) -> tuple[dict[str, Stage], list[str]]:
    """Every stage of DVC's graph, and the names of the targets and all that they need; of these it
    is known which are out of date.

    A stage whose command ended well but which DVC, killed, did not record is recorded, not run
    again. DVC is not asked where it has said that all is up to date, and nothing looks otherwise
    since. Raises UserError for an unknown target, where DVC cannot read its files, or while another
    DVC command is at work.
    """
    code.refresh()
    if stages := up_to_date.recall():
        return stages, choose(stages, targets)
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
            if stages[name].stale
            and completion.stands(name, stages[name].reads, stages[name].writes)
        ]
        if not [stage for stage in unrecorded if record(stage)]:
            return stages, chosen


def _read(targets: Collection[str]) -> tuple[dict[str, Stage], list[str]]:
    asked = time.time()
    with repository() as repo:
        repo.index.check_graph()
        found = {stage.addressing: stage for stage in repo.index.stages}
        stages = stages_of(found.values())
        chosen = choose(stages, targets)
        for name in chosen:
            stages[name] = replace(stages[name], stale=found[name].changed())
        if len(chosen) == len(stages) and not any(stage.stale for stage in stages.values()):
            up_to_date.remember(stages, Path(repo.cache.local.path), asked)
    return stages, chosen


def remember_all() -> None:
    """After a run of the whole graph: have DVC say, and keep, that nothing is out of date, so that
    the next one need not ask. Where DVC cannot, the next one does.
    """
    with suppress(UserError):
        _read(())


def stages_of(found: Iterable[Any]) -> dict[str, Stage]:
    """DVC's own stages by name, as plain values."""
    return connected(
        {
            stage.addressing: tuple(
                tuple(map(relative, parts)) for parts in (stage.deps, stage.outs)
            )
            for stage in found
        }
    )


def relative(part: Any) -> str:
    """The path of an input or output as dvc.yaml has it; the whole one for what lies outside of the
    checkout.
    """
    return str(part.fs_path).removeprefix(f"{Path.cwd()}{os.sep}")


def expand(values: Mapping[str, Any]) -> dict[str, Stage]:
    """Every stage that dvc.yaml makes of these plain values, be they in params.yaml or not.

    DVC's own parser expands `${…}` and `foreach`. Raises UserError where it cannot.
    """
    from dvc.exceptions import DvcException
    from dvc.fs import MemoryFileSystem
    from dvc.parsing import DataResolver

    nowhere = SimpleNamespace(fs=MemoryFileSystem(global_store=False), config={})
    try:
        definitions = {"vars": [dict(values)], "stages": read_yaml(DVC_FILE)["stages"]}
        resolver = DataResolver(nowhere, "", definitions)
        found = {name: resolver.resolve_one(name)[name] for name in resolver.get_keys()}
    except DvcException as error:
        raise UserError(f"{DVC_FILE} makes no graph of these parameters: {error}") from None
    return connected(
        {
            name: (tuple(stage.get("deps", ())), tuple(stage.get("outs", ())))
            for name, stage in found.items()
        }
    )


def connected(rows: Mapping[str, Sequence[tuple[str, ...]]]) -> dict[str, Stage]:
    """Stages of the paths that each reads and writes: a stage needs those that write what it reads,
    what lies under it, or what it lies under.
    """
    elsewhere = code.read_code()  # what stages read that does not lie here
    makers: dict[str, str] = {}
    makers_below: dict[str, set[str]] = {}
    for name, (_, writes) in rows.items():
        for path in writes:
            makers[path] = name
            for folder in folders(path):
                makers_below.setdefault(folder, set()).add(name)
    stages = {}
    for name, (reads, writes) in rows.items():
        needs = set[str]().union(*(makers_below.get(path, ()) for path in reads))
        places = (place for path in reads for place in (path, *folders(path)))
        needs |= {makers[place] for place in places if place in makers}
        stages[name] = Stage(
            name,
            frozenset(needs - {name}),
            reads,
            writes,
            trains=has_network([*reads, *elsewhere.get(group(name), ())]),
        )
    return stages


def folders(path: str) -> list[str]:
    """The folders that a path lies in: `a` and `a/b` for `a/b/c`."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def has_network(reads: Iterable[str]) -> bool:
    """Whether a stage that depends on these paths runs a network, and so heeds GPT1_THREADS."""
    return any(f"{read}/".startswith(f"{NETWORK_ROOM}/") for read in reads)


def record(stage: Stage) -> bool:
    """Have DVC record a stage that ended well, without running it; whether that went well."""
    words = ["--wait-for-lock", "commit", "--force", "--quiet", stage.name]
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *words],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    completion.path_of(stage.name).unlink(missing_ok=True)
    return done.returncode == 0


def read_lock() -> dict[str, Any]:
    """What dvc.lock says, by stage; {} where it is not there. Raises UserError where it is
    broken.
    """
    from dvc.utils.serialize import load_yaml

    from gpt1.pipeline.dvc import quicken

    quicken()

    def read() -> dict[str, Any]:
        try:
            return dict(load_yaml(LOCK_FILE).get("stages") or {}) if LOCK_FILE.exists() else {}
        except Exception as error:  # the parser lets through what int() and deep nesting raise
            reason = " ".join(str(error).split())
            raise UserError(f"{LOCK_FILE} cannot be read: {reason}") from None

    return between_writes(read)


def between_writes(read: Callable[[], Value]) -> Value:
    """What `read` finds, which is tried again in a moment: DVC writes dvc.lock in place. Raises the
    UserError of the last try.
    """
    for pause in LOCK_FILE_PAUSES:
        with suppress(UserError):
            return read()
        time.sleep(pause)
    return read()


def recorded_outputs() -> dict[str, Any]:
    """What dvc.lock says of each stage's outputs; nothing of one that is being written now."""
    try:
        return {name: entry["outs"] for name, entry in read_lock().items() if "outs" in entry}
    except (UserError, TypeError):
        return {}


def stages_in(lock: str) -> dict[str, Any]:
    """What the text of a dvc.lock, of any run, says of each stage. Raises UserError."""
    from dvc.utils.serialize import parse_yaml

    try:
        stages = parse_yaml(lock, LOCK_FILE)["stages"]
        return {str(name): dict(entry) for name, entry in stages.items()}
    except Exception as error:  # the parser lets through what int() and deep nesting raise
        reason = " ".join(str(error).split())
        raise UserError(f"{LOCK_FILE} of that run cannot be read: {reason}") from None


def outputs_in(lock: str) -> dict[str, Any]:
    """What the text of a dvc.lock, of any revision, says of each stage's outputs."""
    return {name: entry.get("outs", []) for name, entry in stages_in(lock).items()}
