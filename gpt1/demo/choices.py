"""Tasks with one right choice: questions on passages (RACE), endings of stories (Story Cloze), and
pronouns (DPRD).
"""

from typing import NamedTuple

from gpt1.demo import lexicon
from gpt1.demo.happenings import (
    FAREWELLS,
    MOOD_TEMPLATES,
    OPINION_TEMPLATES,
    SIGHTS,
    THANKS,
    opinion,
    sight,
)
from gpt1.demo.lexicon import FIELDS, Field, lines
from gpt1.demo.qualities import OF_PEOPLE, OF_THINGS, pole_of
from gpt1.demo.scenes import Scene
from gpt1.demo.sides import Side, draw_portrait
from gpt1.demo.telling import question, sentence

ASKING_WHAT = lines("""
what was {s} like
which word fits {s}
how could one describe {s}
what would one call {s}
what did everybody think of {s}
which of these was {s}
""")
ASKING_WHERE = lines("""
where was {s}
where did all this happen to {s}
in which place did {s} see this
to which place had {s} gone
where had {s} come
what place was it that {s} saw
""")


class Question(NamedTuple):
    """A passage, a question, four options, and the place of the right one."""

    passage: str
    question: str
    options: tuple[str, ...]
    right: int


class Story(NamedTuple):
    """Four sentences, two endings, and which is right (0 or 1)."""

    sentences: tuple[str, ...]
    endings: tuple[str, str]
    right: int


class Pronoun(NamedTuple):
    """A sentence, its pronoun, the two who may be meant, and who is."""

    sentence: str
    pronoun: str
    candidates: tuple[str, str]
    right: str


def passage(side: Side, high: bool) -> Question:
    """A quality of something, told and shown; what is it like? `high`: what somebody saw; where was
    that?

    The options are both poles of a quality that is told and of one that is not, or four places:
    none alone tells that it is right.
    """
    chance = side.chance
    if high:
        town = side.town()
        person, places = town.someone(), chance.sample(FIELDS, 4)
        options = [f"the {place.place}" for place in places]
        right, text = options[0], _sights(side, person, places[0])
        asked = side.wording(ASKING_WHERE).format(s=person)
    else:
        _, (one, untold, *_) = draw_portrait(side, ("size", "weight", "heat", "price"))
        told = side.synonym(one)
        options = [
            told.value,
            *(fact.value for fact in (side.contrary(one), untold, side.contrary(untold))),
        ]
        right, text = (
            options[0],
            [
                side.tell(one),
                side.wording(pole_of(one.kind, one.value).signs).format(s=one.subject),
                side.tell(one),
            ],
        )
        chance.shuffle(text)
        asked = side.wording(ASKING_WHAT).format(s=one.subject)
    chance.shuffle(options)
    return Question(
        " ".join(map(sentence, text)), question(asked), tuple(options), options.index(right)
    )


def _sights(side: Side, person: str, place: Field) -> list[str]:
    """Four sentences about one place, with things and deeds of this side and without its trade,
    which both sides would share.
    """
    templates = tuple(
        template
        for template in side.half(SIGHTS)
        if "{trade}" not in template and "{place}" not in template
    )
    scene = Scene(side.town(), side.chance)
    return [
        sight(scene, person, place, templates, side.half(place.things), side.half(place.deeds))
        for _ in range(4)
    ]


def story(side: Side, right: int) -> Story:
    """Four sentences that agree in a quality, a place or a mood; the wrong ending has the opposite
    quality, another place or mood.
    """
    told, good, bad = side.chance.choice((_character, _place, _mood))(side)
    endings = (good, bad) if right == 0 else (bad, good)
    return Story(tuple(map(sentence, told)), (sentence(endings[0]), sentence(endings[1])), right)


def _character(side: Side) -> tuple[list[str], str, str]:
    _, (one, two, *_) = draw_portrait(side, tuple(side.chance.choice((OF_PEOPLE, OF_THINGS))))
    told = [
        side.tell(one),
        side.tell(two, 0.5),
        side.tell(side.synonym(one)),
        side.tell(side.synonym(two), 0.5),
    ]
    sign = side.chance.randrange(side.number, 4, 2)
    good, bad = (
        pole_of(fact.kind, fact.value).signs[sign].format(s=fact.subject)
        for fact in (one, side.contrary(one))
    )
    return told, good, bad


def _place(side: Side) -> tuple[list[str], str, str]:
    person, (here, elsewhere) = side.town().someone(), side.chance.sample(FIELDS, 2)
    farewell = side.wording(FAREWELLS)
    return (
        _sights(side, person, here),
        farewell.format(p=person, place=here.place),
        farewell.format(p=person, place=elsewhere.place),
    )


def _mood(side: Side) -> tuple[list[str], str, str]:
    town, chance = side.town(), side.chance
    scene, pleasant = Scene(town, chance), chance.random() < 0.5
    one, two = chance.sample(town.people, 2)
    noun = chance.choice(lexicon.WORKS)
    told = [
        opinion(scene, pleasant, one, two, noun, OPINION_TEMPLATES, side.half) for _ in range(4)
    ]
    template = (side.wording(MOOD_TEMPLATES),) * 2
    right, wrong = (
        opinion(scene, mood, one, two, noun, template, side.half)
        for mood in (pleasant, not pleasant)
    )
    return told, right, wrong


def pronoun(side: Side, first: bool) -> Pronoun:
    """Two people of one sex, and a reason that fits only one of them: the first named or the
    second.
    """
    town, chance = side.town(), side.chance
    one, two = chance.sample(chance.choice((town.women, town.men)), 2)
    template = chance.choice(
        [template for template in side.half(THANKS) if ("it was {p} " in template) == first]
    )
    text = template.partition(";")[0].format(p=one, q=two, she=town.pronoun(one))
    return Pronoun(sentence(text), town.pronoun(one), (one, two), one if first else two)
