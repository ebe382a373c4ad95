"""The benchmarks' sizes are composed, and the parts of the GPU's run on a CPU."""

import os
import re
import subprocess
import sys

import pytest
from our_imports import ROOT

ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'benchmarks'}"}
COMPOSE = """
from measuring import PROFILES, named_size
for name in PROFILES:
    size = named_size(name, 8, "bf16", 0.1)
    print(name, size.recipe.batch_size, size.model.layers)
"""


def gpu(report, *options, **settings):
    """Sections of the report of benchmarks/gpu.py, by name."""
    subprocess.run(
        [sys.executable, "benchmarks/gpu.py", "--size", "tiny", "--report", report, *options],
        cwd=ROOT,
        env=ENVIRONMENT | settings,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    sections = re.split(r"^## ([\w-]+) .*$", report.read_text(), flags=re.M)[1:]
    return dict(zip(sections[::2], sections[1::2], strict=True))


def test_every_size_is_composed():
    command = [sys.executable, "-c", COMPOSE]
    said = subprocess.check_output(command, cwd=ROOT, env=ENVIRONMENT, text=True)
    assert said.splitlines() == ["117m 8 12", "4m 8 4", "1m 8 4", "tiny 8 2"]


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_parts_for_a_gpu_on_a_cpu(tmp_path):
    found = gpu(tmp_path / "gpu.md", "--minutes", "90", GPT1_DEVICE="cpu", GPT1_THREADS="1")
    text = "".join(found.values())
    assert "**" not in text, text
    assert text.count("| ok: ") == 6
    assert "ok: 11 of 11" in found["resume"]
    assert "status 0, 143, 0" in found["resume"]
    assert len(found) == 7
