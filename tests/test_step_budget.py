"""What a step on an H100 is predicted to take is one number: that of benchmarks/step_budget.csv,
which benchmarks/step_budget.py makes again, `gpt1 plan` counts on and benchmarks/gpu.py sets beside
what it measures.
"""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.pipeline.graph import expand
from gpt1.pipeline.plan import estimate, formulas, kernels, machines
from gpt1.pipeline.plan.formulas import Network
from gpt1.pipeline.plan.work import work_of
from gpt1.pipeline.schedule import Allocation

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import gpu_report  # noqa: E402
import kernel_classes  # noqa: E402

BUDGET = gpu_report.predicted()
H100, A100, RTX_4090 = machines.NAMED[:3]
CLASSES = (*kernel_classes.CLASSES, "step")
TUNED = gpu_report.predicted(BENCHMARKS / "finetuning_budget.csv")


def network_of(rows: int) -> Network:
    return Network(validate(compose("paper", ())).model, 0, rows)


def step_in_budget(way: str) -> tuple[dict[str, kernels.KernelCounts], dict[str, dict[str, float]]]:
    """The formulas' update that a table of a budget counted, and the table."""
    if way in ("compiled", "not compiled"):
        name: kernels.WayName = "compiled" if way == "compiled" else "operators"
        step = kernels.Step(network_of(40_478), 64 * 512, 512, True, True, name)
        return kernels.of_update(step), BUDGET
    name = "graphs" if way == "graphs" else "rows"
    network = network_of(40_478 + 3 + 512)
    return kernels.of_update(kernels.Step(network, 32 * 64, 64, True, True, name)), TUNED


@pytest.mark.parametrize("way", ["compiled", "not compiled", "operators", "graphs"])
def test_the_formulas_are_the_budgets(way: str) -> None:
    """Of each class to a twentieth, or a tenth of a millisecond; of the update to a twentieth."""
    found, budget = step_in_budget(way)
    milliseconds = {
        name: 1e3 * seconds for name, seconds in kernels.seconds_by_class(found, H100.gpu).items()
    }
    milliseconds["step"] = sum(milliseconds.values())
    for name in CLASSES:
        told = budget[name][f"ms, {way}"]
        assert milliseconds[name] == pytest.approx(told, rel=0.05, abs=0.1), name
    assert milliseconds["step"] == pytest.approx(budget["step"][f"ms, {way}"], rel=0.05)
    launches = sum(one.launches for one in found.values())
    assert launches == budget["step"][f"launches, {way}"]
    flops = sum(one.flops for one in found.values())
    assert flops / 1e12 == pytest.approx(budget["step"][f"TFLOP, {way}"], rel=0.02)


def test_the_budgets_rates_are_the_plans() -> None:
    """Those of benchmarks/step_budget.py: 620 and 140 TFLOP/s, 3.0 TB/s."""
    assert kernels.PRODUCTS_SHARE * H100.flops == pytest.approx(620e12, rel=2e-3)
    assert kernels.ATTENTION_SHARE * H100.flops == pytest.approx(140e12, rel=5e-3)
    assert kernels.MEMORY_SHARE * H100.bandwidth == pytest.approx(3.0e12, rel=2e-3)


def paper_pace(prefix: str, gpu: machines.Hardware = H100) -> estimate.Pace:
    """The pace of the profile's first such stage on one GPU."""
    values = compose("paper", ())
    name = next(name for name in expand(values) if name.startswith(prefix))
    work = work_of(expand(values)[name], validate(values), ())
    return estimate.data_sheet_pace(work, gpu, Allocation(1, 1, 1))


def test_a_plan_takes_an_update_of_the_paper_to_last_as_long_as_the_budget() -> None:
    milliseconds = 1e3 * paper_pace("pretrain@transformer").update
    assert milliseconds == pytest.approx(BUDGET["step"]["ms, compiled"], rel=0.02)


def test_a_short_update_lasts_as_long_as_its_launches() -> None:
    """Of fine-tuning on 32 short rows, whose kernels take less: on any GPU as long."""
    launched = kernels.LAUNCH_SECONDS * TUNED["step"]["launches, operators"]
    assert paper_pace("finetune@cola").update == pytest.approx(launched, rel=0.01)


