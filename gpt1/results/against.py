"""Numbers of the report beside those of another run: what is equal, what differs and by how much,
what only one has.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.base.terminal import plain
from gpt1.results.document import Grid
from gpt1.results.runs import find_run, make_anew, shipped
from gpt1.results.terminal_page import print_grid

METRICS = "metrics.json"


def other_numbers(name: str, against: str) -> dict[str, Any]:
    """The metrics of a page of another run, by the run's folder, its data/report, or the page's own
    folder. Raises UserError.
    """
    if not (found := find_run(against)):
        raise UserError(
            f"--against {against}: expected the folder of a run, or {' or '.join(shipped())}"
        )
    return read_numbers(report_in(found, name), name)


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
        raise UserError(f"{folder} is not there: gpt1 run {name} makes it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{folder / METRICS} cannot be read ({error}); {make_anew(name)}") from None


def only(metrics: Any, name: str, where: str) -> dict[str, Any]:
    """The numbers of one page among metrics. Raises UserError where they are of another."""
    if not isinstance(metrics, dict) or name not in metrics:
        found = ", ".join(metrics) if isinstance(metrics, dict) else "none"
        raise UserError(f"{where} holds numbers of {found}, expected those of {name}")
    return {str(key): value for key, value in metrics[name].items()}


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
