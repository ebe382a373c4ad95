"""Figure 1 by hand: the order of symbols, both orders of a pair, a sequence a choice, and what is
cut.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt1.tasks.shapes import (
    Symbols,
    choice,
    classification,
    entailment,
    part_limit,
    question_choice,
    shape,
    similarity,
)

SYMBOLS = Symbols(start=100, delimiter=101, extract=102)
IDS = st.lists(st.integers(0, 99), min_size=1, max_size=60)


def test_each_shape_by_hand():
    assert classification([1, 2], SYMBOLS, 16).sequences == [[100, 1, 2, 102]]
    assert entailment([1, 2], [3], SYMBOLS, 16).sequences == [[100, 1, 2, 101, 3, 102]]
    assert similarity([1, 2], [3], SYMBOLS, 16).sequences == [
        [100, 1, 2, 101, 3, 102],
        [100, 3, 101, 1, 2, 102],
    ]
    assert choice([1, 2], [[3], [4, 5]], SYMBOLS, 16).sequences == [
        [100, 1, 2, 101, 3, 102],
        [100, 1, 2, 101, 4, 5, 102],
    ]
    assert question_choice([1, 2], [9], [[3], [4, 5]], SYMBOLS, 16).sequences == [
        [100, 1, 2, 9, 101, 3, 102],
        [100, 1, 2, 9, 101, 4, 5, 102],
    ]


def test_parts_keep_their_heads_by_the_authors_rule():
    assert part_limit(512) == 254
    shaped = entailment(list(range(10)), list(range(20, 30)), SYMBOLS, 12)  # 12 // 2 - 2 = 4
    assert shaped.sequences == [[100, 0, 1, 2, 3, 101, 20, 21, 22, 23, 102]]
    assert shaped.truncated
    assert not entailment([1, 2, 3, 4], [5, 6, 7, 8], SYMBOLS, 12).truncated
    assert choice([1], [[2], [3, 4, 5, 6, 7]], SYMBOLS, 12).truncated


def test_a_long_passage_leaves_question_and_answers_whole():
    # context 20: a part 8, so question and answers 4 each; the passage gets 20 - 3 symbols - 2 - 3
    # = 12
    shaped = question_choice(list(range(50)), [60, 61], [[70], [71, 72, 73]], SYMBOLS, 20)
    passage = list(range(12))
    assert shaped.sequences == [
        [100, *passage, 60, 61, 101, 70, 102],
        [100, *passage, 60, 61, 101, 71, 72, 73, 102],
    ]
    assert shaped.truncated
    assert len(shaped.sequences[1]) == 20
    cut = question_choice([1], list(range(60, 70)), [[70], list(range(80, 90))], SYMBOLS, 20)
    assert cut.sequences == [
        [100, 1, 60, 61, 62, 63, 101, 70, 102],
        [100, 1, 60, 61, 62, 63, 101, 80, 81, 82, 83, 102],
    ]
    assert cut.truncated


@given(
    parts=st.lists(IDS, min_size=2, max_size=2),
    choices=st.lists(IDS, min_size=2, max_size=4),
    context=st.integers(8, 140),
)
def test_no_sequence_exceeds_the_context(parts, choices, context):
    for kind, given_parts, given_choices in [
        ("classification", parts[:1], []),
        ("entailment", parts, []),
        ("similarity", parts, []),
        ("multiple_choice", parts[:1], choices),
        ("multiple_choice", parts, choices),
    ]:
        shaped = shape(kind, given_parts, given_choices, SYMBOLS, context)
        assert len(shaped.sequences) == {"classification": 1, "entailment": 1, "similarity": 2}.get(
            kind, len(choices)
        )
        for number, sequence in enumerate(shaped.sequences):
            assert len(sequence) <= context
            assert (sequence[0], sequence[-1], sequence.count(102)) == (100, 102, 1)
            assert sequence.count(101) == (kind != "classification")
            texts = sum(map(len, given_parts)) + (
                len(given_choices[number]) if given_choices else 0
            )
            if not shaped.truncated:
                assert len(sequence) == texts + 2 + (kind != "classification")


@given(first=IDS, second=IDS, context=st.integers(8, 140))
def test_swapping_a_pair_swaps_its_two_sequences(first, second, context):
    assert (
        similarity(first, second, SYMBOLS, context).sequences
        == similarity(second, first, SYMBOLS, context).sequences[::-1]
    )


def test_parts_that_a_kind_does_not_have_are_refused():
    for kind, parts, choices in [
        ("classification", 2, 0),
        ("entailment", 1, 0),
        ("multiple_choice", 1, 0),
        ("ranking", 2, 0),
    ]:
        with pytest.raises(ValueError, match="cannot have"):
            shape(kind, [[1]] * parts, [[2]] * choices, SYMBOLS, 16)
