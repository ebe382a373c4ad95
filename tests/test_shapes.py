"""Figure 1 by hand: the order of symbols, both orders of a pair, a sequence a choice, and what is
cut.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt1.tasks.shapes import Symbols, part_limit, shape

SYMBOLS = Symbols(start=100, delimiter=101, extract=102)
IDS = st.lists(st.integers(0, 99), min_size=1, max_size=60)
LONG = [*range(30)]


@pytest.mark.parametrize(
    ("kind", "parts", "choices", "context", "sequences"),
    [
        ("classification", [[1, 2]], [], 16, [[100, 1, 2, 102]]),
        ("entailment", [[1, 2], [3]], [], 16, [[100, 1, 2, 101, 3, 102]]),
        (
            "entailment",
            [LONG, LONG],
            [],
            12,
            [[100, *LONG[:4], 101, *LONG[:4], 102]],
        ),  # 12 // 2 - 2
        ("similarity", [[1, 2], [3]], [], 16, [[100, 1, 2, 101, 3, 102], [100, 3, 101, 1, 2, 102]]),
        (
            "multiple_choice",
            [[1, 2]],
            [[3], [4, 5]],
            16,
            [[100, 1, 2, 101, 3, 102], [100, 1, 2, 101, 4, 5, 102]],
        ),
        (
            "multiple_choice",
            [[1, 2], [9]],
            [[3], [4, 5]],
            16,
            [[100, 1, 2, 9, 101, 3, 102], [100, 1, 2, 9, 101, 4, 5, 102]],
        ),
        # a part is 20 // 2 - 2 = 8, question and answers 4 each; the passage gets
        # 20 - 3 symbols - 2 - 3 = 12
        (
            "multiple_choice",
            [LONG, [60, 61]],
            [[70], [71, 72, 73]],
            20,
            [
                [100, *LONG[:12], 60, 61, 101, 70, 102],
                [100, *LONG[:12], 60, 61, 101, 71, 72, 73, 102],
            ],
        ),
        (
            "multiple_choice",
            [[1], LONG],
            [[70], LONG],
            20,
            [[100, 1, *LONG[:4], 101, 70, 102], [100, 1, *LONG[:4], 101, *LONG[:4], 102]],
        ),
    ],
)
def test_each_shape_by_hand(kind, parts, choices, context, sequences):
    assert shape(kind, parts, choices, SYMBOLS, context).sequences == sequences


def test_the_authors_limit_of_a_part():
    assert part_limit(512) == 254


@pytest.mark.parametrize(
    ("kind", "parts", "choices", "context"),
    [
        ("classification", [10], [], 12),
        ("entailment", [4, 4], [], 12),
        ("similarity", [4, 4], [], 12),
        ("multiple_choice", [4], [4, 4], 12),
        ("multiple_choice", [9, 4], [4, 4], 20),  # passage and question: 20 - 3 symbols - 4 - 4
    ],
)
def test_whether_a_part_was_cut_at_the_exact_limits(kind, parts, choices, context):
    def truncated(lengths):
        texts = [[1] * length for length in lengths]
        return shape(kind, texts[: len(parts)], texts[len(parts) :], SYMBOLS, context).truncated

    longest = [*parts, *choices]
    assert not truncated(longest)
    for place in range(len(longest)):
        longer = [length + (number == place) for number, length in enumerate(longest)]
        assert truncated(longer), f"part {place}"


@given(
    parts=st.lists(IDS, min_size=2, max_size=2),
    choices=st.lists(IDS, min_size=2, max_size=4),
    context=st.integers(8, 140),
)
def test_no_sequence_exceeds_the_context(parts, choices, context):
    for kind, given_parts, given_choices, count in [
        ("classification", parts[:1], [], 1),
        ("entailment", parts, [], 1),
        ("similarity", parts, [], 2),
        ("multiple_choice", parts[:1], choices, len(choices)),
        ("multiple_choice", parts, choices, len(choices)),
    ]:
        shaped = shape(kind, given_parts, given_choices, SYMBOLS, context)
        assert len(shaped.sequences) == count
        for number, sequence in enumerate(shaped.sequences):
            assert len(sequence) <= context
            assert (sequence[0], sequence[-1], sequence.count(102)) == (100, 102, 1)
            assert sequence.count(101) == (kind != "classification")
            texts = [*given_parts, *given_choices[number : number + 1]]
            if not shaped.truncated:
                assert len(sequence) == sum(map(len, texts)) + 2 + (kind != "classification")


@given(first=IDS, second=IDS, context=st.integers(8, 140))
def test_swapping_a_pair_swaps_its_two_sequences(first, second, context):
    one, other = (
        shape("similarity", pair, [], SYMBOLS, context).sequences
        for pair in ([first, second], [second, first])
    )
    assert one == other[::-1]


@pytest.mark.parametrize(
    ("kind", "parts", "choices"),
    [("classification", 2, 0), ("entailment", 1, 0), ("multiple_choice", 1, 0), ("ranking", 2, 0)],
)
def test_parts_that_a_kind_does_not_have_are_refused(kind, parts, choices):
    with pytest.raises(ValueError, match="cannot have"):
        shape(kind, [[1]] * parts, [[2]] * choices, SYMBOLS, 16)
