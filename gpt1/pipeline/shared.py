"""Several clones and one DVC remote: a stage finished in one is fetched by the others, which write
its entry into their dvc.lock.

A finished stage is two things on the remote: its outputs, and DVC's own run-cache entry, found by
the hash of all that the stage reads. DVC's `push --run-cache` and `repro --pull` copy every entry
each time, and do not fail where one is not copied; here it is one stage's.
"""

import hashlib
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gpt1.base.errors import UserError
from gpt1.base.files import RAW, stage_folder, writing
from gpt1.pipeline import code
from gpt1.pipeline.graph import LOCK_FILE, read_lock, repository, stages_of
from gpt1.pipeline.schedule import Stage

DVC = Path(".dvc")
CODE = (
    "gpt1",
    "dvc.yaml",
    "params.yaml",
    "code.lock",
)  # what has to be the same in two clones for their results to stand for each other
REPORTS = stage_folder("report")
PAUSES_SECONDS = (2.0, 8.0)  # before the second and the third try
HASH_DIGITS = 64  # of the name of a run-cache entry; what is being written has another
CREDENTIALS = re.compile(r"//[^/@\s]*@")
Result = TypeVar("Result")
opened = partial(repository, wait=True)


def remote_name() -> str | None:
    """The name of DVC's default remote, or None where none is set. Raises UserError outside a DVC
    repository, and where DVC lacks the package for such a remote.
    """
    from dvc_objects.fs.errors import RemoteMissingDepsError

    with opened() as repo:
        name = repo.config["core"].get("remote")
        if name is None:
            return None
        try:
            repo.cloud.get_remote(name)  # connects to nothing yet
        except (ImportError, RemoteMissingDepsError) as error:
            raise UserError(
                f"DVC cannot use its remote {name!r} here: {error}; make setup, or pip"
                " install 'gpt1[remote]', installs what S3 and SSH need, any"
                " other package is yours to add"
            ) from error
        return str(name)


def require_remote() -> str:
    """The name of DVC's default remote. Raises UserError where none is set, or can be used."""
    if name := remote_name():
        return name
    raise UserError(
        "stages can be spread over machines only where DVC has a default remote that all of them"
        " reach: dvc remote add --local -d NAME URL (a folder on a shared disk, ssh://…, s3://…),"
        " in each clone"
    )


def can_be_fetched(stage: Stage) -> bool:
    """Whether a stage's result is worth looking for on the remote: not a report's (seconds), nor
    that of a stage with no inputs.
    """
    return bool(stage.reads) and not any(
        Path(path).is_relative_to(REPORTS) for path in stage.writes
    )


def can_travel(stage: Stage) -> bool:
    """Whether another machine may run a stage: one with results of others to read, but neither a
    report nor a reader of data/raw.
    """
    return (
        can_be_fetched(stage)
        and bool(stage.needs)
        and not any(Path(read).is_relative_to(RAW) for read in stage.reads)
    )


def digest() -> dict[str, str]:
    """Sixteen digits each for gpt1/, dvc.yaml, params.yaml and code.lock: what git tracks there, or
    would add. Raises UserError without git.
    """
    code.refresh()
    found = {}
    for part in CODE:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", part],
            check=False,
            capture_output=True,
        )
        if listed.returncode != 0:
            raise UserError(
                f"git cannot list {part} here ({listed.stderr.decode(errors='replace').strip()}): "
                "spreading stages over machines needs a git clone on each"
            )
        whole = hashlib.sha256()
        for name in sorted(set(listed.stdout.split(b"\0")) - {b""}):
            path = Path(os.fsdecode(name))
            if path.is_file():
                whole.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        found[part] = whole.hexdigest()[:16]
    return found


def refuse_other_code(theirs: Mapping[str, str]) -> None:
    """Raise UserError where the code or the parameters of this clone are not the sender's."""
    ours = digest()
    differ = [part for part in CODE if ours[part] != theirs.get(part)]
    if differ:
        are = "are" if differ[1:] else "is"
        raise UserError(
            f"{' and '.join(differ)} in {platform.node()}:{Path.cwd()} {are} not what the checkout"
            " that sent the stage has: bring both to the same commit and parameters (git pull;"
            " gpt1 profile NAME), then start again"
        )


def lock_entries(names: Collection[str]) -> dict[str, Any]:
    """What dvc.lock says of these stages, as plain values. Raises UserError for a stage that is
    absent there.
    """
    with opened():
        entries = read_lock()
    for name in names:
        if name not in entries:
            raise UserError(
                f"{LOCK_FILE} says nothing of {name}, whose outputs another stage reads: run it"
                f" first (gpt1 run {name})"
            )
    return {name: entries[name] for name in names}


def lay_entries(entries: Mapping[str, Any]) -> set[str]:
    """Write these stages' entries into dvc.lock; returns the names of those that said something
    else before, or nothing.
    """
    from dvc.utils.serialize import dumps_yaml

    with opened():
        stages = read_lock()
        changed = {name for name, entry in entries.items() if stages.get(name) != entry}
        stages.update({name: entries[name] for name in changed})
        if changed:
            with writing(LOCK_FILE) as file:
                file.write(dumps_yaml({"schema": "2.0", "stages": stages}))
    return changed