def test_a_slower_memory_and_peak_make_an_update_longer() -> None:
    """By hand: each class of an A100 takes 3.17 or 1.64 times as long as an H100's."""
    on_h100, on_a100 = (paper_pace("pretrain@t", gpu).update for gpu in (H100, A100))
    assert 3.35 / 2.039 < on_a100 / on_h100 < 989 / 312
    assert paper_pace("pretrain@t", RTX_4090).update > on_a100


def test_micro_batches_repeat_all_but_adam() -> None:
    step, _ = estimate.step_of(
        work_of(
            expand(compose("paper", ()))["pretrain@transformer-seed-0"],
            validate(compose("paper", ())),
            (),
        ),
        1,
        16,
    )
    assert step.tokens == 16 * 512
    once, four = (kernels.of_update(step, count) for count in (1, 4))
    for name in kernels.CLASSES[:-1]:
        assert four[name] == pytest.approx(tuple(4 * one for one in once[name]))
    adam = "clipping and Adam"
    assert four[adam].launches == once[adam].launches
    assert four[adam].bytes_ - once[adam].bytes_ == 3 * 12 * formulas.parameters(step.network)


def test_a_layers_products_by_hand() -> None:
    """3 rows of 2 numbers to 5: forward and two products back, 30 multiplied and added each; of 6
    inputs, 10 weights and 15 outputs, two bytes each, all are touched three times.
    """
    assert kernels.products(3, 2, 5) == (0, 3 * 2 * 30, 3 * 2 * (6 + 10 + 15))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["step_budget", "finetuning_budget"])
@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler here")
def test_a_budget_is_made_again_by_its_command(name: str, tmp_path: Path) -> None:
    if name == "step_budget" and find_spec("triton") is None:
        pytest.skip("triton is not installed")
    made = tmp_path / "budget.csv"
    subprocess.run(
        [sys.executable, f"benchmarks/{name}.py", "--csv", str(made)],
        cwd=BENCHMARKS.parent,
        env=os.environ | {"PYTHONPATH": str(BENCHMARKS.parent), "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=280,
    )
    assert made.read_text() == (BENCHMARKS / f"{name}.csv").read_text()


def test_what_the_profiler_saw_is_told_by_class() -> None:
    hidden, matrix = torch.randn(64, 16), torch.randn(500, 16)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as taken:
        torch.mm(hidden, matrix.T).log_softmax(1)
        torch.mm(hidden, hidden.T)
        torch.nn.functional.embedding(torch.tensor([3]), matrix)
    found = kernel_classes.measured(taken.events(), 500)
    assert found["products of the head"]["launches"] == 1
    assert found["products of blocks"]["launches"] == 1
    assert found["softmax"]["milliseconds"] > 0
    assert found["embeddings"]["milliseconds"] > 0
    assert found["attention"]["launches"] == 0


def step_of(times: float) -> dict[str, object]:
    """Figures as of the part `step` on an H100 that takes so many times the budget."""

    def way(column: str) -> dict[str, object]:
        rate = 64 * 512 / (times * BUDGET["step"][f"ms, {column}"] / 1e3)
        return {"tokens_per_second": {"median": rate}}

    classes = {
        name: {
            "launches": BUDGET[name]["launches, compiled"],
            "milliseconds": times * BUDGET[name]["ms, compiled"],
        }
        for name in kernel_classes.CLASSES
    }
    return {
        "size": "117m",
        "batch": 64,
        "context": 512,
        "nominal_flops": 989e12,
        "flops_per_token": 724.4e6,
        "classes": classes,
        "ways": {"ours": way("compiled"), "ours-eager": way("not compiled")},
    }


@pytest.mark.parametrize(("times", "holds"), [(1.1, "yes"), (1.3, "no")])
def test_the_report_says_whether_a_measured_step_is_the_predicted_one(
    times: float, holds: str
) -> None:
    said = gpu_report.compared({"step": step_of(times)})
    assert f"| ours (compiled) | 63.5 | {63.5 * times:.1f} | {times:.2f} | {holds} |" in said
    attention = BUDGET["attention"]["ms, compiled"]
    assert f"| attention | 24 | 24 | {attention:.1f} | {attention * times:.1f} |" in said
    assert f"{0.378 / times:.1%}" in said
    assert "llm.c" in said
