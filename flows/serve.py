"""`make serve`: Prefect's server, pool, deployments and worker, and MLflow's pages, on this
machine's own address, until Ctrl-C.

`python -m flows.serve --worker` (`make worker`) is only the worker, of a server that runs
elsewhere.
"""

import argparse
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from psutil import pid_exists

from flows.service.addresses import (
    Addresses,
    answers,
    named_by,
    own_address,
    prefect_version,
    read_addresses,
    refuse_taken,
)
from flows.service.programs import ServiceProgram, guarded
from gpt1.base.errors import UserError, run_stage
from gpt1.base.files import fingerprint, read_json, write_json
from gpt1.base.locks import locked
from gpt1.pipeline.process_group import signals_noted

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".prefect"
POLL_SECONDS = 0.2
PATIENCE_SECONDS = 120.0


class EndRequested(Exception):  # noqa: N818 (it is no error)
    """A signal has asked for the end."""


def say(line: str) -> None:
    """One line to the terminal, at once."""
    print(line, flush=True)


@contextmanager
def only_service(address: str) -> Iterator[int]:
    """The descriptor of a locked file, so that one service runs in a checkout. Raises UserError, or
    ends the process, where one does.
    """
    about = HOME / "service.json"
    with ExitStack() as held:
        try:
            file = held.enter_context(locked(HOME / "service.lock", 0))
        except TimeoutError:
            known = read_json(about) if about.exists() else {}
            if known.get("host", platform.node()) != platform.node():
                raise UserError(
                    f"a service runs in {ROOT} on {known['host']}, {known['what']}; another machine"
                    " takes a clone of its own: sh flows/own_clone.sh python -m flows.serve"
                    " --worker"
                ) from None
            if not pid_exists(known.get("process", -1)):
                raise UserError(
                    "a service that was here is still ending its runs; try again in half a minute"
                ) from None
            say(
                f"a service runs here already: process {known['process']}, {known['what']}; Ctrl-C"
                f" in its terminal, or kill {known['process']}, ends it"
            )
            sys.exit(0)
        write_json(about, {"host": platform.node(), "process": os.getpid(), "what": address})
        held.callback(about.unlink, missing_ok=True)
        yield file.fileno()


class Service:
    """The parts that were started, under one name by which the guard finds them, and the signals
    that came.
    """

    def __init__(self, name: str, signals: list[int]) -> None:
        self.name, self.signals, self.parts = name, signals, list[ServiceProgram]()

    def start(self, *parts: ServiceProgram) -> None:
        """Start parts side by side, and wait until each is well. Raises UserError where one is not,
        or EndRequested.
        """
        began, waiting = time.monotonic(), list(parts)
        for part in parts:
            part.start(self.name)
        self.parts += parts
        while waiting:
            self.pause()
            for part in list(waiting):
                if part.died():
                    raise UserError(
                        f"{part.name} could not be started: {part.last_lines()} (log: {part.log})"
                    )
                if part.ready():
                    waiting.remove(part)
                    say(f"{part.name} ready after {time.monotonic() - began:.0f} s")
                elif time.monotonic() - began > PATIENCE_SECONDS:
                    raise UserError(
                        f"{part.name} is not ready after {PATIENCE_SECONDS:.0f} s:"
                        f" {part.last_lines()} (log: {part.log})"
                    )

    def pause(self) -> None:
        """A moment. Raises EndRequested when a signal asks for the end."""
        if self.signals:
            raise EndRequested
        time.sleep(POLL_SECONDS)

    def watch(self) -> None:
        """Until a signal asks for the end; a part that dies is started again. Raises UserError
        where one dies too often.
        """
        while True:
            self.pause()
            for part in self.parts:
                if part.died():
                    part.start_again(self.name, say)


def module(*words: str) -> list[str]:
    """A command line of this Python."""
    return [sys.executable, "-m", *words]


def servers(addresses: Addresses, version: str | None) -> list[ServiceProgram]:
    """The servers that are to be started. Raises UserError where a port is taken, or Prefect's
    address is another machine's.
    """
    parts = []
    if version is None:
        host, port = own_address(addresses.prefect)
        refuse_taken(port, f"PREFECT_API_URL=http://127.0.0.1:{port + 1}/api")
        parts.append(
            ServiceProgram(
                "server",
                module("prefect", "server", "start", "--host", host, "--port", str(port)),
                {"PREFECT_HOME": str(HOME), "PREFECT_API_URL": addresses.prefect},
                lambda: prefect_version() is not None,
            )
        )
    if addresses.mlflow_port is not None:
        refuse_taken(addresses.mlflow_port, f"GPT1_MLFLOW_PORT={addresses.mlflow_port + 1}")
        where = ["--host", "127.0.0.1", "--port", str(addresses.mlflow_port), "--workers", "1"]
        store = ["--backend-store-uri", addresses.mlflow_store]
        parts.append(
            ServiceProgram(
                "mlflow",
                module("mlflow", "server", *where, *store),
                {"MLFLOW_DISABLE_TELEMETRY": "true"},
                lambda: answers(f"{addresses.mlflow}/health"),
            )
        )
    return parts


