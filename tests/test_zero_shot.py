"""Zero-shot behaviours (paper, section 5): log-probabilities of continuations by both networks
against float64 arithmetic, the rules by hand, CoLA's threshold against scikit-learn, DPRD's reader.
"""

import itertools

import numpy as np
import pytest
import torch
from by_hand import states
from made_data import tiny_sizes

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import Vocabulary
from gpt1.inference.zero_shot import Prompts, log_probabilities
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm
from gpt1.tasks import prompts, zero_shot
from gpt1.tasks.file_rows import pronoun_place, read_blocks
from gpt1.tasks.metrics import score
from gpt1.tasks.rows import Example, Unreadable

SIZES = tiny_sizes(feed_forward=40, deviation=0.4)


def prompts_of(made):
    """Arrays of (prefix, continuations, uncounted), as the stage writes them."""
    parts = [part for prefix, continuations, _ in made for part in (prefix, *continuations)]
    return Prompts(
        np.array([id_ for part in parts for id_ in part], dtype=np.uint16),
        np.cumsum([0, *map(len, parts)]),
        np.array([uncounted for *_, uncounted in made]),
        np.zeros(len(made), dtype=np.int64),
    )


UNITS, ROWS, VOCABULARY = 20, 30, 27
NEAR = 1e-4  # of sums down to -40 in float32, added up in other orders


