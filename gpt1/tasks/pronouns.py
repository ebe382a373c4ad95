"""DPRD, the definite pronouns of Rahman and Ng (2012): two candidates for a pronoun, as in
Winograd's schemas.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from gpt1.sources.definitions import DPRD as SOURCE
from gpt1.tasks.definitions import Task
from gpt1.tasks.layouts import BlockFormat, Split
from gpt1.tasks.rows import (
    BadRowError,
    Example,
    Rows,
    as_text,
    examples,
    filled,
    numbered_lines,
    quoted,
)

PARTS = ("sentence", "pronoun", "candidates", "answer")

DPRD = Task(
    "dprd",
    "DPRD",
    "multiple_choice",
    ("first", "second"),
    "accuracy",  # zero-shot only: no table has a column for it
    columns=(),
    layouts=(
        (
            Split("train", ("train.c.txt",), BlockFormat(), required=False),
            Split("test", ("test.c.txt",), BlockFormat()),
        ),
    ),
    folders=SOURCE.folders,
    origin=SOURCE.origin,
    licence=SOURCE.licence,
    cluster="twins",
)


def read_blocks(path: Path) -> Rows:
    """Yield a file's blocks in order: an example, or why there is none. Raises UserError.

    Its context is the text before the pronoun (often empty) and after it, its choices the
    candidates.
    """
    return examples(_blocks(path), _example)


def _blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    for blank, block in groupby(numbered_lines(path), lambda numbered: not numbered[1].strip()):
        if not blank:
            (first, *_), lines = zip(*block, strict=True)
            yield first, list(lines)


def _example(lines: list[bytes]) -> Example:
    texts = [as_text(line) for line in lines]
    if len(texts) != len(PARTS):
        raise BadRowError("not four lines", f"{len(texts)} lines from {quoted(texts[0])}")
    sentence, pronoun, candidates, answer = (
        filled(name, text).strip() for name, text in zip(PARTS, texts, strict=True)
    )
    names = [name.strip() for name in candidates.split(",")]
    if len(names) != 2 or not all(names):
        raise BadRowError("not two candidates", quoted(candidates))
    folded = [name.casefold() for name in names]
    if folded[0] == folded[1]:
        raise BadRowError("equal candidates", quoted(candidates))
    if answer.casefold() not in folded:
        raise BadRowError("answer is no candidate", f"{quoted(answer)} of {quoted(candidates)}")
    match = pronoun_place(sentence, pronoun)
    if match is None:
        raise BadRowError("pronoun not in the sentence", f"{quoted(pronoun)} in {quoted(sentence)}")
    before, after = sentence[: match.start()].strip(), sentence[match.end() :].strip()
    if not after:
        raise BadRowError("nothing after the pronoun", quoted(sentence))
    return Example((before, after), tuple(names), folded.index(answer.casefold()))


def pronoun_place(sentence: str, pronoun: str) -> re.Match[str] | None:
    """Find the pronoun's first occurrence, the one that the data's authors mean, as a whole word in
    any case.
    """
    return re.search(rf"(?<!\w){re.escape(pronoun)}(?!\w)", sentence, re.IGNORECASE)
