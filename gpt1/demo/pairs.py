"""Tasks about two texts. SNLI, MNLI, QQP and STS-B turn on words: no deciding word of a training
row stands in a test row, so that only what the books teach about words tells. RTE, SciTail, QNLI
and MRPC turn on order: each row comes with its twin, of the same words and another label.

What one of the texts says is always of a first pole, so that the label is what the other comes to:
whether two unlike texts agree is not learned from a few hundred rows by a network of this size.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gpt1.demo import tales
from gpt1.demo.lexicon import lines
from gpt1.demo.qualities import ALL
from gpt1.demo.scenes import GENRES, Scene
from gpt1.demo.sides import Side, draw_portrait
from gpt1.demo.tales import Slots, Tale
from gpt1.demo.telling import ASKING_WHETHER, Fact, question, sentence
from gpt1.demo.town import Town

TOPICS = {  # the qualities that a task is about
    "mnli": ("weight", "heat"),
    "snli": ("mood", "strength"),
    "qqp": ("weight", "price"),
    "stsb": ("mood", "wealth"),
}
NLI = ("entailment", "neutral", "contradiction")
ENTAILMENT = ("entailment", "not_entailment")


FIRST_POLES = frozenset(word for pole, _ in ALL.values() for word in pole.words)
RTE_CLAIMS = lines("""
so {s} was {a2} now
{s} was really {a2} in the end
""")
SCITAIL_CLAIMS = lines("""
now {s} was {a2}
in the end {s} was {a2}
""")
ASKING_WHO = lines("""
who was {a2}
whom would one call {a2}
who seemed {a2}
whom did people call {a2}
""")


class Pair(NamedTuple):
    """Two texts and their label."""

    first: str
    second: str
    label: str


def entailment(side: Side, number: int, task: str, genres: Sequence[str]) -> list[Pair]:
    """Premise: a quality of a first pole. Hypothesis: the same in another word, another quality, or
    its opposite.
    """
    town, fact, other = _two_qualities(side, task)
    same, contrary = side.synonym(fact), side.contrary(fact)
    hypothesis = (same, other, contrary)[number % 3]
    premise = side.tell(fact)
    while (text := side.tell(hypothesis)) == premise:
        pass
    genre = GENRES[genres[number // 3 % len(genres)]]
    clauses = genre(Scene(town, side.chance), [premise])
    return [Pair(" ".join(map(sentence, clauses)), sentence(text), NLI[number % 3])]


def _two_qualities(side: Side, task: str) -> tuple[Town, Fact, Fact]:
    """Two qualities of a relative or a belonging, the first of a first pole; and the town."""
    town, (first, second) = draw_portrait(side, TOPICS[task])
    return town, side.fact(first.kind, first.subject, 0), second


def follows(side: Side, _: int, claims: Sequence[str], labels: tuple[str, str]) -> list[Pair]:
    """A claim, and a tale from which it follows, or its contrary."""
    frame, *both = _first_pole_first(side, tales.ORDER)
    claim = sentence(side.wording(claims).format(**both[0]))
    return _twins(claim, sentence(frame), both, labels)


def answers(side: Side, _: int) -> list[Pair]:
    """Who is so, and a sentence of somebody who is, or of the contrary, that nobody is."""
    frame, *both = _first_pole_first(side, tales.NEGATION)
    asked = question(side.wording(ASKING_WHO).format(**both[0]))
    return _twins(asked, sentence(frame), both, ENTAILMENT)


def paraphrase(side: Side, _: int) -> list[Pair]:
    """Two sentences of what somebody is and is not: the same in other words, or the other way
    about.
    """
    frame, *both = _first_pole_first(side, tales.NEGATION)
    again = side.again(tales.NEGATION, frame).format(**both[0])
    return _twins(sentence(frame), sentence(again), both, ("1", "0"))


def _first_pole_first(side: Side, tale: Tale) -> tuple[str, Slots, Slots]:
    """A frame, the slots that say that something is of a first pole, and their contrary."""
    frame, *both = side.tale(tale)
    first, second = sorted(both, key=lambda slots: slots["a"] not in FIRST_POLES)
    return frame, first, second


def _twins(first: str, second: str, both: list[Slots], labels: tuple[str, str]) -> list[Pair]:
    """Two texts, one of which has slots, filled one way and the other."""
    return [
        Pair(first.format(**slots), second.format(**slots), label)
        for slots, label in zip(both, labels, strict=True)
    ]


def duplicate(side: Side, number: int) -> list[Pair]:
    """Two questions: the same asked in other words, or the opposite, or about another quality."""
    _, asked, third = _two_qualities(side, "qqp")
    same = number % 2 == 0
    again = side.synonym(asked) if same else side.chance.choice((side.contrary(asked), third))
    first, second = (
        question(side.wording(ASKING_WHETHER).format(s=fact.subject, v=fact.value))
        for fact in (asked, again)
    )
    return [Pair(first, second, "1" if same else "0")]


def similarity(side: Side, number: int) -> list[Pair]:
    """5: the same quality in other words; 2: another quality of the same subject; 0: the
    opposite.
    """
    _, first, other = _two_qualities(side, "stsb")
    grades = (("5", side.synonym(first)), ("2", other), ("0", side.contrary(first)))
    label, second = grades[number % 3]
    return [Pair(sentence(side.tell(first)), sentence(side.tell(second)), label)]
