"""`make serve`: Prefect's server, deployments and MLflow's pages. `make ui`: MLflow's pages
alone.
"""

import logging
import os
import signal
import sys
import tempfile
from contextlib import ExitStack, suppress
from typing import Any

from flows.names import deployment_name
from flows.processes import is_at_work
from flows.server import ENVIRONMENT, mlflow_server, prefect_server
from gpt1.base.errors import UserError, run_stage
from gpt1.base.locks import announced, server_address
from gpt1.tracking.address import runs_page


def serve_flows() -> None:
    """Serve everything until Ctrl-C. Raises UserError for a taken port or another server."""
    os.environ.update(ENVIRONMENT)
    with ExitStack() as servers:
        try:
            announce = servers.enter_context(announced("prefect"))
        except BlockingIOError:
            raise UserError(
                f"make serve is at work here already ({server_address('prefect') or 'starting'});"
                " Ctrl-C there ends it"
            ) from None
        print("starting Prefect and MLflow, some 20 s", flush=True)
        mlflow = servers.enter_context(mlflow_server())
        url = servers.enter_context(prefect_server(lasting=True))
        os.environ["PREFECT_API_URL"] = url  # for the processes of flow runs
        # Prefect's runner has one folder there, which is the first user's alone
        tempfile.tempdir = servers.enter_context(tempfile.TemporaryDirectory(prefix="gpt1-"))
        from prefect import serve

        from flows.reproduce import FLOWS

        note_crashes()
        announce(url)
        print(f"Prefect: {url.removesuffix('/api')}/deployments")
        print_runs_page(mlflow)
        print("next, in another terminal: prefect deployment run reproduce-table2", flush=True)
        name = deployment_name()
        deployments: list[Any] = [flow.to_deployment(name, tags=[name]) for flow in FLOWS]
        logging.getLogger("prefect.runner").setLevel(logging.WARNING)  # it says so of each wait
        # one run a folder, others wait; nothing here has a schedule that would have to be paused
        serve(*deployments, limit=1, print_starting_message=False, pause_on_shutdown=False)


def note_crashes() -> None:
    """Mark flow runs whose process has gone as Crashed; Prefect would show them as Running for
    ever.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.sorting import FlowRunSort
    from prefect.states import Crashed

    unended = FlowRunFilter.model_validate(
        {
            "tags": {"all_": [deployment_name()]},
            "state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}},
        }
    )
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=unended, sort=FlowRunSort.START_TIME_DESC)
        for run in runs[is_at_work() :]:
            client.set_flow_run_state(run.id, Crashed(message="its process has ended"), force=True)


def serve_mlflow() -> None:
    """Serve MLflow's pages until Ctrl-C, or print where they are up."""
    os.environ.update(ENVIRONMENT)
    already = server_address("mlflow")
    with mlflow_server() as address:
        print_runs_page(address)
        if address.startswith("http://127.0.0.1") and not already:
            print("Ctrl-C ends them", flush=True)
            with suppress(KeyboardInterrupt):
                signal.pause()


def print_runs_page(address: str) -> None:
    """Print the address of the page with the runs."""
    if address.startswith("http"):
        print(f"MLflow: {runs_page(address)}", flush=True)


if __name__ == "__main__":
    run_stage(serve_mlflow if sys.argv[1:] == ["mlflow"] else serve_flows)
