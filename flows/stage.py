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
from prefect.futures import PrefectFuture
from prefect.runtime import task_run
from prefect.states import Cancelled, Completed
from prefect.tasks import Task
from prefect.utilities.annotations import quote

from flows.artifacts import Progress, publish
from gpt1.base.errors import UserError
from gpt1.pipeline.job import Ended, log_of, out_of_memory_kills, outcome, start
from gpt1.pipeline.process_group import end_orphans
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


@dataclass
class Order:
    """A stage to run: its share of the machine as variables, where its processes belong, and in the
    end what became of it.
    """

    stage: Stage
    given: Mapping[str, str] = field(default_factory=dict)
    ending: Callable[[], bool] = lambda: False
    group: int = 0
    send: Send | None = (
        # has another machine run it, and brings the result here; DVC then only sees that it is
        # there
        None
    )
    became: Ended | None = None


class StageFailedError(Exception):
    """A stage that failed, with its last lines."""

    def __init__(self, ended: Ended, last_lines: list[str]) -> None:
        super().__init__("\n".join([ended.why, *(f"    {line}" for line in last_lines)]))
        self.ended = ended


def another_attempt_helps(_task: Task[Any, Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether a stage was lost or ran out of memory; bad input and wrong parameters stay what they
    are.
    """
    failed = (
        state.data
        if isinstance(state.data, StageFailedError)
        else getattr(state.data, "exception", None)
    )
    return isinstance(failed, StageFailedError) and failed.ended.lost


@task(
    name="stage",
    task_run_name="{name}",
    cache_policy=NO_CACHE,
    retries=FURTHER_ATTEMPTS,
    retry_delay_seconds=2,
    retry_condition_fn=another_attempt_helps,
    log_prints=False,
)
def run_stage(name: str, work: Order) -> State[Any]:
    """Run a stage. Its state says how it ended; raises StageFailedError with its last lines."""
    if work.became is not None and work.became.well:  # DVC has it
        publish(name)
        return Completed(name="Cached", message="up to date")
    variables = dict(work.given)
    if work.became is not None and work.became.out_of_memory:
        variables |= smaller_micro_batch(int(task_run.run_count or 1) - 1)
        get_run_logger().warning(
            "once more, with GPT1_MICRO_BATCH=%s", variables["GPT1_MICRO_BATCH"]
        )
    work.became = attempt(work, variables)
    if work.became.well:
        publish(name)
        return (
            Completed(message="run")
            if work.became.how == "run"
            else Completed(name="Cached", message=work.became.how)
        )
    if work.ending():
        return Cancelled(
            message=(
                f"{name} was asked to end; what is finished is kept, and the next run goes on from"
                " there"
            )
        )
    raise StageFailedError(work.became, last_lines(name))


def attempt(work: Order, variables: Mapping[str, str]) -> Ended:
    """Have the stage run here, or on another machine first, and follow its log."""
    log, kills = log_of(work.stage.name), out_of_memory_kills()
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    if work.send is not None:
        try:
            work.send(work.stage, variables, work.ending)
        except UserError as error:
            return Ended("failed", str(error))
    follower = Follower(work.stage.name)
    with log.open("ab") as output:
        process = start(work.stage, variables, work.group, output)
    while process.poll() is None:
        follower.read()
        time.sleep(POLL_SECONDS)
    if process.returncode < 0:  # DVC was killed
        end_orphans(work.group)
    follower.read()
    ended = outcome(work.stage, process.returncode, kills, work.ending())
    if ended.well and follower.progress.id is not None:
        follower.progress.show(1.0, f"{work.stage.name}: done")
    return Ended("elsewhere") if work.send is not None and ended.how == "unchanged" else ended


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
    lines = log_of(name).read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.rstrip() for line in lines if line.strip()][-LAST_LINES:]


class Launcher:
    """Starts stages as tasks of Prefect, each after the tasks whose results it needs, so that its
    page draws the graph.
    """

    def __init__(self, send: Callable[[Stage], Send | None]) -> None:
        self.send = send
        self.futures: dict[str, PrefectFuture[Any]] = {}
        self.orders: dict[str, Order] = {}

    def start(
        self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool], group: int
    ) -> "TaskJob":
        """Start a stage."""
        return self._submit(Order(stage, given, ending, group, self.send(stage)))

    def current(self, stage: Stage) -> None:
        """A task that ends as Cached."""
        self._submit(Order(stage, became=Ended("unchanged")))

    def _submit(self, order: Order) -> "TaskJob":
        name = order.stage.name
        needs = [self.futures[need] for need in sorted(order.stage.needs) if need in self.futures]
        self.orders[name] = order
        kept = quote(order)  # or else Prefect would look through all that it holds
        self.futures[name] = run_stage.submit(name, kept, wait_for=needs)  # type: ignore[call-overload]
        return TaskJob(order, self.futures[name])

    def failures(self) -> list[str]:
        """What became of the stages that failed, with their last lines."""
        return [
            str(StageFailedError(order.became, last_lines(name)))
            for name, order in self.orders.items()
            if order.became is not None and not order.became.well
        ]

    def wait(self) -> None:
        """Until every task has ended."""
        for future in self.futures.values():
            future.wait()


@dataclass(frozen=True)
class TaskJob:
    """A stage at work as a task."""

    order: Order
    future: "PrefectFuture[Any]"

    def ended(self) -> Ended | None:
        """What became of it; None while it is at work or waits for another attempt."""
        state = self.future.state
        if not state.is_final():
            return None
        became = self.order.became
        if became is None or (became.well and not state.is_completed()):
            return Ended(
                "failed",
                f"{self.order.stage.name}: Prefect ended its task as {state.name}"
                f" ({state.message})",
            )
        return became
