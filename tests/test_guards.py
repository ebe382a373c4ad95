"""Updates that go wrong: numbers that are not finite, spikes of the loss, memory that runs out."""

import json

import pytest
import torch
from made_pretraining import BATCH, HELDOUT, ROWS, TINY, Run, made_recipe

from gpt1.base.errors import UserError
from gpt1.model.gpt import Decoder
from gpt1.train import optim
from gpt1.train.engine import PlainEngine
from gpt1.train.guards import Guard, MicroBatchSize, is_out_of_memory, is_spike
from gpt1.train.objectives import Pretraining


@pytest.fixture(scope="module")
def recipe():
    return made_recipe()


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("undisturbed"), recipe)
    run.go()
    return run


def points(run):
    return [json.loads(line) for line in (run.folder / "curve.jsonl").read_text().splitlines()]


def test_an_update_that_is_not_finite_is_skipped_counted_and_changes_nothing(
    recipe, tmp_path, capsys
):
    run = Run(tmp_path, recipe, spoiled={4})
    assert run.go().skipped_updates == 1
    assert [point for point in points(run) if point["update"] == 4] == [
        {"update": 4, "tokens": 4 * BATCH * 8, "skipped_updates": 1}
    ]
    assert (4, {"tokens": 4 * BATCH * 8, "skipped_updates": 1}) in run.reported
    snapshots = [
        (tmp_path / f"snapshots/0000000{update}.safetensors").read_bytes() for update in (3, 4, 5)
    ]
    assert snapshots[0] == snapshots[1] != snapshots[2]
    assert (
        "pretrain transformer/seed-0: update 4 skipped, its loss is nan, gradient_norm is nan (1 skipped"
        " so far)" in capsys.readouterr().err
    )


@pytest.mark.slow
@pytest.mark.parametrize("spoiled", [{1}, {4, 5}, {3, 6, 12}], ids=str)
def test_a_run_with_skipped_updates_goes_on_from_a_checkpoint_as_if_undisturbed(
    recipe, tmp_path, spoiled
):
    whole, stopped = (
        Run(tmp_path / name, recipe, spoiled=spoiled) for name in ("whole", "stopped")
    )
    outcome = whole.go()
    stopped.stopped(HELDOUT + 4 * BATCH + 2, "at update [345] of .*checkpoint saved")
    assert stopped.go()[:2] == outcome[:2]
    assert stopped.results() == whole.results()


def test_after_a_skipped_update_adam_counts_steps_and_the_schedule_counts_updates(recipe):
    usual, later = optim.rates(recipe, 7, 100, 0.1), optim.rates(recipe, 9, 100, 0.1, 2)
    assert (later.epsilon, later.weight_decay) == (usual.epsilon, usual.weight_decay)
    assert (
        later.learning_rate == optim.rates(recipe, 9, 100, 0.1).learning_rate != usual.learning_rate
    )


def test_five_in_a_row_end_the_run_with_the_last_good_checkpoint_and_the_batches_written_down(
    recipe, undisturbed, tmp_path
):
    run = Run(tmp_path, recipe, spoiled=range(5, 10))
    with pytest.raises(
        UserError,
        match=r"updates 5 to 9 were skipped .* loss is nan.* checkpoint saved; .*not-finite\.json",
    ) as told:
        run.go()
    assert "\n" not in str(told.value)
    assert run.checkpoints() == [4]
    found = json.loads((tmp_path / "not-finite.json").read_text())["updates"]
    assert [row["update"] for row in found] == [5, 6, 7, 8, 9]
    assert [row["batch"] for row in found] == [
        [100 * update + row for row in range(BATCH)] for update in range(5, 10)
    ]
    assert found[0]["not_finite"] == {"loss": "nan", "gradient_norm": "nan"}
    (tmp_path / "not-finite.json").unlink()
    run.spoiled = ()
    run.go()
    assert run.results() == undisturbed.results(), "what went wrong left something behind"


def test_four_in_a_row_do_not_end_the_run(recipe, tmp_path):
    assert Run(tmp_path, recipe, spoiled={2, 3, 4, 5, 7, 8, 9, 10}).go().skipped_updates == 8


