"""Tasks with one right choice: RACE, Story Cloze and pronouns (DPRD), whose rows have twins: the
same words, another answer.
"""

from typing import NamedTuple

from gpt1.town.happenings import THANKS
from gpt1.town.lexicon import lines
from gpt1.town.qualities import OF_PEOPLE, OF_THINGS
from gpt1.town.sides import Side, draw_portrait
from gpt1.town.telling import question, sentence

ASKING_WHAT = lines("""
what was {s} like
which word fits {s}
how could one describe {s}
what would one call {s}
what did everybody think of {s}
which of these was {s}
""")


class Question(NamedTuple):
    """A passage, a question, four options, and the index of the right one."""

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
    """A sentence, its pronoun, the two people it may mean, and the one it means."""

    sentence: str
    pronoun: str
    candidates: tuple[str, str]
    right: str


def passages(side: Side, number: int) -> list[Question]:
    """Tell and show a quality of a belonging (middle) or a relative (high), and ask for it.

    The options are both poles of it and of an untold one: no option looks right by itself.
    """
    chance, kinds = side.chance, (OF_THINGS, OF_PEOPLE)[number % 2]
    _, (quality, untold, *_) = draw_portrait(side, tuple(kinds))
    facts = side.synonym(quality), side.contrary(quality), untold, side.contrary(untold)
    options = [fact.value for fact in facts]
    text = [side.tell(quality), side.show(quality), side.tell(quality)]
    right = options[0]
    chance.shuffle(options)
    question_text = chance.choice(ASKING_WHAT).format(s=quality.subject)
    passage = " ".join(map(sentence, text))
    return [Question(passage, question(question_text), tuple(options), options.index(right))]


def stories(side: Side, number: int) -> list[Story]:
    """Tell and show a quality in four sentences; the wrong ending has the opposite."""
    chance = side.chance
    _, (quality, *_) = draw_portrait(side, tuple(chance.choice((OF_PEOPLE, OF_THINGS))))
    again, right = side.synonym(quality), number % 2
    sentences = side.tell(quality), side.show(quality), side.show(quality), side.tell(again)
    good, bad = (sentence(side.tell(end)) for end in (side.synonym(again), side.contrary(again)))
    return [Story(tuple(map(sentence, sentences)), (bad, good) if right else (good, bad), right)]


def pronouns(side: Side, _: int) -> list[Pronoun]:
    """Write a sentence on two people of one sex whose reason fits one of them, and its twin with
    the people exchanged.
    """
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
