"""Updates that go wrong: numbers that are not finite, memory that runs out."""

import pytest
import torch
from made_pretraining import BATCH, Run, made_recipe

from gpt1.base.errors import UserError
from gpt1.train.loop import is_out_of_memory


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
    ) as error:
        run.go()
    assert "\n" not in str(error.value)
    assert run.checkpoints()[-1] in (3, 4), "at most one checkpoint is behind"
    run.spoiled = ()
    run.go()
    assert run.results() == undisturbed.results(), "what went wrong left something behind"


def test_too_little_memory_ends_with_one_line_that_names_the_setting(tmp_path):
    def too_much(_, windows_bt):
        """Asks for what no machine has."""
        torch.empty(2**60)

    with pytest.raises(
        UserError,
        match=r"update 1: 6 rows at a time take more memory than process 0 has"
        r" .*DefaultCPUAllocator.*set GPT1_MICRO_BATCH=3,",
    ) as error:
        Run(tmp_path, made_recipe(), micro_batch=6).go(too_much)
    assert "\n" not in str(error.value)


def test_other_errors_are_not_taken_for_want_of_memory():
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
