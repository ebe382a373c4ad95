"""The only MLflow: what lies in result files and logs, told to MLflow. The files come first; MLflow never stops or slows a run.

One experiment a profile, one parent run a set of parameters, one child a stage's fingerprint; nothing is sent twice. MLFLOW_TRACKING_URI
says where to (environment or .env; without it `mlflow.db` here), GPT1_MLFLOW=off sends nothing. `python -m gpt1.tracking` is the
process that sends the growing log of the stage that started it.
"""

import json
import logging
import os
import select
import signal
from collections.abc import Iterable, Mapping
from typing import Any

from gpt1.config import Params, validate
from gpt1.errors import UserError
from gpt1.files import DATA, LOGS, fingerprint, write_json
from gpt1.record.address import prepare_mlflow, problem, refuse_broken_sqlite, switched_off, tracking_uri, warn
from gpt1.record.live import Tracker, start
from gpt1.record.log import FLOW_RUN_URL, RUNS, Point, log_path, tags
from gpt1.record.results import Result, dotted, finished_results, stage_params

__all__ = ["Tracker", "start", "sync"]

BATCH = 1000  # MLflow's limit of metrics in one call
PARAMS_BATCH = 100  # and of parameters
SEND_EVERY_SECONDS = 10.0
RETRY_SECONDS = 60.0
STATUSES = {"finished": "FINISHED", "failed": "FAILED"}  # anything else was interrupted: KILLED


def sync(params: Params) -> int:
    """Tell MLflow all finished results under data/ that it does not have; returns how many runs it then holds of them.

    Raises UserError, one line, where MLflow cannot be reached or is broken.
    """
    if switched_off():
        return 0
    try:
        results = list(finished_results(params))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"a result under {DATA}/ cannot be read ({error}); make it again with dvc repro") from None
    try:
        mlflow = MLflow(params) if results else None
        runs = {f"{result.stage} {result.name}": mlflow.project(result) for result in results if mlflow is not None}
        if mlflow is not None:
            mlflow.say_who_made_it()
            write_json(RUNS, {"experiment": mlflow.experiment_id, "all": mlflow.parent_id, "runs": runs})
    except Exception as error:
        raise UserError(f"{problem(error)}; the results are safe in {DATA}/, and gpt1 sync can be called again") from None
    return len(results)


