"""How long a run will yet take, on cases done by hand; which stages may yet run."""

import json
import os
import random
from itertools import pairwise
from pathlib import Path

import pytest

from gpt1.pipeline.forecast import (
    PLAN,
    SECONDS,
    Countdown,
    expected,
    foretold_seconds,
    in_words,
    note_seconds,
    seconds_left,
)
from gpt1.pipeline.progress import News
from gpt1.pipeline.schedule import Allocation, Slots, Stage, group, may_run

NEEDS = {
    "check": (),
    "clean": ("check",),
    "pretrain": ("clean",),
    "finetune@cola": ("pretrain",),
    "finetune@rte": ("pretrain",),
    "table": ("finetune@cola", "finetune@rte"),
}
STAGES = {
    name: Stage(name, frozenset(needs), trains=name.startswith(("pre", "fine")))
    for name, needs in NEEDS.items()
}
SHARE = dict.fromkeys(STAGES, Allocation(1, None))
FORETOLD = {"pretrain": 100.0, "finetune@cola": 40.0, "clean": 10.0, "table": 1.0}


def test_a_stage_is_expected_to_last_as_before_or_as_its_group_does() -> None:
    assert expected(STAGES, FORETOLD) == {
        "check": 3.0,
        "clean": 10.0,
        "pretrain": 100.0,
        "finetune@cola": 40.0,
        "finetune@rte": 40.0,
        "table": 1.0,
    }
    assert expected(STAGES, {}).keys() == {"check", "clean", "table"}, (
        "who knows how long a training takes"
    )


def test_the_time_left_on_paths_and_lanes_done_by_hand() -> None:
    late = ["finetune@cola", "finetune@rte", "table"]
    for lanes, finetuning in ((1, 80.0), (2, 40.0)):
        assert (
            seconds_left(STAGES, FORETOLD, {}, {"pretrain": 30.0}, late, Slots(lanes), SHARE)
            == 70 + finetuning + 1
        )
    assert seconds_left(STAGES, FORETOLD, {}, {}, ["table"], Slots(1), SHARE) == 1
    assert seconds_left(STAGES, {}, {}, {}, ["pretrain"], Slots(1), SHARE) is None


def left(foretold: dict[str, float], took: dict[str, float], *waiting: str) -> float:
    found = seconds_left(STAGES, foretold, took, {}, waiting, Slots(1), SHARE)
    assert found is not None
    return found


def test_what_finished_stages_took_corrects_the_others_of_their_kind_most() -> None:
    assert left(FORETOLD, {}, "finetune@cola") == 40
    assert left(FORETOLD, {"clean": 100.0}, "finetune@cola") == 40, "of text, not of trainings"
    by_pretraining = left(FORETOLD, {"pretrain": 200.0}, "finetune@cola")
    assert 60 < by_pretraining <= 80, "a training beside it that took twice as long"
    took = {"pretrain": 200.0, "finetune@rte": 40.0}
    assert 40 < left(FORETOLD, took, "finetune@cola") < 50, "one of its own kind says more"
    assert left(FORETOLD, {"pretrain": 1e5}, "finetune@cola") <= 3 * 40, "but never everything"
    assert left({}, {"finetune@cola": 30.0}, "finetune@rte") == 30, "as the first of its group"


def test_a_stage_that_takes_longer_than_foretold_corrects_while_it_runs() -> None:
    def told(since: float) -> float | None:
        late = ["finetune@cola"]
        return seconds_left(STAGES, FORETOLD, {}, {"pretrain": since}, late, Slots(1), SHARE)

    assert told(90.0) == 10 + 40
    longer = told(300.0)
    assert longer is not None
    assert 30 + 80 < longer < 30 + 120, "its tenth more, and fine-tuning beyond twice as long"


def simulated(
    foretold: dict[str, float], took: dict[str, float], stages: dict[str, Stage]
) -> list[tuple[float, float]]:
    """A run on two lanes, in which stages take `took` seconds: what is told is left whenever one
    starts or ends and every 15 s, beside what then was left.
    """
    waiting, running, done = set(stages), dict[str, float](), dict[str, float]()
    share, countdown, now, told = dict.fromkeys(stages, Allocation(1, None)), Countdown(), 0.0, []

    def tell() -> None:
        since = {name: now - began for name, began in running.items()}
        estimate = seconds_left(stages, foretold, done, since, waiting, Slots(2), share)
        shown = countdown.told(now, estimate)
        assert shown is not None
        told.append((now, shown))

    while waiting or running:
        ready = [name for name in stages if name in waiting and stages[name].needs <= done.keys()]
        for name in ready[: 2 - len(running)]:
            waiting.discard(name)
            running[name] = now
            tell()
        first = min(running, key=lambda name: running[name] + took[name])
        end = running[first] + took[first]
        while now + 15 < end:
            now += 15
            tell()
        now = end
        done[first] = took[first]
        del running[first]
        tell()
    return [(shown, now - at) for at, shown in told]


