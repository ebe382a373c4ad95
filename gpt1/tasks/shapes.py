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


def pair(first: Ids, second: Ids, symbols: Symbols) -> list[int]:
    """Make start first delimiter second extract."""
    return [symbols.start, *first, symbols.delimiter, *second, symbols.extract]


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
    """Return an example's sequences from its texts' ids; a part that is cut keeps its head. Raises
    ValueError for other parts than its kind has.
    """
    match kind, [*context_parts], [*choices]:
        case "classification", [text], []:
            limit = context - 2  # the authors' code
            return Shaped([[symbols.start, *text[:limit], symbols.extract]], len(text) > limit)
        case "entailment", [premise, hypothesis], []:
            pairs = [(premise, hypothesis)]
        case "similarity", [first, second], []:  # the classifier adds the hidden states of both
            pairs = [(first, second), (second, first)]
        case "multiple_choice", [story], [_, *_]:  # Story Cloze
            pairs = [(story, ending) for ending in choices]
        case "multiple_choice", [passage, question], [_, *_]:
            # RACE (paper, section 3.3: no delimiter before the question)
            prefix, answers, truncated = question_parts(passage, question, choices, context, 3)
            return Shaped([pair(prefix, answer, symbols) for answer in answers], truncated)
        case _:
            raise ValueError(
                f"{kind} cannot have {len(context_parts)} parts and {len(choices)} choices"
            )
    limit = part_limit(context)
    sequences = [pair(first[:limit], second[:limit], symbols) for first, second in pairs]
    return Shaped(sequences, any(len(part) > limit for parts in pairs for part in parts))