class MLflow:
    """MLflow, opened at the experiment of a profile and the parent run of a set of parameters."""

    def __init__(self, params: Params) -> None:
        from filelock import FileLock

        uri = tracking_uri()
        refuse_broken_sqlite(uri)
        prepare_mlflow()
        from mlflow import MlflowClient

        for name in ("alembic", "mlflow"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self.params = params
        LOGS.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(LOGS / "mlflow.lock", timeout=60)
        with self.lock:  # a fresh sqlite opened by several processes at once can be broken for good
            self.client = MlflowClient(tracking_uri=uri)
            experiment = self.client.get_experiment_by_name(params.profile)
            self.experiment_id = experiment.experiment_id if experiment else self.client.create_experiment(params.profile)
            self.parent_id = self._parent()
        self.headlines: dict[str, float] = dict(self.client.get_run(self.parent_id).data.metrics)

    def _parent(self) -> str:
        mark = fingerprint(self.params.model_dump(mode="json"))
        if runs := self._find({"gpt1.stage": "all", "gpt1.params": mark}):
            return str(runs[0].info.run_id)
        run = self._create(f"{self.params.profile} {mark[:6]}", {"gpt1.stage": "all", "gpt1.params": mark, "profile": self.params.profile},
                           dotted(self.params.model_dump(mode="json")))
        self.client.set_terminated(run.info.run_id, "FINISHED")
        return str(run.info.run_id)

    def _find(self, marks: Mapping[str, str]) -> list[Any]:
        wanted = " and ".join(f"tags.`{key}` = '{value}'" for key, value in marks.items())
        return list(self.client.search_runs([self.experiment_id], filter_string=wanted, max_results=50))

    def _create(self, name: str, run_tags: Mapping[str, str], run_params: Mapping[str, str]) -> Any:
        from mlflow.entities import Param

        run = self.client.create_run(self.experiment_id, tags=dict(run_tags), run_name=name)
        flat = [Param(key, value[:6000]) for key, value in run_params.items()]
        for begin in range(0, len(flat), PARAMS_BATCH):
            self.client.log_batch(run.info.run_id, params=flat[begin:begin + PARAMS_BATCH])
        return run

    def run(self, stage: str, name: str, mark: str, digest: str) -> Any:
        """The run of a stage's fingerprint: the one whose results are `digest`, else an unfinished one, else a new one."""
        with self.lock:
            found = self._find({"gpt1.stage": stage, "gpt1.name": name, "gpt1.fingerprint": mark})
            for complete in (digest, None):
                for run in found:
                    if run.data.tags.get("gpt1.complete") == complete:
                        return run
            marks = {"gpt1.stage": stage, "gpt1.name": name, "gpt1.fingerprint": mark, "mlflow.parentRunId": self.parent_id}
            return self._create(f"{stage} {name}", marks | tags(log_path(stage, name)), stage_params(self.params, stage, name))

    def sent(self, run: Any) -> set[tuple[str, int]]:
        """Names and updates of the points that a run already has."""
        history = {key: self.client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
        return {(key, metric.step) for key, metrics in history.items() for metric in metrics}

    def send(self, run_id: str, points: Iterable[Point], sent: set[tuple[str, int]]) -> None:
        """Send the points that are not among `sent`, with the times at which they were made; adds them to `sent`."""
        from mlflow.entities import Metric

        fresh = [Metric(key, float(value), int(point["time"] * 1000), int(point["update"]))
                 for point in points for key, value in point.items()
                 if key not in ("time", "update") and isinstance(value, int | float) and (key, point["update"]) not in sent]
        for begin in range(0, len(fresh), BATCH):
            batch = fresh[begin:begin + BATCH]
            self.client.log_batch(run_id, metrics=batch)
            sent.update((metric.key, metric.step) for metric in batch)

    def say_who_made_it(self) -> None:
        """Lead from the page of the parent run to that of the flow run which a sync is part of."""
        if url := os.environ.get(FLOW_RUN_URL):
            self.client.set_tag(self.parent_id, "flow_run", url)
            self.client.set_tag(self.parent_id, "mlflow.note.content", f"Made by the [flow run]({url}).")

    def project(self, result: Result) -> str:
        """Bring the run of a finished result up to date, sending nothing where it already is; returns its id."""
        run = self.run(result.stage, result.name, result.fingerprint, result.digest)
        run_id = run.info.run_id
        if run.data.tags.get("gpt1.complete") != result.digest:
            self.send(run_id, [*result.points, result.final], self.sent(run))
            for path in result.artifacts:
                self.client.log_artifact(run_id, str(path))
            for key, value in result.tags.items():
                self.client.set_tag(run_id, key, value)
            self.client.set_terminated(run_id, "FINISHED")
            self.client.set_tag(run_id, "gpt1.complete", result.digest)
        if news := {key: value for key, value in result.headline.items() if self.headlines.get(key) != value}:
            self.send(self.parent_id, [{"time": result.final["time"], "update": 0, **news}], set())
            self.headlines.update(news)
        return str(run_id)


def follow() -> None:
    """Send a growing log to MLflow until the stage that started this process closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the stage's; this process ends when its pipe does
    os.nice(10)
    pipe = os.fdopen(0, "rb", buffering=0)
    request = json.loads(pipe.readline())
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
                warn(f"{problem(error)}; the run goes on, its curve is in {log_path(stage, name)}, and gpt1 sync sends it later")
                print("warned", flush=True)
            warned = True
        ended = ended or bool(select.select([pipe], [], [], SEND_EVERY_SECONDS if works else RETRY_SECONDS)[0])


class _LogSender:
    """Sends what was added to a log since the last time; opens MLflow when it is first needed."""

    def __init__(self, stage: str, name: str, params: Params, mark: str) -> None:
        self.stage, self.name, self.params, self.mark = stage, name, params, mark
        self.path, self.offset = log_path(stage, name), 0
        self.pending: list[Point] = []
        self.mlflow: MLflow | None = None
        self.run_id = ""
        self.sent: set[tuple[str, int]] = set()

    def send_news(self) -> None:
        """Read new whole lines and send them. Raises whatever MLflow raises; what was not sent is kept."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read()
        whole = data[:data.rfind(b"\n") + 1]
        self.offset += len(whole)
        self.pending += [point for point in map(json.loads, whole.splitlines()) if "update" in point]
        if self.mlflow is None:
            mlflow = MLflow(self.params)
            run = mlflow.run(self.stage, self.name, self.mark, "")
            self.sent, self.run_id = mlflow.sent(run), run.info.run_id
            mlflow.client.update_run(self.run_id, "RUNNING")
            self.mlflow = mlflow
        self.mlflow.send(self.run_id, self.pending, self.sent)
        self.pending, self.sent = [], set()  # the log holds no point twice, so only what an earlier session sent is compared

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
