"""Tasks about one text, sentiment (SST-2) and acceptability (CoLA), and about two. SNLI, MNLI, QQP
and STS-B depend on what words mean. RTE, SciTail, QNLI and MRPC depend on order: each row comes
with its twin, the same words with another label.

One of the texts always tells a quality of a first pole, so the label depends on the other one: a
network of this size does not learn from a few hundred rows whether two arbitrary texts agree.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from gpt1.town import lexicon, tales
from gpt1.town.happenings import OPINION_TEMPLATES, opinion
from gpt1.town.lexicon import lines
from gpt1.town.qualities import OF_PEOPLE, RELATIVES
from gpt1.town.scenes import GENRES, Scene
from gpt1.town.sides import USUAL, Side, draw_portrait
from gpt1.town.tales import Slots
from gpt1.town.telling import ASKING_WHETHER, Fact, question, sentence
from gpt1.town.town import Town

TOPICS = {  # the qualities that a task is about
    "mnli": ("weight", "heat"),
    "snli": ("mood", "strength"),
    "qqp": ("weight", "price"),
    "stsb": ("mood", "wealth"),
}
NLI = ("entailment", "neutral", "contradiction")
ENTAILMENT = ("entailment", "not_entailment")


RTE_CLAIMS = lines("""
so {s} was {a2} now
{s} was really {a2} in the end
""")
ASKING_WHO = lines("""
who in {family} was {a2}
whom in {family} would one call {a2}
who in {family} seemed {a2}
whom in {family} did people call {a2}
""")


class Pair(NamedTuple):
    """Two texts and their label."""

    first: str
    second: str
    label: str


def entailment(side: Side, number: int, task: str, genres: Sequence[str]) -> list[Pair]:
    """Premise: a quality of a first pole. Hypothesis: the same in another word, another quality, or
    the opposite.
    """
    town, fact, other = _two_qualities(side, task)
    hypothesis = (side.synonym(fact), other, side.contrary(fact))[number % 3]
    genre = GENRES[genres[number // 3 % len(genres)]]
    clauses = genre(Scene(town, side.chance), [side.tell(fact)])
    text = " ".join(map(sentence, clauses))
    return [Pair(text, sentence(side.tell(hypothesis)), NLI[number % 3])]


def _two_qualities(side: Side, task: str) -> tuple[Town, Fact, Fact]:
    """Return the town, and two qualities of a relative or a belonging: the first of a first pole,
    and mostly of the usual kind.
    """
    town, facts = draw_portrait(side, TOPICS[task])
    usual = TOPICS[task][side.chance.random() > USUAL]
    first, second = sorted(facts, key=lambda fact: fact.kind != usual)
    return town, side.fact(first.kind, first.subject, 0), second


def follows(side: Side, _: int, claims: Sequence[str], labels: tuple[str, str]) -> list[Pair]:
    """Write a claim, and a tale from which it follows, or the contrary tale."""
    frame, both = side.tale(tales.ORDER)
    claim = sentence(side.chance.choice(claims).format(**both[0]))
    return _twins(claim, sentence(_graded(side, frame)), both, labels)


def answers(side: Side, _: int) -> list[Pair]:
    """Ask who has a quality; the sentence names somebody who has it or, in the twin, somebody who
    has not.
    """
    frame, both = side.tale(tales.NEGATION)
    family = f"{both[0]['s'].split()[0]} family"  # Ada's family: no question twice
    question_text = question(side.chance.choice(ASKING_WHO).format(family=family, **both[0]))
    return _twins(question_text, sentence(_graded(side, frame)), both, ENTAILMENT)


def paraphrase(side: Side, _: int) -> list[Pair]:
    """Write a sentence on what somebody is and is not, and the same in other words or, in the twin,
    the contrary.
    """
    frame, both = side.tale(tales.NEGATION)
    again = sentence(side.chance.choice(tales.NEGATION.claims).format(**both[0]))
    return _twins(sentence(_graded(side, frame)), again, both, ("1", "0"))


def _graded(side: Side, frame: str) -> str:
    """Put one word of degree before all fillers: otherwise "not hot" or "then hot" alone tells the
    label.
    """
    return re.sub(r"(very )?(\{[ab]\})", rf"{side.chance.choice(lexicon.DEGREES)} \2", frame)


def _twins(first: str, second: str, both: list[Slots], labels: tuple[str, str]) -> list[Pair]:
    """Fill the slots of two texts in both ways."""
    return [
        Pair(first.format(**slots), second.format(**slots), label)
        for slots, label in zip(both, labels, strict=True)
    ]


def duplicate(side: Side, number: int) -> list[Pair]:
    """Write two questions: the same in other words, one about another quality of a first pole, or
    sometimes the opposite; so the second question alone says little.
    """
    _, first_fact, other = _two_qualities(side, "qqp")
    third = side.fact(other.kind, other.subject, 0)
    second_fact = (
        side.synonym(first_fact),
        side.contrary(first_fact),
        side.synonym(first_fact),
        third,
    )[number % 4]
    first, second = (
        question(side.chance.choice(ASKING_WHETHER).format(s=fact.subject, v=fact.value))
        for fact in (first_fact, second_fact)
    )
    return [Pair(first, second, "01"[number % 2 == 0])]


def similarity(side: Side, number: int) -> list[Pair]:
    """Write two sentences. 5: the same quality in other words; 2: another quality of the same
    subject; 0: the opposite.
    """
    _, first, other = _two_qualities(side, "stsb")
    grades = (("5", side.synonym(first)), ("2", other), ("0", side.contrary(first)))
    label, second = grades[number % 3]
    return [Pair(sentence(side.tell(first)), sentence(side.tell(second)), label)]


class Single(NamedTuple):
    """A sentence and its label."""

    text: str
    label: str


def sentiment(side: Side, number: int) -> list[Single]:
    """A kind or an unkind sentence, with adjectives and in words of this side."""
    town, chance, pleasant = side.town(), side.chance, number % 2 == 0
    first, second = chance.sample(town.people, 2)
    text = opinion(
        Scene(town, chance),
        pleasant,
        first,
        second,
        chance.choice(lexicon.WORKS),
        OPINION_TEMPLATES,
        side.share,
    )
    return [Single(sentence(text), "1" if pleasant else "0")]


def acceptability(side: Side, _: int) -> list[Single]:
    """A woman and a man of two families, and what each says of herself or himself; and the same
    with "she" and "he" exchanged. The woman mostly comes first.
    """
    town, chance = side.town(), side.chance
    parts = []
    for index, person in enumerate(chance.sample(town.people, 2)):
        pronoun = ("she", "he")[index]
        relative = chance.choice([name for name in RELATIVES if RELATIVES[name] == pronoun])
        fact = side.fact(chance.choice([*OF_PEOPLE]), f"{{{index}}}", chance.randrange(2))
        parts.append(f"{person}'s {relative} said that {side.tell(fact)}")
    order = -1 if chance.random() > USUAL else 1
    frame = sentence(" and ".join(parts[::order]))
    return [Single(frame.format("she", "he"), "1"), Single(frame.format("he", "she"), "0")]
