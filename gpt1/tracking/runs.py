"""MLflow's runs of a set of parameters, and how results become such runs; imported only by what
talks to MLflow.

One experiment a profile; a parent run for each set of parameters; under it a run for each task and
in that one for each seed, and runs for pre-training, zero-shot scores, tables and figures. Runs are
found again by their tags, so nothing is sent twice.
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

from gpt1.base.files import LOGS, fingerprint, sha256_file, stage_folder
from gpt1.params.schema import Params
from gpt1.tracking.address import tracking_uri
from gpt1.tracking.datasets import DataSet, data_sets, source_fingerprints
from gpt1.tracking.log import FLOW_RUN_URL, Point, log_path, tags, tokens_by_update
from gpt1.tracking.names import group_of, marks_of, rerun, run_name
from gpt1.tracking.pages import GRID_HEAD, first_grid, grid_page, group_page, parent_page, run_page
from gpt1.tracking.results import Group, Result, dotted, sizes, stage_params

BATCH = 1000  # MLflow's limit of metrics in one call
PARAMS_BATCH = 100  # and of parameters
LOCK_SECONDS = 60.0
NOTE = "mlflow.note.content"
KIND = {
    "mlflow.experimentKind": "custom_model_development"
}  # its pages for training, not those for prompts and agents
MACHINE = (
    "cpu",
    "cores",
    "gpu",
    "python",
    "torch",
    "git_commit",
    "dirty",
)  # of the runs, told of their parent too


class MLflow:
    """MLflow, opened at the experiment of a profile and the parent run of a set of parameters."""

    def __init__(self, params: Params, began: float | None = None) -> None:
        """Open it; a parent that is not there yet began at `began`, in seconds since 1970."""
        from filelock import FileLock

        for name in ("alembic", "mlflow"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self.params = params
        LOGS.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(LOGS / "mlflow.lock", timeout=LOCK_SECONDS)
        with self.lock:  # a fresh sqlite opened by several processes at once can be broken for good
            self.client = MlflowClient(tracking_uri=tracking_uri())
            experiment = self.client.get_experiment_by_name(params.profile)
            self.experiment_id = (
                experiment.experiment_id
                if experiment
                else self.client.create_experiment(params.profile, tags=dict(KIND))
            )
            self.parent_id = self._parent(began)
        parent = self.client.get_run(self.parent_id)
        self.parent, self.parent_info = parent.data, parent.info
        self.headlines: dict[str, float] = dict(self.parent.metrics)
        self.machines: dict[str, set[str]] = {}
        self.ended: dict[tuple[str, str | None], float] = {}

    def _parent(self, began: float | None) -> str:
        mark = fingerprint(self.params.model_dump(mode="json"))
        if runs := self._find({"gpt1.stage": "all", "gpt1.params": mark}):
            return str(runs[0].info.run_id)
        run = self._create(
            f"{self.params.profile} {mark[:6]}",
            {
                "gpt1.stage": "all",
                "gpt1.params": mark,
                "profile": self.params.profile,
                "mlflow.source.name": "gpt1 run",
                "mlflow.source.type": "LOCAL",
            },
            dotted(self.params.model_dump(mode="json")),
            began,
        )
        self.client.set_terminated(run.info.run_id, "FINISHED")
        return str(run.info.run_id)

    def _find(self, marks: Mapping[str, str]) -> list[Any]:
        wanted = " and ".join(f"tags.`{key}` = '{value}'" for key, value in marks.items())
        return list(
            self.client.search_runs([self.experiment_id], filter_string=wanted, max_results=50)
        )

    def _create(
        self,
        name: str,
        run_tags: Mapping[str, str],
        run_params: Mapping[str, str],
        began: float | None = None,
    ) -> Any:
        run = self.client.create_run(
            self.experiment_id,
            start_time=None if began is None else int(began * 1000),
            tags=dict(run_tags),
            run_name=name,
        )
        flat = [Param(key, value[:6000]) for key, value in run_params.items()]
        for begin in range(0, len(flat), PARAMS_BATCH):
            self.client.log_batch(run.info.run_id, params=flat[begin : begin + PARAMS_BATCH])
        return run

    def run(self, stage: str, name: str, mark: str, digest: str, began: float | None = None) -> Any:
        """The run of a stage's fingerprint: the one whose results are `digest`, else an unfinished
        one, else a new one.
        """
        with self.lock:
            found = self._find({"gpt1.stage": stage, "gpt1.name": name, "gpt1.fingerprint": mark})
            for complete in (digest, None):
                for run in found:
                    if run.data.tags.get("gpt1.complete") == complete:
                        return run
            above = self._group(stage, name, began) if group_of(stage, name) else self.parent_id
            marks = {
                "gpt1.stage": stage,
                "gpt1.name": name,
                "gpt1.fingerprint": mark,
                "mlflow.parentRunId": above,
            }
            known = tags(log_path(stage, name))
            marks |= marks_of(self.params, stage, name)
            return self._create(
                run_name(stage, name),
                marks | known | source_of(stage, name, known.get("git_commit")),
                stage_params(self.params, stage, name),
                began,
            )

    def _group(self, stage: str, name: str, began: float | None) -> str:
        """The run, under the parent, of the task that a seed's run belongs to."""
        task = str(group_of(stage, name))
        if found := self._find(self._group_marks(stage, task)):
            return str(found[0].info.run_id)
        marks = (
            self._group_marks(stage, task)
            | {"mlflow.parentRunId": self.parent_id}
            | source_of(stage, task, None)
        )
        marks |= marks_of(self.params, stage, task)
        run = self._create(run_name(stage, task), marks, {}, began)
        self.client.set_terminated(run.info.run_id, "FINISHED")
        return str(run.info.run_id)

    def _group_marks(self, stage: str, task: str) -> dict[str, str]:
        return {"gpt1.stage": stage, "gpt1.name": task, "gpt1.group": self.parent_id}

    def sent(self, run: Any) -> set[tuple[str, int]]:
        """Names and updates of the points that a run already has."""
        history = {
            key: self.client.get_metric_history(run.info.run_id, key) for key in run.data.metrics
        }
        return {(key, metric.step) for key, metrics in history.items() for metric in metrics}

    def send(
        self,
        run_id: str,
        points: Iterable[Point],
        sent: set[tuple[str, int]],
        tokens: Mapping[int, float],
    ) -> None:
        """Send the points that are not among `sent`, with the times at which they were made; adds
        them to `sent`.

        `tokens` says how many had been trained on at an update: by these the curves stand there
        once more.
        """
        fresh = [
            metric
            for point in points
            for metric in metrics_of(point, tokens)
            if (metric.key, metric.step) not in sent
        ]
        for begin in range(0, len(fresh), BATCH):
            batch = fresh[begin : begin + BATCH]
            self.client.log_batch(run_id, metrics=batch)
            sent.update((metric.key, metric.step) for metric in batch)

    def project(self, result: Result) -> str:
        """Bring the run of a finished result up to date, sending nothing where it already is;
        returns its id.
        """
        run = self.run(result.stage, result.name, result.fingerprint, result.digest, result.began)
        run_id = run.info.run_id
        end = (
            None
            if result.began is None
            else max((float(point["time"]) for point in result.points), default=result.began)
        )
        if end is not None:
            whole = (result.stage, group_of(result.stage, result.name))
            self.ended[whole] = max(end, self.ended.get(whole, 0.0))
        for key in result.tags.keys() & set(MACHINE):
            self.machines.setdefault(key, set()).add(result.tags[key])
        if run.data.tags.get("gpt1.complete") != result.digest:
            measured, counted = sizes(result.final)
            self.send(
                run_id, [*result.points, measured], self.sent(run), tokens_by_update(result.points)
            )
            for path in result.artifacts:
                self.client.log_artifact(run_id, str(path))
                if result.stage == "report":
                    self.client.log_artifact(self.parent_id, str(path), result.name)
                    if (
                        path.name == f"{result.name}.md"
                        and len(grid := first_grid(path)) > GRID_HEAD
                    ):
                        self.client.log_text(
                            self.parent_id, grid_page(grid), f"{result.name}/{result.name}.html"
                        )
            if inputs := [
                dataset_input(one) for one in data_sets(self.params, result.stage, result.name)
            ]:
                self.client.log_inputs(run_id, datasets=inputs)
            page = run_page(result.stage, result.name, result.final, result.folder.as_posix())
            for key, value in {**result.tags, **counted, NOTE: page}.items():
                self.client.set_tag(run_id, key, value)
            self.client.set_terminated(
                run_id, "FINISHED", end_time=None if end is None else int(end * 1000)
            )
            self.client.set_tag(run_id, "gpt1.complete", result.digest)
        if news := {
            key: value for key, value in result.headline.items() if self.headlines.get(key) != value
        }:
            self.send(
                self.parent_id, [{"time": result.final["time"], "update": 0, **news}], set(), {}
            )
            self.headlines.update(news)
        return str(run_id)

    def project_group(self, group: Group) -> None:
        """Tell the run above a task's seeds what they give together; where an earlier set of
        parameters made them it has no such run.
        """
        for run in self._find(self._group_marks(group.stage, group.name)):
            if run.data.tags.get("gpt1.complete") != group.digest:
                self.send(run.info.run_id, group.points, set(), {})
                ended = self.ended.get((group.stage, group.name), float(group.points[0]["time"]))
                self.client.set_terminated(
                    run.info.run_id,
                    "FINISHED",
                    end_time=max(int(1000 * ended), run.info.start_time),
                )
                self._tag(
                    run.info.run_id,
                    run.data.tags,
                    {
                        NOTE: group_page(
                            group.stage, group.name, group.points, group.folder.as_posix()
                        ),
                        "gpt1.complete": group.digest,
                    },
                )

    def finish(self) -> None:
        """Bring the parent's page, tags, time and report up to date."""
        last = int(1000 * max(self.ended.values(), default=0))
        if last > self.parent_info.start_time and last != self.parent_info.end_time:
            self.client.set_terminated(self.parent_id, "FINISHED", end_time=last)
        wanted = {key: ", ".join(sorted(values)) for key, values in self.machines.items()}
        wanted |= {f"data.{name}": mark for name, mark in source_fingerprints().items()}
        lock, page = Path("dvc.lock"), stage_folder("report", "index.html")
        if lock.is_file():
            wanted["dvc_lock"] = sha256_file(lock)[:16]
        if url := os.environ.get(FLOW_RUN_URL) or self.parent.tags.get("flow_run"):
            wanted["flow_run"] = url
        wanted[NOTE] = parent_page(self.params, url)
        if page.is_file():
            wanted["gpt1.results.page"] = sha256_file(page)[:16]
            if self.parent.tags.get("gpt1.results.page") != wanted["gpt1.results.page"]:
                self.client.log_artifact(self.parent_id, str(page))
        self._tag(self.parent_id, self.parent.tags, wanted)

    def _tag(self, run_id: str, there: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        for key, value in wanted.items():
            if there.get(key) != value:
                self.client.set_tag(run_id, key, value)


def source_of(stage: str, name: str, commit: str | None) -> dict[str, str]:
    """What MLflow shows as the source of a run: the command that makes it again, and the commit of
    the code.
    """
    return {
        "mlflow.source.name": rerun(stage, name),
        "mlflow.source.type": "LOCAL",
        **({"mlflow.source.git.commit": commit} if commit and commit != "unknown" else {}),
    }


def metrics_of(point: Point, tokens_at: Mapping[int, float]) -> Iterator[Metric]:
    """A point's numbers, by update, and once more by tokens where it is known how many there had
    been.
    """
    tokens = point.get("tokens", tokens_at.get(int(point["update"])))
    for key, value in point.items():
        if key in ("time", "update") or not isinstance(value, int | float):
            continue
        yield Metric(key, float(value), int(point["time"] * 1000), int(point["update"]))
        if tokens is not None and key not in ("tokens", "epoch") and not key.startswith("system/"):
            yield Metric(f"by_tokens/{key}", float(value), int(point["time"] * 1000), int(tokens))


def dataset_input(one: DataSet) -> DatasetInput:
    """A data set as MLflow shows it: its name, digest, what it is for, its numbers, and a link to
    where it is from if that is one.
    """
    link = next(
        (
            word.rstrip(",")
            for word in one.origin.split()
            if word.startswith(("https://", "http://"))
        ),
        None,
    )
    source_type, source = ("http", {"url": link}) if link else ("local", {"uri": one.origin})
    return DatasetInput(
        Dataset(
            one.name, one.digest, source_type, json.dumps(source), profile=json.dumps(one.numbers)
        ),
        [InputTag("mlflow.data.context", one.context)],
    )
