"""MLflow's experiment of a profile. Only what talks to MLflow imports this."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, Run, RunTag

from gpt1.base.errors import UserError
from gpt1.base.files import LOGS
from gpt1.base.locks import locked
from gpt1.params.recipes import finetune_recipe, pretraining_params
from gpt1.params.schema import Params
from gpt1.tracking.address import SQLITE, sqlite_file, tracking_uri
from gpt1.tracking.log import Point
from gpt1.tracking.results import changes, subject

IDENTITY, OUTDATED = "gpt1.run", "outdated"  # tags
LONGEST_NAME = 80  # of a run; what exceeds it stands in the column `changed`
NOTE = "mlflow.note.content"  # MLflow's pages show it as the description
DESCRIPTION = "A run for each training; the run `report` has Tables 2 to 5 beside the paper's."


class Store:
    """MLflow's client and an experiment. Raises what MLflow raises, sqlite3.DatabaseError for a
    damaged database, UserError for one whose files lie elsewhere.
    """

    def __init__(self, params: Params) -> None:
        self.params, self.uri = params, tracking_uri()
        with locked(LOGS / "mlflow.lock"):  # two at once can break a new database
            open_sqlite(self.uri)
            self.client = MlflowClient(tracking_uri=self.uri)
            experiment = self.client.get_experiment_by_name(params.profile)
            path, files = sqlite_file(self.uri), Path(getattr(experiment, "artifact_location", ""))
            if path and files.is_absolute() and path.parent not in files.parents:
                raise UserError(
                    f"{path} keeps its files in {files}: it was moved or copied; move it away, and"
                    " mlruns beside it: gpt1 sync and gpt1 register make both anew"
                )
            self.experiment = str(
                experiment.experiment_id
                if experiment
                else self.client.create_experiment(params.profile, tags={NOTE: DESCRIPTION})
            )
            query = f"tags.`{IDENTITY}` LIKE '%'"
            self.runs = self.client.search_runs([self.experiment], query, max_results=50_000)

    def run(
        self,
        stage: str,
        name: str,
        fingerprint: str,
        began: float,
        last: Mapping[str, float] | None = None,
    ) -> Run:
        """Find the run whose curves end with these `last` values, or an unfinished one of this
        fingerprint (without `last`, any); else begin one at `began` (seconds since 1970).
        """
        named, values = f"{stage} {name} ", dict[str, Any]()
        for run in self.runs:
            identity, may_go_on = run.data.tags[IDENTITY], run.info.status != "FINISHED"
            same = identity == named + fingerprint and (may_go_on or last is None)
            curves = last and last.items() <= run.data.metrics.items()
            if same or (curves and identity.startswith(named)):
                return run
        if "/" in name:
            values = parameters(self.params, stage, name)
            name = "{task} {system} seed {seed}, {changed}".format_map(values)
            name = name.removesuffix(", ") if len(name) < LONGEST_NAME else name.partition(",")[0]
        run = self.client.create_run(
            self.experiment, int(began * 1000), {IDENTITY: named + fingerprint}, name
        )
        params = [Param(key, str(value)) for key, value in values.items()]
        self.client.log_batch(run.info.run_id, params=params)
        return run

    def mark_outdated(self, current: Collection[str]) -> None:
        """Tag every finished run as outdated but the `current` ones."""
        for run in self.runs:
            outdated = run.info.status == "FINISHED" and run.info.run_id not in current
            if outdated and OUTDATED not in run.data.tags:
                self.client.set_tag(run.info.run_id, OUTDATED, "yes")
            elif OUTDATED in run.data.tags and not outdated:
                self.client.delete_tag(run.info.run_id, OUTDATED)

    def points_of(self, run: Run) -> set[tuple[str, int]]:
        """Return name and update of each point that MLflow has."""
        return {
            (key, metric.step)
            for key in run.data.metrics
            for metric in self.client.get_metric_history(run.info.run_id, key)
        }

    def send(
        self, run: Run, points: Sequence[Point], there: Collection[tuple[str, int]] = ()
    ) -> int:
        """Log the points that are not `there`. Returns the number of points."""
        metrics = [
            Metric(key, float(value), int(point["time"] * 1000), int(point["update"]))
            for point in points
            for key, value in point.items()
            if key not in ("time", "update") and isinstance(value, int | float)
            if (key, point["update"]) not in there
        ]
        self.client.log_batch(run.info.run_id, metrics=metrics)
        return len(points)

    def end(self, run: Run, tags: dict[str, str], time: float) -> None:
        """Record that a run ended at `time`."""
        self.client.log_batch(run.info.run_id, tags=[RunTag(*tag) for tag in tags.items()])
        self.client.set_terminated(run.info.run_id, "FINISHED", int(time * 1000))


def parameters(params: Params, stage: str, name: str) -> dict[str, Any]:
    """Return MLflow's parameters of a run."""
    task, system, seed = subject(stage, name)
    about = {"task": task, "system": system, "seed": seed, "stage": stage}
    ablation = system if stage == "ablation" else None
    network: str = params.ablations[system].network if ablation else "transformer"
    network = system if stage == "pretrain" else network
    about["changed"] = changes(params, task, system, network)
    if stage == "pretrain":
        recipe = pretraining_params(params, system).pretrain.model_dump()  # type: ignore[arg-type]
    else:
        recipe = finetune_recipe(params, task, ablation).model_dump()
    if stage == "transfer":
        recipe["transfer"] = int(system.removeprefix("layers-"))
    if network.startswith("lstm"):
        about["units"] = getattr(params, network).units
    return about | params.model.model_dump() | recipe


def open_sqlite(uri: str) -> None:
    """Make a new SQLite database under another name until it is whole. Raises sqlite3.DatabaseError
    for a damaged one, which MLflow would retry for a minute.
    """
    if (path := sqlite_file(uri)) is None:
        return
    if path.exists():
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA schema_version")
        return
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    MlflowClient(tracking_uri=f"{SQLITE}{unfinished}").get_experiment("0")
    unfinished.replace(path)
