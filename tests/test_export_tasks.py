"""Exports of fine-tuned tasks: transformers' own classes and pipelines answer as our model does,
for every kind of task.
"""

import ast
import sys
from contextlib import chdir
from functools import cache
from pathlib import Path

import pytest
import torch
from made_data import ABOUT
from made_models import SIZES, run_example, save_task_model, vocabulary

from gpt1.base.files import write_json
from gpt1.exchange.outgoing import chosen_task, export_task_model
from gpt1.inference.saved import load_model
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.rows import Example

VOCABULARY = vocabulary()
LONG = "The lamp isn't lit, it's a <unk> thing. " * 12
TEXTS = {  # the last longer than the context
    "cola": [["The lamp isn't LIT…"], ["a lamp"], [LONG]],
    "mnli": [["the lamp", "The thing's running"], [LONG, "It's lit."], ["It's lit.", LONG]],
    "mrpc": [["the lamp", "The thing's running"], ["lit", "<unk>"], [LONG, LONG[7:]]],
    "stsb": [["a—b", "café and lamp"], ["lit", "_start_"], [LONG, "lit"]],
    "race": [["The lamp is lit.", "What is lit?"], [LONG, LONG]],
    "story_cloze": [["The lamp is lit."], [LONG]],
}
CHOICES = ["the lamp", "It isn't.", LONG, "café"]


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory):
    """Folder data/finetune with a model of two seeds for a task of every kind."""
    data = tmp_path_factory.mktemp("fine_tuned") / "data"
    for name in TEXTS:
        task = TASKS[name]
        for seed in (3, 11):
            folder = data / "finetune/some" / name / f"seed-{seed}"
            save_task_model(folder / "weights.safetensors", task, SIZES, VOCABULARY, seed, 0.3)
            summary = {"best_dev_score": 0.5 + seed / 100, "best_update": seed, "updates": 20}
            write_json(folder / "summary.json", summary)
        about = {key: getattr(task, key) for key in (*ABOUT, "labels")}
        write_json(data / "encode/some" / name / "task.json", about | {"task": name})
    VOCABULARY.save(data / "bpe", {})
    return data


@pytest.fixture(scope="module")
def exported(fine_tuned, tmp_path_factory):
    """A task's export of its best seed, and what our own model answers with the same weights."""

    @cache
    def export(name):
        folder = tmp_path_factory.mktemp("exports") / name
        with chdir(fine_tuned.parent):
            weights, about = chosen_task(name, None)
            assert about["seed"] == 11, "the better seed on validation"
            export_task_model(weights, about, folder)
            return str(folder), load_model(weights, Path("data/bpe"))

    return export


def auto(kind, folder):
    """The tokenizer and the model of a folder, as anyone loads them."""
    import transformers

    return (
        transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True),
        getattr(transformers, kind).from_pretrained(folder, trust_remote_code=True).eval(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TEXTS if TASKS[name].combine != "choose"])
def test_the_pipeline_answers_raw_texts_in_padded_batches_as_we_do(exported, name):
    from transformers import pipeline

    folder, ours = exported(name)
    classify = pipeline("text-classification", model=folder, trust_remote_code=True)
    keys = ("text", "text_pair")[: len(TEXTS[name][0])]
    asked = [dict(zip(keys, texts, strict=True)) for texts in TEXTS[name]]
    answers = classify(asked, top_k=None, batch_size=len(asked))
    for texts, answer in zip(TEXTS[name], answers, strict=True):
        expected = ours.answer(Example(tuple(texts)))
        found = {one["label"]: one["score"] for one in answer}
        wanted = expected["probabilities"]
        if "score" in expected:
            wanted = {"score": expected["score"]}
        assert found == pytest.approx(wanted, abs=1e-5), texts


@pytest.mark.slow
@pytest.mark.parametrize("name", ["race", "story_cloze"])
def test_choices_are_answered_as_we_do(exported, name):
    folder, ours = exported(name)
    tokenizer, model = auto("AutoModelForMultipleChoice", folder)
    for texts in TEXTS[name]:
        choices = CHOICES[: len(ours.task.labels)]
        batch = tokenizer.choices(texts, choices)
        with torch.inference_mode():
            found = model(**batch).logits[0]
        expected = ours.answer(Example(tuple(texts), tuple(choices)))
        assert found.softmax(0).tolist() == pytest.approx(
            list(expected["probabilities"].values()), abs=1e-5
        )
        if len(texts) == 1:  # as transformers' examples make the input of a multiple choice
            pairs = tokenizer(texts * len(choices), choices, padding=True, return_tensors="pt")
            assert torch.equal(pairs.input_ids, batch.input_ids[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("mrpc", marks=pytest.mark.long), "race"])
def test_a_cards_example_runs_in_its_folder(exported, name):
    printed = run_example(Path(exported(name)[0]))
    assert ("paraphrase" if name == "mrpc" else "tensor([[0.") in printed


@pytest.mark.slow
def test_no_class_answers_without_the_shipped_code_or_for_other_texts(exported):
    """A head drawn by chance would answer as surely as the right one."""
    from transformers import AutoModelForSequenceClassification

    folder, _ = exported("mrpc")
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=False)
    tokenizer, model = auto("AutoModelForSequenceClassification", folder)
    with pytest.raises(ValueError, match="similarity cannot have 1 parts"):
        tokenizer("one text")
    with pytest.raises(ValueError, match="make them with the tokenizer of the same folder"):
        model(torch.tensor([[1, 2, 3]]))


def test_what_a_folder_ships_imports_nothing_of_ours(exported):
    paths = {path.stem: path for path in Path(exported("cola")[0]).glob("*.py")}
    shipped = {"modeling_gpt1", "preprocessing", "shapes", "tokenization_gpt1"}
    assert paths.keys() == shipped
    known = {*sys.stdlib_module_names, "torch", "transformers", "tokenizers", "ftfy", "spacy"}
    for path in paths.values():
        for node in ast.walk(ast.parse(path.read_text())):
            named = node.names if isinstance(node, ast.Import) else ()
            names = [alias.name for alias in named]
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert {name.partition(".")[0] for name in names} <= known | shipped, path.name
