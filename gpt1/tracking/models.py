"""Models as MLflow lists and ranks them: a pointer to each file of weights, with its sha256, scores
and data. The weights stay under data/; one that MLflow can load is made by `gpt1 register`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import (
    DatasetInput,
    LoggedModel,
    LoggedModelInput,
    LoggedModelOutput,
    LoggedModelStatus,
    Metric,
    Run,
)

from gpt1.base.files import sha256_file
from gpt1.tracking.names import marks_of
from gpt1.tracking.results import FinishedRun

MODELS = "gpt1.models"  # tag of a run: for which results its models are there
MEASURES = ("dev_score", "heldout_loss", "heldout_perplexity", "heldout_word_perplexity")
MAXIMUM = 1000  # of one run's models; more snapshots would be entered anew


def weights_of(result: FinishedRun) -> Iterator[tuple[int, Path]]:
    """Each file of weights of a result with its update: all snapshots of a pre-training, the best
    network of a fine-tuning; none where they were not brought along.
    """
    if result.stage == "pretrain":
        for path in sorted(result.folder.glob("snapshots/*.safetensors")):
            yield int(path.stem), path
    elif (path := result.folder / "weights.safetensors").is_file():
        yield int(result.final.get("final/best_update", 0)), path


def model_name(result: FinishedRun, update: int) -> str:
    """`rte-seed-0` for fine-tuned weights, `transformer-seed-0-update-2800` for a snapshot."""
    parts = result.name.split("/")
    return "-".join((*parts, f"update-{update}") if result.stage == "pretrain" else parts)


def log_models(
    client: MlflowClient, run: Run, result: FinishedRun, data: Iterable[DatasetInput]
) -> bool:
    """Enter the models of a run that are not there yet by their sha256, with what was measured at
    their update on the held-out or development split; entered again they change nothing. Says
    whether it has any.
    """
    files = list(weights_of(result))
    if not files:
        return False
    experiment, run_id = run.info.experiment_id, run.info.run_id
    found = _models_of(client, experiment, run_id)
    there = {model.tags.get("sha256"): model for model in found}
    marks = marks_of(result.stage, result.name)
    models = dict[int, LoggedModel]()
    for update, path in files:
        digest = sha256_file(path)
        models[update] = there.get(digest) or client.create_logged_model(
            experiment,
            model_name(result, update),
            run_id,
            tags=marks | {"weights": path.as_posix(), "sha256": digest},
            params=marks | {"update": str(update)},
            model_type="snapshot" if result.stage == "pretrain" else result.stage,
        )
    made = client.get_run(run_id).outputs
    known = {one.model_id for one in made.model_outputs} if made else set()
    outputs = [LoggedModelOutput(model.model_id, update) for update, model in models.items()]
    if news := [one for one in outputs if one.model_id not in known]:
        client.log_outputs(run_id, news)
    split = next((one for one in data if one.tags[0].value == "validation"), None)
    client.log_batch(run_id, _measured(result, models, dict.fromkeys(MEASURES, split)))
    for model in models.values():
        if model.status != LoggedModelStatus.READY:
            client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
    return True


def log_zero_shot(
    client: MlflowClient,
    run: Run,
    pretraining: str,
    result: FinishedRun,
    data: Sequence[DatasetInput],
) -> bool:
    """Tie a zero-shot run's scores to the snapshots of their pre-training, by the id of its run:
    all are ranked by a score as `zero_shot.cola`. Says whether it has any.
    """
    found = _models_of(client, run.info.experiment_id, pretraining)
    models = {int(model.params["update"]): model for model in found}
    scored = (one for one in data if one.tags[0].value != "training")
    splits = {one.dataset.name.split()[0]: one for one in scored}
    sets = {key: splits.get(key) for key in (name.removeprefix("final/") for name in result.final)}
    client.log_batch(run.info.run_id, _measured(result, models, sets, "zero_shot."))
    inputs = [LoggedModelInput(model.model_id) for model in models.values()]
    client.log_inputs(run.info.run_id, data, inputs)
    return bool(models)


def _models_of(client: MlflowClient, experiment: str, run_id: str) -> Sequence[LoggedModel]:
    return client.search_logged_models(
        [experiment], f"source_run_id = '{run_id}'", max_results=MAXIMUM
    )


def _measured(
    result: FinishedRun,
    models: Mapping[int, LoggedModel],
    measures: Mapping[str, DatasetInput | None],
    prefix: str = "",
) -> list[Metric]:
    """What a run measured at the updates of models, tied to them and the split it was measured
    on.
    """
    return [
        Metric(
            prefix + key,
            float(point[key]),
            int(point["time"] * 1000),
            point["update"],
            models[point["update"]].model_id,
            split.dataset.name if split else None,
            split.dataset.digest if split else None,
        )
        for point in result.points
        for key, split in measures.items()
        if point["update"] in models and isinstance(point.get(key), int | float)
    ]
