"""Fine-tuning by CUDA graphs, as far as a CPU shows it: batches are padded to few shapes and their
inputs copied to where a recording has them, and no number changes. What a GPU is asked to do is
counted in test_launches.py.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt1.model.layout import few
from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.train import graphs
from gpt1.train.batches import few_lengths, pad
from gpt1.train.finetuning import FinetuningRun, finetune_seed
from gpt1.train.launch import Machine
from gpt1.train.objectives import SHAPES_AN_OCTAVE, Finetuning

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import task_lengths
from made_up_tasks import fresh_classifier, made_up_task, recipe_of
from our_step import PROFILES

MOST_SHAPES = 16
EPOCHS, BATCH, CONTEXT = 3, 32, 512


@pytest.fixture(scope="module")
def params():
    profile, overrides, _ = PROFILES["tiny"]
    return validate(compose(profile, overrides))


@pytest.fixture
def losses_of(params, tmp_path):
    """Losses of each update of two epochs of a made-up task, by a machine of these settings."""

    def trained(task, **machine):
        recipe = recipe_of(params, 2, "fp32").model_copy(
            update={"log_updates": 1, "dropout": 0.1, "batch_size": 8}
        )
        combine = "choose" if task == "race" else "single"
        classifier = fresh_classifier(params, 500, 2, 0, combine)
        made = made_up_task(task, 0.01, params.model.context, 500)
        curve = tmp_path / "curve.jsonl"
        here = Machine("cpu", 1, 0, 0, 1, machine.pop("rows", None), False, False, **machine)
        run = FinetuningRun(classifier, recipe, made, 0, here, curve, task)
        outcome = finetune_seed(run, lambda *_: None)
        points = [json.loads(line) for line in curve.read_text().splitlines()]
        return [point["loss"] for point in points if "loss" in point], outcome

    return trained


@pytest.mark.parametrize(("task", "rows"), [("rte", None), ("rte", 3), ("race", None)])
def test_graphs_change_no_number(losses_of, task, rows):
    """Whole batches and micro-batches, dropout on; evaluations go on as ever."""
    plain, expected = losses_of(task, rows=rows)
    found, outcome = losses_of(task, rows=rows, compiled=True, graphs=True)
    assert len(plain) == outcome.updates == 16
    np.testing.assert_allclose(found, plain, rtol=1e-5)
    assert outcome.best_update == expected.best_update
    for split, logits in expected.logits.items():
        np.testing.assert_allclose(outcome.logits[split], logits, atol=1e-4)
    assert (expected.speed["graphs"], outcome.speed["graphs"]) == ("no", "yes")


@pytest.mark.parametrize("task", task_lengths.OFFICIAL)
def test_an_official_task_has_few_shapes(task):
    """Over three epochs, so that each is compiled, and recorded, for a few."""
    size = task_lengths.OFFICIAL[task].train
    lengths, shapes = task_lengths.lengths_of(task, size, 0), set()
    for epoch in range(EPOCHS):
        order = np.random.default_rng(epoch).permutation(size)[: size // BATCH * BATCH]
        batches = lengths[order].reshape(-1, BATCH * lengths.shape[1])
        pairs = np.unique(np.stack([batches.max(1), batches.sum(1)]), axis=1).T.tolist()
        for longest, tokens in pairs:
            t = few_lengths(longest, CONTEXT)
            shapes.add((t, min(few(tokens, SHAPES_AN_OCTAVE), batches.shape[1] * t)))
    assert len(shapes) <= MOST_SHAPES


def test_batches_are_padded_to_those_shapes(params):
    """Tokens of whatever length make few numbers of places, and as many of targets."""
    context, seen = params.model.context, set()
    examples = made_up_task("rte", 0.1, context, 500).splits["train"]
    classifier = fresh_classifier(params, 500, 2, 0)
    objective = Finetuning(classifier, 0.1, 0.5, "fp32", few_shapes=True)
    for rows in np.array_split(np.arange(len(examples)), 30):
        batch = pad(examples, rows[:8], few_up_to=context)
        ready = objective.ready(batch, graphs.Dropout(0.1, 0, rows[:8]), with_keys=True)
        m, t = len(ready.places.real.places_m), batch.tokens_bkt.shape[2]
        tokens = int(batch.lengths_bk.sum())
        assert t == few_lengths(int(batch.lengths_bk.max()), context)
        assert m == min(few(tokens, SHAPES_AN_OCTAVE), 8 * t)
        assert tokens <= m < 1.5 * tokens
        assert len(ready.targets.places_m) == min(m, 8 * (t - 1))
        seen.add((t, m))
    assert len(seen) < 8


def test_a_training_that_cannot_be_recorded_goes_on_without(losses_of, monkeypatch, capsys):
    """And one whose memory runs out gives up its graphs first, then halves its micro-batches."""
    plain, _ = losses_of("rte")
    replay, errors = graphs.Recording.replay, []

    def fails(self, ready):
        if len(errors) < 1:
            errors.append(torch.OutOfMemoryError("CUDA out of memory"))
            raise errors[-1]
        return replay(self, ready)

    monkeypatch.setattr(graphs.Recording, "replay", fails)
    found, outcome = losses_of("rte", compiled=True, graphs=True)
    np.testing.assert_allclose(found, plain, rtol=1e-5)
    said = capsys.readouterr().err
    assert "goes on without CUDA graphs (OutOfMemoryError: CUDA out of memory)" in said
    assert "rows at a time" not in said
    assert outcome.speed["micro_batch"] == "8"


def test_several_processes_have_no_graphs(params):
    from gpt1.train.speed import speed_up

    network = fresh_classifier(params, 500, 2, 0).decoder
    several = Machine("cpu", 2, 0, 0, 1, None, False, False, compiled=True, graphs=True)
    assert speed_up(network, params.finetune, several, 0)["graphs"] == "no"
