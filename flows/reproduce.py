"""reproduce-table2 … -table5, -figure2, -all: one builder, a row for each. DVC says what there is
to do; a flow has it done, and shows it.

`python -m flows.reproduce table2` runs a flow without a server of one's own.
"""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

from prefect import Flow, flow, get_client, get_run_logger
from prefect.client.schemas.objects import State
from prefect.exceptions import TerminationSignal
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed
from prefect.utilities.urls import url_for
from pydantic import Field

from flows.artifacts import ProgressArtifact, link_mlflow
from flows.engine import ROOT, end_with_worker, enter
from flows.graph import run_graph, task_runner
from flows.remote import sender
from gpt1.base.errors import UserError
from gpt1.params.yaml import read_yaml
from gpt1.pipeline.graph import LOCK_FILE
from gpt1.pipeline.leases import alone_here
from gpt1.pipeline.prefect_names import POOL
from gpt1.pipeline.progress import News
from gpt1.pipeline.run import make_plan
from gpt1.pipeline.run_state import Plan
from gpt1.pipeline.shared import can_travel, remote_name
from gpt1.tracking.log import FLOW_RUN_URL, RUNS, checkout

MEND = "Mend it, then run the same again: what is finished is kept."
PROFILES = sorted(path.stem for path in (ROOT / "conf").glob("*.yaml"))
TASKS = sorted(read_yaml(ROOT / "conf" / "paper.yaml")["tasks"])
Profile = Annotated[str, Field(json_schema_extra={"enum": PROFILES})]  # Prefect holds values to it
TaskName = Annotated[str, Field(json_schema_extra={"enum": TASKS})]


def run_name() -> str:
    """A name that a person can tell: what, of which profile, at which commit."""
    wanted, what = (
        flow_run.parameters or {},
        str(flow_run.flow_name or "").removeprefix("reproduce-"),
    )
    changed = [
        f"{len(wanted[key])} {key}" for key in ("overrides", "seeds", "tasks") if wanted.get(key)
    ]
    return " ".join([what, wanted.get("profile") or "checkout", *changed, "at", commit()[:7]])


def commit() -> str:
    """The checkout's commit, with a plus where files differ from it."""
    facts = checkout(ROOT)
    return facts["git_commit"] + ("+" if facts["dirty"] == "true" else "")


def tag_run(*tags: str) -> None:
    """Add tags to this flow run."""
    with suppress(Exception), get_client(sync_client=True) as client:  # a tag is not worth a run
        client.update_flow_run(UUID(flow_run.get_id()), tags=sorted({*flow_run.tags, *tags}))


def cancelled() -> bool:
    """Whether a person has cancelled this flow run, rather than its worker being stopped."""
    with suppress(Exception), get_client(sync_client=True) as client:
        state = client.read_flow_run(UUID(flow_run.get_id())).state
        return state is not None and state.is_cancelling()
    return False


