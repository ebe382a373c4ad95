"""Git worktrees under .worktrees/, in which flows run a profile or overrides of their own; the
checkout's params.yaml stays as it is.

A worktree holds the checkout's code of the moment it was opened, its own params.yaml, dvc.lock and
data/, and shares DVC's cache.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpt1.base.errors import UserError, perhaps
from gpt1.base.files import CHECKPOINTS, RAW, fingerprint
from gpt1.base.locks import locked
from gpt1.params.profile import compose_run, in_words, link_folder, write_params
from gpt1.params.schema import PARAMS
from gpt1.pipeline.git import (
    WORKTREES,
    git,
    git_folder,
    link_to_git,
    made_here,
    snapshot,
    update_code,
)
from gpt1.pipeline.leases import alone_here
from gpt1.pipeline.progress import News

DVC = Path(".dvc")
LOCK_SECONDS = 300.0
COMPOSED_BY = re.compile("^# Composed by: (gpt1 profile |a flow, from )?")


def worktree_name(
    profile: str | None,
    overrides: Sequence[str],
    seeds: Sequence[int] | None,
    tasks: Sequence[str] | None,
) -> str:
    """`small`, or `small-3f2a9c` where anything differs from the profile; `checkout-3f2a9c` without
    a profile.
    """
    name = profile or "checkout"
    if profile and not overrides and seeds is None and tasks is None:
        return name
    differs = [
        list(overrides),
        None if seeds is None else list(seeds),
        None if tasks is None else sorted(set(tasks)),
    ]
    return f"{name}-{fingerprint(differs)[:6]}"


def open_worktree(
    profile: str | None,
    overrides: Sequence[str],
    seeds: Sequence[int] | None,
    tasks: Sequence[str] | None,
) -> Path:
    """The absolute path of a worktree ready to run in: this code as it is now, params.yaml
    composed, data linked, DVC's cache shared.

    Called in the root of the checkout, while no run is at work there. Without a profile the
    checkout's own params.yaml is what the rest is laid over. Raises UserError, and leaves
    everything as it was, for a wrong name or value, absent data, or no git repository.
    """
    if profile is None and not overrides and seeds is None and tasks is None:
        raise UserError(
            "nothing differs from the checkout; expected a profile, overrides, seeds or tasks for a"
            " worktree"
        )
    tasks = None if tasks is None else sorted(set(tasks))
    common = git_folder()
    laid_over = [*overrides, *([f"finetune.seeds={list(seeds)}"] if seeds is not None else [])]
    values, _ = compose_run(profile, laid_over, tasks)
    tree = Path.cwd() / WORKTREES / worktree_name(profile, overrides, seeds, tasks)
    with worktrees_locked():
        update_code(tree, snapshot(common), common)
        share_settings(tree)
        link_data(tree)
        composed_by = "gpt1 profile" if profile else "a flow, from"
        write_params(tree / PARAMS, values, f"{composed_by} {in_words(profile, laid_over, tasks)}")
    return tree


@contextmanager
def worktrees_locked() -> Iterator[None]:
    """One process at a time opens or removes worktrees of this checkout; others wait. Raises
    UserError after minutes.
    """
    try:
        with locked(DVC / "tmp" / "gpt1-worktrees.lock", LOCK_SECONDS):
            yield
    except TimeoutError:
        raise UserError(
            f"another process is busy with the worktrees since {LOCK_SECONDS:.0f} s or more; try"
            " again later"
        ) from None


def share_settings(tree: Path) -> None:
    """Give a worktree the checkout's DVC settings, remotes included, their relative paths made
    right, and its cache. Raises UserError.
    """
    from dvc.config import Config, ConfigError, merge
    from dvc.config_schema import RelPath

    try:
        checkout = Config(os.fspath(DVC.absolute()))
        settings: dict[str, dict[str, object]] = {}
        for level in ("repo", "local"):
            merge(settings, checkout.read(level))
        if "dir" not in checkout["cache"]:
            settings["cache"]["dir"] = RelPath(
                DVC.absolute() / "cache"
            )  # relative: DVC writes ASCII only
        with Config(os.fspath(tree / DVC), validate=False).edit("local", validate=False) as local:
            local.clear()
            local.update(settings)
    except (ConfigError, UnicodeEncodeError) as error:
        raise UserError(
            f"DVC's settings in {DVC} cannot be shared with a worktree: {error}"
        ) from None
    if (own := DVC / "config.local").is_file():
        shutil.copymode(own, tree / own)  # it may hold passwords


def link_data(tree: Path) -> None:
    """Link what lies in data/raw, and .env, into a worktree, and checkpoints where they are behind
    a link already; links to what is not there any more go. Raises UserError.
    """
    brought = {path.name: path for path in RAW.glob("*") if path.is_dir()}
    for link in (tree / RAW).glob("*"):
        if link.is_symlink() and link.name not in brought:
            link.unlink()
    for name, path in brought.items():
        link_folder(tree / RAW / name, path)
    if CHECKPOINTS.is_symlink():  # flows/own_clone.sh: several machines share them
        link_folder(tree / CHECKPOINTS, CHECKPOINTS)
    env = tree / ".env"
    if env.is_symlink():
        env.unlink()
    if Path(".env").is_file() and not env.exists():
        env.symlink_to(Path(".env").absolute())


@dataclass(frozen=True)
class Worktree:
    """A worktree: its name, what its params.yaml was composed of, bytes that it alone holds, when
    it was last opened or a stage ended.
    """

    name: str
    composed_of: str
    bytes_: int
    last_use: datetime


def worktree_names() -> list[str]:
    """The worktrees of open_worktree, sorted; what else lies in .worktrees/ is the user's."""
    return sorted(path.name for path in WORKTREES.glob("*") if made_here(path))


