"""A training that is stopped within an update or an evaluation, at places known to the micro-batch,
and goes on as if undisturbed; updates that go wrong.
"""

import os
import re
import signal
import threading

import numpy as np
import pytest
import torch
from made_pretraining import BATCH, HELDOUT, UPDATES, Run, made_recipe
from safetensors.numpy import load_file

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.train import checkpoint


@pytest.fixture(scope="module")
def recipe():
    return made_recipe()


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("undisturbed"), recipe)
    outcome = run.go()
    return outcome.heldout, run.results()


# micro-batches of updates 1 to 3 and of the first held-out evaluation, which follows update 3
THREE, EVALUATED = 3 * BATCH, 3 * BATCH + HELDOUT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask_at", "at"),
    [
        pytest.param(2 * BATCH + 1, 2, id="first micro-batch of an update"),
        pytest.param(2 * BATCH + 3, 2, id="amid an update"),
        pytest.param(THREE + 2, 3, id="amid held-out evaluation"),
        pytest.param(EVALUATED + 2, 3, id="right after held-out evaluation"),
    ],
)
def test_a_stopped_update_or_evaluation_is_dropped_and_made_anew(
    recipe, undisturbed, tmp_path, ask_at, at, capsys
):
    run = Run(tmp_path, recipe)
    run.stopped(
        ask_at,
        f"interrupted at update {at} of {UPDATES}, what came after it is dropped: checkpoint saved;"
        " run the same",
        capsys,
    )
    assert run.checkpoints() == [at]
    weights, snapshot = (
        load_file(tmp_path / path)
        for path in (f"update-{at:08d}/weights.safetensors", f"snapshots/{at:08d}.safetensors")
    )
    for name in snapshot:
        assert np.array_equal(weights[f"decoder.{name}"], snapshot[name]), (
            "the checkpoint is not that of the last whole update"
        )
    assert run.go().heldout == undisturbed[0]
    assert run.results() == undisturbed[1]


def test_stopped_again_and_again_and_at_last_in_the_last_evaluation(
    recipe, undisturbed, tmp_path, capsys
):
    run = Run(tmp_path, recipe)
    run.stopped(2, "at update 0 of .* is dropped: nothing to save yet; run the same", capsys)
    assert run.checkpoints() == []
    run.stopped(THREE + 2, "at update 3", capsys)
    run.stopped(2, "at update 3", capsys)  # again in the evaluation
    assert run.checkpoints() == [3]
    run.stopped(
        2 * HELDOUT + 4 * BATCH - 1, "at update 6", capsys
    )  # the evaluations of updates 3 and 6 before it
    run.stopped(HELDOUT + 2, "at update 6", capsys)
    run.stopped(2 * HELDOUT + 6 * BATCH + 3, f"at update {UPDATES} of {UPDATES}", capsys)
    assert run.go().heldout == undisturbed[0]
    assert run.calls == HELDOUT, "only the last evaluation was left to do"
    assert run.results() == undisturbed[1]


@pytest.mark.parametrize("place", ["save_file", "write_json"])
def test_a_signal_amid_a_checkpoint_lets_it_be_written_whole(
    recipe, undisturbed, tmp_path, monkeypatch, place, capsys
):
    run, write, asked = (
        Run(tmp_path, recipe.model_copy(update={"checkpoint_minutes": 0.0})),
        getattr(checkpoint, place),
        threading.Event(),
    )

    def ask_and_write(*parts):
        os.kill(os.getpid(), signal.SIGINT)
        asked.set()
        write(*parts)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, place, ask_and_write)
        with pytest.raises(SystemExit, match="130"):
            run.go()
    assert "checkpoint saved" in capsys.readouterr().err
    assert asked.is_set()
    assert 1 in run.checkpoints(), "the checkpoint in progress was not written to its end"
    run.go()
    assert run.results() == undisturbed[1]


def test_the_first_update_that_is_not_finite_ends_the_run_and_names_its_rows(tmp_path):
    often = made_recipe().model_copy(update={"checkpoint_minutes": 0.0})
    undisturbed = Run(tmp_path / "undisturbed", often)
    undisturbed.go()
    run = Run(tmp_path / "run", often, spoiled={5})
    rows = ", ".join(str(500 + row) for row in range(BATCH))
    with pytest.raises(
        UserError,
        match=rf"update 5 \(rows {rows} of the data\): expected finite numbers, found loss is nan,"
        " gradient_norm is nan; lower the learning rate",
    ):
        run.go()
    assert run.checkpoints()[-1] in (3, 4), "at most one checkpoint is behind"
    run.spoiled = ()
    run.go()
    assert run.results() == undisturbed.results(), "what went wrong left something behind"


def test_a_heldout_loss_that_no_perplexity_holds_ends_the_run_too(tmp_path):
    run = Run(tmp_path, made_recipe().model_copy(update={"learning_rate": 30.0}))
    with pytest.raises(UserError, match=r"after update 3: expected finite .*_perplexity is inf"):
        run.go()


def test_too_little_memory_halves_the_micro_batch_and_a_resumed_run_keeps_it(tmp_path, capsys):
    """Torch's own error, raised by the test: a CPU has another for it."""

    def at_most(rows):
        def refuse(_call, windows_bt):
            if torch.is_grad_enabled() and len(windows_bt) > rows:
                raise torch.OutOfMemoryError("CUDA out of memory")

        return refuse

    quick = made_recipe().model_copy(update={"checkpoint_minutes": 1e-9})
    run = Run(tmp_path, quick, micro_batch=None)
    outcome = run.go(at_most(2))
    said = capsys.readouterr().err
    assert re.findall(r"out of memory at update (\d+): (\d) rows", said) == [("1", "3"), ("1", "2")]
    assert outcome.speed["micro_batch"] == "6, 3 from update 1, 2 from update 1"
    assert read_json(max(tmp_path.glob("update-*")) / "state.json")["machine"]["micro_batch"] == 2
    assert Run(tmp_path, quick, micro_batch=None).go().speed["micro_batch"] == "2"
    assert "out of memory" not in capsys.readouterr().err
    with pytest.raises(torch.OutOfMemoryError):
        Run(tmp_path / "one row", quick).go(at_most(0))
