"""The rows of every task. SNLI, MNLI, QQP, STS-B, SST-2, RACE and Story Cloze depend on what words
mean; RTE, SciTail, QNLI, MRPC, CoLA and DPRD on order: a row has a twin, the same words with
another label.
"""

# One of two texts tells a quality of a first pole: networks of this size do not learn from a few
# hundred rows whether two arbitrary texts agree.

import re
from collections.abc import Sequence
from typing import NamedTuple

from gpt1.town import lexicon, tales
from gpt1.town.happenings import OPINION_TEMPLATES, THANKS, opinion
from gpt1.town.lexicon import lines
from gpt1.town.qualities import OF_PEOPLE, OF_THINGS, RELATIVES
from gpt1.town.scenes import Genre, Scene
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
ASKING_WHAT = lines("""
what was {s} like
which word fits {s}
how could one describe {s}
what would one call {s}
what did everybody think of {s}
which of these was {s}
""")


class Pair(NamedTuple):
    """Two texts and their label."""

    first: str
    second: str
    label: str


def entailment(side: Side, number: int, task: str, genres: Sequence[Genre]) -> list[Pair]:
    """Write a premise with a quality; the hypothesis has a synonym, another quality, or the
    contrary.
    """
    town, fact, other = _two_qualities(side, task)
    hypothesis = (fact.synonym(side.chance), other, fact.contrary(side.chance))[number % 3]
    genre = genres[number // 3 % len(genres)]
    clauses = genre(Scene(town, side.chance), [side.tell(fact)])
    text = " ".join(map(sentence, clauses))
    return [Pair(text, sentence(side.tell(hypothesis)), NLI[number % 3])]


def _two_qualities(side: Side, task: str) -> tuple[Town, Fact, Fact]:
    """Return the town and two qualities of one subject: the first of a first pole and mostly the
    usual kind.
    """
    town, facts = draw_portrait(side, TOPICS[task])
    usual = TOPICS[task][side.chance.random() > USUAL]
    first, second = sorted(facts, key=lambda fact: fact.kind != usual)
    return town, side.fact(first.kind, first.subject, 0), second


def follows(side: Side, _: int, claims: Sequence[str], labels: tuple[str, str]) -> list[Pair]:
    """Write a claim with a tale from which it follows, and its twin."""
    frame, both = side.tale(tales.ORDER)
    claim = sentence(side.chance.choice(claims).format(**both[0]))
    return _twins(claim, sentence(_graded(side, frame)), both, labels)


def answers(side: Side, _: int) -> list[Pair]:
    """Ask who has a quality; the sentence names somebody who has it or, in the twin, has not."""
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
    """Put one word of degree before all fillers: else "not hot" or "then hot" tells the label."""
    return re.sub(r"(very )?(\{[ab]\})", rf"{side.chance.choice(lexicon.DEGREES)} \2", frame)


def _twins(first: str, second: str, both: list[Slots], labels: tuple[str, str]) -> list[Pair]:
    """Fill the slots of two texts in both ways."""
    return [
        Pair(first.format(**slots), second.format(**slots), label)
        for slots, label in zip(both, labels, strict=True)
    ]


def duplicate(side: Side, number: int) -> list[Pair]:
    """Write two questions: the same in other words, about another quality, or sometimes the
    contrary.
    """
    _, first_fact, other = _two_qualities(side, "qqp")
    third = side.fact(other.kind, other.subject, 0)
    second_fact = (
        first_fact.synonym(side.chance),
        first_fact.contrary(side.chance),
        first_fact.synonym(side.chance),
        third,
    )[number % 4]
    first, second = (
        question(side.chance.choice(ASKING_WHETHER).format(s=fact.subject, v=fact.value))
        for fact in (first_fact, second_fact)
    )
    return [Pair(first, second, "01"[number % 2 == 0])]


def similarity(side: Side, number: int) -> list[Pair]:
    """Write two sentences. 5: the same quality in other words; 2: another; 0: the contrary."""
    _, first, other = _two_qualities(side, "stsb")
    grades = (("5", first.synonym(side.chance)), ("2", other), ("0", first.contrary(side.chance)))
    label, second = grades[number % 3]
    return [Pair(sentence(side.tell(first)), sentence(side.tell(second)), label)]


class Single(NamedTuple):
    """A sentence and its label."""

    text: str
    label: str


def sentiment(side: Side, number: int) -> list[Single]:
    """Write a kind or an unkind sentence in this side's words."""
    town, chance, pleasant = side.town(), side.chance, number % 2 == 0
    first, second = chance.sample(town.people, 2)
    text = opinion(
        Scene(town, chance),
        pleasant,
        first,
        second,
        chance.choice(lexicon.WORKS),
        OPINION_TEMPLATES,
        side.words,
    )
    return [Single(sentence(text), "1" if pleasant else "0")]


def acceptability(side: Side, _: int) -> list[Single]:
    """Write what a woman and a man say of themselves; the twin exchanges "she" and "he". The woman
    mostly comes first.
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


class Question(NamedTuple):
    """A passage, a question, four options, the right one's index."""

    passage: str
    question: str
    options: tuple[str, ...]
    right: int


class Story(NamedTuple):
    """Four sentences, two endings, and the right one (0 or 1)."""

    sentences: tuple[str, ...]
    endings: tuple[str, str]
    right: int


class Pronoun(NamedTuple):
    """A sentence, its pronoun, the two people it may mean, the right one."""

    sentence: str
    pronoun: str
    candidates: tuple[str, str]
    right: str


def passages(side: Side, number: int) -> list[Question]:
    """Tell and show a quality of a belonging (middle) or a relative (high), and ask for it. The
    options are both poles of it and of an untold one.
    """
    chance, kinds = side.chance, (OF_THINGS, OF_PEOPLE)[number % 2]
    _, (quality, untold, *_) = draw_portrait(side, tuple(kinds))
    facts = (
        quality.synonym(chance),
        quality.contrary(chance),
        untold,
        untold.contrary(chance),
    )
    options = [fact.value for fact in facts]
    text = [side.tell(quality), side.show(quality), side.tell(quality)]
    right = options[0]
    chance.shuffle(options)
    question_text = chance.choice(ASKING_WHAT).format(s=quality.subject)
    passage = " ".join(map(sentence, text))
    return [Question(passage, question(question_text), tuple(options), options.index(right))]


def stories(side: Side, number: int) -> list[Story]:
    """Tell and show a quality in four sentences; the wrong ending has the contrary."""
    chance = side.chance
    _, (quality, *_) = draw_portrait(side, tuple(chance.choice((OF_PEOPLE, OF_THINGS))))
    again, right = quality.synonym(chance), number % 2
    sentences = side.tell(quality), side.show(quality), side.show(quality), side.tell(again)
    good, bad = (
        sentence(side.tell(end)) for end in (again.synonym(chance), again.contrary(side.chance))
    )
    return [Story(tuple(map(sentence, sentences)), (bad, good) if right else (good, bad), right)]


def pronouns(side: Side, _: int) -> list[Pronoun]:
    """Write a sentence on two people of one sex whose reason fits one of them, and its twin."""
    town, chance = side.town(), side.chance
    first, second = chance.sample(chance.choice((town.women, town.men)), 2)
    template = chance.choice(THANKS)
    text, right = template.partition(";")[0], first if "it was {p} " in template else second
    she = town.pronoun(first)
    return [
        Pronoun(sentence(text.format(p=p, q=q, she=she)), she, (first, second), meant)
        for p, q, meant in (
            (first, second, right),
            (second, first, second if right == first else first),
        )
    ]
