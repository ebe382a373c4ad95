"""Which stages are chosen, in which order they start, how the machine is shared: on the graph of
dvc.yaml in small.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpt1.base.cores import quota_cores
from gpt1.base.errors import UserError
from gpt1.pipeline.forecast import wall_seconds
from gpt1.pipeline.schedule import (
    Allocation,
    Slots,
    Stage,
    after,
    choose,
    concerned,
    shares,
    startable,
    urgencies,
)

NEEDS = {
    "check": "",
    "acquire@books": "check",
    "acquire@cola": "check",
    "acquire@rte": "check",
    "shard": "acquire@books",
    "encode@cola": "acquire@cola shard",
    "encode@rte": "acquire@rte shard",
    "pretrain@transformer": "shard",
    "finetune@cola": "encode@cola pretrain@transformer",
    "finetune@rte": "encode@rte pretrain@transformer",
    "table2": "finetune@rte",
    "table4": "finetune@cola",
}


def graph(*stale: str) -> dict[str, Stage]:
    return {
        name: Stage(
            name,
            frozenset(needs.split()),
            trains=name.startswith(("pretrain", "finetune")),
            stale=name in stale,
        )
        for name, needs in NEEDS.items()
    }


def test_a_target_brings_what_it_needs() -> None:
    assert choose(graph(), ["encode@cola"]) == [
        "check",
        "acquire@books",
        "acquire@cola",
        "shard",
        "encode@cola",
    ]
    assert choose(graph(), ["acquire"]) == ["check", "acquire@books", "acquire@cola", "acquire@rte"]
    assert choose(graph(), []) == list(NEEDS)


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("finetune@coal", "did you mean finetune@cola?"),
        ("pretrian", "did you mean pretrain?"),
        ("xyz", "no stage 'xyz' (expected one of check, acquire, shard, encode, "),
    ],
)
def test_an_unknown_target_is_named(target: str, near: str) -> None:
    with pytest.raises(UserError) as error:
        choose(graph(), ["check", target])
    assert near in str(error.value)


def test_what_comes_after_a_stale_stage_is_tried() -> None:
    assert concerned(graph("encode@rte"), NEEDS) == {"encode@rte", "finetune@rte", "table2"}
    assert concerned(graph("encode@rte"), choose(graph(), ["finetune@cola"])) == set()
    assert concerned(graph(), NEEDS) == set()


def test_what_takes_longest_until_the_end_starts_first() -> None:
    urgency = urgencies(
        graph(), {"pretrain@transformer": 300.0, "finetune@cola": 20.0, "shard": 3.0, "table2": 2.0}
    )
    assert urgency["table2"] == 2
    assert urgency["finetune@rte"] == 20 + 2, (
        "a stage that never ran lasts as long as the longest of its group"
    )
    assert urgency["finetune@cola"] == 20 + 1
    assert urgency["acquire@books"] == 1 + 3 + 300 + 20 + 2
    assert urgency["acquire@cola"] == 1 + 1 + 20 + 1
    assert urgencies(graph(), {})["pretrain@transformer"] == 10 + 10 + 1, (
        "unknown: ten seconds where it trains, else one"
    )


@pytest.mark.parametrize(
    ("lanes", "threads", "pretrain", "finetune", "other"),
    [
        (2, 2, Allocation(2, 2), Allocation(1, 1), Allocation(1, 1)),
        (
            4,
            16,
            Allocation(4, 16),
            Allocation(2, 8),
            Allocation(1, 4),
        ),  # two tasks never fill four lanes
        (4, 2, Allocation(4, 2), Allocation(2, 1), Allocation(1, 1)),
        (1, 8, Allocation(1, None), Allocation(1, None), Allocation(1, None)),
        (
            2,
            None,
            Allocation(1, None),
            Allocation(1, None),
            Allocation(1, None),
        ),  # GPT1_THREADS is set
    ],
)
def test_the_machine_is_shared_by_the_graph_alone(
    lanes: int, threads: int | None, pretrain: Allocation, finetune: Allocation, other: Allocation
) -> None:
    share = shares(graph(), Slots(lanes), threads)
    assert (share["pretrain@transformer"], share["finetune@cola"], share["encode@cola"]) == (
        pretrain,
        finetune,
        other,
    )
    assert shares(graph("check"), Slots(lanes), threads) == share


def test_where_there_are_gpus_pretraining_has_all_and_another_training_one() -> None:
    share = shares(graph(), Slots(16, ("0", "1", "2", "3")), 16)
    assert share["pretrain@transformer"] == Allocation(0, 4, devices=4)
    assert share["finetune@cola"] == Allocation(0, 4, devices=1)
    assert share["encode@cola"] == Allocation(1, 1)
    assert shares(graph(), Slots(16, ("0", "1")), None)["finetune@cola"].threads is None


def test_a_stage_that_waits_for_a_slot_is_not_overtaken() -> None:
    share = shares(graph(), Slots(2), 2)
    assert startable(["pretrain@transformer", "encode@cola"], share, Slots(2)) == [
        ("pretrain@transformer", ())
    ]
    assert startable(["pretrain@transformer", "encode@cola"], share, Slots(1)) == []
    assert startable(["encode@cola", "encode@rte", "acquire@rte"], share, Slots(2)) == [
        ("encode@cola", ()),
        ("encode@rte", ()),
    ]


def test_each_device_is_given_once_and_pretraining_waits_for_all() -> None:
    share = shares(graph(), Slots(1, ("0", "1")), 2)
    both = startable(["finetune@cola", "finetune@rte", "encode@cola"], share, Slots(1, ("0", "1")))
    assert both == [("finetune@cola", ("0",)), ("finetune@rte", ("1",)), ("encode@cola", ())]
    waits = startable(
        ["pretrain@transformer", "finetune@cola", "encode@cola"], share, Slots(1, ("1",))
    )
    assert waits == [("encode@cola", ())], (
        "what wants a lane does not wait for what wants devices, which nothing overtakes"
    )
    assert startable(["pretrain@transformer"], share, Slots(1, ("1", "0"))) == [
        ("pretrain@transformer", ("1", "0"))
    ]


def test_a_containers_quota_of_time_counts_as_cores() -> None:
    assert quota_cores("400000 100000") == 4
    assert quota_cores("150000 100000") == quota_cores("50000 100000") == 1
    assert quota_cores("max 100000") > 10**6


def test_what_needs_a_stage_be_it_through_others() -> None:
    stages = graph()
    assert after(stages, "encode@cola", stages) == {"finetune@cola", "table4"}
    assert after(stages, "finetune@rte", {"table4"}) == set()
    assert after(stages, "check", stages) == {*NEEDS} - {"check"}


def chain(**seconds: float) -> dict[str, Stage]:
    return {name: Stage(name, frozenset({"a"} if name != "a" else ())) for name in seconds}


def test_time_side_by_side() -> None:
    seconds = {"a": 1.0, "b": 4.0, "c": 3.0, "d": 2.0}
    stages = chain(**seconds)
    share = dict.fromkeys(stages, Allocation(1, 1))
    assert wall_seconds(stages, seconds, Slots(1), share) == 10
    assert wall_seconds(stages, seconds, Slots(2), share) == 1 + 5, "b beside c and then d"
    assert wall_seconds(stages, seconds, Slots(9), share) == 1 + 4
    whole = share | {"b": Allocation(2, 2)}
    assert wall_seconds(stages, seconds, Slots(2), whole) == 1 + 4 + 3, (
        "b has both lanes for itself"
    )
    on_gpus = {name: Allocation(0, 1, devices=1) for name in stages}
    assert wall_seconds(stages, seconds, Slots(1, ("0", "1")), on_gpus) == 1 + 5


def test_equally_urgent_stages_start_in_the_graphs_order_in_every_process() -> None:
    code = (
        "from gpt1.pipeline.schedule import Allocation, Slots, Stage\n"
        "from gpt1.pipeline.forecast import wall_seconds\n"
        "share = {'wide': Allocation(2, 2), 'one': Allocation(1, 1), 'two': Allocation(1, 1)}\n"
        "stages = {name: Stage(name, frozenset()) for name in share}\n"
        "print(wall_seconds(stages, dict.fromkeys(stages, 1.0), Slots(2), share))"
    )
    for seed in "0123":  # of Python's order of sets
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(Path(__file__).parents[1]),
        }
        command = [sys.executable, "-c", code]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert float(said.stdout) == 2.0, "the wide one, then both others"
