"""How long a run will yet take, on cases done by hand; which stages may yet run."""

import json
import os
from pathlib import Path

import pytest

from gpt1.pipeline.forecast import (
    PLAN,
    SECONDS,
    expected,
    foretold_seconds,
    in_words,
    note_seconds,
    seconds_left,
)
from gpt1.pipeline.progress import News
from gpt1.pipeline.schedule import Allocation, Slots, Stage, may_run

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
    assert (
        seconds_left(STAGES, FORETOLD, {}, {"pretrain": 130.0}, late, Slots(2), SHARE) == 5 + 40 + 1
    ), "longer than it was to take"
    assert seconds_left(STAGES, FORETOLD, {}, {}, ["table"], Slots(1), SHARE) == 1
    assert seconds_left(STAGES, {}, {}, {}, ["pretrain"], Slots(1), SHARE) is None


def test_the_pace_of_this_run_counts_once_enough_of_it_is_done() -> None:
    took = {"pretrain": 200.0, "clean": 20.0}
    assert seconds_left(STAGES, FORETOLD, took, {}, ["finetune@cola"], Slots(1), SHARE) == 80
    assert (
        seconds_left(STAGES, FORETOLD, {"clean": 20.0}, {}, ["finetune@cola"], Slots(1), SHARE)
        == 40
    )
    slow = {"clean": 120.0} | dict.fromkeys(("check", "table"), 6.0)
    assert (
        seconds_left(
            STAGES, FORETOLD | {"clean": 60.0}, slow, {}, ["finetune@cola"], Slots(1), SHARE
        )
        == 40
    ), "not of trainings"
    assert seconds_left(
        STAGES, FORETOLD | {"clean": 60.0}, slow, {"table": 0.0}, [], Slots(1), SHARE
    ) == pytest.approx(132 / 64)
    assert (
        seconds_left(STAGES, {}, {"finetune@cola": 30.0}, {}, ["finetune@rte"], Slots(1), SHARE)
        == 30
    ), "as the first of its group"


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
