"""More of made_surfaces.py: models in and out, checkpoints, and the results that reports, pages,
MLflow and the status read.
"""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import made_data
import made_models
import made_results
import pandas as pd
import torch
from made_surfaces import BROKEN, SENTENCES, Surface, put, task_rows, vocabulary, write_params

from gpt1.base.errors import UserError


def write_weights() -> None:
    made_models.saved_model(Path("model"))


def read_weights() -> None:
    from gpt1.inference.generation import load_language_model

    load_language_model(Path("model/weights.safetensors"), Path("model"), "cpu")


def write_task_model() -> None:
    from gpt1.corpus.bpe import SPECIAL_SYMBOLS
    from gpt1.model.gpt import Decoder
    from gpt1.model.heads import Classifier, Head
    from gpt1.model.weights import Description, save_weights

    words, generator, sizes = vocabulary(), torch.Generator().manual_seed(0), made_models.SIZES
    words.save(Path("bpe"), {})
    classifier = Classifier(
        Decoder(sizes, words.size + len(SPECIAL_SYMBOLS), generator),
        Head(sizes.width, 2, "single", 0.02, generator),
    )
    save_weights(
        Path("weights.safetensors"),
        classifier,
        Description("transformer for sst2", sizes.model_dump(), words.size, words.fingerprint),
    )


def read_task_model() -> None:
    from gpt1.inference.saved import load_model
    from gpt1.tasks.rows import Example

    load_model(Path("weights.safetensors"), Path("bpe")).answer(Example((SENTENCES[0],)))


def write_authors() -> None:
    sizes, words = made_models.SIZES, vocabulary()
    shapes = made_models.authors_shapes(sizes.context, 64, 1, 64, words.size)
    made_models.write_authors(Path("authors"), shapes, words)


def read_authors() -> None:
    from gpt1.exchange.authors import read_authors as read
    from gpt1.exchange.incoming import write_import

    shutil.rmtree("imported", ignore_errors=True)
    write_import(read(Path("authors")), Path("imported"))


def write_folder(pickled: bool) -> None:
    from safetensors.torch import load_file

    from gpt1.exchange.outgoing import export_language_model

    made_models.saved_model(Path("model"))
    export_language_model(Path("model/weights.safetensors"), Path("model"), Path("folder"))
    if pickled:
        torch.save(load_file("folder/model.safetensors"), "folder/pytorch_model.bin")
        Path("folder/model.safetensors").unlink()
    for path in [
        *Path("model").iterdir(),
        *Path("folder").glob("*.py"),
        *Path("folder").glob("*.md"),
    ]:
        path.unlink()
    Path("model").rmdir()
    if pickled:
        for name in ("vocab.json", "merges.txt"):
            Path("folder", name).unlink()  # tokenizer.json has them too


def read_folder() -> None:
    from gpt1.exchange.incoming import read_checkpoint, write_import

    shutil.rmtree("imported", ignore_errors=True)
    write_import(read_checkpoint(Path("folder")), Path("imported"))


def write_checkpoint() -> None:
    from gpt1.train.checkpoint import Position
    from gpt1.train.checkpoint import write_checkpoint as write

    tensors = {"tokens": torch.arange(12.0).reshape(3, 4), "blocks.0.bias": torch.zeros(4)}
    Path("state").mkdir()
    for update in (10, 20):
        write(
            Path("state"),
            Position(update, 2),
            (tensors, tensors),
            "0" * 64,
            {"device": "cpu"},
        )
    put("state/seed-0/state.json", {"code": "0" * 64})


def read_checkpoint() -> None:
    from gpt1.model.weights import read_tensors
    from gpt1.train.checkpoint import newest_checkpoint
    from gpt1.train.finished import is_finished

    if found := newest_checkpoint(Path("state"), "0" * 64, accept=False):
        read_tensors(found.folder / "weights.safetensors")
        read_tensors(found.folder / "adam.safetensors")
    is_finished(Path("state/seed-0"), "0" * 64, accept=False)


