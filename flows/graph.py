"""A plan as a graph of Prefect's tasks, all of them submitted at once: Prefect starts each when the
tasks whose results it needs have completed, tries it again, and shows what became of it.

A stage of DVC is a task: its lines in the run's log, its progress, its result as an artifact,
retries where they help. What is left to us is the machine: a task that is ready waits for its lanes
or GPUs.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.futures import PrefectConcurrentFuture, PrefectFuture
from prefect.runtime import task_run
from prefect.states import Cancelled, Completed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task
from prefect.utilities.annotations import quote

from flows.artifacts import ProgressArtifact, publish
from gpt1.base.errors import TemporaryError, UserError
from gpt1.pipeline.job import Ended, StageProcess, log_of
from gpt1.pipeline.process_group import process_group, signals_noted
from gpt1.pipeline.progress import Watch, progress_in, tail
from gpt1.pipeline.run import supervise
from gpt1.pipeline.run_state import Plan, RunState
from gpt1.pipeline.schedule import Stage
from gpt1.pipeline.slots import smaller_micro_batch

POLL_SECONDS = 0.2
PROGRESS_SECONDS = 2.0
LAST_LINES = 12
FURTHER_ATTEMPTS = 2
LEVELS = {"error": logging.ERROR, "ERROR": logging.ERROR, "warning": logging.WARNING}
DVCS_OWN = re.compile(
    r"(Generating|Updating) lock file|Use `dvc push`|To (track|enable) |\s+(git add|dvc config) "
)
Send = Callable[[Stage, Mapping[str, str], Callable[[], bool]], None]


@dataclass(frozen=True)
class FlowRunStages:
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
        said = tail(log_of(name))[-LAST_LINES:] if log_of(name).is_file() else []
        super().__init__("\n".join([ended.why, *(f"    {line}" for line in said)]))
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
def run_stage(name: str, work: FlowRunStages) -> State[Any]:
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


def attempt(name: str, work: FlowRunStages, variables: Mapping[str, str]) -> Ended:
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
        self.path, self.offset, self.logger = log_of(name), 0, get_run_logger()
        self.progress = ProgressArtifact(name, PROGRESS_SECONDS)

    def read(self) -> None:
        """Take the whole lines that are new."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        for line in whole.decode("utf-8", "replace").splitlines():
            if line.strip() and not DVCS_OWN.match(line):
                level = LEVELS.get(line.partition(":")[0], logging.INFO)
                self.logger.log(level, line)
            if found := progress_in([line]):
                self.progress.show(found.update / found.updates, line)


def task_runner() -> Any:
    """A thread a task: Prefect's threads also wait for what their tasks need, so that fewer could
    wait for one another for ever. How many stages are at work is the lanes' and GPUs' to say.
    """
    return ThreadPoolTaskRunner(max_workers=sys.maxsize)


class AfterLanes(PrefectConcurrentFuture[Any]):
    """The last of the futures that a stage waits for, which also waits for the stage's lanes: until
    it has them Prefect shows it as pending, and its clock does not run.
    """

    def __init__(self, need: PrefectConcurrentFuture[Any], turn: Callable[[], object]) -> None:
        super().__init__(need.task_run_id, need.wrapped_future)
        self.turn = turn

    def wait(self, timeout: float | None = None) -> None:
        """Until the need has ended and, where it has completed, there is a place."""
        super().wait(timeout)
        if self.state.is_completed():
            self.turn()


def run_graph(
    plan: Plan, send: Callable[[Stage], Send | None], watch: Watch, lock: int
) -> dict[str, float]:
    """Have Prefect run the stages of a plan, in a flow; what is left of them, should this process
    die, holds `lock` until it has ended. Returns seconds by name of each stage that changed, and
    raises, as gpt1.pipeline.run.supervise; the UserError's notes are the last lines of each stage.
    """
    state = RunState(plan)
    with signals_noted() as signals, process_group(lock) as group:
        work = FlowRunStages(state, send, group)
        futures = dict[str, PrefectConcurrentFuture[Any]]()
        unfinished = set(plan.chosen)

        def settle(name: str, future: PrefectFuture[Any]) -> None:
            """See to it that Prefect and the run's state agree on how a task ended."""
            try:
                future.wait()
                how, why = future.state.name, future.state.message
                completed = future.state.is_completed()
            except BaseException as error:  # the task's engine itself
                how, why, completed = "Crashed", str(error), False
            if not completed:
                reason = f"Prefect ended its task as {how} ({why})"
                state.refuse(name, Ended("failed", f"{name}: {reason}"))
            unfinished.discard(name)

        order = TopologicalSorter({name: plan.stages[name].needs for name in plan.chosen})
        for name in order.static_order():
            needs = [futures[need] for need in sorted(plan.stages[name].needs)]
            needs[-1:] = [AfterLanes(need, partial(state.turn, name)) for need in needs[-1:]]
            task = run_stage.with_options(name=name)  # what Prefect calls it while it is pending
            future = task.submit(name, quote(work), wait_for=needs)  # type: ignore[call-overload]
            futures[name] = future
            future.add_done_callback(partial(settle, name))
        try:
            return supervise(state, lambda: bool(unfinished), watch, signals, group)
        except UserError as error:
            for name, ended in state.failed.items():
                error.add_note(str(StageFailedError(name, ended)))
            raise
