"""What an update asks of a GPU, counted without one by benchmarks/launches.py: a step of the paper's
size on fake CUDA tensors. A count above its ceiling is a slower GPU, or a wrong type.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CEILINGS = {  # launches, copies that block the host, its other waits
    "pre-training, update": (1_460, 0, 1),
    "pre-training, held-out loss": (570, 0, 1),
    "pre-training, update, our kernels": (730, 0, 1),
    "pre-training, held-out loss, our kernels": (570, 0, 1),
    "fine-tuning, update": (1_570, 0, 1),
    "fine-tuning, logits": (600, 1, 0),
    "fine-tuning, update by graphs": (80, 0, 1),
}
if find_spec("triton") is None:  # then there are none of ours
    CEILINGS = {what: counts for what, counts in CEILINGS.items() if "our kernels" not in what}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler here"),
]


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    figures = tmp_path_factory.mktemp("counts") / "counts.json"
    done = subprocess.run(
        [sys.executable, "benchmarks/launches.py", "--json", str(figures)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(figures.read_text())


@pytest.mark.parametrize("what", CEILINGS)
def test_no_more_launches_copies_and_waits_than_there_were(counted, what):
    found = counted[what]
    names = ("launches", "blocking_copies", "waits")
    for name, ceiling in zip(names, CEILINGS[what], strict=True):
        assert found[name] <= ceiling, f"{name}: {found['by_name'][name]}"


@pytest.mark.parametrize("what", CEILINGS)
def test_nothing_is_left_on_the_cpu(counted, what):
    assert not counted[what]["mixes"], counted[what]["by_name"]["mixes"]


@pytest.mark.parametrize("what", CEILINGS)
def test_every_product_is_of_bf16_numbers(counted, what):
    assert counted[what]["flops"] > 1e9
    assert counted[what]["flops_in_bf16"] == counted[what]["flops"]


@pytest.mark.parametrize("what", CEILINGS)
def test_products_are_of_rows_that_begin_at_multiples_of_sixteen_bytes(counted, what):
    """40,478 and 40,993 columns do not; the classifier's two outputs may."""
    assert counted[what]["flops_aligned"] > 0.99 * counted[what]["flops"]


def test_an_update_is_as_much_work_as_the_formula_says(counted):
    """Six operations a number of a matrix and token, and half of attention: nothing is computed twice
    or left out.
    """
    products = 12 * (4 * 768**2 + 2 * 768 * 3072) + 40_478 * 768
    expected = 64 * 512 * 6 * (products + 12 * 512 * 768)
    assert counted["pre-training, update"]["flops"] == pytest.approx(expected, rel=0.01)


def test_an_evaluation_makes_no_gradient(counted):
    """Of as many tokens it is a third of an update."""
    update, evaluation = (
        counted[f"pre-training, {what}"]["flops"] for what in ("update", "held-out loss")
    )
    assert evaluation == pytest.approx(update / 3, rel=0.01)