def write_results() -> None:
    made_results.write_params(["rte", "stsb"], [0, 1])
    made_results.write_pretraining()
    for task, labels in (("rte", [0, 1, 1, 0, 1, 0]), ("stsb", [0.5, 1.0, 2.0, 3.0, 4.5, 5.0])):
        right = [int(label) for label in labels]
        answers = {"dev/best": right, "dev/last": right}
        made_results.write_task(task, {"dev": labels}, dict.fromkeys((0, 1), answers))
    index = json.loads(Path("data/shard/index.json").read_text())
    put("data/shard/index.json", index | {"corpus_name": "books"})
    pretrained, log = Path("data/pretrain/transformer/seed-0"), "data/logs/pretrain/transformer"
    summary = json.loads((pretrained / "summary.json").read_text())
    put(f"{pretrained}/summary.json", summary | {"parameters": {"embeddings": 12, "total": 42}})
    points = [{"time": 2.0, "update": at, "loss": 9.0, "heldout_loss": 8.0} for at in (1, 2)]
    for name in (f"{pretrained}/curve.jsonl", f"{log}/seed-0.jsonl"):
        put(name, "".join(json.dumps(point) + "\n" for point in points))
    machine = {"cpu": "c", "cores": "2", "gpu": "none", "python": "3", "torch": "2"}
    run = {"fingerprint": "f" * 16, "time": 1.0, "status": "FINISHED", "seconds": 3}
    run |= {"machine": machine, "checkout": {"git_commit": "unknown", "dirty": "unknown"}}
    put(f"{log}/seed-0.run.json", run)
    file = {"sha256": "0" * 64, "bytes": 3, "rows": 1}
    manifest = {"source": "rte", "origin": "GLUE", "licence": "research"}
    put("data/acquire/tasks/rte/manifest.json", manifest | {"files": {"train.tsv": file}})


def read_results() -> None:
    from gpt1.params.schema import read_params
    from gpt1.results.curves import curves_of
    from gpt1.results.predictions import predictions_of, sources_of

    params = read_params()
    predictions_of(params, "table2"), sources_of(params), curves_of(params)


def read_record() -> None:
    from gpt1.exchange.card import facts_about
    from gpt1.params.schema import read_params
    from gpt1.tracking.results import finished, read_training

    facts_about(Path("data/pretrain/transformer/seed-0/weights.safetensors"), None)
    for training in finished(read_params()):
        read_training(*training, {})


def read_page() -> None:
    from gpt1.results.provenance import facts, sources

    sources(), facts()


def write_finished() -> None:
    write_params()
    made_data.write_task("cola")
    for seed, score in enumerate((0.5, 0.7)):
        put(f"data/finetune/glue/cola/seed-{seed}/summary.json", {"best_dev_score": score})


def read_finished() -> None:
    from gpt1.exchange.outgoing import chosen_task
    from gpt1.inference.finished import finished
    from gpt1.params.schema import read_params

    assert task_rows()
    finished(read_params(), "cola").best()
    chosen_task(Path("cola"), None)


def write_served() -> None:
    put(
        "rows.json",
        [
            {"first": SENTENCES[0], "second": SENTENCES[1], "choices": ["a", "b", "c", "d"]},
            {"first": "x"},
        ],
    )


def read_served() -> None:
    from gpt1.base.files import read_json
    from gpt1.inference.saved import example_of
    from gpt1.tasks.table import TASKS

    rows = read_json(Path("rows.json"))
    for task in ("race", "sst2", "stsb"):
        for number, row in enumerate(rows if isinstance(rows, list) else [rows]):
            with suppress(UserError):
                vocabulary().encode(example_of(TASKS[task], row, f"row {number}").context[0])


def write_packed() -> None:
    from gpt1.results.runs import RUN, SHIPPED

    Path("run").mkdir()
    shutil.copy(SHIPPED / "town" / RUN, "run")
    report = "data/report"
    for name in ("table3", "claims"):
        shutil.copytree(SHIPPED / "town" / report / name, Path("run", report, name))
    few = Path("run", report, "table3", "predictions.parquet")
    scored = pd.read_parquet(SHIPPED / "town" / report / "predictions/predictions.parquet")
    scored.head(20).to_parquet(few)


def read_packed() -> None:
    import gpt1.results
    from gpt1.commands.table import table

    ends = [
        lambda: table("table3", run="run"),
        lambda: table("claims", run="run", format_="json"),
        lambda: table(run="run"),
        lambda: table("table3", run="run", against="run"),
        lambda: gpt1.results.load("run"),
    ]
    for end in ends:
        with suppress(UserError):
            end()


SURFACES_OF_RUNS = (
    Surface("weights", write_weights, read_weights),
    Surface("task model", write_task_model, read_task_model),
    Surface("authors", write_authors, read_authors),
    Surface("hugging face", lambda: write_folder(False), read_folder),
    Surface("hugging face, pickled", lambda: write_folder(True), read_folder),
    Surface("checkpoint", write_checkpoint, read_checkpoint),
    Surface("results", write_results, read_results),
    Surface("record", write_results, read_record, BROKEN),
    Surface("page", write_results, read_page, BROKEN),
    Surface("finished", write_finished, read_finished),
    Surface("packed run", write_packed, read_packed),
    Surface("served rows", write_served, read_served, (ValueError,)),
)
