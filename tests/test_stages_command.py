"""`python -m gpt1.stages`: command lines that name no stage, Ctrl-C while a stage is still being
imported, every stage there is.
"""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpt1.params.yaml import read_yaml

ROOT = Path(__file__).parents[1]


def start(folder, *words, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "gpt1.stages", *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder)} | environment,
        stderr=subprocess.PIPE,
        text=True,
    )


STAGES = (
    "check, town, acquire, clean, bpe, shard, encode,"
    " prompt, baselines, pretrain, finetune, ablation, transfer, zero_shot, generate, report"
)
FUNCTIONS = {"ablation", "transfer"}  # of the module finetune


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), f"expected a stage, one of {STAGES}; found none"),
        (("pretrian", "transformer"), f"expected a stage, one of {STAGES}; found pretrian"),
        (("encode",), "expected encode TASK; found encode"),
        (("encode", "rte", "cola"), "expected encode TASK; found encode rte cola"),
        (("clean", "books"), "expected clean alone; found clean books"),
    ],
)
def test_a_command_line_that_names_no_stage(tmp_path, words, line):
    process = start(tmp_path, *words)
    assert process.communicate() == (None, f"error: {line}\n")
    assert process.returncode == 2


def test_every_stage_of_the_graph_has_its_verb():
    stages = read_yaml(ROOT / "dvc.yaml")["stages"]
    verbs = {stage.get("do", stage)["cmd"].split()[3] for stage in stages.values()}
    files = {path.stem for path in (ROOT / "gpt1" / "stages").glob("*.py")} - {
        "__init__",
        "__main__",
    }
    assert verbs == set(STAGES.split(", ")) == files | FUNCTIONS


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    "seconds", [0.3, *(pytest.param(number, marks=pytest.mark.long) for number in (0, 0.7))]
)
def test_ctrl_c_while_a_stage_is_imported_is_one_line(tmp_path, seconds):
    """Importing torch takes a second or two; before numpy there may be Python's own start, which
    nothing of ours can make one line of.
    """
    process = start(tmp_path, "pretrain", "transformer", "0")
    while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8"):
        assert process.poll() is None
        time.sleep(0.005)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert re.fullmatch("interrupted: .*\n", said)
    assert process.returncode in (
        130,
        -signal.SIGINT,
    )  # a shell shows 130 for both; the latter where a string was being executed