def test_a_gradient_that_is_not_finite_takes_no_step(recipe):
    engine = PlainEngine(
        Pretraining(Decoder(TINY, ROWS, torch.Generator().manual_seed(0)), "fp32"), recipe
    )
    before = {name: weights.detach().clone() for name, weights in engine.state()[0].items()}
    for weights in engine.objective.parameters():
        weights.grad = torch.full_like(weights, float("inf"))
    told = torch.ones(2, dtype=torch.float64)
    assert engine.step(optim.rates(recipe, 1, 10, 0.1), told).read() == [1, 1, float("inf")]
    assert all(torch.equal(before[name], weights) for name, weights in engine.state()[0].items())
    assert all(weights.grad is None for weights in engine.objective.parameters())
    assert not any(moment.any() for moment in engine.state()[1].values()), (
        "the running averages have taken it in"
    )
    assert all(state["step"] == 0 for state in engine.optimizer.state.values())


@pytest.mark.parametrize(
    ("before", "loss", "spike"),
    [
        ([3.0] * 100, 4.1, True),
        ([3.0] * 100, 3.9, False),
        ([3.0] * 99, 9.0, False),
        ([2.0, 4.0] * 50, 8.9, False),
        ([2.0, 4.0] * 50, 9.1, True),
    ],
)
def test_a_spike_is_six_deviations_and_a_nat_above_a_hundred_updates(before, loss, spike):
    assert is_spike(loss, before) == spike


def test_spikes_are_told_once_a_minute(capsys):
    guard = Guard("pretrain transformer", 0, True)
    for update in range(1, 111):
        assert guard.passes(update, {"loss": 9.0 if update in (105, 107) else 3.0})
    assert (
        capsys.readouterr().err
        == "pretrain transformer: the loss of update 105 is 9.000, a spike: the 100 before it have"
        " 3.000 on average\n"
    )


def too_much(rows):
    """Memory that ends where more than so many rows are to go through at once: asks for what no
    machine has.
    """
    return lambda _, windows_bt: torch.empty(2**60) if len(windows_bt) > rows else None


def test_where_memory_runs_out_half_the_rows_give_the_same_weights(recipe, tmp_path, capsys):
    whole, halved = (
        Run(tmp_path / "whole", recipe, micro_batch=6),
        Run(tmp_path / "halved", recipe, micro_batch=6),
    )
    whole.go()
    halved.go(too_much(2))
    assert [line for line in capsys.readouterr().err.splitlines() if "memory" in line] == [
        f"update 1: memory ran out; it is taken again with {rows} rows at a time, as are those to"
        f" come (GPT1_MICRO_BATCH={rows} does so from the start)"
        for rows in (3, 1)
    ]
    for one, other in zip(points(whole), points(halved), strict=True):
        assert one == pytest.approx(other, rel=1e-5)
    for (name, weights), other in zip(
        whole.network.named_parameters(), halved.network.parameters(), strict=True
    ):
        torch.testing.assert_close(weights, other, rtol=1e-4, atol=1e-4, msg=name)


def test_a_row_too_much_for_memory_ends_with_one_line(recipe, tmp_path):
    with pytest.raises(
        UserError,
        match=(
            r"update 1: one row at a time already takes more memory than there is"
            r" .*DefaultCPUAllocator"
        ),
    ):
        Run(tmp_path, recipe).go(too_much(0))


def test_among_several_processes_the_user_is_told_the_setting(recipe):
    engine = PlainEngine(
        Pretraining(Decoder(TINY, ROWS, torch.Generator().manual_seed(0)), "fp32"), recipe
    )
    engine.processes, engine.rank = 2, 1

    with pytest.raises(
        UserError,
        match=(
            r"4 rows at a time take more memory than process 1 has .*set GPT1_MICRO_BATCH=2 or"
            r" lower"
        ),
    ):
        MicroBatchSize(4).halve(engine, 3, MemoryError())


def test_other_errors_are_not_taken_for_want_of_memory():
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
