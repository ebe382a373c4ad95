"""`make serve`: Prefect's server and pages, the deployments reproduce-table2 … -all, and MLflow's
pages, on this machine's own address, until Ctrl-C.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from flows.server import ENVIRONMENT, answers, prefect_server, program
from gpt1.base.errors import UserError, run_stage
from gpt1.base.locks import locked
from gpt1.base.settings import setting
from gpt1.tracking.address import runs_page, switched_off, tracking_uri


def start_mlflow(servers: ExitStack) -> str:
    """The address of MLflow's pages, which are started where none answer; "" for none."""
    port = setting("GPT1_MLFLOW_PORT") or "5000"
    pages = f"http://127.0.0.1:{port}"
    if switched_off():
        return ""
    if not (store := tracking_uri()).startswith("sqlite:"):
        return store
    if not answers(f"{pages}/health"):
        where = ["--host", "127.0.0.1", "--port", port, "--workers", "1"]
        words = ["mlflow", "server", *where, "--backend-store-uri", store]
        servers.enter_context(program("mlflow", words, f"{pages}/health"))
    return pages


def serve_flows() -> None:
    """Everything, until Ctrl-C. Raises UserError where something is in the way."""
    os.environ.update(ENVIRONMENT)
    with ExitStack() as servers:
        try:
            servers.enter_context(locked(Path(".dvc/tmp/gpt1-serve.lock"), wait=False))
        except BlockingIOError:
            raise UserError("make serve is at work here already; Ctrl-C there ends it") from None
        print("starting Prefect and MLflow, some 20 s", flush=True)
        mlflow = start_mlflow(servers)
        url = servers.enter_context(prefect_server(lasting=True))
        os.environ["PREFECT_API_URL"] = url  # for the processes of flow runs
        from prefect import serve

        from flows.reproduce import FLOWS

        print(f"Prefect: {url.removesuffix('/api')}/deployments")
        if mlflow.startswith("http"):
            print(f"MLflow: {runs_page(mlflow)}")
        print("next, in another terminal: prefect deployment run reproduce-table2", flush=True)
        deployments: list[Any] = [flow.to_deployment(name="checkout") for flow in FLOWS]
        serve(*deployments, print_starting_message=False)


if __name__ == "__main__":
    run_stage(serve_flows)
