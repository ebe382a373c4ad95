"""A plan as a graph of Prefect's tasks, all of them submitted at once: Prefect starts each when the
tasks whose results it needs have completed, tries it again, and shows what became of it.

What is left to us is the machine: a task that is ready waits for its lanes or GPUs.
"""

import sys
from collections.abc import Callable
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from prefect.futures import PrefectConcurrentFuture, PrefectFuture
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.utilities.annotations import quote

from flows.stage import Send, StageFailedError, Work, run_stage
from gpt1.base.errors import UserError
from gpt1.pipeline.job import Ended
from gpt1.pipeline.process_group import process_group, signals_noted
from gpt1.pipeline.progress import Watch
from gpt1.pipeline.run import supervise
from gpt1.pipeline.run_state import Plan, RunState
from gpt1.pipeline.schedule import Stage


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
        work = Work(state, send, group)
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
