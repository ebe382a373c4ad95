"""Batches, accumulation, the two engines, checkpoints: however the global batch is shared out, the
numbers are the same.
"""

import json

import numpy as np
import pytest
import torch
from made_data import paper, tiny_sizes

from gpt1.base.errors import UserError
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.train import batches, optim
from gpt1.train.batches import Examples
from gpt1.train.engine import DEEPSPEED, Engine, deepspeed_config
from gpt1.train.finetuning import logits_of
from gpt1.train.loop import MicroBatch, Stop, seed_for, take_update
from gpt1.train.objectives import Finetuning, Pretraining

TINY = tiny_sizes()
ROWS, UPDATES, BATCH = 30, 20, 8
NOISE = 1e-6  # a gradient below it is rounding, of which Adam makes a whole step


@pytest.fixture
def recipe():
    return paper().pretrain.model_copy(
        update={"dropout": 0.0, "precision": "fp32", "batch_size": BATCH, "learning_rate": 1e-3}
    )


def pair_examples(count, sequences=2, seed=0):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(3, 20, size=count * sequences)
    parts = [np.concatenate([[27], generator.integers(0, 27, size=n - 2), [29]]) for n in lengths]
    return Examples(
        np.concatenate(parts).astype(np.uint16),
        np.concatenate([[0], np.cumsum(lengths)]),
        generator.integers(0, 3, size=count),
        sequences,
    )


def classifier(seed=0, combine="sum"):
    generator = torch.Generator().manual_seed(seed)
    return Classifier(Decoder(TINY, ROWS, generator), Head(16, 3, combine, 0.02, generator))


def windows(update):
    return np.random.default_rng(update).integers(0, ROWS, size=(BATCH, 25))


def run_pretraining(recipe, micro_batch, updates=UPDATES, same=False):
    """Losses and final weights of a few updates on made windows, and where gradients were never
    just rounding.
    """
    decoder = Decoder(TINY, ROWS, torch.Generator().manual_seed(0))
    engine = Engine(Pretraining(decoder, recipe.precision), recipe)
    losses, loud = (
        [],
        {
            name: torch.ones_like(value, dtype=torch.bool)
            for name, value in decoder.named_parameters()
        },
    )
    step = engine.step

    def watched(rates):
        for name, value in decoder.named_parameters():
            loud[name] &= value.grad.abs() > NOISE
        return step(rates)

    engine.step = watched
    for update in range(1, updates + 1):
        rows = windows(1 if same else update)
        shared = [
            MicroBatch(len(part) / BATCH, torch.from_numpy(rows[part]))
            for part in batches.split_batch(np.arange(BATCH), 0, 1, micro_batch)
        ]
        losses.append(
            take_update(
                engine, shared, 0.0, 5, update, optim.rates(recipe, update, updates, 0.1), Stop()
            )["loss"]
        )
    return (
        losses,
        {name: value.detach().clone() for name, value in decoder.named_parameters()},
        loud,
    )


def test_accumulated_micro_batches_are_one_batch(recipe):
    whole, accumulated = run_pretraining(recipe, 8), run_pretraining(recipe, 4)
    np.testing.assert_allclose(accumulated[0], whole[0], rtol=1e-6)
    for name, value in whole[1].items():
        loud = whole[2][name]
        torch.testing.assert_close(accumulated[1][name][loud], value[loud], rtol=0, atol=5e-5)
    assert sum(int(mask.sum()) for mask in whole[2].values()) > 3000


def test_loss_falls_and_first_loss_is_that_of_chance(recipe):
    fast = recipe.model_copy(update={"learning_rate": 1e-2})
    losses = run_pretraining(fast, 8, updates=60, same=True)[0]
    assert losses[0] == pytest.approx(np.log(ROWS), abs=0.1)
    assert losses[-1] < 0.8 * losses[0]


def test_every_epoch_shows_each_row_once_in_another_order():
    seen = [batches.batch_rows(10, 3, 7, update) for update in range(1, 7)]
    for epoch in (seen[:3], seen[3:]):
        assert len(set(np.concatenate(epoch).tolist())) == 9, "the incomplete last batch is dropped"
    assert not np.array_equal(np.concatenate(seen[:3]), np.concatenate(seen[3:]))
    assert np.array_equal(batches.batch_rows(10, 3, 7, 5), seen[4])
    assert not np.array_equal(batches.batch_rows(10, 3, 8, 1), seen[0])


def test_shares_make_up_the_batch():
    for processes, micro_batch in [(1, 3), (2, 4), (4, 1)]:
        parts = [
            part
            for rank in range(processes)
            for part in batches.split_batch(np.arange(8), rank, processes, micro_batch)
        ]
        assert sorted(np.concatenate(parts).tolist()) == list(range(8))
        assert max(map(len, parts)) <= micro_batch