def network(kind):
    """A small random network whose biases and gains are random too."""
    generator = torch.Generator().manual_seed(3)
    made = (
        Lstm(SIZES, UNITS, ROWS, generator) if kind == "lstm" else Decoder(SIZES, ROWS, generator)
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return made


def random_prompts(n, k, seed):
    """Prompts of all lengths, some without a prefix and some whose continuations are one token."""
    draw = np.random.default_rng(seed)
    made = []
    for number in range(n):
        prefix = draw.integers(VOCABULARY, size=draw.integers(1, 14) if number % 4 else 0).tolist()
        uncounted = [int(draw.integers(0 if prefix else 1, 3)) for _ in range(k)]
        longest = 1 if number % 7 == 1 else 8
        continuations = [
            draw.integers(VOCABULARY, size=skipped + draw.integers(1, longest + 1)).tolist()
            for skipped in uncounted
        ]
        made.append((prefix, continuations, uncounted))
    return made


def numpy_sums(model, made):
    """Each continuation by itself after its whole prefix, in float64."""
    embeddings, found = model.tokens.detach().double().numpy(), []
    for prefix, continuations, uncounted in made:
        for ids, skipped in zip(continuations, uncounted, strict=True):
            text = [*prefix, *ids]
            logits = states(model, text) @ embeddings[:VOCABULARY].T
            logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            found.append(
                sum(
                    logs[place - 1, text[place]]
                    for place in range(len(prefix) + skipped, len(text))
                )
            )
    return np.array(found).reshape(len(made), -1)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_log_probabilities_are_those_of_float64_arithmetic(kind):
    """Whatever is beside a text in its batch; the softmax leaves special rows out."""
    model = network(kind)
    for k, batch_tokens in [(1, 1), (2, 64), (4, 100), (4, 100_000)]:
        made = random_prompts(24, k, seed=k)
        sums = log_probabilities(model, prompts_of(made), VOCABULARY, batch_tokens)
        assert sums.std() > 1, "made-up weights that tell texts apart"
        np.testing.assert_allclose(sums, numpy_sums(model, made), rtol=0, atol=NEAR)


HALF, QUARTER, EIGHTH = np.log([1 / 2, 1 / 4, 1 / 8])


def scores_of(name, made, sums):
    """Scores of continuations whose counted tokens have these log-probabilities in all."""
    counted = prompts_of([(made.prefix, made.continuations, made.uncounted)]).counted()
    rule = zero_shot.SETS[name].rule
    scores = zero_shot.continuation_scores(rule, np.array([sums]), counted)
    return scores[0].tolist(), zero_shot.answers(rule, scores, QUARTER).item()


EXAMPLE, IDS = Example(("a", "b"), ("c", "d")), {"a": [1], "b": [2], "c": [3], "d": [4]}


def test_race_by_hand():
    """The mean counts: the first option wins, though its sum ties with that of the third."""
    made = prompts.choice([3, 3], [2], [[0, 0, 0], [0, 2], [2], [1, 1]], 24)
    assert (made.prefix, made.uncounted, made.truncated) == ([3, 3, 2], [0, 0, 0, 0], False)
    scores = scores_of("race", made, [3 * HALF, HALF + EIGHTH, EIGHTH, 2 * QUARTER])
    assert scores == (pytest.approx([HALF, QUARTER, EIGHTH, QUARTER]), 0)
    assert prompts.choice([], [], [[1, 2]], 24).uncounted == [1], "the first token has none before"
    made = prompts.prompt("choice", EXAMPLE, IDS, 24)
    assert made == prompts.choice([1], [2], [[3], [4]], 24)


def test_dprd_by_hand():
    """Only the rest of the sentence counts, after a candidate of one token as after one of two."""
    made = prompts.substitution([3], [[0], [0, 1]], [2, 3], 24)
    assert (made.prefix, made.continuations) == ([3], [[0, 2, 3], [0, 1, 2, 3]])
    assert made.uncounted == [1, 2]
    scores = scores_of("dprd", made, [EIGHTH + QUARTER, HALF + QUARTER])
    assert scores == (pytest.approx([(EIGHTH + QUARTER) / 2, (HALF + QUARTER) / 2]), 1)
    made = prompts.prompt("substitution", EXAMPLE, IDS, 24)
    assert made == prompts.substitution([1], [[3], [4]], [2], 24)


def test_sst2_by_hand():
    """A word of two pieces scores their product, 1/4 * 1/2, and one of a single piece 1/2."""
    made = prompts.next_word([3, 3], [2], [[1, 0], [0]], 24)
    assert (made.prefix, made.continuations, made.uncounted) == ([3, 3, 2], [[1, 0], [0]], [0, 0])
    scores = scores_of("sst2", made, [QUARTER + HALF, HALF])
    assert scores == (pytest.approx([EIGHTH, HALF]), 1)
    assert scores_of("sst2", made, [HALF, HALF])[1] == 0  # the first of equals


def test_cola_by_hand():
    """The first token has nothing before it: of four three count."""
    made = prompts.sentence([0, 1, 1, 2], 24)
    scores = scores_of("cola", made, [2 * QUARTER + EIGHTH])
    assert scores == (pytest.approx([(2 * QUARTER + EIGHTH) / 3]), 0)
    assert scores_of("cola", made, [3 * QUARTER])[1] == 0  # above, not at, the threshold
    assert scores_of("cola", made, [3 * HALF])[1] == 1
    assert not prompts.sentence([4], 24).scorable


def test_long_texts_keep_their_heads_and_fit():
    long = list(range(100))
    assert prompts.sentence(long, 16).continuations == [long[:16]]
    assert not prompts.sentence(long[:16], 16).truncated
    made = prompts.next_word(long, [201], [[202], [203, 204]], 16)
    assert (made.prefix, made.truncated) == ([*long[:13], 201], True)
    assert not prompts.next_word(long[:13], [201], [[203, 204]], 16).truncated
    # a quarter of 16, less room for symbols: 3
    made = prompts.choice(long, [101, 102, 103, 104], [long[:9], [105]], 16)
    assert (made.prefix, made.continuations) == ([*long[:10], 101, 102, 103], [[0, 1, 2], [105]])
    made = prompts.substitution(long, [[201], [202, 203]], [301, 302], 16)
    assert (made.prefix, made.continuations) == (long[:13], [[201, 301], [202, 203, 301]])
    assert made.truncated
    assert not prompts.substitution(long[:13], [[201]], [301, 302], 16).truncated
    for context, lengths in itertools.product(
        (8, 9, 31), itertools.product((0, 1, 5, 40), repeat=3)
    ):
        before, middle, after = (long[:length] for length in lengths)
        for made in (
            prompts.choice(before, middle or [4], [after or [1], [2]], context),
            prompts.substitution(before, [middle or [1], [2]], after or [3], context),
        ):
            assert all(len(made.prefix) + len(ids) <= context for ids in made.continuations)
            # the first token has no probability
            assert made.prefix or min(made.uncounted) >= 1


def test_a_context_too_short_for_the_words():
    with pytest.raises(UserError, match=r"expected at least 12.* found 8"):
        prompts.next_word([1], [1] * 4, [[2] * 8, [3] * 8], 8)


def test_threshold_lies_between_neighbours_and_ties_go_low():
    for scores, labels, threshold in [
        ([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1], 1.5),
        ([1.0, 2.0], [1, 0], -np.inf),  # no cut is better than accepting all
        ([2.0, 2.0], [1, 0], -np.inf),
        ([1.0, 2.0], [1, 1], -np.inf),  # one class alone has no correlation
    ]:
        assert zero_shot.best_threshold(np.array(scores), np.array(labels)) == threshold
    generator = np.random.default_rng(0)
    for scores, labels in generator.integers(6, size=(50, 2, 12)):

        def quality(threshold, scores=scores, labels=labels):
            return score("matthews", labels % 2, (scores > threshold).astype(int))

        best = zero_shot.best_threshold(scores.astype(float), labels % 2)
        assert quality(best) == pytest.approx(max(map(quality, [-np.inf, *scores])))


def test_words_of_several_or_unknown_pieces_are_noted():
    vocabulary = Vocabulary("aegintvrsyo", [("v", "e"), ("ve", "r"), ("ver", "y</w>")])
    words = {word: vocabulary.encode(word) for word in ("very", "positive", "negative")}
    notes = prompts.word_notes(vocabulary, words)
    assert notes[0] == "negative is 8 pieces: n e g a t i v e</w>"
    assert "positive holds a piece that the vocabulary does not know" in notes


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
