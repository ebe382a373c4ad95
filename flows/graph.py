"""DVC's graph: what stages need, and which are out of date."""

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from textwrap import shorten
from types import MappingProxyType
from typing import Any, NamedTuple

from gpt1.base.errors import UserError, did_you_mean
from gpt1.base.files import refuse_links
from gpt1.base.locks import locked
from gpt1.params.yaml import read_yaml

DVC_LOCK, TEMPORARY = Path("dvc.lock"), Path(".dvc/tmp")
TORN = "structure is corrupted"  # as DVC says of what it writes in place, where a kill came amid
BUSY = re.compile(r"is busy, it is being blocked by:\s*(\(PID \d+\): [^\n]*)")  # as DVC says it
POLL_SECONDS = 2.0
CHECK = "check"  # reads all parameters, and writes the same whatever they are


class Stage(NamedTuple):
    """A stage of dvc.yaml. `changed`: it differs from dvc.lock. `outdated`: it, or one that it
    needs, changed. `recorded`: dvc.lock's hashes and parameters.
    """

    needs: tuple[str, ...]
    outdated: bool
    runs_network: bool
    changed: bool = True
    recorded: Mapping[str, str] = MappingProxyType({})


def read_graph(targets: Sequence[str]) -> dict[str, Stage]:
    """Return the targets (stages or groups; none: all) and what they need, each after its needs.
    Repairs DVC's files after a kill. Raises UserError.
    """
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.repo import Repo
    from networkx import dfs_postorder_nodes  # type: ignore[import-untyped]

    refuse_links()
    logging.getLogger("dvc").setLevel(logging.CRITICAL)  # no bars of its own beside ours
    notice = ""
    while True:
        mend_rwlock()
        try:
            with Repo() as repo, repo.lock:
                graph = repo.index.graph
                names = {stage.addressing for stage in graph}
                names |= {name.partition("@")[0] for name in names}
                for name in targets:
                    if name not in names:
                        raise UserError(
                            f"no stage {name}{did_you_mean(name, names)} (all: dvc stage list)"
                        )
                collected = (repo.stage.collect(name, with_deps=True) for name in targets)
                chosen = set(chain(*collected)) or graph
                changed = changes()
                stages: dict[str, Stage] = {}
                for stage in dfs_postorder_nodes(graph):
                    if stage in chosen:
                        needs = tuple(need.addressing for need in graph.successors(stage))
                        above = any(stages[need].outdated for need in needs if need != CHECK)
                        differs = changed(stage)
                        network = any(dep.def_path.startswith("gpt1/model") for dep in stage.deps)
                        recorded = dict[str, str]()
                        for file in (*stage.deps, *stage.outs):
                            value = file.hash_info.value
                            if hasattr(file, "params"):  # stages list different ones
                                recorded |= {key: str(each) for key, each in (value or {}).items()}
                            elif value:
                                recorded[file.def_path] = str(value)
                        stages[stage.addressing] = Stage(
                            needs, above or differs, network, differs, recorded
                        )
                return stages
        except LockError as error:  # another DVC is at work here
            busy = BUSY.search(str(error))
            if notice != (notice := f"waiting for DVC, {busy[1] if busy else 'which is at work'}"):
                print(notice, file=sys.stderr)
            time.sleep(POLL_SECONDS)
        except FileNotFoundError as error:
            raise UserError(
                f"{error.filename} is a link to nothing: mend it, or remove it; in data/raw (the"
                " Hub's cache was cleaned?) remove its folder, and bring that again: gpt1 profile …"
                " --download all"
            ) from None
        except (DvcException, NotImplementedError) as error:  # the latter of a hash cut short
            reason = (
                " ".join(f"{error} {error.__cause__ or ''}".split()) or f"{DVC_LOCK} is cut short"
            )
            cure = "stages: dvc stage list"
            if DVC_LOCK.is_file() and str(DVC_LOCK) in reason:
                text = DVC_LOCK.read_bytes()
                torn = TORN in reason or not text.endswith(b"\n") or text.endswith(b":\n")
                if torn and b"<<<<<<<" not in text and b"\0" not in text:
                    DVC_LOCK.rename(aside := TEMPORARY / "dvc.lock.torn")
                    what = f"{reason}: it is {aside} now; what .dvc/cache/runs lacks runs again"
                    print(what, file=sys.stderr)
                    continue
                cure = f"settle it, or put a whole {DVC_LOCK} there; without one all may run again"
            raise UserError(f"DVC says: {reason} ({cure})") from None


def changes() -> Callable[[Any], bool]:
    """Return a function that says whether a stage differs from dvc.lock, in half the time of DVC's
    `changed`, for it reads each file once.
    """
    read, statuses = cache(read_yaml), dict[tuple[str, str], bool]()

    def file_changed(file: Any) -> bool:
        if hasattr(file, "params"):
            values, recorded = read(Path(file.def_path)), file.hash_info.value or {}
            return any(recorded.get(key) != value_at(values, key) for key in file.params or values)
        key = file.def_path, str(file.hash_info)
        if key not in statuses:
            statuses[key] = bool(file.status())
        return statuses[key]

    return lambda stage: stage.changed_stage() or any(map(file_changed, (*stage.deps, *stage.outs)))


def made_anew(name: str, stage: Stage) -> bool:
    """Return whether dvc.lock now records other outputs than `stage` has."""
    try:
        outputs = read_yaml(DVC_LOCK)["stages"][name]["outs"]
        return any(stage.recorded.get(out["path"]) != out["md5"] for out in outputs)
    except (UserError, LookupError, TypeError):  # another DVC is writing it
        return True


def value_at(values: Any, key: str) -> Any:
    """Return the value of a dotted key, or None."""
    for name in key.split("."):
        values = values.get(name) if isinstance(values, dict) else None
    return values


def mend_rwlock() -> None:
    """Remove DVC's list of readers and writers where a kill left it half-written."""
    with locked(TEMPORARY / "rwlock.lock"), suppress(FileNotFoundError):  # DVC's guard of it
        note = TEMPORARY / "rwlock"
        try:
            json.loads(note.read_text(encoding="utf-8"))
        except ValueError:
            note.unlink()


def outlook(stages: Mapping[str, Stage]) -> str:
    """Say in one line which stages have to run."""
    changed = [name for name, stage in stages.items() if stage.changed]
    more = sum(stage.outdated for stage in stages.values()) - len(changed)
    names = shorten(", ".join(changed), 60, placeholder=" …") or "none"
    line = f"{len(changed)} of {len(stages)} stages have to run ({names})"
    return line + f", and {more} more if these make something new" * bool(more)


def longest_paths(stages: dict[str, Stage], seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds from each stage's start to the end of the last that needs it."""
    paths: dict[str, float] = {}
    for name in reversed(stages):  # whatever needs a stage comes after it
        after = (paths[other] for other in paths if name in stages[other].needs)
        # baselines come early: a first result while the networks train
        paths[name] = max(after, default=0.0) + seconds[name] + 100 * (name == "baselines")
    return paths