def pull(names: Collection[str]) -> None:
    """Bring the outputs of these stages here, as dvc.lock says of them: from DVC's cache, else from
    the remote.

    Raises UserError where the remote does not answer or does not have them.
    """

    def work() -> None:
        with opened() as repo:
            absent = [stage for stage in _collect(repo, names) if not stage.outs_cached()]
        for stage in absent:  # not locked, for this can take long
            _all_or_raise(repo.cloud.pull(_objects(stage)), f"the outputs of {stage.addressing}")
        with opened() as repo:
            for stage in _collect(repo, names):
                if stage.changed_outs():
                    stage.checkout(force=True)

    _at_remote("pull from", work)


def push(names: Collection[str]) -> None:
    """Send the outputs of these stages, and their run-cache entries after them. Raises UserError
    where the remote does not take them.
    """

    def work() -> None:
        with opened() as repo:
            stages = _collect(repo, names)
            entries = [
                path
                for stage in stages
                for path in _entry_folder(repo, stage).glob("*")
                if len(path.name) == HASH_DIGITS
            ]
        for (
            stage
        ) in stages:  # not locked, for what lies in DVC's cache under its hash does not change
            _all_or_raise(repo.cloud.push(_objects(stage)), f"the outputs of {stage.addressing}")
        store = repo.cloud.get_remote_odb(None, "push", hash_name="md5-dos2unix")
        for path in entries:
            target = store.fs.join(store.path, *path.relative_to(repo.cache.legacy.path).parts)
            if not store.fs.exists(target):
                store.fs.makedirs(store.fs.parent(target), exist_ok=True)
                store.fs.put_file(str(path), target)

    _at_remote("push to", work)


def restore(name: str) -> bool:
    """Fetch the result of a stage that some clone has finished from the very same inputs: outputs
    here, entry in dvc.lock.

    False where there is none. Raises UserError where the remote does not answer.
    """
    from dvc.utils.serialize import parse_yaml

    def work() -> Any:
        with opened() as repo:
            (stage,) = _collect(repo, [name])
            stage.save_deps()
            folder = _entry_folder(repo, stage)
            store = repo.cloud.get_remote_odb(None, "fetch", hash_name="md5-dos2unix")
        there = store.fs.join(store.path, *folder.relative_to(repo.cache.legacy.path).parts)
        entries = store.fs.find(there) if store.fs.exists(there) else []
        found = sorted(
            path for path in entries if len(store.fs.name(path)) == HASH_DIGITS
        )  # of several all clones take the same
        if not found:
            return None
        text = store.fs.read_text(found[0], encoding="utf-8")
        with writing(folder / store.fs.name(found[0])) as file:
            file.write(text)
        return parse_yaml(text, found[0])

    entry = _at_remote("pull from", work)
    if entry is None:
        return False
    lay_entries({name: entry})
    pull([name])
    return True


def is_current(name: str) -> bool:
    """Whether DVC finds a stage up to date here. Raises UserError for an unknown one."""
    with opened() as repo:
        (stage,) = _collect(repo, [name])
        return not stage.changed()


def find_stage(name: str) -> Stage:
    """A stage of DVC's graph as one that has to run and needs no other. Raises UserError for an
    unknown one.
    """
    with opened() as repo:
        (stage,) = _collect(repo, [name])
        return replace(stages_of([stage])[name], stale=True)


def _collect(repo: Any, names: Collection[str]) -> list[Any]:
    return [stage for name in names for stage in repo.stage.collect(name)]


def _objects(stage: Any) -> set[Any]:
    return {item for items in stage.get_used_objs().values() for item in items}


def _entry_folder(repo: Any, stage: Any) -> Path:
    """Where DVC keeps the run-cache entries of a stage with the inputs that it has now."""
    from dvc.stage.cache import _get_stage_hash

    key = str(_get_stage_hash(stage))
    return Path(repo.stage_cache.cache_dir) / key[:2] / key


def _all_or_raise(transferred: Any, what: str) -> None:
    if transferred.failed:
        raise OSError(f"{len(transferred.failed)} files of {what} were not transferred")


def _at_remote(verb: str, work: Callable[[], Result]) -> Result:
    """Do what needs the remote, three times if it has to be. Raises UserError in one line."""
    name = require_remote()
    for pause in (*PAUSES_SECONDS, None):
        try:
            return work()
        except UserError:  # not the remote's fault
            raise
        except Exception as error:  # each kind of remote has its own
            reason = why(error)
        if pause is not None:
            time.sleep(pause)
    raise UserError(
        f"DVC cannot {verb} its remote {name!r}: {reason}; nothing finished is lost: "
        "see that the remote can be reached (dvc status --cloud), then start the same again"
    )


def why(error: BaseException) -> str:
    """The first line that an error or one of its causes says, with the kind of error, and without
    credentials in an address.
    """
    cause: BaseException | None = error
    while cause is not None and str(cause) in ("", "None"):
        cause = cause.__cause__ or cause.__context__
    said = str(cause if cause is not None else error).strip().splitlines() or ["no more is known"]
    return f"{type(cause or error).__name__}: {CREDENTIALS.sub('//', said[0])}"
