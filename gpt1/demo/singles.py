"""Tasks about one sentence: is it English (CoLA), is it kind (SST-2)."""

from typing import NamedTuple

from gpt1.demo import lexicon
from gpt1.demo.happenings import GIVING, OPINION_TEMPLATES, opinion
from gpt1.demo.qualities import OF_PEOPLE, OF_THINGS
from gpt1.demo.scenes import Scene
from gpt1.demo.sides import Side, draw_portrait
from gpt1.demo.telling import clause_of, sentence
from gpt1.demo.town import PERSON_KINDS, THING_KINDS


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
        side.half,
    )
    return [Single(sentence(text), "1" if pleasant else "0")]


SMALL_WORDS = ("the", "a", "an", "to", "of", "in", "by", "from", "that", "as", "was", "were", "had")


def acceptability(side: Side, _: int) -> list[Single]:
    """A sentence of the town, and the same words with a small one and another exchanged."""
    while True:
        words = (clause := _clause(side)).split()
        small = [place for place, word in enumerate(words) if word in SMALL_WORDS]
        if small and clause.lower() not in side.known:
            break
    place = side.chance.choice(small)
    other = side.chance.choice([index for index in range(len(words)) if index not in small])
    words[place], words[other] = words[other], words[place]
    return [Single(sentence(clause), "1"), Single(sentence(" ".join(words)), "0")]


def _clause(side: Side) -> str:
    town, chance = side.town(), side.chance
    giver, receiver = chance.sample(town.people, 2)
    choice = chance.randrange(6)
    if choice < 2:
        return side.wording(GIVING).format(p=giver, s=chance.choice(town.things), v=receiver)
    if choice == 2:
        kinds, subjects = chance.choice(((THING_KINDS, town.things), (PERSON_KINDS, town.people)))
        return clause_of(
            town.fact(chance.choice(kinds), chance.choice(subjects)),
            chance.randrange(side.number, 8, 2),
        )
    return side.tell(draw_portrait(side, tuple(chance.choice((OF_PEOPLE, OF_THINGS))))[1][0], 0.5)
