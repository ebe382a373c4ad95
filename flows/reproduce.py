"""The flows reproduce-table2 … -all: DVC's graph as Prefect tasks, for `gpt1 run` and `make
serve`.
"""

from __future__ import annotations  # State[Any] cannot be sent to a cluster, its name can

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from prefect import Flow, flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import deployment, flow_run
from prefect.states import Cancelled, Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner

from flows.graph import Stage, longest_paths, made_anew, read_graph
from flows.lanes import Lanes
from flows.processes import (
    StageLostError,
    alone_here,
    log_text,
    repro,
    request_stop,
    stops_requested,
)
from flows.progress import Progress, usual_seconds
from gpt1.base.errors import UserError
from gpt1.base.files import LOGS, read_json, stage_folder, write_json
from gpt1.base.machine import setting
from gpt1.params.schema import read_params

SECONDS = LOGS / "run" / "seconds.json"  # how long each stage took when it last ran


def was_lost(_task: object, _run: object, state: State[Any]) -> bool:
    """Return whether another try may succeed."""
    return isinstance(state.data, StageLostError) and not stops_requested()


@task(
    name="stage",
    task_run_name="{name}",
    cache_policy=NO_CACHE,
    retries=2,
    retry_delay_seconds=2,
    retry_condition_fn=was_lost,
)
def run_stage(name: str, environment: dict[str, str]) -> float:
    """Run a stage and publish its table; return its seconds, 0 where it was up to date or in DVC's
    cache. Raises what `repro` raises.
    """
    began = time.monotonic()
    try:
        repro(name, environment)
    finally:
        log = log_text(name)
        get_run_logger().info("\n".join(log.splitlines()[-200:]))
    with suppress(Exception):  # no table, or no server any more: the stage is done all the same
        page = stage_folder("report", name, f"{name}.md")
        create_markdown_artifact(key=name, markdown=page.read_text(encoding="utf-8"))
    return time.monotonic() - began if "Running stage '" in log else 0.0


def run_stages(stages: dict[str, Stage], lanes: Lanes) -> list[str]:
    """Run each outdated stage when its needs have completed, the longest path first, unless it is
    unchanged and they made nothing new. Returns the failed stages.
    """
    outdated = {name: stage for name, stage in stages.items() if stage.outdated}
    seconds: dict[str, float] = read_json(SECONDS) if SECONDS.is_file() else {}
    expected = usual_seconds(outdated, bool(lanes.gpus)) | seconds
    urgency = longest_paths(outdated, expected)
    needs = {
        name: [need for need in stage.needs if need in outdated] for name, stage in outdated.items()
    }
    order = TopologicalSorter(needs)
    order.prepare()
    ready, ended = list[str](), queue.Queue[str]()
    futures, failed, made = dict[str, Any](), list[str](), set[str]()
    with Progress(outdated, expected, lanes.count) as progress:
        while True:
            while names := order.get_ready():
                for name in names:
                    if outdated[name].changed or made.intersection(needs[name]):
                        ready.append(name)
                    else:
                        order.done(name)
                        progress.skip(name)
            ready.sort(key=lambda name: -urgency[name])
            networks = (
                {} if stops_requested() else {name: outdated[name].runs_network for name in ready}
            )
            for name, environment in lanes.fill(networks).items():
                ready.remove(name)
                progress.began[name] = time.monotonic()
                futures[name] = run_stage.submit(  # type: ignore[call-overload]
                    name,
                    environment,
                    wait_for=[futures[need] for need in needs[name] if need in futures],
                )
                futures[name].add_done_callback(lambda _, name=name: ended.put(name))
            if not progress.began:
                return failed
            progress.tick()
            try:
                name = ended.get(timeout=1)
            except queue.Empty:
                continue
            lanes.give_back(name)
            took = futures[name].result(raise_on_failure=False)
            if isinstance(took, float):
                order.done(name)
                unchanged = (other for other in outdated if not outdated[other].changed)
                if any(name in needs[other] for other in unchanged) and made_anew(
                    name, outdated[name]
                ):
                    made.add(name)
                if took:
                    seconds[name] = round(took, 1)
                    with suppress(OSError):  # a full disk must not end the run
                        write_json(SECONDS, seconds)
                progress.end(name, f"{name}: {took:.0f} s")
            else:
                failed.append(name)
                progress.end(
                    name, f"{name}: interrupted" if stops_requested() else f"error: {took}"
                )