def reproduction(name: str, targets: tuple[str, ...], what: str) -> Flow[..., Any]:
    """The flow `reproduce-NAME`, which brings these stages of DVC's graph, and all that they need,
    up to date (no targets: the graph).
    """

    @flow(
        name=f"reproduce-{name}",
        flow_run_name=run_name,
        description=what,
        task_runner=task_runner(),
    )
    def reproduce(
        profile: Annotated[
            Profile | None,
            Field(description="A profile of conf/, in a worktree of its own. None: the checkout."),
        ] = None,
        overrides: Annotated[
            list[str], Field(description="What differs, key=value: finetune.epochs=2")
        ] = [],  # noqa: B006 (a schema)
        seeds: Annotated[
            list[int] | None, Field(description="Seeds of fine-tuning in place of the profile's.")
        ] = None,
        tasks: Annotated[list[TaskName] | None, Field(description="Only these tasks.")] = None,
        spread: Annotated[
            bool, Field(description="Send stages to the workers of all machines, by work queue.")
        ] = False,
        pool: Annotated[
            str, Field(description="The work pool that takes what spread sends: gpt1-slurm, …")
        ] = POOL,
    ) -> State[Any]:
        os.chdir(ROOT)
        end_with_worker()
        logger, progress = get_run_logger(), ProgressArtifact("the run", 0.0)

        def watch(news: News) -> None:
            if news.line:
                logger.info(news.line)
            if news.total:
                running = f"; at work: {', '.join(news.running)}" if news.running else ""
                progress.show(
                    news.done / news.total, f"{news.done} of {news.total} stages done{running}"
                )

        send = sender(profile, overrides, seeds, tasks, pool) if spread else lambda stage: None
        try:
            with alone_here(f"the flow run {flow_run.get_name()!r}", watch) as lock:
                place = enter(profile, overrides, seeds, tasks)
                if spread:
                    remote_name()  # one that cannot be used is told before anything runs
                tag_run(
                    f"profile:{profile or 'checkout'}", f"commit:{commit()[:7]}", f"in:{place.name}"
                )
                os.environ[FLOW_RUN_URL] = url_for("flow-run", flow_run.get_id()) or ""
                plan = make_plan(targets, None)
                plan = without_slots(plan) if spread else plan
                logger.info(
                    "%d stages, of which %d may have to run; in %s",
                    len(plan.chosen),
                    len(plan.todo),
                    place,
                )
                seconds = run_graph(plan, send, watch, lock)
                if seconds:
                    done("report")  # before MLflow is told, which has the page too
                tell_mlflow(bool(seconds))
        except UserError as error:
            logger.error(str(error))
            lines = [*getattr(error, "__notes__", []), str(error), MEND]
            return Failed(message="\n\n".join(lines))
        except KeyboardInterrupt as interrupt:
            logger.warning(str(interrupt))
            if cancelled():
                return Cancelled(
                    message="what is finished is kept; the next run goes on from there"
                )
            raise TerminationSignal(signal.SIGTERM) from None
        return Completed(
            message=f"stages run: {len(seconds)}" if seconds else "everything is up to date"
        )

    return reproduce


def without_slots(plan: Plan) -> Plan:
    """The plan with no slots here for stages that run elsewhere: the workers there take no more
    than they bear.
    """
    away = {
        name: replace(share, lanes=0, devices=0)
        for name, share in plan.share.items()
        if can_travel(plan.stages[name])
    }
    return replace(plan, share=plan.share | away)


def tell_mlflow(news: bool) -> None:
    """Send finished results to MLflow, in a process of its own, and show the way to them; MLflow
    never fails a run.
    """
    if (
        not news and RUNS.is_file() and RUNS.stat().st_mtime > LOCK_FILE.stat().st_mtime
    ):  # it has everything
        link_mlflow()
        return
    if done("sync"):
        link_mlflow()


def done(command: str) -> bool:
    """Whether a command of ours, in a process of its own, ended well; what it said last is a
    warning if not.
    """
    ended = subprocess.run(
        [sys.executable, "-m", "gpt1.cli", command],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if ended.returncode:
        get_run_logger().warning(
            (ended.stderr.strip().splitlines() or [f"gpt1 {command} ended without a word"])[-1]
        )
    return not ended.returncode


reproduce_table2 = reproduction(
    "table2", ("table2",), "Table 2 of the paper: natural language inference, ours beside theirs."
)
reproduce_table3 = reproduction(
    "table3", ("table3",), "Table 3 of the paper: question answering and commonsense reasoning."
)
reproduce_table4 = reproduction(
    "table4", ("table4",), "Table 4 of the paper: similarity, classification, GLUE."
)
reproduce_table5 = reproduction("table5", ("table5",), "Table 5 of the paper: ablations.")
reproduce_figure2 = reproduction(
    "figure2",
    ("figure2",),
    "Figure 2 of the paper: layer transfer, and zero-shot scores over pre-training.",
)
reproduce_all = reproduction(
    "all", (), "Every table, figure and curve, and a verdict on each claim of the paper."
)

if __name__ == "__main__":
    by_name: dict[str, Any] = {
        name.removeprefix("reproduce_"): found
        for name, found in globals().items()
        if isinstance(found, Flow)
    }
    if sys.argv[1:2] == [] or sys.argv[1] not in by_name:
        expected = f"expected one of {', '.join(by_name)}"
        sys.exit(f"error: {expected}; found {' '.join(sys.argv[1:]) or 'nothing'}")
    sys.exit(0 if by_name[sys.argv[1]](return_state=True).is_completed() else 1)
