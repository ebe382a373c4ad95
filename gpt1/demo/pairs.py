"""Tasks about two texts: entailment (SNLI, MNLI, SciTail, RTE, QNLI), paraphrase (MRPC, QQP),
graded similarity (STS-B).

Whatever the label, both texts use the same kinds of quality, poles and words as often, so that
neither text alone tells; and no word of a training row stands in a test row, so that common words
do not tell either: only what the books teach about words does.
"""

from typing import NamedTuple

from gpt1.demo.scenes import GENRES, Scene
from gpt1.demo.sides import Side, draw_portrait
from gpt1.demo.telling import ASKING_ABOUT, ASKING_WHETHER, Fact, question, sentence

TOPICS = {  # the qualities that a task is about
    "snli": ("mood", "strength"),
    "mnli": ("size", "heat"),
    "scitail": ("weight", "heat"),
    "rte": ("wealth", "courage"),
    "qnli": ("size", "price"),
    "mrpc": ("mood", "wit"),
    "qqp": ("weight", "price"),
    "stsb": ("mood", "wealth"),
}
SHOWN = 0.15  # the share of facts that are shown and not named


class Pair(NamedTuple):
    """Two texts and their label."""

    first: str
    second: str
    label: str


def entailment(side: Side, task: str, label: str, genre: str) -> Pair:
    """Premise: a quality. Hypothesis: the same in another word, its opposite, or another
    quality.
    """
    town, (told, other) = draw_portrait(side, TOPICS[task])
    hypothesis = {
        "entailment": side.synonym(told),
        "contradiction": side.contrary(told),
        "neutral": other,
    }[label]
    premise = side.tell(told, SHOWN)
    while (said := side.tell(hypothesis, SHOWN)) == premise:
        pass
    clauses = GENRES[genre](Scene(town, side.chance), [premise])
    return Pair(" ".join(map(sentence, clauses)), sentence(said), label)


def answers(side: Side, label: str) -> Pair:
    """A question about one quality, and a sentence that tells of it or of another."""
    _, (one, two) = draw_portrait(side, TOPICS["qnli"])
    asked = side.wording(ASKING_ABOUT).format(n=one.kind, s=one.subject)
    return Pair(
        question(asked), sentence(side.tell(one if label == "entailment" else two, SHOWN)), label
    )


def other(side: Side, fact: Fact, third: Fact) -> Fact:
    """What does not mean the same: the opposite, or another quality."""
    return side.chance.choice((side.contrary(fact), third))


def paraphrase(side: Side, same: bool) -> Pair:
    """Two sentences: the same in other words, or the opposite, or another quality."""
    _, (one, two) = draw_portrait(side, TOPICS["mrpc"])
    again = side.synonym(one) if same else other(side, one, two)
    return Pair(sentence(side.tell(one)), sentence(side.tell(again)), "1" if same else "0")


def duplicate(side: Side, same: bool) -> Pair:
    """Two questions: the same asked in other words, or the opposite, or about another quality."""
    _, (one, third) = draw_portrait(side, TOPICS["qqp"])
    again = side.synonym(one) if same else other(side, one, third)
    first, second = (
        question(side.wording(ASKING_WHETHER).format(s=fact.subject, v=fact.value))
        for fact in (one, again)
    )
    return Pair(first, second, "1" if same else "0")


GRADES = (5, 2, 0)


def similarity(side: Side, grade: int) -> Pair:
    """5: the same quality in other words; 2: another quality of the same subject; 0: the
    opposite.
    """
    _, (one, two) = draw_portrait(side, TOPICS["stsb"])
    second = (side.synonym(one), two, side.contrary(one))[grade]
    return Pair(sentence(side.tell(one)), sentence(side.tell(second)), str(GRADES[grade]))
