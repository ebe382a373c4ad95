"""Tasks about one sentence: is it English (CoLA), is it kind (SST-2)."""

from typing import NamedTuple

from gpt1.demo import words
from gpt1.demo.happenings import GIVING, GOING, MOOD_TEMPLATES, OPINION_TEMPLATES, opinion
from gpt1.demo.scenes import Scene
from gpt1.demo.sides import Side
from gpt1.demo.telling import sentence
from gpt1.demo.town import PERSON_KINDS, THING_KINDS


class Single(NamedTuple):
    """A sentence and its label."""

    text: str
    label: str


def sentiment(side: Side, pleasant: bool) -> Single:
    """A kind or an unkind sentence, with adjectives and in words of this side."""
    town, chance = side.town(), side.chance
    one, two = chance.sample(town.people, 2)
    text = opinion(Scene(town, chance), pleasant, one, two, chance.choice(words.WORKS), side.half(OPINION_TEMPLATES),
                   side.half(words.GOOD if pleasant else words.BAD))
    return Single(sentence(text), "1" if pleasant else "0")


WRONG_FORMS = {
    "was": "were", "were": "was", "belonged": "belong", "worked": "working", "lived": "living", "kept": "keep", "had": "having",
    "liked": "liking", "owned": "own", "lay": "lying", "looked": "look", "felt": "feeling", "stood": "standing", "gave": "giving",
    "went": "going", "made": "make", "trusted": "trusting", "stayed": "staying", "could": "can to", "possessed": "possess"}
SMALL_WORDS = ("the", "a", "an", "to", "of", "in", "by", "from", "that", "as")


def acceptability(side: Side, good: bool) -> Single:
    """A sentence of the town, or one in which a word stands in a wrong form, is missing, doubled, or out of its place."""
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
    choice = chance.random()
    if choice < 0.6:
        subject = chance.choice(town.things + town.people)
        return side.tell(town.fact(chance.choice(THING_KINDS if subject in town.things else PERSON_KINDS), subject))
    one, two = chance.sample(town.people, 2)
    if choice < 0.8:
        return chance.choice(side.half(GIVING)).format(p=one, s=chance.choice(town.things), v=two)
    if choice < 0.9:
        return chance.choice(side.half(GOING)).format(s=one, v=town.fact("place", two).value)
    return opinion(Scene(town, chance), chance.random() < 0.5, one, two, chance.choice(words.WORKS), side.half(MOOD_TEMPLATES), words.GOOD)


def _wrong_form(side: Side, text: list[str]) -> list[str] | None:
    places = [place for place, word in enumerate(text) if word in WRONG_FORMS]
    if not places:
        return None
    place = side.chance.choice(places)
    return [*text[:place], WRONG_FORMS[text[place]], *text[place + 1:]]


def _missing(side: Side, text: list[str]) -> list[str] | None:
    places = [place for place, word in enumerate(text) if word in SMALL_WORDS or word in WRONG_FORMS]
    if not places:
        return None
    place = side.chance.choice(places)
    return text[:place] + text[place + 1:]


def _doubled(side: Side, text: list[str]) -> list[str]:
    place = side.chance.randrange(len(text))
    return [*text[:place + 1], *text[place:]]


def _misplaced(side: Side, text: list[str]) -> list[str] | None:
    """Turn round an article or preposition and the word after it."""
    places = [place for place, word in enumerate(text[:-1]) if word in SMALL_WORDS]
    if not places:
        return None
    place = side.chance.choice(places)
    return [*text[:place], text[place + 1], text[place], *text[place + 2:]]
