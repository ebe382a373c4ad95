"""Updates that go wrong: numbers that are not finite, memory that runs out."""

import pytest
import torch
from made_pretraining import BATCH, ROWS, TINY, Run, made_recipe

from gpt1.base.errors import UserError
from gpt1.model.gpt import Decoder
from gpt1.train import optim
from gpt1.train.engine import PlainEngine
from gpt1.train.loop import is_out_of_memory
from gpt1.train.objectives import Pretraining


@pytest.fixture(scope="module")
def recipe():
    return made_recipe()


def test_the_first_update_that_is_not_finite_ends_the_run_with_the_one_before_it_saved(
    recipe, tmp_path
):
    undisturbed = Run(tmp_path / "undisturbed", recipe)
    undisturbed.go()
    run = Run(tmp_path / "run", recipe, spoiled={5})
    rows = ", ".join(str(500 + row) for row in range(BATCH))
    with pytest.raises(
        UserError,
        match=f"finite numbers at update 5, found loss is nan, gradient_norm is nan, on the rows"
        f" {rows} of its data; checkpoint saved; lower the learning rate",
    ) as told:
        run.go()
    assert "\n" not in str(told.value)
    assert run.checkpoints() == [4]
    run.spoiled = ()
    run.go()
    assert run.results() == undisturbed.results(), "what went wrong left something behind"


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


def test_too_little_memory_ends_with_one_line_that_names_the_setting(recipe, tmp_path):
    def too_much(_, windows_bt):
        """Asks for what no machine has."""
        torch.empty(2**60)

    with pytest.raises(
        UserError,
        match=r"update 1: 6 rows at a time take more memory than process 0 has"
        r" .*DefaultCPUAllocator.*set GPT1_MICRO_BATCH=3,",
    ) as told:
        Run(tmp_path, recipe, micro_batch=6).go(too_much)
    assert "\n" not in str(told.value)


def test_other_errors_are_not_taken_for_want_of_memory():
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
