"""Stages as processes here."""

from collections.abc import Callable, Mapping

from gpt1.pipeline.job import Ended, log_of, out_of_memory_kills, outcome, start
from gpt1.pipeline.process_group import end_orphans
from gpt1.pipeline.schedule import Stage


class Here:
    """Starts stages as processes here, their output in a log each."""

    def start(
        self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool], group: int
    ) -> "_Process":
        """Start a stage's DVC."""
        return _Process(stage, given, ending, group)

    def current(self, stage: Stage) -> None:
        """Nothing."""


class _Process:
    def __init__(
        self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool], group: int
    ) -> None:
        self.stage, self.ending, self.group, self.kills = (
            stage,
            ending,
            group,
            out_of_memory_kills(),
        )
        log_of(stage.name).parent.mkdir(parents=True, exist_ok=True)
        with log_of(stage.name).open("wb") as log:
            self.process = start(stage, given, group, log)

    def ended(self) -> Ended | None:
        status = self.process.poll()
        if status is None:
            return None
        if status < 0:
            end_orphans(self.group)
        return outcome(self.stage, status, self.kills, self.ending())