def test_padding_is_on_the_right_and_lengths_tell_of_it():
    examples = Examples(
        np.array([9, 1, 7, 9, 7, 9, 1, 2, 3, 7], dtype=np.uint16),
        np.array([0, 3, 5, 10]),
        np.array([1, 0, 2]),
        1,
    )
    batch = batches.pad(examples, np.array([2, 1]))
    assert batch.tokens_bkt.tolist() == [[[9, 1, 2, 3, 7]], [[9, 7, 0, 0, 0]]]
    assert batch.lengths_bk.tolist() == [[5], [2]]
    assert batch.labels_b.tolist() == [2, 0]


def test_losses_and_logits_do_not_depend_on_the_company(recipe):
    model, examples = classifier(), pair_examples(12)
    objective = Finetuning(model, 0.0, 0.5, "fp32")
    together = objective.parts(batches.pad(examples, np.arange(12)))
    for row in range(12):
        alone = objective.parts(batches.pad(examples, np.array([row])))
        torch.testing.assert_close(together.logits_bo[row : row + 1], alone.logits_bo)
        torch.testing.assert_close(
            together.lm_loss.losses_n[2 * row : 2 * row + 2], alone.lm_loss.losses_n
        )
        torch.testing.assert_close(together.task_losses_b[row : row + 1], alone.task_losses_b)


def test_evaluation_is_in_file_order_whatever_the_batches(recipe):
    model, examples = classifier(), pair_examples(11)
    objective = Finetuning(model, 0.0, 0.5, "fp32")
    engine = Engine(objective, recipe)
    expected = model(batches.pad(examples, np.arange(11)).tokens_bkt).logits_bo.detach().numpy()
    for most_tokens in (1, 100, 1000):
        np.testing.assert_allclose(
            logits_of(engine, objective, examples, most_tokens, Stop()), expected, atol=1e-6
        )


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_evaluation_batches_hold_every_row_once_and_no_more_tokens_than_said(processes):
    for most_tokens in [1, 30, 90, 10_000]:
        examples = pair_examples(23)
        shared = [
            batches.evaluation_batches(examples, rank, processes, most_tokens)
            for rank in range(processes)
        ]
        assert len({len(own) for own in shared}) == 1, "processes would wait for one another"
        assert sorted(np.concatenate([rows for own in shared for rows in own])) == list(range(23))
        for rows in (rows for own in shared for rows in own if len(rows) > 1):
            assert len(rows) * examples.lengths(rows).max() * 2 <= most_tokens + 40, (
                "a share may have one row more than its part"
            )


def test_fine_tuning_batches_sorted_by_length_are_one_batch(recipe):
    examples, found = pair_examples(8), []
    for micro_batch in (8, 3):
        engine = Engine(Finetuning(classifier(), 0.0, 0.5, "fp32"), recipe)
        rows = batches.by_length(examples, np.arange(8))
        parts = [
            MicroBatch(len(part) / 8, batches.pad(examples, rows[part]))
            for part in batches.split_batch(np.arange(8), 0, 1, micro_batch)
        ]
        found.append(
            [
                take_update(
                    engine, parts, 0.0, 0, update, optim.rates(recipe, update, 5, 0.2), Stop()
                )
                for update in range(1, 5)
            ]
        )
    for whole, accumulated in zip(*found, strict=True):
        assert whole.keys() == {"loss", "task_loss", "lm_loss", "learning_rate", "gradient_norm"}
        assert all(
            accumulated[name] == pytest.approx(value, rel=2e-6) for name, value in whole.items()
        )


def test_without_lambda_there_is_no_language_model_loss(recipe):
    losses = Finetuning(classifier(), 0.0, 0.0, "fp32")(
        batches.pad(pair_examples(4), np.arange(4)), 0.0
    )
    assert losses.keys() == {"loss", "task_loss"}
    assert losses["loss"] == losses["task_loss"]


def test_seeds_of_the_matrix_and_of_micro_batches_differ():
    micro_batches = [
        seed_for(3, 1, rank + 1, number + 1) for rank in range(3) for number in range(3)
    ]
    seeds = [seed_for(3, 1), seed_for(3, 2), seed_for(4, 1), *micro_batches]
    assert len(set(seeds)) == len(seeds)


def test_settings_of_deepspeed_that_no_training_bears_are_one_line(
    recipe, request, tmp_path, monkeypatch
):
    ours = json.loads((request.config.rootpath / DEEPSPEED).read_text())
    monkeypatch.chdir(tmp_path)
    DEEPSPEED.parent.mkdir()

    def config(**changed):
        DEEPSPEED.write_text(json.dumps(ours | changed))
        return deepspeed_config(recipe, 2)

    assert config()["gradient_accumulation_steps"] == 2
    assert config(gradient_clipping=recipe.max_gradient_norm) == config()
    for changed, line in [
        ({"zero_optimization": {"stage": 3}}, "found zero_optimization.stage 3: leave it out"),
        ({"bf16": {"enabled": "auto"}}, "found bf16: leave it out"),
        ({"gradient_accumulation_steps": 4}, "found gradient_accumulation_steps: leave it out"),
        ({"gradient_clipping": "1.0", "scheduler": {}}, "found scheduler, gradient_clipping:"),
        ({"zero_optimization": 1}, "expected JSON"),
    ]:
        with pytest.raises(UserError, match=line):
            config(**changed)
