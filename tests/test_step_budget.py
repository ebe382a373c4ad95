"""What a step on an H100 is predicted to take is one number: that of benchmarks/step_budget.csv,
which benchmarks/step_budget.py makes again, `gpt1 plan` counts on and benchmarks/gpu.py sets beside
what it measures.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.pipeline.graph import expand
from gpt1.pipeline.plan import estimate
from gpt1.pipeline.plan.work import work_of
from gpt1.pipeline.schedule import Allocation

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import gpu_report  # noqa: E402
import kernel_classes  # noqa: E402

BUDGET = gpu_report.predicted()
H100 = replace(
    next(one for one in estimate.NAMED if one.name == "8 x H100"), name="1 x H100", devices=1
)


def paper_pace(prefix: str) -> tuple[estimate.Pace, float]:
    """The pace of the profile's first such stage on one H100, and the operations of its updates."""
    values = compose("paper", ())
    name = next(name for name in expand(values) if name.startswith(prefix))
    work = work_of(expand(values)[name], validate(values), ())
    return estimate.data_sheet_pace(work, H100, Allocation(1, 1, 1)), work.flops / work.updates


def test_a_plan_counts_on_the_budgets_shares_of_the_peak() -> None:
    for way, share in estimate.GPU_SHARE.items():
        [told] = BUDGET[f"share of the peak, {way}"].values()
        assert share == round(told, 2)


@pytest.mark.slow
def test_a_plan_takes_an_update_of_the_paper_to_last_as_long_as_the_budget() -> None:
    pace, flops = paper_pace("pretrain@transformer")
    milliseconds = 1e3 * (pace.update + pace.flop * flops)
    assert milliseconds == pytest.approx(BUDGET["step"]["ms, compiled"], rel=0.02)


@pytest.mark.slow
def test_a_short_update_lasts_as_long_as_its_launches() -> None:
    """Of fine-tuning on 32 short rows, whose arithmetic takes less."""
    pace, flops = paper_pace("finetune@")
    launches = BUDGET["step"]["launches, not compiled"]
    assert pace.update + pace.flop * flops == pytest.approx(
        estimate.GPU_LAUNCH_SECONDS * launches, rel=0.05
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler here")
def test_the_budget_is_made_again_by_its_command(tmp_path: Path) -> None:
    made = tmp_path / "budget.csv"
    subprocess.run(
        [sys.executable, "benchmarks/step_budget.py", "--csv", str(made)],
        cwd=BENCHMARKS.parent,
        env=os.environ | {"PYTHONPATH": str(BENCHMARKS.parent), "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=280,
    )
    assert made.read_text() == (BENCHMARKS / "step_budget.csv").read_text()


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
