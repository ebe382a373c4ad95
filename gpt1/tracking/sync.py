"""Write results and logs to MLflow: one run per training, and one called `report`. The files come
first; nothing is sent twice. MLFLOW_TRACKING_URI says where to (environment or .env; without it
`mlflow.db` here); GPT1_MLFLOW=off sends nothing.
"""

from collections.abc import Collection
from time import time

from gpt1.base.errors import UserError
from gpt1.base.files import DATA, fingerprint, read_json, sha256_file, stage_folder, write_json
from gpt1.params.schema import Params
from gpt1.tracking.address import problem, switched_off
from gpt1.tracking.log import RUNS
from gpt1.tracking.results import finished_trainings, read_training, reported_scores, subject
from gpt1.tracking.store import COMPLETE, NOTE, Store, log_data
from gpt1.tracking.views import view_tags

REPORTED = (".md", ".csv", ".html", ".svg")


def sync(params: Params, outdated: Collection[str] = (), notice: str = "") -> tuple[int, int]:
    """Write to MLflow all finished results under data/ that it lacks. Returns how many it has now,
    and how many are new. Trainings get no score from `outdated` reports; the run `report` shows the
    `notice` that names those. Raises UserError, one line, where a result or MLflow is broken.
    """
    results = [] if switched_off() else list(finished_trainings(params))
    if not results:
        return 0, 0
    runs, written, scores = {}, 0, reported_scores(outdated)
    try:
        store = Store(params)
        for stage, name, folder in results:
            training = read_training(stage, name, folder, scores.get(subject(stage, name), {}))
            began, values = training.points[0]["time"], training.digest.partition(" ")[0]
            run = store.run(stage, name, training.fingerprint, began, values)
            runs[f"{stage} {name}"] = run.info.run_id
            # a training without a score today, for its report is outdated, keeps what MLflow has
            if run.data.tags.get(COMPLETE, "").startswith(training.digest):
                continue
            *points, score = training.points
            store.send(run, points, store.points_of(run))
            store.send(run, [score])
            log_data(store, run, subject(stage, name)[0])
            store.client.log_artifact(run.info.run_id, str(folder / "summary.json"))
            where = training.facts.get("machine", {}) | training.facts.get("checkout", {})
            store.end(run, training.digest, where, points[-1]["time"])
            written += 1
        _report(store, notice)
        for key, value in view_tags().items():
            store.client.set_experiment_tag(store.experiment, key, value)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{problem(error)}; the results are safe in {DATA}/, and gpt1 sync can be called again"
        ) from None
    write_json(RUNS, {"experiment": store.experiment, "runs": runs})
    return len(results), written


def _report(store: Store, notice: str) -> None:
    """Write the run `report`: tables as its note, all reports as artifacts; means and claims as
    metrics, in points, unless a report is outdated.
    """
    folder = stage_folder("report")
    files = [path for path in sorted(folder.rglob("*.*")) if path.suffix in REPORTED]
    digest = fingerprint([notice, {str(path): sha256_file(path) for path in files}])
    run = store.run("report", "report", fingerprint(store.params.model_dump(mode="json")))
    if run.data.tags.get(COMPLETE) == digest:
        return
    for path in files:
        artifact_path = path.parent.relative_to(folder).as_posix().strip(".")
        store.client.log_artifact(run.info.run_id, str(path), artifact_path)
    for path in sorted(folder.glob("*.json")) if not notice else ():
        for name, value in read_json(path).items():
            store.client.log_metric(run.info.run_id, f"{path.stem}/{name}", value)
    paths = [*folder.glob("claims/claims.md"), *sorted(folder.glob("table?/table?.md"))]
    tables = (path.read_text(encoding="utf-8").partition("\n- ")[0] for path in paths)
    store.end(run, digest, {NOTE: "\n\n".join([notice, *tables]).lstrip()}, time())
