"""The zero-shot rules (paper, section 5) by hand, CoLA's threshold against scikit-learn, and the
reader of DPRD.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from made_prompts import SIZES, prompts_of
from sklearn.metrics import matthews_corrcoef

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import Vocabulary
from gpt1.inference.continuations import log_probabilities
from gpt1.model.lstm import Lstm
from gpt1.tasks import prompts, zero_shot
from gpt1.tasks.pronouns import pronoun_place, read_blocks
from gpt1.tasks.rows import Example, Unreadable

ALIKE = np.tile([1 / 2, 1 / 4, 1 / 8, 1 / 8], (4, 1))  # next tokens of four, whatever stands before
AFTER = np.array(
    [
        [1 / 8, 1 / 8, 1 / 2, 1 / 4],
        [1 / 4, 1 / 2, 1 / 8, 1 / 8],
        [1 / 4, 1 / 4, 1 / 4, 1 / 4],
        [1 / 2, 1 / 16, 5 / 16, 1 / 8],
    ]
)


def bigram(after_vv):
    """An LSTM that remembers the last token alone, whose row of `after_vv` holds the probabilities
    of the next.
    """
    v, open_gate = len(after_vv), 100.0
    model = Lstm(SIZES, v, v, torch.Generator())
    weights = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    weights["tokens"][:, :v] = torch.eye(v)
    weights["recurrent.weight_ih_l0"][2 * v : 3 * v, :v] = open_gate * torch.eye(
        v
    )  # the new cell is 1 at the token
    weights["recurrent.bias_ih_l0"][:] = open_gate * torch.tensor(
        [1.0, -1.0, 0.0, 1.0]
    ).repeat_interleave(v)
    weights["projection.weight"][:v] = torch.from_numpy(np.log(after_vv).T / math.tanh(1))
    model.load_state_dict(weights)
    return model


def scores_by(after_vv, name, made):
    prompts = prompts_of([(made.prefix, made.continuations, made.uncounted)])
    found = log_probabilities(bigram(after_vv), prompts, len(after_vv), 100)
    return zero_shot.continuation_scores(zero_shot.SETS[name].each, found, prompts.counted())


def test_race_by_hand():
    """Options of mean log 1/2, (log 1/2 + log 1/8) / 2 = log 1/4, log 1/8 and log 1/4: the first
    wins, though its sum, log 1/8, ties.
    """
    made = prompts.choice([3, 3], [2], [[0, 0, 0], [0, 2], [2], [1, 1]], 24)
    assert (made.prefix, made.uncounted, made.truncated) == ([3, 3, 2], [0, 0, 0, 0], False)
    scores = scores_by(ALIKE, "race", made)
    np.testing.assert_allclose(scores, np.log([[1 / 2, 1 / 4, 1 / 8, 1 / 4]]), atol=1e-6)
    assert zero_shot.answers("choice", scores, math.nan).tolist() == [0]


def test_dprd_by_hand():
    """Only the rest counts: 1/2 * 1/4 after the one candidate, 1/8 * 1/4 after the other, however
    likely the candidates themselves.
    """
    made = prompts.substitution([3], [[0], [0, 1]], [2, 3], 24)
    assert (made.prefix, made.continuations, made.uncounted) == (
        [3],
        [[0, 2, 3], [0, 1, 2, 3]],
        [1, 2],
    )
    scores = scores_by(AFTER, "dprd", made)
    np.testing.assert_allclose(scores, np.log([[1 / 2 * 1 / 4, 1 / 8 * 1 / 4]]) / 2, atol=1e-6)
    assert zero_shot.answers("substitution", scores, math.nan).tolist() == [0]
    first = prompts.substitution([], [[1], [0]], [2], 24)  # the pronoun opens the sentence
    np.testing.assert_allclose(scores_by(AFTER, "dprd", first), np.log([[1 / 8, 1 / 2]]), atol=1e-6)


def test_sst2_by_hand():
    """A word of two pieces scores their product, 1/4 * 1/2, and one of a single piece 1/2: the
    second, positive, is chosen.
    """
    made = prompts.next_word([3, 3], [2], [[1, 0], [0]], 24)
    assert (made.prefix, made.continuations, made.uncounted) == ([3, 3, 2], [[1, 0], [0]], [0, 0])
    scores = scores_by(ALIKE, "sst2", made)
    np.testing.assert_allclose(scores, np.log([[1 / 8, 1 / 2]]), atol=1e-6)
    assert zero_shot.answers("next_word", scores, math.nan).tolist() == [1]
    assert zero_shot.answers("next_word", np.array([[-1.0, -1.0]]), math.nan).tolist() == [0]


def test_cola_by_hand():
    """The first token has nothing before it: of [0, 1, 1, 2] three count, (2 log 1/4 + log 1/8) /
    3.
    """
    made = prompts.sentence([0, 1, 1, 2], 24)
    scores = scores_by(ALIKE, "cola", made)
    assert scores.item() == pytest.approx((2 * math.log(1 / 4) + math.log(1 / 8)) / 3)
    assert zero_shot.answers("threshold", scores, scores.item()).tolist() == [0], (
        "above, not at, the threshold"
    )
    assert not prompts.sentence([4], 24).scorable


def test_long_texts_keep_their_heads_and_fit():
    long = list(range(100))
    assert prompts.sentence(long, 16).continuations == [long[:16]]
    made = prompts.next_word(long, [201], [[202], [203, 204]], 16)
    assert made.prefix == [*long[:13], 201]
    made = prompts.choice(
        long, [101, 102, 103, 104], [long[:9], [105]], 16
    )  # a quarter of 16, less room for symbols: 3
    assert (made.prefix, made.continuations) == ([*long[:10], 101, 102, 103], [[0, 1, 2], [105]])
    made = prompts.substitution(long, [[201], [202, 203]], [301, 302], 16)
    assert (made.prefix, made.continuations) == (long[:13], [[201, 301], [202, 203, 301]])
    assert prompts.substitution(long[:9], [[201] * 9, [202]], [301] * 9, 16).continuations == [
        [201] * 4 + [301] * 3,
        [202] + [301] * 3,
    ]
    for context, lengths in itertools.product(
        (8, 9, 16, 31), itertools.product((0, 1, 5, 40), repeat=3)
    ):
        before, middle, after = (long[:length] for length in lengths)
        for made in (
            prompts.choice(before, middle or [4], [after or [1], [2]], context),
            prompts.substitution(before, [middle or [1], [2]], after or [3], context),
        ):
            assert made.scorable
            assert all(len(made.prefix) + len(ids) <= context for ids in made.continuations)
            assert made.prefix or min(made.uncounted) >= 1, (
                "a first token with nothing before it has no probability"
            )


def test_a_context_too_short_for_the_words():
    with pytest.raises(UserError, match=r"expected at least 12.* found 8"):
        prompts.next_word([1], [1] * 4, [[2] * 8, [3] * 8], 8)


@pytest.mark.slow
def test_threshold_is_the_best_of_all():
    """Against every cut tried with scikit-learn, with ties among the scores."""
    draw = np.random.default_rng(0)
    for _ in range(50):
        labels = draw.integers(2, size=12)
        scores = np.round(draw.normal(labels * 0.7, 1), 1)
        threshold = zero_shot.best_threshold(scores, labels)
        values = np.unique(scores)
        cuts = [-np.inf, *((values[1:] + values[:-1]) / 2)]
        tried = [
            matthews_corrcoef(labels, scores > cut) if len(set(labels)) > 1 else 0.0 for cut in cuts
        ]
        best = next(
            cut for cut, value in zip(cuts, tried, strict=True) if value > max(tried) - 1e-9
        )
        assert threshold == pytest.approx(best)


def test_threshold_lies_between_neighbours_and_ties_go_low():
    assert zero_shot.best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1])) == 2.5
    assert zero_shot.best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 0, 1])) == 1.5
    assert zero_shot.best_threshold(np.array([1.0, 2.0]), np.array([1, 0])) == -np.inf, (
        "no cut is better than accepting all"
    )
    assert zero_shot.best_threshold(np.array([2.0, 2.0]), np.array([1, 0])) == -np.inf
    assert zero_shot.best_threshold(np.array([1.0, 2.0]), np.array([1, 1])) == -np.inf, (
        "one class alone has no correlation"
    )
    low, high = 1.0, np.nextafter(1.0, 2)
    assert low <= zero_shot.best_threshold(np.array([low, high]), np.array([0, 1])) < high


def test_a_sentence_that_fits_is_not_cut():
    assert not prompts.substitution([5, 6], [[1], [2]], [3, 4], 24).truncated
    assert prompts.substitution([5] * 24, [[1], [2]], [3, 4], 24).truncated


def test_words_of_several_or_unknown_pieces_are_noted():
    vocabulary = Vocabulary("aegintvrsyop", [("p", "o"), ("v", "e"), ("ve", "r"), ("ver", "y</w>")])
    notes = prompts.word_notes(
        vocabulary, {word: vocabulary.encode(word) for word in ("very", "positive", "negative")}
    )
    assert notes == [
        "negative is 8 pieces: n e g a t i v e</w>",
        "positive is 7 pieces: po s i t i v e</w>",
    ]
    without = Vocabulary("aegintvrsyo", [])
    assert "positive holds a piece that the vocabulary does not know" in prompts.word_notes(
        without, {word: without.encode(word) for word in ("very", "positive", "negative")}
    )


GOOD = "Ann paid Bob because she owed him.\nshe\nAnn,Bob\nAnn\n"
BAD = {
    "not four lines": "Ann fell.\nshe\nAnn,Bob\n",
    "pronoun not in the sentence": "Ann fell on the shed.\nshe\nAnn,Bob\nBob\n",
    "not two candidates": "Ann fell, she did.\nshe\nAnn,Bob,Cy\nBob\n",
    "answer is no candidate": "Ann fell, she did.\nshe\nAnn,Bob\nCy\n",
    "nothing after the pronoun": "Ann saw Bob, not she\nshe\nAnn,Bob\nBob\n",
    "equal candidates": "Ann saw, she did.\nshe\nAnn, ann\nAnn\n",
}


def test_dprd_blocks(tmp_path):
    path = tmp_path / "test.c.txt"
    path.write_text(
        "\ufeffThe bee saw it ate it.\r\n It \r\nThe bee, a fly \r\nthe bee\r\n\r\n\r\n"
        + GOOD
        + "\n\n"
    )
    assert list(read_blocks(path)) == [
        Example(("The bee saw", "ate it."), ("The bee", "a fly"), 0),
        Example(("Ann paid Bob because", "owed him."), ("Ann", "Bob"), 0),
    ]


@pytest.mark.parametrize("reason", BAD)
def test_dprd_blocks_that_cannot_be_read_say_why(tmp_path, reason):
    path = tmp_path / "test.c.txt"
    path.write_text(f"{GOOD}\n{BAD[reason]}\n{GOOD}")
    good, bad, last = read_blocks(path)
    assert good == last
    assert isinstance(bad, Unreadable)
    assert (bad.row, bad.reason) == (6, reason)


def test_the_first_whole_word_is_the_pronoun():
    assert pronoun_place("The witch said that he hit her with his hat.", "he").start() == 20
    assert pronoun_place("He fell and he cried.", "he").start() == 0
    assert pronoun_place("They're late since they slept.", "they").end() == 4
    assert pronoun_place("The shed.", "he") is None