def describe(name: str) -> Worktree:
    """What there is to know of a worktree."""
    tree = WORKTREES / name
    first = ""
    if (tree / PARAMS).is_file():
        first = (tree / PARAMS).read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    entries = [Path(folder, file).lstat() for folder, _, files in os.walk(tree) for file in files]
    times = [
        path.stat().st_mtime
        for path in (tree, tree / DVC / "config.local", tree / "dvc.lock")
        if path.exists()
    ]
    return Worktree(
        name,
        COMPOSED_BY.sub("", first) or "not ready",
        sum(entry.st_size for entry in entries if entry.st_nlink == 1),
        datetime.fromtimestamp(max(times)).astimezone(),
    )


def show_worktrees() -> None:
    """List the worktrees for a person."""
    from rich.console import Console
    from rich.filesize import decimal
    from rich.table import Table

    if not worktree_names():
        print(
            f"no worktrees in {WORKTREES.absolute()}: a flow that is given a profile, overrides,"
            " seeds or tasks makes one"
        )
        return
    table = Table("worktree", "params.yaml", "own size", "last use", pad_edge=False)
    for tree in map(describe, worktree_names()):
        table.add_row(
            tree.name, tree.composed_of, decimal(tree.bytes_), f"{tree.last_use:%Y-%m-%d %H:%M}"
        )
    Console(highlight=False, markup=False).print(table)


def remove_worktrees(name: str) -> None:
    """Remove a worktree, or `all`; DVC's cache keeps what finished. Raises UserError for another
    name, or while a run is at work.
    """
    there = worktree_names()
    if not there:
        raise UserError(f"no worktrees in {WORKTREES.absolute()}; there is nothing to remove")
    if name not in (*there, "all"):
        raise UserError(
            f"no worktree {name!r}; expected one of {', '.join(there)}, or"
            f" all{perhaps(name, (*there, 'all'))}"
        )
    common = git_folder()
    for each in there if name == "all" else [name]:
        tree = WORKTREES.absolute() / each
        with no_run(Path.cwd()), no_run(tree), worktrees_locked():
            with suppress(UserError, FileNotFoundError):  # git may not know it any more
                link_to_git(tree, common)
                git("worktree", "remove", "--force", "--force", str(tree))
            shutil.rmtree(tree, ignore_errors=True)
        if tree.exists():
            raise UserError(f"{tree} cannot be removed; look at who owns what is in it")
        print(f"removed {WORKTREES / each}")


@contextmanager
def no_run(folder: Path) -> Iterator[None]:
    """No run begins in a folder within the block. Raises UserError where one is at work."""

    def refuse(news: News) -> None:
        raise UserError(
            f"{news.line.partition(';')[0]} ({folder}); remove worktrees when it has ended"
        )

    with ExitStack() as held:
        if (folder / DVC).is_dir():
            with chdir(folder):
                held.enter_context(alone_here("gpt1 worktrees --remove", refuse))
        yield
