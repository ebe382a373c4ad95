"""A hundred stages in a row, some of which die: nothing is left of them but their results."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gpt1.base.errors import UserError
from gpt1.pipeline import job, process_group
from gpt1.pipeline.leases import alone_here
from gpt1.pipeline.run import carry_out
from gpt1.pipeline.run_state import Plan
from gpt1.pipeline.schedule import Allocation, Slots, Stage

DIES = {"stage@30", "stage@77"}
# in DVC's place, which is given the stage's name last: DVC itself takes a second for each of them
PROGRAM = """
import os, signal, sys
if sys.argv[-1] in {"stage@30", "stage@77"}: os.kill(os.getpid(), signal.SIGKILL)
print(f"Running stage '{sys.argv[-1]}'")
"""


@pytest.mark.slow
def test_a_hundred_stages_leave_nothing(tmp_path: Path) -> None:
    """In a process of their own, whose files, threads and memory no other test moves."""
    (tmp_path / ".dvc").mkdir()
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    ran = subprocess.run(
        [sys.executable, __file__],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def run_a_hundred() -> None:
    job.DVC = process_group.DVC = ["-c", PROGRAM]  # by which a stage at work is told from an orphan
    this, told = psutil.Process(), list[str]()

    def run(numbers: range) -> None:
        names = [f"stage@{number}" for number in numbers]
        stages = {name: Stage(name, frozenset(), stale=True) for name in names}
        share = dict.fromkeys(names, Allocation(1, None))
        plan = Plan(stages, names, set(names), Slots(2), share, dict.fromkeys(names, 1.0))
        with alone_here("a test", lambda news: None) as lock:
            carry_out(plan, lambda news: told.append(news.line), lock)

    def held() -> tuple[int, int, int]:
        gc.collect()
        return this.num_fds(), len(this.children(recursive=True)), this.num_threads()

    run(range(200, 210))
    before, bytes_before = held(), this.memory_info().rss
    with pytest.raises(UserError, match="2 stages failed; all else is up to date"):
        run(range(100))
    assert held() == before
    assert this.memory_info().rss - bytes_before < 10e6
    assert {line.partition(":")[0] for line in told if ": failed" in line} == DIES
    assert len([line for line in told if line.endswith(" s")]) == 10 + 100 - len(DIES)


if __name__ == "__main__":
    run_a_hundred()
