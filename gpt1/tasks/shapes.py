"""Figure 1 of the paper: examples as sequences of token ids."""

from collections.abc import Sequence
from dataclasses import dataclass

Ids = Sequence[int]


@dataclass(frozen=True)
class Symbols:
    """The ids of the three special symbols after the vocabulary."""

    start: int
    delimiter: int
    extract: int


@dataclass(frozen=True)
class Shaped:
    """One example's sequences, each at most `context` long, and whether a part was cut."""

    sequences: list[list[int]]
    truncated: bool


def part_limit(context: int) -> int:
    """Return how many tokens each of two parts may keep: n_ctx // 2 - 2 in the authors' code."""
    return context // 2 - 2


def classification(text: Ids, symbols: Symbols, context: int) -> Shaped:
    """Make start text extract; the text keeps its first `context` - 2 tokens (the authors'
    code).
    """
    return Shaped([[symbols.start, *text[: context - 2], symbols.extract]], len(text) > context - 2)


def entailment(premise: Ids, hypothesis: Ids, symbols: Symbols, context: int) -> Shaped:
    """Make start premise delimiter hypothesis extract; each part keeps its head (the authors'
    code).
    """
    limit = part_limit(context)
    sequence = [
        symbols.start,
        *premise[:limit],
        symbols.delimiter,
        *hypothesis[:limit],
        symbols.extract,
    ]
    return Shaped([sequence], max(len(premise), len(hypothesis)) > limit)


def similarity(first: Ids, second: Ids, symbols: Symbols, context: int) -> Shaped:
    """Make both orders of a pair; the classifier adds their hidden states."""
    forward, backward = (
        entailment(first, second, symbols, context),
        entailment(second, first, symbols, context),
    )
    return Shaped(forward.sequences + backward.sequences, forward.truncated)


def choice(story: Ids, endings: Sequence[Ids], symbols: Symbols, context: int) -> Shaped:
    """Story Cloze (the authors' code): make start story delimiter ending extract for each
    ending.
    """
    shaped = [entailment(story, ending, symbols, context) for ending in endings]
    return Shaped([each.sequences[0] for each in shaped], any(each.truncated for each in shaped))


def question_choice(
    passage: Ids, question: Ids, answers: Sequence[Ids], symbols: Symbols, context: int
) -> Shaped:
    """RACE: make start passage question delimiter answer extract for each answer (paper, section
    3.3: no delimiter before the question).
    """
    prefix, cut_answers, truncated = question_parts(passage, question, answers, context, 3)
    sequences = [
        [symbols.start, *prefix, symbols.delimiter, *answer, symbols.extract]
        for answer in cut_answers
    ]
    return Shaped(sequences, truncated)


def question_parts(
    passage: Ids, question: Ids, answers: Sequence[Ids], context: int, symbols: int
) -> tuple[list[int], list[list[int]], bool]:
    """Return passage and question, and the answers, cut to fit with so many symbols, and whether
    anything was cut. The authors give no rule.
    """
    # Question and answers keep a quarter of the context each, the passage what the longest answer
    # leaves: all answers see the same passage, and no question is cut away.
    limit = part_limit(context) // 2
    cut_answers = [list(answer[:limit]) for answer in answers]
    room = context - symbols - min(len(question), limit) - max(map(len, cut_answers))
    truncated = max(len(question), *map(len, answers)) > limit or len(passage) > room
    return [*passage[:room], *question[:limit]], cut_answers, truncated


def shape(
    kind: str, context_parts: Sequence[Ids], choices: Sequence[Ids], symbols: Symbols, context: int
) -> Shaped:
    """Return an example's sequences from its texts' ids. Raises ValueError for other parts than its
    kind has.
    """
    if kind == "classification" and len(context_parts) == 1 and not choices:
        return classification(context_parts[0], symbols, context)
    if kind in ("entailment", "similarity") and len(context_parts) == 2 and not choices:
        return (entailment if kind == "entailment" else similarity)(
            context_parts[0], context_parts[1], symbols, context
        )
    if kind == "multiple_choice" and choices and len(context_parts) == 1:
        return choice(context_parts[0], choices, symbols, context)
    if kind == "multiple_choice" and choices and len(context_parts) == 2:
        return question_choice(context_parts[0], context_parts[1], choices, symbols, context)
    raise ValueError(f"{kind} cannot have {len(context_parts)} parts and {len(choices)} choices")
