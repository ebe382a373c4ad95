"""`gpt1 status`: where this checkout stands, put together; and the same as plain values for a
program.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from gpt1.pipeline.forecast import last_seconds
from gpt1.pipeline.schedule import Stage, choose
from gpt1.pipeline.status.activity import Ended, Running, at_work, ended_badly, running
from gpt1.pipeline.status.reasons import Reason, own_reasons, read_reasons, writes_the_same


class Status(NamedTuple):
    """Where the stages stand, by name in the graph's order; every stage that would run has its own
    reasons, none where it only waits.
    """

    stages: dict[str, Stage]
    would_run: dict[str, list[Reason]]
    at_work: str
    running: dict[str, Running]
    ended: dict[str, Ended]
    seconds: dict[str, float]

    @property
    def current(self) -> list[str]:
        """Stages whose results stand."""
        return [
            name for name in self.stages if name not in self.would_run and name not in self.running
        ]

    @property
    def surely(self) -> list[str]:
        """Stages not at work that will run; the others of `would_run` follow where what these write
        differs from what it was.
        """
        return [
            name for name, reasons in self.would_run.items() if reasons and name not in self.running
        ]

    @property
    def perhaps(self) -> list[str]:
        """Stages that run if what comes before them writes other results."""
        return [
            name
            for name, reasons in self.would_run.items()
            if not reasons and name not in self.running
        ]

    def waits_for(self, name: str) -> list[str]:
        """Stages that would run before this one, among those whose outputs it reads, and may write
        other results.
        """
        return [
            need
            for need in self.stages
            if need in self.stages[name].needs
            and need in self.would_run
            and not writes_the_same(need, self.would_run[need])
        ]

    def to_run(self) -> str:
        """How many stages are to run, in words; '' for none."""
        if self.surely and self.perhaps:
            return f"{len(self.surely)} to run, then up to {len(self.perhaps)} after them"
        return (
            f"{len(self.surely)} to run"
            if self.surely
            else f"up to {len(self.perhaps)} to run after these"
            if self.perhaps
            else ""
        )


def read_status(targets: Collection[str]) -> Status:
    """Where the targets (stages or groups; none: all) and all that they need stand. Raises
    UserError for other names, or broken files.
    """
    whole, reasons = read_reasons()
    names = choose(whole, targets)
    stages, work = {name: whole[name] for name in names}, running(whole)
    own = own_reasons(stages, reasons)
    would_run = {name: own[name] for name in names if name in own}
    ended = {name: found for name in would_run if name not in work and (found := ended_badly(name))}
    return Status(
        stages,
        would_run,
        at_work(),
        {name: work[name] for name in names if name in work},
        ended,
        last_seconds(),
    )


def as_json(status: Status, profile: str) -> dict[str, Any]:
    """All of it as plain values."""

    def plain(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in values.items() if value not in (None, "")}

    return {
        "profile": profile,
        "stages": len(status.stages),
        "current": status.current,
        "at_work": status.at_work or None,
        "running": {name: plain(stage._asdict()) for name, stage in status.running.items()},
        "ended": {name: stage._asdict() for name, stage in status.ended.items()},
        "would_run": {
            name: {
                "reasons": [{**plain(reason._asdict()), "text": str(reason)} for reason in reasons],
                "after": status.waits_for(name),
                "last_seconds": status.seconds.get(name),
            }
            for name, reasons in status.would_run.items()
            if name not in status.running
        },
    }
