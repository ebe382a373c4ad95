"""A stage on another machine: the flow `run-stage`, which a worker runs in its own clone, and how a
flow with spread=True sends it there.

The sender pushes what the stage reads; the worker pulls it, runs the stage, pushes the result; the
sender restores that.
"""

import os
import platform
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID, uuid4

from prefect import flow, get_client, get_run_logger
from prefect.client.schemas.filters import FlowFilter, WorkPoolFilter
from prefect.client.schemas.objects import State, WorkQueueStatus
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError, TerminationSignal
from prefect.states import Cancelling, Completed, Failed

from flows.engine import ROOT, end_with_worker, enter
from flows.graph import Send, run_graph, task_runner
from gpt1.base.cores import cores
from gpt1.base.errors import TemporaryError, UserError
from gpt1.base.settings import setting
from gpt1.pipeline import leases, shared
from gpt1.pipeline.prefect_names import POOL
from gpt1.pipeline.process_group import signals_noted
from gpt1.pipeline.progress import News
from gpt1.pipeline.run_state import Plan
from gpt1.pipeline.schedule import Allocation, Slots, Stage, group
from gpt1.pipeline.settings import DECIDE_BITS
from gpt1.pipeline.slots import find_slots

FLOW = "run-stage"
POLL_SECONDS, PATIENCE_SECONDS = 1.0, 120.0
REFUSED = {400, 401, 403, 404, 409, 422}  # statuses that stay what they are
Answer = TypeVar("Answer")


@flow(
    name=FLOW,
    flow_run_name="{stage}",
    description="One stage that a flow on another machine needs. Sent by spread=True.",
    task_runner=task_runner(),
)
def run_stage(
    stage: str,
    inputs: dict[str, Any],
    digest: dict[str, str],
    checkout: str,
    variables: dict[str, str] = {},  # noqa: B006 (Prefect shows it)
    profile: str | None = None,
    overrides: list[str] = [],  # noqa: B006
    seeds: list[int] | None = None,
    tasks: list[str] | None = None,
) -> State[Any]:
    """Run a stage here as `checkout`, which sends it, would there: inputs from DVC's remote by
    their dvc.lock entries, the result back.
    """
    os.chdir(ROOT)
    end_with_worker()
    logger = get_run_logger()
    try:
        with signals_noted() as signals:  # one that comes while this waits, or talks to the remote
            with leases.lent_to(checkout, logger.info, lambda: not signals) as lock:
                enter(profile, overrides, seeds, tasks)
                os.environ.update(variables)
                how = run_here(
                    stage,
                    None if leases.is_this(checkout) else inputs,
                    digest,
                    lock,
                    lambda: not signals,
                )
            if signals:
                raise KeyboardInterrupt("interrupted: nothing finished was lost")
    except UserError as error:
        reason = next(iter(getattr(error, "__notes__", [str(error)]))).splitlines()[0]
        logger.error(reason)
        return Failed(message=reason)
    except KeyboardInterrupt as interrupt:
        logger.warning(str(interrupt))
        raise TerminationSignal(15) from None
    return Completed(message=f"{how} on {platform.node()}")


def run_here(
    name: str,
    inputs: Mapping[str, Any] | None,
    digest: Mapping[str, str],
    lock: int,
    wanted: Callable[[], bool],
) -> str:
    """Bring a stage's inputs here, run it or find it finished, send the result to the remote;
    returns which it was.

    No inputs where the checkout is the very one that has sent it: then all is there already, and
    needs no remote.
    """
    shared.refuse_other_code(digest)
    if inputs is not None:
        shared.require_remote()
        shared.lay_entries(inputs)
        shared.pull(inputs)
        if shared.restore(name):
            return "found finished"
    stage, threads = shared.find_stage(name), int(os.environ.get("GPT1_THREADS") or cores())
    devices = find_slots(None, stage.trains)[0].devices if stage.trains else ()
    count = len(devices) if group(name) == "pretrain" else min(1, len(devices))
    with leases.lent_devices(devices, count, wanted) as devices:
        share = Allocation(0 if devices else 1, threads, len(devices))
        plan = Plan({name: stage}, [name], {name}, Slots(1, devices), {name: share}, {name: 0.0})
        run_graph(plan, lambda _: None, say, lock)
    if inputs is not None:
        shared.push([name])
    return "run"


def say(news: News) -> None:
    """Hand a line on to the run's log."""
    if news.line:
        get_run_logger().info(news.line)


def sender(
    profile: str | None,
    overrides: Sequence[str],
    seeds: Sequence[int] | None,
    tasks: Sequence[str] | None,
    pool: str,
) -> Callable[[Stage], Send | None]:
    """What tells, for a stage, how to have a machine of a work pool run it: None where it has to be
    run here.

    What it gives leaves the result here, for DVC to find the stage unchanged; it raises UserError
    where nobody takes the stage, where it fails, and where DVC's remote does not answer. DVC needs
    a default remote unless all workers work in this very folder, on a shared disk.
    """
    away = Away({"profile": profile, "overrides": overrides, "seeds": seeds, "tasks": tasks}, pool)
    return lambda stage: (
        away.send
        if shared.can_travel(stage)
        else away.fetch
        if shared.can_be_fetched(stage)
        else None
    )


