"""Zero-shot behaviours (paper, section 5): what a pre-trained network is asked about each example
of four sets, and how it answers.

A prompt is a prefix of token ids, k continuations of it and, for each, how many of its first tokens
do not count. There are no special symbols in it: pre-training never saw them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import UNKNOWN, Vocabulary
from gpt1.tasks.metrics import score
from gpt1.tasks.pronouns import DPRD
from gpt1.tasks.rows import Example
from gpt1.tasks.shapes import Ids, part_limit
from gpt1.tasks.table import TASKS, Task

Rule = Literal["threshold", "next_word", "choice", "substitution"]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
VERY, WORDS = "very", ("negative", "positive")  # the words in the order of SST-2's classes


@dataclass(frozen=True)
class ZeroShotSet:
    """One set: its official files, the rule that makes prompts of its examples, the score of
    guessing.

    each: whether a continuation's score is the mean over its counted tokens, or their sum (one
    word, whatever its pieces).
    """

    task: Task
    rule: Rule
    continuations: int
    each: Literal["mean", "sum"]
    random: float


SETS = {
    "cola": ZeroShotSet(TASKS["cola"], "threshold", 1, "mean", 0.0),
    "sst2": ZeroShotSet(TASKS["sst2"], "next_word", 2, "sum", 0.5),
    "race": ZeroShotSet(TASKS["race"], "choice", 4, "mean", 0.25),
    "dprd": ZeroShotSet(DPRD, "substitution", 2, "mean", 0.5),
}


@dataclass(frozen=True)
class Prompt:
    """Token ids of a prefix (may be empty) and its continuations, the uncounted tokens of each, and
    whether a text was cut.
    """

    prefix: list[int]
    continuations: list[list[int]]
    uncounted: list[int]
    truncated: bool

    @property
    def scorable(self) -> bool:
        """Whether every continuation has a token that counts."""
        return all(
            len(ids) > skipped
            for ids, skipped in zip(self.continuations, self.uncounted, strict=True)
        )


def sentence(text: Ids, context: int) -> Prompt:
    """CoLA: the sentence's first `context` tokens, all but the first counted: no text stands before
    that one to predict it.
    """
    return Prompt([], [list(text[:context])], [1], len(text) > context)


def next_word(text: Ids, very: Ids, words: Sequence[Ids], context: int) -> Prompt:
    """SST-2: the sentence and *very*, then each word; all pieces of a word count. The sentence
    keeps its head.

    Raises UserError where *very* and the longest word alone do not fit.
    """
    room = context - len(very) - max(map(len, words))
    if room < 0:
        raise UserError(
            f"model.context: expected at least {context - room}, the pieces of {VERY} and"
            f" {' or '.join(WORDS)}, found {context}; raise model.context or bpe.merges in"
            " params.yaml"
        )
    return Prompt(
        [*text[:room], *very], [list(word) for word in words], [0] * len(words), len(text) > room
    )


def choice(passage: Ids, question: Ids, options: Sequence[Ids], context: int) -> Prompt:
    """RACE: passage and question, then each option, all of its tokens counted.

    Question and options keep at most a quarter of the context each, as in fine-tuning, and the
    passage's head fills what the longest option leaves: so all options see the same prefix.
    """
    limit = part_limit(context) // 2
    kept = [list(option[:limit]) for option in options]
    room = context - min(len(question), limit) - max(map(len, kept))
    prefix = [*passage[:room], *question[:limit]]
    return Prompt(
        prefix,
        kept,
        [0 if prefix else 1] * len(kept),
        len(passage) > room or len(question) > limit or max(map(len, options)) > limit,
    )


def substitution(before: Ids, candidates: Sequence[Ids], rest: Ids, context: int) -> Prompt:
    """DPRD: the text before the pronoun, then each candidate in its place and the rest of the
    sentence, of which only the rest counts.

    A sentence longer than the context keeps its head, but for one token of the rest; a candidate
    keeps at most a quarter of the context. The rest is the same for all candidates.
    """
    limit = context // 4
    kept = [list(candidate[:limit]) for candidate in candidates]
    longest = max(map(len, kept))
    prefix = list(before[: context - longest - 1])
    room = context - longest - len(prefix)
    uncounted = [max(len(candidate), 0 if prefix else 1) for candidate in kept]
    return Prompt(
        prefix,
        [[*candidate, *rest[:room]] for candidate in kept],
        uncounted,
        len(before) > len(prefix) or len(rest) > room or max(map(len, candidates)) > limit,
    )


def prompt(rule: Rule, example: Example, ids: Mapping[str, Ids], context: int) -> Prompt:
    """The prompt of one example, given the ids of its texts (and for `next_word` of VERY and
    WORDS).
    """
    parts, options = (
        [ids[text] for text in example.context],
        [ids[text] for text in example.choices],
    )
    if rule == "threshold":
        return sentence(parts[0], context)
    if rule == "next_word":
        return next_word(parts[0], ids[VERY], [ids[word] for word in WORDS], context)
    if rule == "choice":
        return choice(parts[0], parts[1], options, context)
    return substitution(parts[0], options, parts[1], context)


def texts_of(rule: Rule, examples: Sequence[Example]) -> list[str]:
    """Every text to encode for these examples, each once."""
    words = (VERY, *WORDS) if rule == "next_word" else ()
    return list(
        dict.fromkeys(
            [
                *words,
                *(text for example in examples for text in (*example.context, *example.choices)),
            ]
        )
    )


def word_notes(vocabulary: Vocabulary, ids: Mapping[str, Ids]) -> list[str]:
    """What a reader should know of *very* and the two words in this vocabulary: those of several
    pieces, and unknown pieces.
    """
    notes = []
    for word in (VERY, *WORDS):
        pieces = [vocabulary.pieces[id_] for id_ in ids[word]]
        if len(pieces) > 1:
            notes.append(f"{word} is {len(pieces)} pieces: {' '.join(pieces)}")
        if UNKNOWN in pieces:
            notes.append(f"{word} holds a piece that the vocabulary does not know")
    return notes


def check_classes(task: Task, split: str, labels: Integers) -> None:
    """Raises UserError where a split of a task with two classes has examples of one class only: no
    score would mean anything.
    """
    for number, name in enumerate(task.labels):
        if number not in labels:
            raise UserError(
                f"zero-shot set {task.name}: expected {split} examples of both classes"
                f" ({', '.join(task.labels)}), found none that is {name} among {len(labels)}; give"
                f" more rows under zero_shot.{task.name} in params.yaml, or other files"
            )


def best_threshold(scores_n: Floats, labels_n: Integers) -> float:
    """The threshold with the best Matthews correlation when a score above it means class 1; of
    equally good ones the lowest.

    Tried: below every score (all are class 1), and midway between each two neighbouring scores that
    differ.
    """
    order = np.argsort(scores_n, kind="stable")
    ranked, positive = scores_n[order], (labels_n[order] == 1).astype(np.float64)
    cuts = (
        np.flatnonzero(np.diff(ranked) > 0) + 1
    )  # so many of the lowest scores are at most the threshold
    below, positive_below = cuts.astype(np.float64), np.cumsum(positive)[cuts - 1]
    total, positives = float(len(ranked)), float(positive.sum())
    covariance = (positives - positive_below) * total - positives * (total - below)
    scale = np.sqrt(positives * (total - positives) * below * (total - below))
    correlations = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
    best = int(np.argmax(correlations)) if len(cuts) else -1
    if best < 0 or correlations[best] <= 0:
        return -np.inf
    low, high = ranked[cuts[best] - 1], ranked[cuts[best]]
    return float(
        min(low + (high - low) / 2, np.nextafter(high, low))
    )  # never `high` itself, however near it is


def continuation_scores(each: str, sums_nk: Floats, counted_nk: Integers) -> Floats:
    """Scores [n, k] of continuations from the log-probabilities of their counted tokens: their
    mean, or their sum.
    """
    return sums_nk / counted_nk if each == "mean" else sums_nk


def answers(rule: Rule, scores_nk: Floats, threshold: float) -> npt.NDArray[np.int8]:
    """Answers [n]: the continuation with the highest score (the first of equals), or for
    `threshold` whether the score is above it.
    """
    chosen = scores_nk[:, 0] > threshold if rule == "threshold" else np.argmax(scores_nk, axis=1)
    return chosen.astype(np.int8)


def score_answers(set_: ZeroShotSet, labels_n: Integers, answers_n: npt.NDArray[np.int8]) -> float:
    """The set's metric: Matthews correlation of CoLA (-1..1), accuracy (0..1) of the others."""
    return score(set_.task.metric, labels_n, answers_n.astype(np.int64))
