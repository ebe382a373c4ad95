"""Tasks about two texts: entailment (SNLI, MNLI, SciTail, RTE, QNLI), paraphrase (MRPC, QQP), graded similarity (STS-B).

Whatever the label, both texts use the same kinds, subjects and values as often, so that neither text alone nor their common words tell.
"""

from typing import NamedTuple

from gpt1.demo import words
from gpt1.demo.scenes import GENRES, Scene
from gpt1.demo.sides import Side, draw_facts
from gpt1.demo.telling import Fact, ask, question, sentence, tell


class Pair(NamedTuple):
    """Two texts and their label."""

    first: str
    second: str
    label: str


def swapped(fact: Fact, other: Fact) -> Fact:
    """The fact with the other's value."""
    return fact._replace(value=other.value)


def entailment(side: Side, label: str, genre: str) -> Pair:
    """Premise: one kind of two subjects, another kind of the second. Hypothesis: said, swapped, or of the other kind about the first."""
    facts = draw_facts(side)
    told = [facts.first, facts.second, facts.second_other]
    hypothesis = {"entailment": side.chance.choice(told), "contradiction": swapped(*side.chance.sample(told[:2], 2)),
                  "neutral": swapped(facts.first_other, facts.second_other)}[label]
    side.chance.shuffle(told)
    wordings = side.wordings(4, 8)  # the hypothesis never repeats one of the premise
    premise = [tell(fact, wording) for fact, wording in zip(told, wordings, strict=False)]
    clauses = GENRES[genre](Scene(side.town(), side.chance), premise)
    return Pair(" ".join(map(sentence, clauses)), sentence(tell(hypothesis, wordings[3])), label)


def answers(side: Side, label: str) -> Pair:
    """A question, and a sentence that answers it or says the same things of the wrong subjects."""
    facts = draw_facts(side)
    good = label == "entailment"
    clauses = [side.tell(facts.first), side.tell(facts.second_other)] if good else [side.tell(facts.second), side.tell(facts.first_other)]
    if side.chance.random() < 0.5:
        clauses = clauses[:1] if good else [side.chance.choice(clauses)]
    side.chance.shuffle(clauses)
    return Pair(question(side.ask(facts.first)), sentence(", and ".join(clauses)), label)


def paraphrase(side: Side, same: bool) -> Pair:
    """Two sentences: the same fact in other words, or with another's value, or of another subject or kind."""
    facts = draw_facts(side)
    others = (swapped(facts.first, facts.second), swapped(facts.second, facts.first), facts.first_other)
    one, two = side.tell_twice(facts.first, facts.first if same else side.chance.choice(others))
    return Pair(sentence(one), sentence(two), "1" if same else "0")


def duplicate(side: Side, same: bool) -> Pair:
    """Two questions of one day: the same asked in other words, or of another subject, or of another kind."""
    facts = draw_facts(side)
    other = facts.first if same else side.chance.choice((facts.second, facts.first_other))
    one, two = side.wordings(2, 6)
    when = side.chance.choice(side.half(words.HOURS))
    return Pair(question(f"{ask(facts.first, one)} {when}"), question(f"{ask(other, two)} {when}"), "1" if same else "0")


def similarity(side: Side, score: int) -> Pair:
    """5: the same in other words; 4: a detail more; 3: another value; 2: another kind; 1: another subject; 0: nothing in common."""
    facts, far = draw_facts(side), draw_facts(side)
    while far.first.kind in (facts.first.kind, facts.first_other.kind):
        far = draw_facts(side)
    second = (far.first, facts.second, facts.first_other, swapped(facts.first, facts.second), facts.first, facts.first)[score]
    one, two = side.tell_twice(facts.first, second)
    detail = f"{side.chance.choice(('perhaps', 'since Easter', 'as before', 'in those days'))} {two}" if score == 4 else two
    return Pair(sentence(one), sentence(detail), str(score))
