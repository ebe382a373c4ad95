"""Write results to MLflow: one run per training, and one called `report`."""

import json
from collections.abc import Collection
from pathlib import Path
from time import time

from gpt1.base.errors import UserError
from gpt1.base.files import (
    DATA,
    LOGS,
    fingerprint,
    read_json,
    sha256_file,
    stage_folder,
    write_json,
)
from gpt1.base.locks import locked
from gpt1.params.schema import Params
from gpt1.tracking.address import problem, switched_off
from gpt1.tracking.log import RUNS
from gpt1.tracking.results import finished_trainings, read_training, reported_scores, subject
from gpt1.tracking.store import NOTE, Store

# saved views of MLflow's runs page, as its own pages write them: scores; curves of pre-trainings
VIEWS = Path(__file__).with_name("views.json")
COMPLETE = "gpt1.complete"  # a report's files, by their fingerprint


@locked(LOGS / "sync.lock")  # two at once would write a run twice
def sync(params: Params, outdated: Collection[str] = (), notice: str = "") -> tuple[int, int]:
    """Write to MLflow all finished results that it lacks, but those of `outdated` stages, and tag
    what is outdated. Returns how many it has now, and how many are new. Raises UserError.
    """
    if switched_off() or not any(finished_trainings(params)):
        return 0, 0
    runs, written, scores = dict[str, str](), 0, reported_scores(outdated)
    try:
        store = Store(params)
        for stage, name, folder in finished_trainings(params, outdated):
            training = read_training(stage, name, folder)
            run = store.run(
                stage, name, training.fingerprint, training.began, training.last or None
            )
            runs[f"{stage} {name}"] = run.info.run_id
            results = training.measured | scores.get(subject(stage, name), {})
            # a training without a score today, for its report is outdated, keeps what MLflow has
            if run.info.status == "FINISHED" and results.items() <= run.data.metrics.items():
                continue
            store.send(run, training.points, store.points_of(run))
            store.client.log_artifact(run.info.run_id, str(folder / "summary.json"))
            store.send(run, [{"time": time(), "update": training.updates, **results}])
            where = training.facts.get("machine", {}) | training.facts.get("checkout", {})
            store.end(run, where, training.began + results.get("seconds", 0.0))
            written += 1
        store.mark_outdated([*runs.values(), *([_report(store, notice)] if runs else [])])
        for name, view in read_json(VIEWS).items():
            view["state"] = json.dumps(view["state"])
            key = f"mlflow.sharedViewState.{name}"
            store.client.set_experiment_tag(store.experiment, key, json.dumps(view))
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{problem(error)}; the results are safe in {DATA}/, and gpt1 sync can be called again"
        ) from None
    write_json(RUNS, {"experiment": store.experiment, "runs": runs})
    return len(runs), written


def _report(store: Store, notice: str) -> str:
    """Write the run `report`, with the `notice`, and return its id."""
    folder = stage_folder("report")
    files = sorted(path for path in folder.rglob("*.*") if path.is_file())
    digest = fingerprint([notice, {str(path): sha256_file(path) for path in files}])
    run = store.run("report", "report", fingerprint(store.params.model_dump(mode="json")), time())
    if run.data.tags.get(COMPLETE) == digest:
        return str(run.info.run_id)
    store.client.log_artifacts(run.info.run_id, str(folder))
    for path in sorted(folder.glob("*.json")) if not notice else ():
        for name, value in read_json(path).items():
            store.client.log_metric(run.info.run_id, f"{path.stem}/{name}", value)
    paths = [*folder.glob("claims/claims.md"), *sorted(folder.glob("table?/table?.md"))]
    tables = (path.read_text(encoding="utf-8").partition("\n- ")[0] for path in paths)
    note = "\n\n".join([notice, *tables]).lstrip()
    store.end(run, {NOTE: note, COMPLETE: digest}, time())
    return str(run.info.run_id)
