"""Does Prefect keep the state of every flow run? 20 short runs, 5 long ones, and 8 that are killed;
looked at again minutes later.

    python benchmarks/states.py [--port 4390] [--minutes 5]

A real service (make serve) in a copy of this checkout whose flow only sleeps. Killed are the
process of a run (5 times), it and its worker, which the service starts anew (2), it and a worker
that nobody starts anew, as if its machine were gone (1). The table says which states a run went
through after it had first ended, and after how long a killed one was known.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from served_copy import COMMANDS, Place, runs, wait

SHORT, LONG, KILLED, BEREFT = 20, 5, 5, 2
AWAY = "away"
LONG_SECONDS, PATIENCE_SECONDS = 150, 240.0
FINAL = ("Completed", "Failed", "Crashed", "Cancelled")
STAND_IN = """
import time
from prefect import flow
from flows.engine import end_with_worker

@flow(name="reproduce-table2")
def reproduce_table2(profile: str | None = None, seconds: int = 0) -> None:
    end_with_worker()
    time.sleep(seconds)
"""
DEPLOYMENTS = """
name: gpt1
pull: []
deployments:
  - name: checkout
    entrypoint: flows.reproduce.reproduce_table2
    work_pool: {name: gpt1, job_variables: {command: python -m flows.engine}}
"""


class Runs:
    """The runs of the one deployment, as the server has them."""

    def __init__(self, api: str) -> None:
        self.api = api
        self.deployment = self.call("/deployments/name/reproduce-table2/checkout")["id"]

    def call(self, path: str, **body: Any) -> Any:
        """What the server answers."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(
            self.api + path, data, {"Content-Type": "application/json"}
        )
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 503:  # its database is busy
                    raise
            time.sleep(1)

    def ask(self, seconds: int, queue: str = "default") -> str:
        """Ask for a run that sleeps; returns its id."""
        path = f"/deployments/{self.deployment}/create_flow_run"
        parameters = {"seconds": seconds}
        return str(self.call(path, parameters=parameters, work_queue_name=queue)["id"])

    def name(self, run: str) -> str:
        """The name of its state."""
        return str(self.call(f"/flow_runs/{run}")["state"]["name"])

    def final(self, run: str) -> bool:
        """Whether it has ended."""
        return self.name(run) in FINAL

    def ended_at(self, run: str) -> float:
        """When it came into its state, in seconds of the epoch."""
        when = self.call(f"/flow_runs/{run}")["state"]["timestamp"]
        return datetime.fromisoformat(when).timestamp()

    def states(self, run: str) -> list[str]:
        """All its states, in their order."""
        found = self.call(f"/flow_run_states/?flow_run_id={run}")
        return [state["name"] for state in sorted(found, key=lambda state: state["timestamp"])]


def engine(run: str) -> psutil.Process | None:
    """The process of a run."""
    for process in psutil.process_iter():
        if (
            runs(process, COMMANDS["engine"])
            and process.environ().get("PREFECT__FLOW_RUN_ID") == run
        ):
            return process
    return None


def begun(asked: Runs, run: str) -> psutil.Process:
    """The process of a run that is at work."""
    wait(PATIENCE_SECONDS, lambda: asked.name(run) == "Running", 0.2)
    if asked.name(run) == "Running" and (process := engine(run)):
        return process
    raise RuntimeError(f"a run did not start: {asked.name(run)}")


def kill_with(workers: list[psutil.Process], engines: list[psutil.Process]) -> float:
    """Kill runs with their worker; returns when."""
    for process in engines:
        process.suspend()  # or it ends by itself once its worker is no more
    for process in [*workers, *engines]:
        process.kill()
    return time.time()


def kill_away(place: Place, asked: Runs) -> tuple[str, float]:
    """Have a worker that is none of the service's take a run, and kill both; the run, and when."""
    queue = asked.call("/work_pools/gpt1/queues", name=AWAY)["name"]
    words = ["prefect", "worker", "start", "--pool", "gpt1", "--name", AWAY, "--work-queue", queue]
    worker = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=place.folder,
        env=place.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    run = asked.ask(600, queue)
    killed = kill_with([psutil.Process(worker.pid)], [begun(asked, run)])
    worker.wait()
    return run, killed


def try_all(place: Place, minutes: float) -> bool:
    """Make the runs, kill, wait, print the table; whether all is as it has to be."""
    asked, killed = Runs(place.api), dict[str, float]()
    bereft = [asked.ask(600) for _ in range(BEREFT)]  # first: other runs of the worker end with it
    engines = [begun(asked, run) for run in bereft]
    at_work = [each for each in place.processes("worker") if runs(each, COMMANDS["worker"])]
    killed |= dict.fromkeys(bereft, kill_with(at_work, engines))
    away, moment = kill_away(place, asked)
    killed[away] = moment
    long = [asked.ask(LONG_SECONDS) for _ in range(LONG)]
    doomed = [asked.ask(600) for _ in range(KILLED)]
    for run in doomed:
        begun(asked, run).kill()
        killed[run] = time.time()
    short = []
    for _ in range(SHORT):
        short.append(asked.ask(0))
        wait(PATIENCE_SECONDS, lambda: asked.final(short[-1]), 0.1)
    wait(PATIENCE_SECONDS, lambda: all(asked.final(run) for run in [*long, *killed]), 1)
    print(f"all have ended; looked at again after {minutes:g} minutes", file=sys.stderr, flush=True)
    time.sleep(60 * minutes)
    print("| runs | how many | states in the end | changed after their end | known after |")
    print("|---|---|---|---|---|")
    good = True
    for what, group, wanted in (
        ("short", short, {"Completed"}),
        (f"long ({LONG_SECONDS} s)", long, {"Completed"}),
        ("process killed", doomed, {"Crashed"}),
        ("process and worker killed", bereft, {"Crashed"}),
        ("and the worker stays away", [away], {"Crashed"}),
    ):
        ended = [asked.name(run) for run in group]
        counts = ", ".join(f"{ended.count(name)} {name}" for name in sorted(set(ended)))
        changed = sum(any(name in FINAL for name in asked.states(run)[:-1]) for run in group)
        seconds = sorted(asked.ended_at(run) - killed[run] for run in group if run in killed)
        after = f"{seconds[0]:.0f} to {seconds[-1]:.0f} s" if seconds else ""
        print(f"| {what} | {len(group)} | {counts} | {changed} | {after} |", flush=True)
        good &= set(ended) == wanted and not changed
    return good


def main() -> None:
    """Print the table; status 1 where a state is not as it has to be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=4390)
    parser.add_argument("--minutes", type=float, default=5.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Place(Path(temporary).resolve() / "checkout", chosen.port)
        place.make()
        (place.folder / "flows/reproduce.py").write_text(STAND_IN)
        (place.folder / "prefect.yaml").write_text(DEPLOYMENTS)
        with place.serving():
            good = try_all(place, chosen.minutes)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