TASKS = [f"finetune@{number}" for number in range(20)]
RUN = {
    name: Stage(name, frozenset(needs), trains="@" in name)
    for name, needs in {
        "clean": (),
        "pretrain@transformer": ("clean",),
        "pretrain@lstm": ("clean",),
        **dict.fromkeys(TASKS, ("pretrain@transformer",)),
        "table": TASKS,
    }.items()
}


@pytest.mark.parametrize(
    ("text", "pretrain", "finetune"), [(1, 1, 1), (4, 0.6, 1), (2, 1, 1.6), (1.5, 1.5, 0.7)]
)
def test_the_time_left_of_a_simulated_run_neither_jumps_nor_misleads(
    text: float, pretrain: float, finetune: float
) -> None:
    draw = random.Random(0)
    foretold = {"clean": 20.0, "pretrain@transformer": 600.0, "pretrain@lstm": 300.0, "table": 10.0}
    foretold |= {name: draw.uniform(20, 80) for name in TASKS}
    times = {"clean": text, "table": text, "pretrain": pretrain, "finetune": finetune}
    took = {name: times[group(name)] * foretold[name] * draw.uniform(0.8, 1.25) for name in RUN}
    told = simulated(foretold, took, RUN)
    total = told[0][1]
    rises = [after - before for (before, _), (after, _) in pairwise(told)]
    falls = [
        before - after - (left_before - left_after)
        for (before, left_before), (after, left_after) in pairwise(told)
    ]
    assert max(rises) < 0.02 * total, "never up by more than a person overlooks"
    assert max(falls) < 0.1 * total
    late = [abs(shown - real) for shown, real in told if real < total / 8]
    assert max(late) < 0.1 * total, "and once some of each kind have ended it is about right"


def test_a_plan_made_since_the_last_run_counts_more_than_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert foretold_seconds() == {}
    note_seconds("pretrain", 100.04)
    assert foretold_seconds() == {"pretrain": 100.0}
    PLAN.write_text(json.dumps({"stages": {"pretrain": {"seconds": 300}, "table": {"seconds": 2}}}))
    os.utime(SECONDS, (1, 1))
    assert foretold_seconds() == {"pretrain": 300.0, "table": 2.0}
    os.utime(PLAN, (0, 0))
    assert foretold_seconds() == {"pretrain": 100.0, "table": 2.0}
    for broken in ("[]", "{", '{"stages": 3}', '{"stages": {"a": {}}}'):
        PLAN.write_text(broken)
        assert foretold_seconds() == {"pretrain": 100.0}


def test_which_stages_may_yet_run() -> None:
    def stale(*names: str) -> dict[str, Stage]:
        return {
            name: Stage(name, stage.needs, stale=name in names) for name, stage in STAGES.items()
        }

    assert may_run(stale("check"), set(STAGES), ()) == {"check"}, (
        "what it writes does not depend on the parameters"
    )
    assert may_run(stale("check", "finetune@rte"), set(STAGES), ()) == {
        "check",
        "finetune@rte",
        "table",
    }
    assert may_run(stale(), {"table"}, {"finetune@cola"}) == {"table"}
    assert may_run(stale(), {"clean", "table"}, {"check"}) == set()


def test_words() -> None:
    assert [in_words(seconds) for seconds in (2, 44, 100, 3599, 7500, 200_000)] == [
        "10 s",
        "40 s",
        "2 min",
        "60 min",
        "2 h 05 min",
        "2.3 days",
    ]
    assert News("a: 3 s", 2, 9, left=120.0).in_words() == "a: 3 s (2 of 9, about 2 min left)"
    assert News("a: 3 s", 9, 9, left=0.0).in_words() == "a: 3 s (9 of 9)"
    assert News("waiting").in_words() == "waiting"
