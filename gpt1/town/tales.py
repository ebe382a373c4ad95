"""Tales whose meaning depends on order. With two fillers exchanged a tale says the contrary."""

from collections.abc import Callable
from typing import NamedTuple

from gpt1.town.lexicon import lines, words
from gpt1.town.qualities import OF_PEOPLE, OF_THINGS, OPPOSITE, POLE_OF, Pole
from gpt1.town.scenes import Scene
from gpt1.town.telling import Fact
from gpt1.town.town import Town

Slots = dict[str, str]  # what stands in a template's {p}, {a}, …

WAYS = ("came", "sat", "rose", "spoke", "sang", "ate", "slept", "danced")
FOLLOWING = (3, 6)  # sentences after a tale
ASKED = 0.7  # the share of questions with their answers
# An answer comes at once, or after any of these: so that whoever has read the question is ready to
# answer wherever it is asked to, at the end of a task's row too.
BEFORE = 0.5  # the chance of each of the three
OPENERS = words("well oh hm ah why look listen so there dear friend sir")
SAYING = words(
    "said cried whispered replied answered thought muttered shouted knew guessed sighed nodded"
)
ADVERBS = words(
    "surely clearly certainly plainly simply naturally indeed truly evidently again just still"
)


class Tale(NamedTuple):
    """Frames of equal meaning, what follows from them, and short questions with answers. `draw`
    fills the slots from the town.
    """

    frames: tuple[str, ...]
    claims: tuple[str, ...]
    quiz: tuple[str, ...]  # question|answer
    draw: Callable[[Town], Slots]


def _negation(town: Town) -> Slots:
    """Fill the slots: {s} is {a}, not {b}."""
    subject = town.chance.choice(town.relatives)
    value = town.values[town.chance.choice(list(OF_PEOPLE)), subject]
    return _two_words(town, POLE_OF[value], OPPOSITE[value]) | {"s": subject}


def _order(town: Town) -> Slots:
    """Fill the slots: {s} was {b} at first, and is {a}."""
    chance = town.chance
    subject, kind = chance.choice(town.belongings), chance.choice(list(OF_THINGS))
    before = town.values[kind, subject]
    slots = _two_words(town, OPPOSITE[before], POLE_OF[before]) | {"s": subject}
    town.change(Fact(kind, subject, slots["a"]))
    return slots


def _two_words(town: Town, first: Pole, second: Pole) -> Slots:
    """Return two words of one meaning as {a} and {a2}, two of the contrary as {b} and {b2}."""
    words = *town.chance.sample(first.words, 2), *town.chance.sample(second.words, 2)
    return dict(zip(("a", "a2", "b", "b2"), words, strict=True))


def exchanged(slots: Slots) -> Slots:
    """Exchange the words of one meaning for those of the contrary."""
    return slots | {"a": slots["b"], "a2": slots["b2"], "b": slots["a"], "b2": slots["a2"]}


def _coming(town: Town) -> Slots:
    slots = dict(zip("pq", town.chance.sample(town.people, 2), strict=True))
    slots["went"] = town.chance.choice(WAYS)
    return slots


NEGATION = Tale(
    lines("""
{s} was {a}, not {b}
{s} was not {b} but {a}
{s} was not {b}, but very {a}
{s} was {a} and not {b}
"""),
    lines("""
so {s} was {a2}
{s} was really {a2}
"""),
    lines("""
what was {s}|{a}
what was {s}|{a2}
"""),
    _negation,
)
ORDER = Tale(
    lines("""
first {s} was {b}, then {a}
{s} was {a} after it had been {b}
before {s} was {a}, it was {b}
{s} was {b}; later it was {a}
"""),
    lines("""
in the end {s} was {a2}
now {s} was {a2}
"""),
    lines("""
what was {s} now|{a}
what was {s} now|{a2}
"""),
    _order,
)
CAME = Tale(
    lines("""
{p} {went} before {q}
{q} {went} after {p}
first {p} {went}, then {q}
{p} {went} earlier than {q}
"""),
    lines("""
the first who {went} was {p}
the last who {went} was {q}
"""),
    lines("""
first|{p}
last|{q}
"""),
    _coming,
)
TALES = (NEGATION, ORDER, CAME)


def tell(scene: Scene) -> None:
    """Tell a tale, questions with answers, and what follows. Nothing false is said, or networks
    would not learn order.
    """
    chance = scene.chance
    tale = chance.choice(TALES)
    slots = tale.draw(scene.town)
    scene.say(chance.choice(tale.frames).format(**slots))
    for _ in range(chance.randint(*FOLLOWING)):
        if chance.random() < ASKED:
            question, answer = chance.choice(tale.quiz).format(**slots).split("|")
            scene.say(f"{question}?", _given(scene, answer))
        else:
            scene.say(chance.choice(tale.claims).format(**slots))


def _given(scene: Scene, answer: str) -> str:
    chance = scene.chance
    opener, reported, adverb = (chance.random() < BEFORE for _ in range(3))
    before = [
        *([chance.choice(OPENERS) + chance.choice(("", ","))] if opener else []),
        *([f"{scene.town.someone()} {chance.choice(SAYING)}"] if reported else []),
        *([chance.choice(ADVERBS)] if adverb else []),
    ]
    return " ".join([*before, answer])
