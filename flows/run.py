"""A flow in this process, for `gpt1 run`. Where nothing is out of date, no server starts."""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from flows.graph import outlook, read_graph
from flows.processes import alone_here, stop_and_raise
from gpt1.base.errors import INTERRUPTED_STATUS, USER_ERROR_STATUS
from gpt1.params.schema import read_params

SERVER_GONE = "Prefect's server has gone; what is finished is kept, the next run goes on"
NEXT = "next: gpt1 table table2 (a table), gpt1 report (the page), gpt1 sync (to MLflow)"


@alone_here()
def run_here(targets: Sequence[str], lanes: int | None) -> int:
    """Bring targets (none: all) up to date; return the exit status. Raises UserError."""
    signal.signal(signal.SIGINT, stop_and_raise)
    read_params()  # a mistake there has its own status
    stages = read_graph(targets)
    if not any(stage.outdated for stage in stages.values()):
        print(f"everything is up to date ({len(stages)} stages)\n{NEXT}")
        return 0
    print(outlook(stages), file=sys.stderr)
    # Prefect's lines are for its pages; a person sees those of flows/progress.py
    os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
    os.environ["PREFECT_LOGGING_INTERNAL_LEVEL"] = "CRITICAL"
    from flows.server import prefect_server

    with prefect_server():
        import httpx
        from prefect import tags

        from flows.names import deployment_name
        from flows.reproduce import reproduce_all

        try:
            with tags(deployment_name()):
                state: Any = reproduce_all(only=list(targets), lanes=lanes, return_state=True)
        except httpx.TransportError:
            print(f"error: {SERVER_GONE}", file=sys.stderr)
            os._exit(USER_ERROR_STATUS)  # Prefect's threads would try for minutes to send lines
        for handler in logging.getLogger("prefect.flow_runs").handlers:
            handler.flush()  # while there is a server to take the lines
    if state.is_cancelled():
        print(state.message, file=sys.stderr)
        return INTERRUPTED_STATUS
    if not state.is_completed():
        print(f"error: {state.message}", file=sys.stderr)
        return 1
    print(state.message if targets else f"{state.message}\n{NEXT}")
    return 0
