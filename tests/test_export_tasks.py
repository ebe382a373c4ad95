"""Exports of fine-tuned tasks: a loader that needs nothing of ours answers as our model does, for
every kind of task.
"""

import ast
import json
import sys
from pathlib import Path

import pytest
import torch
from made_models import SIZES, shipped, vocabulary
from safetensors.torch import load_file

from gpt1.base.errors import UserError
from gpt1.exchange.outgoing import chosen_task, export_task_model, read_outgoing
from gpt1.exchange.read import read_model
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.model.weights import Description, read_weights, save_weights
from gpt1.tasks.shapes import Symbols, shape
from gpt1.tasks.table import TASKS

VOCABULARY = vocabulary()
TEXTS = {
    "cola": (["The lamp isn't LIT…"], []),
    "mrpc": (["the lamp", "The thing's running"], []),
    "stsb": (["a—b", "café and lamp"], []),
    "race": (["The lamp is lit.", "What is lit?"], ["the lamp", "a thing", "nothing", "café"]),
    "story_cloze": (["The lamp is lit."], ["It ran.", "It isn't."]),
}


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory):
    """Folder data/finetune with a model of two seeds for a task of every kind."""
    data = tmp_path_factory.mktemp("fine_tuned") / "data"
    for name in TEXTS:
        task = TASKS[name]
        for seed in (3, 11):
            generator = torch.Generator().manual_seed(seed)
            classifier = Classifier(
                Decoder(SIZES, VOCABULARY.size + 3, generator),
                Head(SIZES.width, task.outputs, task.combine, 0.3, generator),
            )
            with torch.no_grad():
                classifier.head.linear.bias.normal_(generator=generator)
            (folder := data / "finetune/some" / name / f"seed-{seed}").mkdir(parents=True)
            save_weights(
                folder / "weights.safetensors",
                classifier,
                Description(
                    f"transformer for {name}",
                    SIZES.model_dump(),
                    VOCABULARY.size,
                    VOCABULARY.fingerprint,
                ),
            )
            summary = {"best_dev_score": 0.5 + seed / 100, "best_update": seed, "updates": 20}
            (folder / "summary.json").write_text(json.dumps(summary))
        (about := data / "encode/some" / name).mkdir(parents=True)
        (about / "task.json").write_text(
            json.dumps(
                {
                    key: getattr(task, key)
                    for key in (
                        "kind",
                        "combine",
                        "outputs",
                        "target",
                        "labels",
                        "metric",
                        "sequences",
                    )
                }
                | {"task": name}
            )
        )
    VOCABULARY.save(data / "bpe", {})
    return data


@pytest.fixture
def own_modules():
    """Modules of a shipped folder have plain names: put things back as they were."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in {"preprocessing", "shapes"} & (set(sys.modules) - modules):
        del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_a_tasks_loader_answers_as_our_model(fine_tuned, tmp_path, own_modules, name):
    chosen = chosen_task(fine_tuned / "finetune/some" / name, None)
    assert chosen.seed == 11, "the better seed on validation"
    outgoing = read_outgoing(chosen.weights, chosen.vocabulary)
    export_task_model(outgoing, chosen.about, chosen.seed, tmp_path / "out")
    loaded = shipped(tmp_path / "out", "task_model").TaskModel(tmp_path / "out")
    task, (texts, choices) = TASKS[name], TEXTS[name]
    symbols = Symbols(VOCABULARY.start, VOCABULARY.delimiter, VOCABULARY.extract)
    shaped = shape(
        task.kind,
        [VOCABULARY.encode(text) for text in texts],
        [VOCABULARY.encode(text) for text in choices],
        symbols,
        SIZES.context,
    ).sequences
    assert loaded.sequences(texts, choices) == shaped
    classifier = Classifier(
        Decoder(SIZES, VOCABULARY.size + 3, torch.Generator()),
        Head(SIZES.width, task.outputs, task.combine, 0.1, torch.Generator()),
    )
    classifier.load_state_dict(read_weights(chosen.weights)[1])
    longest = max(map(len, shaped))
    tokens_bkt = torch.tensor([[ids + [0] * (longest - len(ids)) for ids in shaped]])
    with torch.inference_mode():
        logits_o = classifier(tokens_bkt, NO_DROPOUT, 0.0).logits_bo[0]
    assert torch.allclose(loaded.logits(texts, choices), logits_o, rtol=0, atol=1e-5)
    answer = loaded.answer(texts, choices)
    shares = logits_o.double().softmax(0)
    if task.target == "score":
        assert answer["score"] == pytest.approx(
            float(shares @ torch.arange(len(shares), dtype=torch.float64)), abs=1e-4
        )
    else:
        assert answer["label"] == task.labels[int(logits_o.argmax())]
        assert list(answer["probabilities"].values()) == pytest.approx(shares.tolist(), abs=1e-4)
    assert f"Seed 11, {task.metric} 0.6100 on dev" in (tmp_path / "out/README.md").read_text()


def test_a_tasks_body_keeps_its_bits(fine_tuned, tmp_path):
    chosen = chosen_task(fine_tuned / "finetune/some/cola", 3)
    export_task_model(
        read_outgoing(chosen.weights, chosen.vocabulary),
        chosen.about,
        chosen.seed,
        tmp_path / "out",
    )
    found, ours = load_file(tmp_path / "out/model.safetensors"), read_weights(chosen.weights)[1]
    assert torch.equal(found["head.weight"], ours["head.linear.weight"])
    assert torch.equal(found["head.bias"], ours["head.linear.bias"])
    assert torch.equal(
        found["transformer.h.2.mlp.c_fc.weight"], ours["decoder.blocks.2.expand.weight"].T
    )
    assert torch.equal(found["transformer.tokens_embed.weight"], ours["decoder.tokens"])
    with pytest.raises(
        UserError, match=r"the tensors of a language model alone, found 'head\.bias' and 1 more"
    ):
        read_model(tmp_path / "out", None)


def test_what_a_folder_ships_imports_nothing_of_ours(fine_tuned, tmp_path):
    chosen = chosen_task(fine_tuned / "finetune/some/cola", None)
    export_task_model(
        read_outgoing(chosen.weights, chosen.vocabulary),
        chosen.about,
        chosen.seed,
        tmp_path / "out",
    )
    shipped_files = sorted((tmp_path / "out").glob("*.py"))
    assert [path.name for path in shipped_files] == [
        "preprocessing.py",
        "shapes.py",
        "task_model.py",
    ]
    known = {
        *sys.stdlib_module_names,
        "torch",
        "transformers",
        "safetensors",
        "ftfy",
        "spacy",
        "preprocessing",
        "shapes",
    }
    for path in shipped_files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert {name.partition(".")[0] for name in names} <= known, (
                f"{path.name} imports {names}"
            )


def test_a_seed_or_task_that_is_not_there(fine_tuned):
    with pytest.raises(UserError, match="expected one of the seeds 3, 11, found 5"):
        chosen_task(fine_tuned / "finetune/some/cola", 5)
    with pytest.raises(UserError, match="expected a task that has been fine-tuned"):
        chosen_task(Path("nothing"), None)
