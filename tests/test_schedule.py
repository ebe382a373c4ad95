"""Which stages are chosen, in which order they start, how the machine is shared: on the graph of
dvc.yaml in small.
"""

import pytest

from gpt1.base.cores import quota_cores
from gpt1.base.errors import UserError
from gpt1.pipeline.schedule import (
    Share,
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
        (2, 2, Share(2, 2), Share(1, 1), Share(1, 1)),
        (4, 16, Share(4, 16), Share(2, 8), Share(1, 4)),  # two tasks never fill four lanes
        (4, 2, Share(4, 2), Share(2, 1), Share(1, 1)),
        (1, 8, Share(1, None), Share(1, None), Share(1, None)),
        (2, None, Share(1, None), Share(1, None), Share(1, None)),  # GPT1_THREADS is set
    ],
)
def test_the_machine_is_shared_by_the_graph_alone(
    lanes: int, threads: int | None, pretrain: Share, finetune: Share, other: Share
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
    assert share["pretrain@transformer"] == Share(0, 4, devices=4)
    assert share["finetune@cola"] == Share(0, 4, devices=1)
    assert share["encode@cola"] == Share(1, 1)
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
