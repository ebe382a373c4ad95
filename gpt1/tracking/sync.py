"""What lies in result files and logs, told to MLflow. The files come first; MLflow never stops or
slows a run.

One experiment a profile, one parent run a set of parameters, one run a stage's fingerprint; nothing
is sent twice. MLFLOW_TRACKING_URI says where to (environment or .env; without it `mlflow.db` here),
GPT1_MLFLOW=off sends nothing. `python -m gpt1.tracking.sync` is the process that sends the growing
log of the stage that started it.
"""

import os
import select
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from gpt1.base.errors import UserError
from gpt1.base.files import DATA, parse_json, write_json
from gpt1.params.schema import Params, validate
from gpt1.tracking.address import (
    prepare_mlflow,
    problem,
    refuse_broken_sqlite,
    switched_off,
    tracking_uri,
    warn,
)
from gpt1.tracking.live import Tracker, start
from gpt1.tracking.log import (
    RUNS,
    Point,
    log_path,
    machine_path,
    machine_point,
    tags,
    tokens_by_update,
)
from gpt1.tracking.results import finished_groups, finished_results

if TYPE_CHECKING:
    from gpt1.tracking.runs import MLflow

__all__ = ["Tracker", "start", "sync"]

SEND_EVERY_SECONDS = 10.0
RETRY_SECONDS = 60.0
STATUSES = {"finished": "FINISHED", "failed": "FAILED"}  # anything else was interrupted: KILLED


def open_mlflow(params: Params, began: float | None) -> "MLflow":
    """MLflow, imported only now; `began` says when the first run of these parameters did, if that
    is known.

    Raises whatever MLflow raises, and OSError for a broken database.
    """
    refuse_broken_sqlite(tracking_uri())
    prepare_mlflow()
    from gpt1.tracking.runs import MLflow

    return MLflow(params, began)


def sync(params: Params) -> int:
    """Tell MLflow all finished results under data/ that it does not have; returns how many runs it
    then holds of them.

    Raises UserError, one line, where MLflow cannot be reached or is broken.
    """
    if switched_off():
        return 0
    try:
        results, groups = list(finished_results(params)), list(finished_groups(params))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"a result under {DATA}/ cannot be read ({error}); make it again with dvc repro"
        ) from None
    if not results:
        return 0
    try:
        mlflow = open_mlflow(
            params,
            min((result.began for result in results if result.began is not None), default=None),
        )
        runs = {}
        for result in results:
            with (
                mlflow.lock
            ):  # one at a time: two that tell of the same run at once can trip over one another
                runs[f"{result.stage} {result.name}"] = mlflow.project(result)
        for group in groups:
            with mlflow.lock:
                mlflow.project_group(group)
        with mlflow.lock:
            mlflow.finish()
        write_json(
            RUNS, {"experiment": mlflow.experiment_id, "all": mlflow.parent_id, "runs": runs}
        )
    except Exception as error:
        raise UserError(
            f"{problem(error)}; the results are safe in {DATA}/, and gpt1 sync can be called again"
        ) from None
    return len(results)


def follow() -> None:
    """Send a growing log to MLflow until the stage that started this process closes the pipe or
    ends.
    """
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is the stage's; this process ends when its pipe does
    os.nice(10)
    pipe = os.fdopen(0, "rb", buffering=0)
    request = parse_json(pipe.readline())
    stage, name, params = request["stage"], request["name"], validate(request["params"])
    sender = _LogSender(stage, name, params, request["fingerprint"])
    ended, warned, works = False, False, True
    while works or not ended:
        try:
            sender.send_news()
            works = True
            if ended:
                sender.finish()
                return
        except Exception as error:
            works = False
            if not warned:
                warn(
                    f"{problem(error)}; the run goes on, its curve is in {log_path(stage, name)},"
                    " and gpt1 sync sends it later"
                )
                print("warned", flush=True)
            warned = True
        ended = ended or bool(
            select.select([pipe], [], [], SEND_EVERY_SECONDS if works else RETRY_SECONDS)[0]
        )


class _Tail:
    """The whole lines added to a growing file since the last time."""

    def __init__(self, path: Path) -> None:
        self.path, self.offset = path, 0

    def lines(self) -> list[bytes]:
        """New whole lines; a file that has been begun anew is read from its start. Raises
        OSError.
        """
        with self.path.open("rb") as file:
            self.offset = min(self.offset, file.seek(0, os.SEEK_END))
            file.seek(self.offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        return whole.splitlines()


class _LogSender:
    """Sends what was added to a log since the last time; opens MLflow when it is first needed."""

    def __init__(self, stage: str, name: str, params: Params, mark: str) -> None:
        self.stage, self.name, self.params, self.mark = stage, name, params, mark
        self.path = log_path(stage, name)
        self.log, self.machine = _Tail(self.path), _Tail(machine_path(stage, name))
        self.began = 0.0
        self.pending: list[Point] = []
        self.tokens: dict[int, float] = {}
        self.mlflow: MLflow | None = None
        self.run_id = ""
        self.sent: set[tuple[str, int]] = set()

    def send_news(self) -> None:
        """Read new whole lines and send them. Raises whatever MLflow raises; what was not sent is
        kept.
        """
        lines = [parse_json(line) for line in self.log.lines()]
        self.began = next((line["time"] for line in lines if "update" not in line), self.began)
        self.pending += [point for point in lines if "update" in point]
        if self.machine.path.is_file():
            self.pending += [
                point
                for line in self.machine.lines()
                if (point := machine_point(line)) and point["time"] >= self.began
            ]
        if self.mlflow is None:
            mlflow = open_mlflow(self.params, self.began or None)
            run = mlflow.run(self.stage, self.name, self.mark, "", self.began or None)
            self.sent, self.run_id = mlflow.sent(run), run.info.run_id
            mlflow.client.update_run(self.run_id, "RUNNING")
            self.mlflow = mlflow
        self.tokens |= tokens_by_update(self.pending)
        self.mlflow.send(self.run_id, self.pending, self.sent, self.tokens)
        self.pending, self.sent = (
            [],
            set(),
        )  # the log holds no point twice, so only what an earlier session sent is compared

    def finish(self) -> None:
        """Tell MLflow how the run ended; a stage that died without a word was killed."""
        assert self.mlflow is not None
        facts = tags(self.path)
        status = STATUSES.get(facts.get("status", ""), "KILLED")
        for key, value in facts.items():
            self.mlflow.client.set_tag(self.run_id, key, value)
        self.mlflow.client.set_terminated(self.run_id, status)


if __name__ == "__main__":
    follow()
