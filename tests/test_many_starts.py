"""A hundred stages in a row, some of which die: nothing is left of them but their results."""

import gc
from pathlib import Path

import psutil
import pytest

from gpt1.base.errors import UserError
from gpt1.pipeline import job
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
def test_a_hundred_stages_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dvc").mkdir()
    monkeypatch.setattr(job, "DVC", ["-c", PROGRAM])
    this, told = psutil.Process(), []

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
