"""Find out which reports of a run are out of date. DVC knows: dvc.lock records the parameters, code
and inputs that made each one.
"""

from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from gpt1.base.errors import UserError
from gpt1.results.runs import NAMES


class Freshness(NamedTuple):
    """The reports that are out of date, those that dvc.lock does not know, and whether the outdated
    ones were made from the same inputs.
    """

    outdated: frozenset[str] = frozenset()
    unrecorded: frozenset[str] = frozenset()
    agreeing: bool = True

    def beside(self, reports: Iterable[str]) -> list[str]:
        """Return those reports whose numbers may be shown together: the up-to-date ones; where none
        is, all of them if they were made from the same inputs, else none.
        """
        there = list(reports)
        fresh = [name for name in there if name not in self.outdated]
        return fresh or (there if self.agreeing else [])

    def key(self, report: str) -> tuple[bool, str]:
        """Sort up-to-date reports first."""
        return report in self.outdated, report

    def line(self, reports: Iterable[str]) -> str:
        """Return a warning about these reports in one line; "" where all are up to date."""
        there = set(reports)
        outdated = " ".join(name for name in NAMES if name in self.outdated & there)
        unknown = " ".join(name for name in NAMES if name in self.unrecorded & there)
        if outdated:
            return f"Out of date, for parameters, code or data are others now: gpt1 run {outdated}"
        return f"What made them is not known, for dvc.lock lacks it: {unknown}" if unknown else ""


def freshness(folder: Path = Path()) -> Freshness:
    """Ask DVC about the reports of a checkout. A packed run was up to date when it was packed."""
    if not (folder / "dvc.yaml").is_file():
        return Freshness()
    try:
        from flows.graph import read_graph

        with chdir(folder):
            graph = read_graph(())
    except (ModuleNotFoundError, UserError):  # a package without DVC; a dvc.yaml that is damaged
        return Freshness(unrecorded=frozenset(NAMES))
    stages = {name: graph[name] for name in NAMES if name in graph}
    unrecorded = frozenset(name for name, stage in stages.items() if not stage.recorded)
    outdated = frozenset(name for name, stage in stages.items() if stage.stale) - unrecorded
    recorded = [pair for name in outdated for pair in stages[name].recorded.items()]
    agreeing = len({path for path, _ in recorded}) == len(set(recorded))
    return Freshness(outdated, unrecorded, agreeing)
