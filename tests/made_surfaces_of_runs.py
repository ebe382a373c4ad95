"""More of made_surfaces.py: models in and out, checkpoints, and the results that reports, pages,
MLflow and the status read.
"""

import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import made_answers
import made_data
import made_models
import made_results
import torch
from made_data import as_json_lines, change_json
from made_surfaces import BROKEN, SENTENCES, Surface, put, vocabulary, write_params
from safetensors.torch import load_file

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.exchange.card import facts_about
from gpt1.exchange.incoming import read_authors, read_checkpoint, write_import
from gpt1.exchange.outgoing import chosen_task, export_language_model
from gpt1.inference import saved
from gpt1.inference.finetuned import finetuned_task
from gpt1.inference.generation import load_language_model
from gpt1.model.weights import read_tensors
from gpt1.params.schema import read_params
from gpt1.results.predictions import predictions_of, sources_of
from gpt1.results.provenance import facts, sources
from gpt1.results.report import curves_of
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.rows import Example
from gpt1.tracking.results import finished_trainings, read_training
from gpt1.train.checkpoint import Position, is_finished, newest_checkpoint, write_checkpoint


def write_task_model():
    made_answers.write_models(Path(), "cola")
    Path("data/finetune/glue/cola/seed-1/weights.safetensors").rename("weights.safetensors")
    shutil.rmtree("data/finetune")


def read_task_model():
    saved.load_model(Path("weights.safetensors"), Path("data/bpe")).answer(Example((SENTENCES[0],)))


def write_authors():
    words = vocabulary()
    shapes = made_models.authors_shapes(made_models.SIZES.context, 64, 1, 64, words.size)
    made_models.write_authors(Path("authors"), shapes, words)


def imported(checkpoint):
    shutil.rmtree("imported", ignore_errors=True)
    write_import(checkpoint, Path("imported"))


def read_folder():
    imported(read_checkpoint(Path("folder")))


def write_folder(pickled):
    """As Hugging Face's transformers have a model."""
    with TemporaryDirectory() as model:
        made_models.saved_model(Path(model))
        export_language_model(Path(model, "weights.safetensors"), Path(model), Path("folder"))
    if pickled:
        torch.save(load_file("folder/model.safetensors"), "folder/pytorch_model.bin")
        Path("folder/model.safetensors").unlink()


def write_state():
    tensors = {"tokens": torch.arange(12.0).reshape(3, 4), "blocks.0.bias": torch.zeros(4)}
    Path("state").mkdir()
    for update in (10, 20):
        position = Position(update, 2)
        write_checkpoint(Path("state"), position, (tensors, tensors), "0" * 64, {"device": "cpu"})
    put("state/seed-0/state.json", {"code": "0" * 64})


def read_state():
    if found := newest_checkpoint(Path("state"), "0" * 64):
        for name in ("weights", "adam"):
            read_tensors(found.folder / f"{name}.safetensors")
    is_finished(Path("state/seed-0"), "0" * 64)


def write_results():
    made_results.write_params(["rte", "stsb"], [0, 1])
    made_results.write_pretraining()
    for task, labels in (("rte", [0, 1, 1, 0, 1, 0]), ("stsb", [0.5, 1.0, 2.0, 3.0, 4.5, 5.0])):
        right = [int(label) for label in labels]
        answers = {"dev/best": right, "dev/last": right}
        made_results.write_task(task, {"dev": labels}, dict.fromkeys((0, 1), answers))
    pretrained, log = "data/pretrain/transformer/seed-0", "data/logs/pretrain/transformer"
    parameters = {"embeddings": 12, "total": 42}
    change_json(f"{pretrained}/summary.json", parameters=parameters)
    points = [{"update": at, "loss": 9.0, "heldout_loss": 8.0} for at in (1, 2)]
    put(f"{pretrained}/curve.jsonl", as_json_lines(points))
    machine = dict.fromkeys(("cpu", "cores", "gpu", "python", "torch"), "2")
    run = {
        "fingerprint": "f" * 16,
        "time": 1.0,
        "status": "FINISHED",
        "seconds": 3,
        "last": points[-1],
    }
    run |= {"machine": machine, "checkout": {"git_commit": "unknown", "dirty": "unknown"}}
    put(f"{log}/seed-0.run.json", run)
    manifest = {"source": "rte", "origin": "GLUE", "licence": "research"}
    manifest |= {"files": {"train.tsv": {"sha256": "0" * 64, "bytes": 3, "rows": 1}}}
    put("data/acquire/tasks/rte/manifest.json", manifest)


def read_results():
    params = read_params()
    predictions_of(params, "table2"), sources_of(params, params.tasks), curves_of(params)


def read_record():
    facts_about(Path("data/pretrain/transformer/seed-0/weights.safetensors"), None)
    for training in finished_trainings(read_params()):
        read_training(*training)


def write_finished():
    write_params()
    made_data.write_task("cola")
    for seed, score in enumerate((0.5, 0.7)):
        put(f"data/finetune/glue/cola/seed-{seed}/summary.json", {"best_dev_score": score})


def read_finetuned_task():
    finetuned_task("cola").best()
    chosen_task("cola", None)


def write_served():
    first, second, _ = SENTENCES
    whole = {"first": first, "second": second, "choices": ["a", "b", "c", "d"]}
    put("rows.json", [whole, {"first": "x"}])


def read_served():
    rows = read_json(Path("rows.json"))
    for task in ("race", "sst2", "stsb"):
        for row in rows if isinstance(rows, list) else [rows]:
            with suppress(UserError):
                vocabulary().encode(saved.example_of(TASKS[task], row, "a row").context[0])


SURFACES_OF_RUNS = (
    Surface(
        "weights",
        lambda: made_models.saved_model(Path("model")),
        lambda: load_language_model(Path("model/weights.safetensors"), Path("model"), "cpu"),
    ),
    Surface("task model", write_task_model, read_task_model),
    Surface("authors", write_authors, lambda: imported(read_authors(Path("authors")))),
    Surface("hugging face", partial(write_folder, False), read_folder),
    Surface("hugging face, pickled", partial(write_folder, True), read_folder),
    Surface("checkpoint", write_state, read_state),
    Surface("results", write_results, read_results),
    Surface("record", write_results, read_record, BROKEN),
    Surface("page", write_results, lambda: (sources(), facts()), BROKEN),
    Surface("finished", write_finished, read_finetuned_task),
    Surface("served rows", write_served, read_served, (ValueError,)),
)
