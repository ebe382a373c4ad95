"""MLflow opened for a set of parameters: its runs by the tags they are found again by, so that
nothing is sent twice; imported only by what talks to MLflow.

One experiment a profile; a parent run for each set of parameters; under it a run for each task and
in that one for each seed, and runs for pre-training, zero-shot scores, tables and figures.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag

from gpt1.base.files import LOGS, fingerprint
from gpt1.base.locks import locked
from gpt1.params.schema import Params
from gpt1.tracking.address import SQLITE, sqlite_file, tracking_uri
from gpt1.tracking.log import Point, log_path, tags
from gpt1.tracking.names import colour_of, group_of, marks_of, rerun, run_name
from gpt1.tracking.results import dotted, stage_params

LOCK_SECONDS = 60.0
COMPLETE, PARENT = "gpt1.complete", "mlflow.parentRunId"
KIND = {  # its pages for training, not those for prompts and agents
    "mlflow.experimentKind": "custom_model_development"
}


def make_sqlite(uri: str) -> None:
    """Make a database of SQLite that is not there, under another name until it is whole: MLflow
    takes seconds for its tables, and what two processes make at once, or one that is ended
    meanwhile, is broken for good. To be called in a block of `Connection.locked`.
    """
    path = sqlite_file(uri)
    if path is not None and not path.exists():
        unfinished = path.with_name(f".{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        MlflowClient(tracking_uri=f"{SQLITE}{unfinished}").get_experiment("0")
        unfinished.replace(path)


class Connection:
    """MLflow, opened at the experiment of a profile and the parent run of a set of parameters."""

    def __init__(self, params: Params, began: float | None = None) -> None:
        """Open it; a parent that is not there yet began at `began`, in seconds since 1970."""
        for name in ("alembic", "mlflow"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self.params = params
        with self.locked():
            make_sqlite(tracking_uri())
            self.client = MlflowClient(tracking_uri=tracking_uri())
            experiment = self.client.get_experiment_by_name(params.profile)
            self.experiment_id: str = (
                experiment.experiment_id
                if experiment
                else self.client.create_experiment(params.profile, tags=dict(KIND))
            )
            self.parent_id = self._parent(began)
        self.parent: Run = self.client.get_run(self.parent_id)

    @staticmethod
    def locked() -> AbstractContextManager[Any]:
        """A block for this process alone: two that tell of the same run at once can trip over one
        another.
        """
        return locked(LOGS / "mlflow.lock", LOCK_SECONDS)

    def _parent(self, began: float | None) -> str:
        values = self.params.model_dump(mode="json")
        digest = fingerprint(values)
        identity = {"gpt1.stage": "all", "gpt1.params": digest}
        more = {"profile": self.params.profile} | _source("gpt1 run")
        return self._find_or_create(
            f"{self.params.profile} {digest[:6]}", identity, more, began, dotted(values)
        )

    def find(self, wanted: Mapping[str, str]) -> list[Run]:
        """The newest of the runs with these tags, at most fifty."""
        query = " and ".join(f"tags.`{key}` = '{value}'" for key, value in wanted.items())
        return list(self.client.search_runs([self.experiment_id], query, max_results=50))

    def _create(
        self, name: str, run_tags: dict[str, str], began: float | None, values: Mapping[str, str]
    ) -> Run:
        start = None if began is None else int(began * 1000)
        run = self.client.create_run(self.experiment_id, start, run_tags, name)
        flat = [Param(key, value[:6000]) for key, value in values.items()]
        self.client.log_batch(run.info.run_id, params=flat)
        return run

    def _find_or_create(
        self,
        name: str,
        identity: Mapping[str, str],
        more: Mapping[str, str],
        began: float | None,
        values: Mapping[str, str],
    ) -> str:
        """The id of a run that stands above others, which ends where they do."""
        if found := self.find(identity):
            return str(found[0].info.run_id)
        run = self._create(name, {**identity, **more}, began, values)
        self.client.set_terminated(run.info.run_id, "FINISHED")
        return str(run.info.run_id)

    def run(self, stage: str, name: str, mark: str, digest: str, began: float | None = None) -> Run:
        """The run of a stage's fingerprint: the one whose results are `digest`, else an unfinished
        one, else a new one. To be called in a block of `locked`.
        """
        identity = {"gpt1.stage": stage, "gpt1.name": name, "gpt1.fingerprint": mark}
        found = self.find(identity)
        for complete in (digest, None):
            for run in found:
                if run.data.tags.get(COMPLETE) == complete:
                    return run
        above, known = self.parent_id, tags(log_path(stage, name))
        if task := group_of(stage, name):
            above = self._find_or_create(
                run_name(stage, task),
                self.group(stage, task),
                {PARENT: self.parent_id} | _source(rerun(stage, task)) | marks_of(stage, task),
                began,
                {},
            )
        if (commit := known.get("git_commit", "unknown")) != "unknown":
            known["mlflow.source.git.commit"] = commit
        return self._create(
            run_name(stage, name),
            identity
            | {PARENT: above}
            | marks_of(stage, name)
            | colour_of(stage, name)
            | known
            | _source(rerun(stage, name)),
            began,
            stage_params(self.params, stage, name),
        )

    def group(self, stage: str, task: str) -> dict[str, str]:
        """The tags by which the run of a task, above those of its seeds, is found."""
        return {"gpt1.stage": stage, "gpt1.name": task, "gpt1.group": self.parent_id}

    def sent(self, run: Run) -> set[tuple[str, int]]:
        """Names and updates of the points that a run already has."""
        history = self.client.get_metric_history
        return {
            (key, metric.step)
            for key in run.data.metrics
            for metric in history(run.info.run_id, key)
        }

    def send(
        self,
        run_id: str,
        points: Iterable[Point],
        sent: set[tuple[str, int]],
        tokens: Mapping[int, float],
    ) -> None:
        """Send the points that are not among `sent`, with the times at which they were made.

        `tokens` says how many had been trained on at an update: by these the curves stand there
        once more.
        """
        metrics = (metric for point in points for metric in metrics_of(point, tokens))
        fresh = [metric for metric in metrics if (metric.key, metric.step) not in sent]
        self.client.log_batch(run_id, metrics=fresh)

    def tag(self, run: Run, wanted: Mapping[str, str]) -> None:
        """Set the tags that a run does not have yet."""
        news = wanted.items() - run.data.tags.items()
        self.client.log_batch(run.info.run_id, tags=[RunTag(key, value) for key, value in news])


def _source(command: str) -> dict[str, str]:
    """What MLflow shows as the source of a run: the command that makes it again."""
    return {"mlflow.source.name": command, "mlflow.source.type": "LOCAL"}


def metrics_of(point: Point, tokens_at: Mapping[int, float]) -> Iterator[Metric]:
    """A point's numbers, by update, and once more by tokens where it is known how many there had
    been.
    """
    time, update = int(point["time"] * 1000), int(point["update"])
    tokens = point.get("tokens", tokens_at.get(update))
    for key, value in point.items():
        if key in ("time", "update") or not isinstance(value, int | float):
            continue
        yield Metric(key, float(value), time, update)
        if tokens is not None and key not in ("tokens", "epoch") and not key.startswith("system/"):
            yield Metric(f"by_tokens/{key}", float(value), time, int(tokens))
