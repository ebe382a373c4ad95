"""DVC's index, read in this process and without its lock, so that it can be asked while a run is at
work; every file is hashed once.
"""

import gc
import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.pipeline.graph import has_network
from gpt1.pipeline.schedule import Stage
from gpt1.pipeline.status.reasons import Reason, at, needs_of, parameter_changes

TRIES = 3  # dvc.lock may be being written
PAUSE_SECONDS = 0.25


def read_index() -> tuple[dict[str, Stage], dict[str, list[Reason]]]:
    """Every stage of DVC's graph, and for each how it differs from what dvc.lock says of it. Raises
    UserError.
    """
    if not Path(".dvc").is_dir():
        raise UserError(f"no DVC repository in {Path.cwd()}: run this in the root of the checkout")
    logging.getLogger("dvc").setLevel(logging.CRITICAL)  # what matters is raised
    # very many objects are made and all are kept: looking for others takes a seventh of the time
    gc.disable()
    try:
        return _read()
    finally:
        gc.freeze()  # nor once they are there
        gc.enable()


def _read() -> tuple[dict[str, Stage], dict[str, list[Reason]]]:
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    for left in reversed(range(TRIES)):
        try:
            with Repo(".") as repo:
                return _judge(list(repo.index.stages))
        except DvcException as error:
            if not left:
                raise UserError(
                    f"DVC cannot tell what is out of date: {error}; gpt1 doctor says what is wrong"
                    " with its files"
                ) from None
        time.sleep(PAUSE_SECONDS)
    raise AssertionError("unreachable")


def _judge(found: list[Any]) -> tuple[dict[str, Stage], dict[str, list[Reason]]]:
    reads = {stage.addressing: tuple(relative(dep) for dep in stage.deps) for stage in found}
    writes = {stage.addressing: tuple(relative(out) for out in stage.outs) for stage in found}
    needs = needs_of(reads, writes)
    hashes: dict[str, Any] = {}
    values: dict[str, Any] = {}
    reasons = {stage.addressing: list(_reasons(stage, hashes, values)) for stage in found}
    stages = {
        name: Stage(
            name,
            needs[name],
            reads[name],
            writes[name],
            trains=has_network(reads[name]),
            stale=bool(reasons[name]),
        )
        for name in reads
    }
    return stages, reasons


def _reasons(stage: Any, hashes: dict[str, Any], values: dict[str, Any]) -> Iterator[Reason]:
    """How a stage differs from its entry in dvc.lock; `hashes` and `values` are what was read
    already, by path.
    """
    if not any(part.hash_info for part in (*stage.deps, *stage.outs)):
        missing = [
            path
            for dep in stage.deps
            if not _is_parameters(dep) and _hash(dep, hashes) is None
            for path in [relative(dep)]
        ]
        yield Reason("new")
        yield from (Reason("missing", path) for path in missing)
        return
    if stage.changed_stage():
        yield Reason("command")
    for dep in stage.deps:
        if _is_parameters(dep):
            yield from _parameters(dep, values)
        else:
            yield from _difference(dep, hashes)
    for out in stage.outs:
        differs = list(_difference(out, hashes))
        yield from differs
        if not differs and out.use_cache and out.hash_info and out.changed_cache():
            yield Reason("not in cache", relative(out))


def relative(part: Any) -> str:
    """The path of an input or output as dvc.yaml has it; the whole one for what lies outside of the
    checkout.
    """
    return str(part.fs_path).removeprefix(f"{Path.cwd()}{os.sep}")


def _is_parameters(dep: Any) -> bool:
    return hasattr(dep, "read_params")


def _difference(part: Any, hashes: dict[str, Any]) -> Iterator[Reason]:
    """How a file or folder differs from what was written down of it."""
    path, now = relative(part), _hash(part, hashes)
    if now is None:
        yield Reason("missing", path)
    elif now != part.hash_info:
        yield Reason("changed", path)


def _hash(part: Any, hashes: dict[str, Any]) -> Any:
    """DVC's hash of a file or folder as it is, or None where it is not there."""
    if part.fs_path not in hashes:
        hashes[part.fs_path] = part.get_hash() if part.exists else None
    return hashes[part.fs_path]


def _parameters(dep: Any, values: dict[str, Any]) -> Iterator[Reason]:
    """Which parameters of a stage differ from what was written down of them."""
    from dvc.utils.serialize import load_path

    if not dep.exists:
        yield Reason("missing", relative(dep))
        return
    if dep.fs_path not in values:
        values[dep.fs_path] = load_path(dep.fs_path, dep.repo.fs)
    now, before = values[dep.fs_path], dep.hash_info.value or {}
    if dep.params:
        for name in dep.params:
            yield from parameter_changes(name, before.get(name, at({}, name)), at(now, name))
    else:
        yield from parameter_changes(
            "", dict(before), dict(now) if isinstance(now, Mapping) else {}
        )
