"""Which stages are chosen, in which order they start, how the machine is shared: on the graph of dvc.yaml in small."""

import pytest

from gpt1.errors import UserError
from gpt1.schedule import Share, Stage, choose, concerned, path_lengths, shares, startable

NEEDS = {
    "check": "", "acquire@books": "check", "acquire@cola": "check", "acquire@rte": "check", "shard": "acquire@books",
    "encode@cola": "acquire@cola shard", "encode@rte": "acquire@rte shard", "pretrain@transformer": "shard",
    "finetune@cola": "encode@cola pretrain@transformer", "finetune@rte": "encode@rte pretrain@transformer",
    "table2": "finetune@rte", "table4": "finetune@cola",
}


def graph(*stale: str) -> dict[str, Stage]:
    return {name: Stage(name, frozenset(needs.split()), trains=name.startswith(("pretrain", "finetune")), stale=name in stale)
            for name, needs in NEEDS.items()}


def test_a_target_brings_what_it_needs() -> None:
    assert choose(graph(), ["encode@cola"]) == ["check", "acquire@books", "acquire@cola", "shard", "encode@cola"]
    assert choose(graph(), ["acquire"]) == ["check", "acquire@books", "acquire@cola", "acquire@rte"]
    assert choose(graph(), []) == list(NEEDS)


@pytest.mark.parametrize(("target", "near"), [("finetune@coal", "did you mean finetune@cola?"), ("pretrian", "did you mean pretrain?"),
                                              ("xyz", "no stage 'xyz' (expected one of check, acquire, shard, encode, ")])
def test_an_unknown_target_is_named(target: str, near: str) -> None:
    with pytest.raises(UserError) as error:
        choose(graph(), ["check", target])
    assert near in str(error.value)


def test_what_comes_after_a_stale_stage_is_tried() -> None:
    assert concerned(graph("encode@rte"), NEEDS) == {"encode@rte", "finetune@rte", "table2"}
    assert concerned(graph("encode@rte"), choose(graph(), ["finetune@cola"])) == set()
    assert concerned(graph(), NEEDS) == set()


def test_what_most_waits_for_comes_first() -> None:
    lengths = path_lengths(graph())
    assert lengths["acquire@books"] > lengths["acquire@cola"]
    assert lengths["check"] == max(lengths.values()) == 6
    assert lengths["table2"] == 1


@pytest.mark.parametrize(("lanes", "threads", "pretrain", "finetune", "other"), [
    (2, 2, Share(2, 2), Share(1, 1), Share(1, 1)),
    (4, 16, Share(4, 16), Share(2, 8), Share(1, 4)),  # two tasks never fill four lanes
    (4, 2, Share(4, 2), Share(2, 1), Share(1, 1)),
    (1, 8, Share(1, None), Share(1, None), Share(1, None)),
    (2, None, Share(1, None), Share(1, None), Share(1, None)),  # GPT1_THREADS is set
])
def test_the_machine_is_shared_by_the_graph_alone(lanes: int, threads: int | None, pretrain: Share, finetune: Share, other: Share) -> None:
    share = shares(graph(), lanes, threads)
    assert (share["pretrain@transformer"], share["finetune@cola"], share["encode@cola"]) == (pretrain, finetune, other)
    assert shares(graph("check"), lanes, threads) == share


def test_a_stage_that_waits_for_lanes_is_not_overtaken() -> None:
    share = shares(graph(), 2, 2)
    assert startable(["pretrain@transformer", "encode@cola"], share, 2) == ["pretrain@transformer"]
    assert startable(["pretrain@transformer", "encode@cola"], share, 1) == []
    assert startable(["encode@cola", "encode@rte", "acquire@rte"], share, 2) == ["encode@cola", "encode@rte"]
