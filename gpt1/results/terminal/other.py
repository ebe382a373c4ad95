"""Numbers of the report elsewhere: in another checkout, worktree or folder, or at a git revision by
its dvc.lock and DVC's cache.
"""

import configparser
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder

METRICS = "metrics.json"
DVC = Path(".dvc")


def other_numbers(name: str, against: str) -> dict[str, Any]:
    """The metrics of a page in a folder (a checkout, its data/report, or the page's own), else at a
    git revision. Raises UserError.
    """
    if Path(against).is_dir():
        return read_numbers(report_in(Path(against), name), name)
    if Path(".worktrees", against).is_dir():
        return read_numbers(report_in(Path(".worktrees", against), name), name)
    return numbers_at(against, name)


def report_in(folder: Path, name: str) -> Path:
    """Where under a folder a page lies. Raises UserError."""
    places = (folder / stage_folder("report", name), folder / name, folder)
    for place in places:
        if (place / METRICS).is_file():
            return place
    raise UserError(
        f"{folder} holds no {name}: expected {places[0] / METRICS}, as a checkout has where {name}"
        " was made"
    )


def read_numbers(folder: Path, name: str) -> dict[str, Any]:
    """The metrics of a page. Raises UserError where they are not there."""
    try:
        return only(json.loads((folder / METRICS).read_text(encoding="utf-8")), name, str(folder))
    except FileNotFoundError:
        raise UserError(
            f"{folder} is not there: gpt1 run {name} makes it, gpt1 status {name} says what that"
            " needs"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder / METRICS} cannot be read ({error}); make it anew: dvc repro -f -s {name}"
        ) from None


def only(metrics: Any, name: str, where: str) -> dict[str, Any]:
    """The numbers of one page among metrics. Raises UserError where they are of another."""
    if not isinstance(metrics, dict) or name not in metrics:
        found = ", ".join(metrics) if isinstance(metrics, dict) else "none"
        raise UserError(f"{where} holds numbers of {found}, expected those of {name}")
    return {str(key): value for key, value in metrics[name].items()}


def numbers_at(revision: str, name: str) -> dict[str, Any]:
    """The metrics of a page at a git revision, from dvc.lock there and DVC's cache here. Raises
    UserError.
    """
    if revision.startswith("-"):
        raise UserError(
            f"--against {revision}: expected a git revision, or the folder of another checkout"
        )
    try:
        lock = git_show(f"{revision}:dvc.lock")
    except UserError:
        git_show(f"{revision}^{{commit}}", "rev-parse", "--verify", "--quiet")
        raise UserError(
            f"{revision} has no dvc.lock, which says what a run gave: commit yours after a run (git"
            " add dvc.lock), or name the folder of another checkout"
        ) from None
    place = re.escape(str(stage_folder("report", name)))
    found = re.search(
        rf"^    - path: {place}\n(?:      .*\n)*?      md5: (\w+)\.dir$", lock, re.MULTILINE
    )
    if not found:
        raise UserError(f"dvc.lock of {revision} knows no {name}: it had not been run there")
    listing = cached(f"{found[1]}.dir", revision, json.loads)
    digest = next((entry["md5"] for entry in listing if entry["relpath"] == METRICS), None)
    if digest is None:
        raise UserError(f"{name} at {revision} has no {METRICS}")
    return only(cached(str(digest), revision, json.loads), name, revision)


def git_show(what: str, *command: str) -> str:
    """What git shows of this repository. Raises UserError where there is no such thing, or no
    git.
    """
    try:
        done = subprocess.run(
            ["git", *(command or ("show",)), what], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UserError(
            "git is not there: install it, or name the folder of another checkout"
        ) from None
    if done.returncode:
        revision = what.partition(":")[0].removesuffix("^{commit}")
        raise UserError(
            f"--against {revision}: neither a folder nor a worktree nor a revision that git knows"
            " here"
        )
    return done.stdout


def cached(digest: str, revision: str, read: Callable[[str], Any]) -> Any:
    """What lies under a digest in DVC's cache. Raises UserError where it is not there any more."""
    path = cache_folder() / "files" / "md5" / digest[:2] / digest[2:]
    try:
        return read(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UserError(
            f"DVC's cache no longer holds what {revision} gave ({path}): fetch it from a remote"
            " (dvc fetch --all-commits), or run that revision again in a worktree"
        ) from None


def cache_folder() -> Path:
    """DVC's cache: beside its settings, or where they say."""
    settings = configparser.ConfigParser(strict=False, interpolation=None)
    for name in ("config", "config.local"):
        lines = (
            (DVC / name).read_text(encoding="utf-8").splitlines() if (DVC / name).is_file() else []
        )
        settings.read_string("\n".join(line.strip() for line in lines))
    named = settings.get("cache", "dir", fallback="").strip("\"' ")
    return DVC / Path(named) if named else DVC / "cache"  # a relative one counts from the settings