def workers(variables: Mapping[str, str], worker_only: bool) -> list[ServiceProgram]:
    """One that takes flows, unless another machine's does; one that takes stages sent by any
    machine, as many as this one bears.
    """
    from flows.service.server import stage_queues, stage_slots, worker_name, worker_since
    from gpt1.pipeline.prefect_names import POOL

    since = datetime.now(UTC)

    def worker(part: str, queues: list[str], *limit: str) -> ServiceProgram:
        name = worker_name(ROOT, part)
        chosen = [word for queue in queues for word in ("--work-queue", queue)]
        kind = ["--pool", POOL, "--name", name, "--type", "process"]
        command = module("prefect", "worker", "start", *kind, *chosen, *limit)
        return ServiceProgram(part, command, variables, lambda: worker_since(name, since))

    for_stages = worker("worker-of-stages", stage_queues(), "--limit", str(stage_slots()))
    return [for_stages] if worker_only else [worker("worker", ["default"]), for_stages]


def bring_up(
    service: Service, addresses: Addresses, version: str | None, worker_only: bool
) -> None:
    """Start what is wanted, in its order. Raises UserError, or EndRequested."""
    from flows.service.server import (
        all_deployed,
        deployed_mark,
        prepare_pool,
        watch_runs,
        worker_name,
    )

    if not worker_only:
        service.start(
            *servers(addresses, version)
        )  # MLflow too before the worker: a fresh database is made by one process alone
    prepare_pool()
    parts = workers({"GPT1_MLFLOW_URL": addresses.mlflow} if addresses.mlflow else {}, worker_only)
    own = [worker_name(ROOT, part.name) for part in parts]
    record, mark = HOME / "deployed.json", deployed_mark(ROOT, addresses.prefect)
    current = record.exists() and read_json(record) == mark and all_deployed(ROOT)
    if not worker_only and not current:
        deploy = module("prefect", "--no-prompt", "deploy", "--all")
        parts.append(ServiceProgram("deployments", deploy, {}, None))
    service.start(*parts)
    if not worker_only:
        write_json(record, mark)
    threading.Thread(target=watch_runs, args=(own,), daemon=True).start()


def prepare_environment() -> None:
    """Before Prefect is imported: this checkout's settings, this Python's programs first, the
    flows that lie here, no telemetry.
    """
    os.chdir(ROOT)
    programs = str(Path(sys.executable).parent)
    modules = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    os.environ.update(
        {
            "PATH": os.pathsep.join((programs, os.environ.get("PATH", ""))),
            "PYTHONPATH": os.pathsep.join(modules),  # a flow run starts in a folder of its own
            "DO_NOT_TRACK": "1",
            "PYTHONUNBUFFERED": "1",
        }
    )


def serve(worker_only: bool) -> None:
    """Start everything and stay until a signal asks for the end. Raises UserError where something
    is in the way.
    """
    prepare_environment()
    addresses = read_addresses()  # it imports Prefect, which has to load its plug-in by itself
    from gpt1.pipeline.prefect_names import ADDRESS, warn_of_version

    mlflow = f", MLflow at {addresses.mlflow}" if addresses.mlflow else ""
    what = f"Prefect at {addresses.pages}{mlflow}"
    what = f"a worker of {addresses.pages}" if worker_only else what
    with only_service(what) as lock, signals_noted() as signals:
        if addresses.prefect != ADDRESS:
            say(f"Prefect's address is {addresses.prefect}, by {named_by()}")
        version = prefect_version()
        if worker_only and version is None:
            raise UserError(
                f"no Prefect server answers at {addresses.prefect}: set PREFECT_API_URL in .env to"
                " where one runs, or start everything on this machine with make serve"
            )
        warn_of_version(version, addresses.prefect)
        service = Service(f"{os.getpid()}-{fingerprint([str(ROOT), time.time()])}", signals)
        with guarded(service.name, lock, signals):
            try:
                bring_up(service, addresses, version, worker_only)
                say(
                    f"{what}{' (a server that ran already)' if version and not worker_only else ''}"
                )
                say(
                    "Next, in another terminal, after . .venv/bin/activate: prefect deployment run"
                    " reproduce-table2"
                )
                say("Ctrl-C here ends everything; runs at work save a checkpoint first.")
                service.watch()
            except EndRequested:
                say(
                    "ending the runs at work, the worker and the servers; Ctrl-C again ends them at"
                    " once"
                )
        say("everything has ended")


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m flows.serve", description=__doc__)
    parser.add_argument(
        "--worker", action="store_true", help="only a worker, of the server at PREFECT_API_URL"
    )
    serve(parser.parse_args().worker)


if __name__ == "__main__":
    run_stage(main)
