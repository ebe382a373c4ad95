"""MLflow's runs of a set of parameters, and how results become such runs; imported only by what
talks to MLflow.

One experiment a profile; a parent run for each set of parameters; under it a run for each task and
in that one for each seed, and runs for pre-training, zero-shot scores, tables and figures. Runs are
found again by their tags, so nothing is sent twice.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from filelock import FileLock
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag

from gpt1.base.files import LOGS, fingerprint, sha256_file, stage_folder
from gpt1.params.schema import Params
from gpt1.tracking.address import tracking_uri
from gpt1.tracking.datasets import data_sets, source_fingerprints
from gpt1.tracking.log import FLOW_RUN_URL, Point, log_path, tags, tokens_by_update
from gpt1.tracking.names import group_of, marks_of, rerun, run_name
from gpt1.tracking.pages import group_page, parent_page, run_page, table_page
from gpt1.tracking.results import Group, Result, dotted, stage_params

LOCK_SECONDS = 60.0
NOTE, COMPLETE, PARENT = "mlflow.note.content", "gpt1.complete", "mlflow.parentRunId"
KIND = {  # its pages for training, not those for prompts and agents
    "mlflow.experimentKind": "custom_model_development"
}
MACHINE = {"cpu", "cores", "gpu", "python", "torch", "git_commit", "dirty"}  # also on the parent
COUNTS = {  # last numbers that are words of a run: a bar of one count tells nobody anything
    f"final/{key}": key
    for key in (
        "updates",
        "tokens",
        "train_tokens",
        "heldout_tokens",
        "vocabulary_size",
        "best_update",
        "skipped_updates",
    )
} | {"final/parameters.total": "parameters"}


class MLflow:
    """MLflow, opened at the experiment of a profile and the parent run of a set of parameters."""

    def __init__(self, params: Params, began: float | None = None) -> None:
        """Open it; a parent that is not there yet began at `began`, in seconds since 1970."""
        for name in ("alembic", "mlflow"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self.params = params
        LOGS.mkdir(parents=True, exist_ok=True)
        self.lock = FileLock(LOGS / "mlflow.lock", timeout=LOCK_SECONDS)
        with self.lock:  # a fresh sqlite opened by several processes at once can be broken for good
            self.client = MlflowClient(tracking_uri=tracking_uri())
            experiment = self.client.get_experiment_by_name(params.profile)
            self.experiment_id: str = (
                experiment.experiment_id
                if experiment
                else self.client.create_experiment(params.profile, tags=dict(KIND))
            )
            self.parent_id = self._parent(began)
        self.parent: Run = self.client.get_run(self.parent_id)
        self.headlines: dict[str, float] = dict(self.parent.data.metrics)
        self.machines: dict[str, set[str]] = {}
        self.ended: dict[tuple[str, str | None], float] = {}

    def _parent(self, began: float | None) -> str:
        values = self.params.model_dump(mode="json")
        digest = fingerprint(values)
        identity = {"gpt1.stage": "all", "gpt1.params": digest}
        more = {"profile": self.params.profile} | _source("gpt1 run")
        return self._find_or_create(
            f"{self.params.profile} {digest[:6]}", identity, more, began, dotted(values)
        )

    def _find(self, wanted: Mapping[str, str]) -> list[Run]:
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
        if found := self._find(identity):
            return str(found[0].info.run_id)
        run = self._create(name, {**identity, **more}, began, values)
        self.client.set_terminated(run.info.run_id, "FINISHED")
        return str(run.info.run_id)

    def run(self, stage: str, name: str, mark: str, digest: str, began: float | None = None) -> Run:
        """The run of a stage's fingerprint: the one whose results are `digest`, else an unfinished
        one, else a new one.
        """
        identity = {"gpt1.stage": stage, "gpt1.name": name, "gpt1.fingerprint": mark}
        with self.lock:
            found = self._find(identity)
            for complete in (digest, None):
                for run in found:
                    if run.data.tags.get(COMPLETE) == complete:
                        return run
            above, known = self.parent_id, tags(log_path(stage, name))
            if task := group_of(stage, name):
                above = self._find_or_create(
                    run_name(stage, task),
                    self._group(stage, task),
                    {PARENT: self.parent_id}
                    | _source(rerun(stage, task))
                    | marks_of(self.params, stage, task),
                    began,
                    {},
                )
            if (commit := known.get("git_commit", "unknown")) != "unknown":
                known["mlflow.source.git.commit"] = commit
            return self._create(
                run_name(stage, name),
                identity
                | {PARENT: above}
                | marks_of(self.params, stage, name)
                | known
                | _source(rerun(stage, name)),
                began,
                stage_params(self.params, stage, name),
            )

    def _group(self, stage: str, task: str) -> dict[str, str]:
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

    def project(self, result: Result) -> str:
        """Bring the run of a finished result up to date, sending nothing where it already is;
        returns its id.
        """
        run = self.run(result.stage, result.name, result.fingerprint, result.digest, result.began)
        run_id = str(run.info.run_id)
        end = None
        if result.began is not None:
            end = max((float(point["time"]) for point in result.points), default=result.began)
            group = (result.stage, group_of(result.stage, result.name))
            self.ended[group] = max(end, self.ended.get(group, 0.0))
        for key in result.tags.keys() & MACHINE:
            self.machines.setdefault(key, set()).add(result.tags[key])
        last = {"time": result.time, "update": 0}
        if run.data.tags.get(COMPLETE) != result.digest:
            counts = {
                COUNTS[key]: f"{value:.0f}" for key, value in result.final.items() if key in COUNTS
            }
            measures = {
                key: value
                for key, value in result.final.items()
                if key not in COUNTS and not key.startswith("final/parameters.")
            }
            self.send(
                run_id,
                [*result.points, last | measures],
                self.sent(run),
                tokens_by_update(result.points),
            )
            self._log_artifacts(run_id, result)
            if inputs := data_sets(self.params, result.stage, result.name):
                self.client.log_inputs(run_id, datasets=inputs)
            page = run_page(result.stage, result.name, result.final, result.folder.as_posix())
            self._tag(run, result.tags | counts | {NOTE: page})
            self.client.set_terminated(
                run_id, "FINISHED", end_time=None if end is None else int(end * 1000)
            )
            self.client.set_tag(run_id, COMPLETE, result.digest)
        news = dict(result.headline.items() - self.headlines.items())
        self.send(self.parent_id, [last | news], set(), {})
        self.headlines |= news
        return run_id

    def _log_artifacts(self, run_id: str, result: Result) -> None:
        """Files of a result; those of the report on the parent too, a table also as a page."""
        for path in result.artifacts:
            self.client.log_artifact(run_id, str(path))
            if result.stage == "report":
                self.client.log_artifact(self.parent_id, str(path), result.name)
                if path.name == f"{result.name}.md" and (page := table_page(path)):
                    self.client.log_text(self.parent_id, page, f"{result.name}/{result.name}.html")

    def project_group(self, group: Group) -> None:
        """Tell the run above a task's seeds what they give together; where an earlier set of
        parameters made them it has no such run.
        """
        for run in self._find(self._group(group.stage, group.name)):
            if run.data.tags.get(COMPLETE) != group.digest:
                self.send(run.info.run_id, group.points, set(), {})
                ended = self.ended.get((group.stage, group.name), float(group.points[0]["time"]))
                self.client.set_terminated(
                    run.info.run_id,
                    "FINISHED",
                    end_time=max(int(1000 * ended), run.info.start_time),
                )
                page = group_page(group.stage, group.name, group.points, group.folder.as_posix())
                self._tag(run, {NOTE: page, COMPLETE: group.digest})

    def finish(self) -> None:
        """Bring the parent's page, tags, time and report up to date."""
        info, there = self.parent.info, self.parent.data.tags
        last = int(1000 * max(self.ended.values(), default=0))
        if last > info.start_time and last != info.end_time:
            self.client.set_terminated(self.parent_id, "FINISHED", end_time=last)
        wanted = {key: ", ".join(sorted(values)) for key, values in self.machines.items()}
        wanted |= {f"data.{name}": digest for name, digest in source_fingerprints().items()}
        url = os.environ.get(FLOW_RUN_URL) or there.get("flow_run")
        if url:
            wanted["flow_run"] = url
        wanted[NOTE] = parent_page(self.params, url)
        page = stage_folder("report", "index.html")
        for key, path in (("dvc_lock", Path("dvc.lock")), ("gpt1.results.page", page)):
            if path.is_file():
                wanted[key] = sha256_file(path)[:16]
        if "gpt1.results.page" in dict(wanted.items() - there.items()):
            self.client.log_artifact(self.parent_id, str(page))
        self._tag(self.parent, wanted)

    def _tag(self, run: Run, wanted: Mapping[str, str]) -> None:
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
