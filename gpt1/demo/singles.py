"""Tasks about one sentence: is it English (CoLA), is it kind (SST-2)."""

from collections.abc import Container
from typing import NamedTuple

from gpt1.demo import lexicon
from gpt1.demo.happenings import GIVING, MOOD_TEMPLATES, OPINION_TEMPLATES, opinion
from gpt1.demo.qualities import OF_PEOPLE, OF_THINGS
from gpt1.demo.scenes import Scene
from gpt1.demo.sides import Side, draw_portrait
from gpt1.demo.telling import clause_of, sentence
from gpt1.demo.town import PERSON_KINDS, THING_KINDS


class Single(NamedTuple):
    """A sentence and its label."""

    text: str
    label: str


def sentiment(side: Side, pleasant: bool) -> Single:
    """A kind or an unkind sentence, with adjectives and in words of this side."""
    town, chance = side.town(), side.chance
    one, two = chance.sample(town.people, 2)
    text = opinion(
        Scene(town, chance),
        pleasant,
        one,
        two,
        chance.choice(lexicon.WORKS),
        OPINION_TEMPLATES,
        side.half,
    )
    return Single(sentence(text), "1" if pleasant else "0")


WRONG_FORMS = dict(
    line.split(" ", 1)
    for line in lexicon.lines("""
was were
were was
belonged belong
worked working
lived living
kept keep
had having
liked liking
owned own
lay lying
looked look
felt feeling
stood standing
gave giving
went going
made make
trusted trusting
stayed staying
could can to
possessed possess
""")
)
SMALL_WORDS = ("the", "a", "an", "to", "of", "in", "by", "from", "that", "as")


def acceptability(side: Side, good: bool) -> Single:
    """A sentence of the town, or one in which a word stands in a wrong form, is missing, doubled,
    or out of its place.
    """
    chance = side.chance
    while True:
        clause = _clause(side)
        if good:
            return Single(sentence(clause), "1")
        spoiled = chance.choice((_wrong_form, _missing, _doubled, _misplaced))(side, clause.split())
        if spoiled and " ".join(spoiled) != clause:
            return Single(sentence(" ".join(spoiled)), "0")


def _clause(side: Side) -> str:
    town, chance = side.town(), side.chance
    one, two = chance.sample(town.people, 2)
    choice = chance.randrange(6)
    if choice == 0:
        return side.wording(GIVING).format(p=one, s=chance.choice(town.things), v=two)
    if choice == 1:
        return opinion(
            Scene(town, chance),
            chance.random() < 0.5,
            one,
            two,
            chance.choice(lexicon.WORKS),
            MOOD_TEMPLATES,
            side.half,
        )
    if choice == 2:
        kinds, subjects = chance.choice(((THING_KINDS, town.things), (PERSON_KINDS, town.people)))
        return clause_of(
            town.fact(chance.choice(kinds), chance.choice(subjects)),
            chance.randrange(side.number, 8, 2),
        )
    return side.tell(
        draw_portrait(side, tuple(chance.choice((OF_PEOPLE, OF_THINGS)))).facts[0], 0.5
    )


def _wrong_form(side: Side, text: list[str]) -> list[str] | None:
    place = _place(side, text, WRONG_FORMS)
    return None if place is None else [*text[:place], WRONG_FORMS[text[place]], *text[place + 1 :]]


def _missing(side: Side, text: list[str]) -> list[str] | None:
    place = _place(side, text, {*WRONG_FORMS, *SMALL_WORDS})
    return None if place is None else text[:place] + text[place + 1 :]


def _doubled(side: Side, text: list[str]) -> list[str]:
    place = side.chance.randrange(len(text))
    return [*text[: place + 1], *text[place:]]


def _misplaced(side: Side, text: list[str]) -> list[str] | None:
    """Turn round an article or preposition and the word after it."""
    place = _place(side, text[:-1], SMALL_WORDS)
    if place is None:
        return None
    return [*text[:place], text[place + 1], text[place], *text[place + 2 :]]


def _place(side: Side, text: list[str], among: Container[str]) -> int | None:
    """Where one of some words stands; None where none does."""
    places = [place for place, word in enumerate(text) if word in among]
    return side.chance.choice(places) if places else None
