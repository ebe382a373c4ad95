"""Which rows of a task belong together: premises, passages, twins, and pairs of the made-up town."""

import pytest

from gpt1.demo.meaning import said
from gpt1.tasks.clusters import cluster_ids
from gpt1.tasks.pronouns import DPRD
from gpt1.tasks.rows import Example
from gpt1.tasks.table import TASKS


@pytest.mark.parametrize("task", ["snli", "mnli", "race", "story_cloze"])
def test_rows_of_one_premise_passage_or_story_belong_together(task: str) -> None:
    examples = [Example((first, "x"), ("a", "b")) for first in ("one", "two", "one", "three")]
    assert cluster_ids(TASKS[task], examples).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("task", sorted(TASKS.keys() - {"snli", "mnli", "race", "story_cloze"}))
def test_rows_of_other_tasks_stand_alone(task: str) -> None:
    examples = [Example(("one", "two"))] * 3
    assert cluster_ids(TASKS[task], examples).tolist() == [0, 1, 2]


def test_twins_share_candidates_and_all_before_the_pronoun() -> None:
    twins = [
        Example(("The bee landed on the flower because", "had pollen."), ("The bee", "the flower")),
        Example(("The bee landed on the flower because", "was tired."), ("the flower", "the bee")),
        Example(("The bee landed on the flower because", "was tired."), ("the ant", "the flower")),
    ]
    assert cluster_ids(DPRD, twins).tolist() == [0, 0, 1]


def test_made_up_pairs_belong_together_by_what_they_say_in_either_order() -> None:
    pairs = [
        ("Leon's daughter was glad.", "Leon's daughter turned merry."),
        ("Dear Effie. Abel's aunt proved merry. Yours, Ida.", "Abel's aunt became glad."),
        ("Owen's niece sang all day.", "Owen's niece turned merry."),
        ("Jack's niece sang all day.", "Jack's niece was merry."),
        ("Leon's daughter was glad.", "Leon's daughter turned sad."),
    ]
    examples = [Example(pair) for pair in pairs]
    assert cluster_ids(TASKS["snli"], examples, said).tolist() == [0, 0, 1, 1, 2]
    assert cluster_ids(TASKS["snli"], examples).tolist() == [0, 1, 2, 3, 0]


def test_made_up_twins_belong_together_whatever_the_task() -> None:
    twins = [
        Example(("Ada helped Ben. Cora was helped by Dinah.", "Who helped?"), ("Ada", "Ben")),
        Example(("Ben helped Cora. Dinah was helped by Ada.", "Who helped?"), ("Ada", "Ben")),
        Example(("Ben helped Cora. Dinah was thanked by Ada.", "Who helped?"), ("Ada", "Ben")),
    ]
    assert cluster_ids(TASKS["race"], twins, said).tolist() == [0, 0, 1]


def test_what_is_said_leaves_out_names_and_wordings_and_order() -> None:
    assert said("Four men pulled Jack's kite along.") == "four men pulled"
    assert said("What about the weight of Lottie's spade?") == "weight"
    assert said("Ada was rich but not sad.") == said("Ben was not sad but rich.") == "rich|sad"
    assert said("Nothing of it.") == "it|nothing|of"
