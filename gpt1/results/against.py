"""Numbers of the report beside those of another checkout, worktree, folder or git revision: what is
equal, what differs and by how much, what only one has.
"""

import configparser
import json
import math
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.base.terminal import plain
from gpt1.pipeline.graph import outputs_in
from gpt1.results.document import Grid
from gpt1.results.runs import LOCK, find_run, make_anew
from gpt1.results.terminal_page import print_grid

METRICS = "metrics.json"
DVC = Path(".dvc")


def other_numbers(name: str, against: str) -> dict[str, Any]:
    """The metrics of a page in a folder (of a run, its data/report, or the page's own), else at a
    git revision. Raises UserError.
    """
    if found := find_run(against):
        return read_numbers(report_in(found, name), name)
    return numbers_at(against, name)


def lock_of(against: str) -> str:
    """The text of the dvc.lock of a run's folder, else of a git revision. Raises UserError."""
    found = find_run(against)
    if not found:
        return lock_at(against)
    try:
        return (found / LOCK).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{found / LOCK} cannot be read ({error}); name a checkout, or what gpt1 pack wrote"
        ) from None


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
        raise UserError(f"{folder / METRICS} cannot be read ({error}); {make_anew(name)}") from None


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
    place = str(stage_folder("report", name))
    outs = outputs_in(lock_at(revision)).get(name, ())
    found = next((out["md5"] for out in outs if out["path"] == place), None)
    if found is None:
        raise UserError(f"dvc.lock of {revision} knows no {name}: it had not been run there")
    listing = cached(found, revision, json.loads)
    digest = next((entry["md5"] for entry in listing if entry["relpath"] == METRICS), None)
    if digest is None:
        raise UserError(f"{name} at {revision} has no {METRICS}")
    return only(cached(str(digest), revision, json.loads), name, revision)


def lock_at(revision: str) -> str:
    """The text of dvc.lock at a git revision. Raises UserError."""
    if revision.startswith("-"):
        raise UserError(f"--against {revision}: expected a git revision, or another project folder")
    try:
        return git_show(f"{revision}:{LOCK}")
    except UserError:
        git_show(f"{revision}^{{commit}}", "rev-parse", "--verify", "--quiet")
        raise UserError(
            f"{revision} has no dvc.lock, which says what a run gave: commit yours after a run (git"
            " add dvc.lock), or name another project folder"
        ) from None


def git_show(what: str, *command: str) -> str:
    """What git shows of this repository. Raises UserError where there is no such thing, or no
    git.
    """
    try:
        done = subprocess.run(
            ["git", *(command or ("show",)), what], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UserError("git is not there: install it, or name another project folder") from None
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


TOLERANCE = 5e-5  # numbers are written with four decimals
DETAILS = {
    "best",
    "best_evaluation",
    "median",
    "sd",
    "standard_error",
    "majority",
    "at_chance",
    "examples",
    "seeds",
    "low",
    "high",
    "tasks",
    "difference",
    "flagged",
    "one_class",
    "full_less_this_low",
    "full_less_this_high",
}  # of a score


class Difference(NamedTuple):
    """A number by its dotted name here and there; None where one of the two has none."""

    name: str
    here: float | None
    there: float | None

    @property
    def differs(self) -> bool:
        """Whether the two are not the same."""
        return (
            self.here is None
            or self.there is None
            or not math.isclose(self.here, self.there, rel_tol=0, abs_tol=TOLERANCE)
        )


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Every number with its dotted name."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        elif isinstance(value, int | float):
            yield f"{prefix}{key}", float(value)


def compare(here: Mapping[str, Any], there: Mapping[str, Any]) -> list[Difference]:
    """All numbers of either, in the order in which they stand."""
    ours, theirs = dict(flat(here)), dict(flat(there))
    return [
        Difference(name, ours.get(name), theirs.get(name))
        for name in [*ours, *(name for name in theirs if name not in ours)]
    ]


def print_differences(
    screen: Console, name: str, against: str, found: Sequence[Difference]
) -> None:
    """The scores of both as a table, and how many of their details differ."""
    scores = [one for one in found if one.name.rpartition(".")[2] not in DETAILS]
    title = against if len(against) <= 20 else f"…{against[-19:]}"
    print_grid(
        screen,
        Grid(
            (name, "here", title, "difference"),
            tuple(
                (plain(one.name), decimals(one.here), decimals(one.there), less(one))
                for one in scores
            ),
        ),
    )
    differ, details = (
        sum(one.differs for one in found),
        sum(one.differs for one in found if one not in scores),
    )
    screen.print()
    more = f", {details} of them details (--json has all)" if details else ""
    screen.print(f"{differ} of {len(found)} numbers differ{more}", markup=False)


def less(one: Difference) -> str:
    """Here less there; = where they are the same."""
    return (
        "="
        if not one.differs
        else f"{one.here - one.there:+,.4g}"
        if one.here is not None and one.there is not None
        else "-"
    )


def decimals(value: float | None) -> str:
    """A number with at most four decimals."""
    return "-" if value is None else f"{value:,.4f}".rstrip("0").rstrip(".")