@task(task_run_name="gpt1 {command}", cache_policy=NO_CACHE)
def finish(command: str) -> State[Any]:
    """Write the page, or tell MLflow. Neither can fail a run."""
    done = subprocess.run(
        [sys.executable, "-m", "gpt1.cli", command], capture_output=True, text=True
    )
    get_run_logger().info(done.stdout + done.stderr)
    return Completed(message=f"gpt1 {command} ended with status {done.returncode}")


def bring_up_to_date(targets: Sequence[str], lanes: int | None = None) -> State[Any]:
    """Run what is out of date of these stages (none: all) and their needs, `lanes` at once (None:
    as many as the machine allows).
    """
    get_run_logger().info(f"in {Path.cwd()}")
    try:
        with alone_here() if deployment.id else nullcontext():
            for number in (signal.SIGINT, signal.SIGTERM):
                # within the flow: Prefect sets its own handlers around it
                signal.signal(number, request_stop)
            failed = run_stages(read_graph(targets), Lanes.of_machine(lanes))
    except UserError as error:
        return Failed(message=str(error))
    if stops_requested():
        return Cancelled(message="interrupted: what is finished is kept, the next run goes on")
    if deployment.id:
        for command in ("report", "sync"):
            finish(command)
    if failed:
        return Failed(
            message=f"{len(failed)} failed: {', '.join(failed)}; what needs none of them is done"
        )
    return Completed(message=f"{' '.join(targets) or 'everything'} is up to date")


def task_runner() -> Any:
    """Return where stages run: threads, or a cluster whose machines share this folder. Raises
    UserError.
    """
    runner = setting("GPT1_TASK_RUNNER") or None
    if runner not in (None, "ray", "dask"):
        raise UserError(f"GPT1_TASK_RUNNER: expected ray or dask, found {runner}; unset it")
    try:
        if runner == "ray":
            from prefect_ray import RayTaskRunner

            return RayTaskRunner(init_kwargs={"log_to_driver": False})
        if runner == "dask":
            from prefect_dask.task_runners import DaskTaskRunner

            return DaskTaskRunner(address=os.environ.get("DASK_SCHEDULER_ADDRESS"))
    except ModuleNotFoundError as error:
        raise UserError(f"no {error.name} here: pip install prefect-{runner}") from None
    return ThreadPoolTaskRunner()


def reproduction(function: Callable[..., State[Any]]) -> Flow[..., State[Any]]:
    """Decorate a flow; its runs are called like `table2 · demo`."""
    title = function.__name__.removeprefix("reproduce_")

    def run_name() -> str:
        stages = " ".join(flow_run.parameters.get("only") or [title])
        with suppress(UserError):  # which the flow itself will say
            return f"{stages} · {read_params().profile}"
        return stages

    return flow(task_runner=task_runner(), persist_result=False, flow_run_name=run_name)(function)


@reproduction
def reproduce_table2() -> State[Any]:
    """Table 2 of the paper: natural language inference, ours beside theirs."""
    return bring_up_to_date(["table2"])


@reproduction
def reproduce_table3() -> State[Any]:
    """Table 3 of the paper: question answering and commonsense reasoning."""
    return bring_up_to_date(["table3"])


@reproduction
def reproduce_table4() -> State[Any]:
    """Table 4 of the paper: semantic similarity, classification, GLUE."""
    return bring_up_to_date(["table4"])


@reproduction
def reproduce_table5() -> State[Any]:
    """Table 5 of the paper: ablations."""
    return bring_up_to_date(["table5"])


@reproduction
def reproduce_figure2() -> State[Any]:
    """Figure 2 of the paper: layers transferred, zero-shot scores over pre-training."""
    return bring_up_to_date(["figure2"])


@reproduction
def reproduce_all(only: list[str] | None = None, lanes: int | None = None) -> State[Any]:
    """Every table, figure and curve, and the paper's claims; or `only` some stages or groups."""
    return bring_up_to_date(only or [], lanes)


FLOWS = (
    reproduce_table2,
    reproduce_table3,
    reproduce_table4,
    reproduce_table5,
    reproduce_figure2,
    reproduce_all,
)