@dataclass
class Away:
    """The parameters of a flow whose stages are sent away, the work pool that takes them, and the
    stages whose results lie on the remote.
    """

    choice: Mapping[str, Any]
    pool: str
    pushed: set[str] = field(default_factory=set)
    one_at_a_time: threading.Lock = field(
        default_factory=threading.Lock
    )  # DVC's Repo is not made for threads
    checkout: str = field(default_factory=leases.this_checkout)

    def fetch(self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool]) -> None:
        """Restore the result of a stage where another clone has finished it from the same inputs.
        Raises UserError.
        """
        with self.one_at_a_time:
            if shared.remote_name():
                shared.restore(stage.name)

    def send(self, stage: Stage, given: Mapping[str, str], ending: Callable[[], bool]) -> None:
        """Have a stage run on whichever machine takes it first, wait for it, and restore its result
        here. Raises UserError.
        """
        with self.one_at_a_time:
            if remote := shared.remote_name():
                if shared.restore(stage.name):
                    return
                shared.push(sorted(stage.needs - self.pushed))
                self.pushed |= stage.needs
            asked = {
                "stage": stage.name,
                "inputs": shared.lock_entries(sorted(stage.needs)),
                "digest": shared.digest(),
                "checkout": self.checkout,
                "variables": passed(given),
                **self.choice,
            }
        state = self.follow(stage, asked, ending)
        if not state.is_completed():  # a task that lost its worker is tried again, by Prefect
            error = TemporaryError if state.is_crashed() else UserError
            raise error(f"{stage.name}, on another machine: {state.message or state.name}")
        with self.one_at_a_time:
            if shared.is_current(stage.name):  # a worker in this very folder
                if remote:
                    shared.push([stage.name])
            elif not (remote and shared.restore(stage.name)):
                raise UserError(
                    f"{stage.name} ended well elsewhere ({state.message}), but there is no result"
                    " of it for the inputs here: see that both machines use the same DVC remote"
                    " (dvc remote list)"
                )
            self.pushed.add(stage.name)

    def follow(
        self, stage: Stage, asked: Mapping[str, Any], ending: Callable[[], bool]
    ) -> State[Any]:
        """Make a run of `run-stage`, and wait for its end; cancel it when this flow is to end.
        Returns its last state.
        """
        deployment, queue = answer(lambda: place_for(stage, self.pool), stage.name)
        sent: dict[str, Any] = {
            "name": deployment,
            "parameters": dict(asked),
            "work_queue_name": queue,
            "timeout": 0,
            "flow_run_name": stage.name,
            "job_variables": {"name": job_name(stage)},
            "idempotency_key": uuid4().hex,  # asked again, the server gives the run that it has
        }
        run: Any = answer(lambda: run_deployment(**sent), stage.name)
        get_run_logger().info("%s: sent to work queue %s of %s", stage.name, queue, self.pool)
        cancelled = False

        def look() -> State[Any]:
            nonlocal cancelled
            with get_client(sync_client=True) as client:
                state = client.read_flow_run(run.id).state
                assert state is not None
                if ending() and not state.is_final() and not cancelled:
                    why: State[Any] = Cancelling(message="the flow that sent it is to end")
                    client.set_flow_run_state(run.id, why)
                    cancelled = True
            return state

        while not (state := answer(look, stage.name)).is_final():
            time.sleep(POLL_SECONDS)
        return state


def answer(ask: Callable[[], Answer], about: str) -> Answer:
    """What Prefect's server answers; one that is busy, or being started again, is asked again for
    PATIENCE_SECONDS. Raises UserError, at once for what the server refuses.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except UserError:
            raise
        except Exception as error:  # of httpx, or Prefect's own for an API that it does not reach
            status = error.response.status_code if isinstance(error, PrefectHTTPStatusError) else 0
            refused = status in REFUSED or isinstance(error, ObjectNotFound)
            if refused or time.monotonic() > deadline:
                raise UserError(
                    f"{about}: Prefect's server gave no answer ({shared.why(error)}), asked for up"
                    f" to {PATIENCE_SECONDS:.0f} s; see that it runs, and start the flow again"
                ) from error
        time.sleep(POLL_SECONDS)


def job_name(stage: Stage) -> str:
    """What a cluster's queue shows: the stage's name in the letters that Kubernetes allows, which
    Prefect's worker does not see to where a name is given.
    """
    return re.sub(r"[^a-z0-9]+", "-", stage.name.lower())


def passed(given: Mapping[str, str]) -> dict[str, str]:
    """The variables that another machine has to know to come to the same bits: threads always, as
    this machine would have them; the devices are its own.
    """
    found = {name: given.get(name) or setting(name) for name in DECIDE_BITS}
    found["GPT1_THREADS"] = found["GPT1_THREADS"] or str(cores())
    return {name: value for name, value in found.items() if value}


def place_for(stage: Stage, pool: str) -> tuple[UUID, str]:
    """The deployment of `run-stage` in a work pool, and the work queue, of those that a worker has
    asked for work within a minute: one of the stage's group (`pretrain`); `gpu`, if it trains; else
    `cpu`. Raises UserError where there is none, or the pool has no such deployment.
    """
    of_flow = FlowFilter.model_validate({"name": {"any_": [FLOW]}})
    of_pool = WorkPoolFilter.model_validate({"name": {"any_": [pool]}})
    with get_client(sync_client=True) as client:
        try:
            queues = client.read_work_queues(work_pool_name=pool)
        except ObjectNotFound:
            queues = []
        there = client.read_deployments(flow_filter=of_flow, work_pool_filter=of_pool)
    if not there:
        raise UserError(
            f"the server has no deployment of {FLOW} in a work pool {pool}: make serve, or prefect"
            " deploy --all, puts it there"
        )
    asked_for = {each.name for each in queues if each.status == WorkQueueStatus.READY}
    for queue in (group(stage.name), *(("gpu",) if stage.trains else ()), "cpu"):
        if queue in asked_for:
            own = [one for one in there if one.work_queue_name == queue]  # with settings for it
            return (own or there)[0].id, queue
    raise UserError(
        f"no worker asks for stages in the work queues cpu and gpu of pool {pool}: start one, on"
        f" any machine: {'make worker' if pool == POOL else f'prefect worker start --pool {pool}'}"
    )
