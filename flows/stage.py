"""One stage of DVC as one task of Prefect: its lines in the run's log, its progress, its result as
an artifact, retries where they help.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.runtime import task_run
from prefect.states import Cancelled, Completed
from prefect.tasks import Task

from flows.artifacts import Progress, publish
from gpt1.base.errors import TemporaryError, UserError
from gpt1.pipeline.job import Ended, StageProcess, log_of
from gpt1.pipeline.run_state import RunState
from gpt1.pipeline.schedule import Stage
from gpt1.pipeline.slots import smaller_micro_batch

POLL_SECONDS = 0.2
PROGRESS_SECONDS = 2.0
LAST_LINES = 12
FURTHER_ATTEMPTS = 2
DVCS_OWN = re.compile(
    r"(Generating|Updating) lock file|Use `dvc push`|To (track|enable) |\s+(git add|dvc config) "
)
PROGRESS = re.compile(r"(?P<what>.+): update (?P<done>\d+) of (?P<all>\d+)(?P<more>.*)")
Send = Callable[[Stage, Mapping[str, str], Callable[[], bool]], None]


@dataclass(frozen=True)
class Work:
    """What the tasks of one flow run share: the run's state, how a stage is sent to another machine
    (None: it is run here), where processes belong, how the attempts so far ended.
    """

    state: RunState
    send: Callable[[Stage], Send | None]
    group: int
    attempts: dict[str, Ended] = field(default_factory=dict)


class StageFailedError(Exception):
    """A stage that failed, with its last lines."""

    def __init__(self, name: str, ended: Ended) -> None:
        super().__init__("\n".join([ended.why, *(f"    {line}" for line in last_lines(name))]))
        self.ended = ended


def another_attempt_helps(_task: Task[Any, Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether a stage was lost or ran out of memory; bad input and wrong parameters stay what they
    are.
    """
    return isinstance(state.data, StageFailedError) and state.data.ended.lost


@task(
    name="stage",
    task_run_name="{name}",
    cache_policy=NO_CACHE,
    retries=FURTHER_ATTEMPTS,
    retry_delay_seconds=2,
    retry_condition_fn=another_attempt_helps,
    log_prints=False,
)
def run_stage(name: str, work: Work) -> State[Any]:
    """Run a stage whose needs have completed. Its state says how it ended; raises StageFailedError
    with its last lines.
    """
    state, attempts = work.state, int(task_run.run_count or 1)
    variables = state.turn(name)
    if variables is None:
        return not_run(name, state)
    if name in work.attempts and work.attempts[name].out_of_memory:
        variables |= smaller_micro_batch(attempts - 1)
        get_run_logger().warning(
            "once more, with GPT1_MICRO_BATCH=%s", variables["GPT1_MICRO_BATCH"]
        )
    ended = work.attempts[name] = attempt(name, work, variables)
    if not ended.lost or attempts > FURTHER_ATTEMPTS:  # else it keeps its lanes for the next one
        state.end(name, ended)
    if ended.well:
        publish(name)
        return Completed(message=ended.how, name=None if ended.how == "run" else "Cached")
    if state.ending:
        return asked_to_end(name)
    raise StageFailedError(name, ended)


def not_run(name: str, state: RunState) -> State[Any]:
    """The state of a stage that was not tried."""
    if name in state.not_run:
        return Cancelled(message=f"{name} would fail as another did, and was not started")
    if name in state.waiting:
        return asked_to_end(name)
    publish(name)
    return Completed(name="Cached", message="up to date")


def asked_to_end(name: str) -> State[Any]:
    """The state of a stage of a run that is to end."""
    return Cancelled(
        message=f"{name} was asked to end; what is finished is kept, and the next run goes on from"
        " there"
    )


def attempt(name: str, work: Work, variables: Mapping[str, str]) -> Ended:
    """Have the stage run here, or on another machine first, and follow its log."""
    stage, state = work.state.plan.stages[name], work.state
    if send := work.send(stage):
        log_of(name).parent.mkdir(parents=True, exist_ok=True)
        log_of(name).write_bytes(b"")
        try:
            send(stage, variables, lambda: state.ending)
        except UserError as error:
            log_of(name).write_text(f"error: {error}\n", encoding="utf-8")
            return Ended("failed", str(error), lost=isinstance(error, TemporaryError))
    process = StageProcess(stage, variables, work.group)  # which finds unchanged what was sent
    follower = Follower(name)
    while (ended := process.ended(state.ending)) is None:
        follower.read()
        time.sleep(POLL_SECONDS)
    follower.read()
    if ended.well and follower.progress.id is not None:
        follower.progress.show(1.0, f"{name}: done")
    return Ended("elsewhere") if send and ended.how == "unchanged" else ended


class Follower:
    """Hands the lines of a stage's log to the run's log as they come, and what they say of progress
    to an artifact.

    The stage writes to the file itself: a pipe would end it, should this process die.
    """

    def __init__(self, name: str) -> None:
        self.path, self.offset, self.logger, self.progress = (
            log_of(name),
            0,
            get_run_logger(),
            Progress(name, PROGRESS_SECONDS),
        )

    def read(self) -> None:
        """Take the whole lines that are new."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            if line.strip() and not DVCS_OWN.match(line):
                level = {
                    "error": self.logger.error,
                    "ERROR": self.logger.error,
                    "warning": self.logger.warning,
                }
                level.get(line.partition(":")[0], self.logger.info)(line)
            if found := PROGRESS.match(line):
                self.progress.show(int(found["done"]) / int(found["all"]), line)


def last_lines(name: str) -> list[str]:
    """The last lines that a stage said."""
    if not log_of(name).is_file():
        return []
    lines = log_of(name).read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.rstrip() for line in lines if line.strip()][-LAST_LINES:]
