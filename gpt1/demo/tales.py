"""Tales whose meaning hangs on order: what a "not" covers, what came last, who was first. With two
fillers exchanged a tale says the contrary in the same words.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpt1.demo.lexicon import lines, words
from gpt1.demo.qualities import ALL, OF_PEOPLE, OF_THINGS
from gpt1.demo.scenes import Scene
from gpt1.demo.telling import Fact
from gpt1.demo.town import Town

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
KIND_OF = {
    word: noun for noun, quality in ALL.items() for pole in quality.poles for word in pole.words
}


class Consequence(NamedTuple):
    """A sentence that follows from a tale, and the fact that it states: of whom (a slot), what (a
    slot), and of which kind; where that is empty, the quality that the value is a word of.
    """

    text: str
    subject: str
    value: str
    kind: str

    def fact(self, slots: Slots) -> Fact:
        """The fact that it states of these slots."""
        value = slots[self.value]
        return Fact(self.kind or KIND_OF[value], slots[self.subject], value)


class Tale(NamedTuple):
    """How a tale is told, in frames of equal meaning; what follows from it; short questions about
    it with their answers; and which slots are exchanged for the contrary in the same words.

    `draw` fills the slots: as the town is, or it makes the town so.
    """

    frames: tuple[str, ...]
    claims: tuple[Consequence, ...]
    quiz: tuple[tuple[str, str], ...]
    exchanged: tuple[tuple[str, str], ...]
    draw: Callable[[Town], Slots]

    def contrary(self, slots: Slots) -> Slots:
        """The slots, exchanged."""
        new = dict(slots)
        for one, two in self.exchanged:
            new[one], new[two] = slots[two], slots[one]
        return new


def _tale(
    frames: str, claims: str, quiz: str, exchanged: str, draw: Callable[[Town], Slots]
) -> Tale:
    """A tale of lines of text: claims as `text|subject|value|kind`, quiz as `question|answer`;
    exchanged as `p|q`.
    """
    return Tale(
        lines(frames),
        tuple(Consequence(*line.split("|")) for line in lines(claims)),
        _pairs(quiz),
        _pairs(exchanged),
        draw,
    )


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The two halves of each line."""
    return tuple((one, two) for one, _, two in (line.partition("|") for line in lines(text)))


def _negation(town: Town) -> Slots:
    """{s} is {a}, not {b}."""
    subject = town.chance.choice(town.relatives)
    kind = town.chance.choice(list(OF_PEOPLE))
    here, there = town.poles(kind, subject)
    return _two_words(town, here, there) | {"s": subject}


def _order(town: Town) -> Slots:
    """{s} was {b} at first, and is {a}."""
    chance = town.chance
    subject, kind = chance.choice(town.belongings), chance.choice(list(OF_THINGS))
    there, here = town.poles(kind, subject)
    slots = _two_words(town, here, there) | {"s": subject}
    town.change(Fact(kind, subject, slots["a"]))
    return slots


def _two_words(town: Town, here: Sequence[str], there: Sequence[str]) -> Slots:
    """Two words of one meaning as {a} and {a2}, two of the contrary as {b} and {b2}."""
    words = *town.chance.sample(here, 2), *town.chance.sample(there, 2)
    return dict(zip(("a", "a2", "b", "b2"), words, strict=True))


def _coming(town: Town) -> Slots:
    slots = dict(zip("pq", town.chance.sample(town.people, 2), strict=True))
    slots["went"] = town.chance.choice(WAYS)
    town.change(Fact("first", slots["went"], slots["p"]))
    town.change(Fact("last", slots["went"], slots["q"]))
    return slots


NEGATION = _tale(
    """
{s} was {a}, not {b}
{s} was not {b} but {a}
{s} was not {b}, but very {a}
{s} was {a} and not {b}
""",
    """
so {s} was {a2}|s|a2|
{s} was really {a2}|s|a2|
""",
    """
what was {s}|{a}
what was {s}|{a2}
""",
    "a|b\na2|b2",
    _negation,
)
ORDER = _tale(
    """
first {s} was {b}, then {a}
{s} was {a} after it had been {b}
before {s} was {a}, it was {b}
{s} was {b}; later it was {a}
""",
    """
in the end {s} was {a2}|s|a2|
now {s} was {a2}|s|a2|
""",
    """
what was {s} now|{a}
what was {s} now|{a2}
""",
    "a|b\na2|b2",
    _order,
)
CAME = _tale(
    """
{p} {went} before {q}
{q} {went} after {p}
first {p} {went}, then {q}
{p} {went} earlier than {q}
""",
    """
the first who {went} was {p}|went|p|first
the last who {went} was {q}|went|q|last
""",
    """
first|{p}
last|{q}
""",
    "p|q",
    _coming,
)
TALES = (NEGATION, ORDER, CAME)


def tell(scene: Scene) -> None:
    """A tale, short questions about it with their answers, and what follows.

    Nothing false is said of it: where a claim may as well be its contrary, order is not learned.
    """
    chance = scene.chance
    tale = chance.choice(TALES)
    slots = tale.draw(scene.town)
    scene.say(chance.choice(tale.frames).format(**slots))
    for _ in range(chance.randint(*FOLLOWING)):
        if chance.random() < ASKED:
            question, answer = chance.choice(tale.quiz)
            scene.say(f"{question.format(**slots)}?", _given(scene, answer.format(**slots)))
        else:
            claim = chance.choice(tale.claims)
            scene.say(scene.state(claim.fact(slots), claim.text.format(**slots)))


def _given(scene: Scene, answer: str) -> str:
    """The answer as somebody gives it."""
    chance = scene.chance
    opener, said, adverb = (chance.random() < BEFORE for _ in range(3))
    before = [
        *([chance.choice(OPENERS) + chance.choice(("", ","))] if opener else []),
        *([f"{scene.town.someone()} {chance.choice(SAYING)}"] if said else []),
        *([chance.choice(ADVERBS)] if adverb else []),
    ]
    return " ".join([*before, answer])
