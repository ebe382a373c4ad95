"""Prompts of the zero-shot sets (paper, section 5): a prefix and k continuations. They have no
special symbols, which pre-training never saw.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import UNKNOWN, Vocabulary
from gpt1.params.schema import Params, TaskParams
from gpt1.tasks.arrays import EncodedSplit, packed, texts_of
from gpt1.tasks.readers import SplitRows, read_task
from gpt1.tasks.rows import Example, cluster_ids
from gpt1.tasks.shapes import Ids, question_parts
from gpt1.tasks.zero_shot import Rule, ZeroShotSet

VERY, WORDS = "very", ("negative", "positive")  # the words in the order of SST-2's classes


@dataclass(frozen=True)
class Prompt:
    """Ids of a prefix and its continuations, and how many first tokens of each do not count."""

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
    """CoLA: make a prompt of a text, cut to the context; all tokens but the first count."""
    return Prompt([], [list(text[:context])], [1], len(text) > context)


def next_word(text: Ids, very: Ids, words: Sequence[Ids], context: int) -> Prompt:
    """SST-2: make a prompt of the sentence, cut at its end, and *very*; words continue it. Raises
    UserError where these do not fit.
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
    """RACE: make a prompt of passage and question, cut as in fine-tuning; options continue it."""
    prefix, answers, truncated = question_parts(passage, question, options, context, 0)
    return Prompt(prefix, answers, [0 if prefix else 1] * len(answers), truncated)


def substitution(before: Ids, candidates: Sequence[Ids], rest: Ids, context: int) -> Prompt:
    """DPRD: make a prompt of the text before the pronoun; a candidate and the rest, which alone
    counts, continue it. A candidate keeps a quarter of the context, the rest at least one token.
    """
    limit = context // 4
    shortened = [list(candidate[:limit]) for candidate in candidates]
    longest = max(map(len, shortened))
    prefix = list(before[: context - longest - 1])
    room = context - longest - len(prefix)
    uncounted = [max(len(candidate), 0 if prefix else 1) for candidate in shortened]
    return Prompt(
        prefix,
        [[*candidate, *rest[:room]] for candidate in shortened],
        uncounted,
        len(before) > len(prefix) or len(rest) > room or max(map(len, candidates)) > limit,
    )


def prompt(rule: Rule, example: Example, ids: Mapping[str, Ids], context: int) -> Prompt:
    """Return an example's prompt. ids: of its texts, and for `next_word` of VERY and WORDS."""
    parts, options = ([ids[text] for text in texts] for texts in (example.context, example.choices))
    if rule == "threshold":
        return sentence(parts[0], context)
    if rule == "next_word":
        return next_word(parts[0], ids[VERY], [ids[word] for word in WORDS], context)
    if rule == "choice":
        return choice(parts[0], parts[1], options, context)
    return substitution(parts[0], options, parts[1], context)


def set_texts(rule: Rule, splits: Iterable[SplitRows]) -> list[str]:
    """Return every text of these splits once."""
    words = (VERY, *WORDS) if rule == "next_word" else ()
    texts = texts_of(example for rows in splits for example in rows.examples)
    return list(dict.fromkeys([*words, *texts]))


def word_notes(vocabulary: Vocabulary, ids: Mapping[str, Ids]) -> list[str]:
    """Note where a word has several pieces, or an unknown one."""
    notes = []
    for word in (VERY, *WORDS):
        pieces = [vocabulary.pieces[id_] for id_ in ids[word]]
        if len(pieces) > 1:
            notes.append(f"{word} is {len(pieces)} pieces: {' '.join(pieces)}")
        if UNKNOWN in pieces:
            notes.append(f"{word} holds a piece that the vocabulary does not know")
    return notes


def read_splits(
    set_: ZeroShotSet, params: Params, folder: Path
) -> tuple[str, dict[str, SplitRows]]:
    """Return the name of the split to score (test where labelled, else dev), and its rows, with
    train's where a threshold needs them.
    """
    task, limits = set_.task, params.zero_shot[set_.task.name]
    row = TaskParams(
        group="glue", train_rows=limits.train_rows, eval_rows=limits.rows, finetune={}
    )  # no group matters in reading
    splits, _ = read_task(task, folder, row, params.encode.max_unreadable_fraction)
    scored = "test" if "test" in splits and splits["test"].labelled else "dev"
    needed = ("train", scored) if set_.rule == "threshold" else (scored,)
    return scored, {name: splits[name] for name in needed}


def prompt_split(
    set_: ZeroShotSet,
    split: str,
    rows: SplitRows,
    ids: Mapping[str, Ids],
    context: int,
    vocabulary_size: int,
) -> EncodedSplit:
    """Make a split's prompts. Raises UserError where no example can be
    scored.

    Arrays: tokens and offsets of prefixes and continuations in turn; uncounted [n, k]; labels [n].
    """
    made = [(prompt(set_.rule, example, ids, context), example) for example in rows.examples]
    scorable = [(prompt, example) for prompt, example in made if prompt.scorable]
    if not scorable:
        raise UserError(
            f"zero-shot set {set_.task.name}: expected {split} examples with tokens to score, found"
            f" none among {len(made)}; look at the files that data/acquire has of it"
        )
    parts = (text for prompt, _ in scorable for text in (prompt.prefix, *prompt.continuations))
    arrays = packed(parts, vocabulary_size - 1) | {
        "uncounted": np.array([prompt.uncounted for prompt, _ in scorable], dtype=np.int64),
        "labels": np.array([example.label for _, example in scorable], dtype=np.int64),
    }
    if set_.rule in ("threshold", "next_word"):  # labels are classes, not places of continuations
        task, labels = set_.task, arrays["labels"]
        for number, name in enumerate(task.labels):
            if number not in labels:
                raise UserError(
                    f"zero-shot set {task.name}: expected {split} examples of both classes"
                    f" ({', '.join(task.labels)}), found none that is {name} among {len(labels)};"
                    f" give more rows under zero_shot.{task.name} in params.yaml, or other files"
                )
    about = rows.counts() | {
        "examples": len(scorable),
        "nothing_to_score": len(made) - len(scorable),
        "truncated": sum(prompt.truncated for prompt, _ in scorable),
    }
    clusters = cluster_ids(set_.task, [example for _, example in scorable])
    return EncodedSplit(arrays, clusters, about)


def described(
    set_: ZeroShotSet,
    scored: str,
    counts: dict[str, Any],
    vocabulary: Vocabulary,
    ids: Mapping[str, Ids],
    context: int,
) -> dict[str, Any]:
    """Return what set.json says of a set; counts: of the `scored` split."""
    words = word_notes(vocabulary, ids) if set_.rule == "next_word" else []
    return {
        "set": set_.task.name,
        "title": set_.task.title,
        "rule": set_.rule,
        "metric": set_.task.metric,
        "random": set_.random,
        "notes": [*words, *notes_of(counts, scored, context)],
        "continuations": set_.continuations,
        "scored_split": scored,
    }


def notes_of(counts: dict[str, Any], scored: str, context: int) -> list[str]:
    """Say which rows were chosen and how many texts cut."""
    notes = []
    if counts["examples"] < counts["available"]:
        notes.append(f"{counts['examples']:,} of {counts['available']:,} {scored} rows")
    if counts["truncated"]:
        notes.append(
            f"{counts['truncated']:,} of {counts['examples']:,} prompts cut to {context} tokens"
        )
    return notes
