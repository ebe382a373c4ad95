"""A page about one relative or belonging, as some kind of text."""

from collections.abc import Callable
from random import Random

from gpt1.town import lexicon
from gpt1.town.qualities import ALL, OF_PEOPLE, OF_THINGS, POLE_OF
from gpt1.town.telling import ASKING_WHETHER, OF_ONE, Fact, clause_of, fill, sentence
from gpt1.town.town import Town

WORDINGS = 8
ONES = {"she": "woman", "he": "man", "it": "thing"}


class Scene:
    """Sentences about a town, two speakers, and their subject."""

    def __init__(self, town: Town, chance: Random) -> None:
        self.town, self.chance = town, chance
        self.sentences: list[str] = []
        self.speakers = chance.sample(town.people, 2)
        self.subject = chance.choice((*town.relatives, *town.belongings))
        kinds = tuple(OF_PEOPLE if self.subject in town.relatives else OF_THINGS)
        self.qualities = chance.sample(kinds, 2)
        self.others = [kind for kind in kinds if kind not in self.qualities]
        self.named = False  # whether the subject's name has been said

    def say(self, *clauses: str) -> None:
        """Add clauses, each as a sentence."""
        self.sentences += [sentence(clause) for clause in clauses]

    def one(self) -> Fact:
        """Return one of the page's two qualities, in any word."""
        return self.town.fact(self.chance.choice(self.qualities), self.subject)

    def both(self) -> list[Fact]:
        """Return the page's two qualities, in any words."""
        return [self.town.fact(kind, self.subject) for kind in self.qualities]

    def unknown(self) -> Fact:
        """Return a quality that the text does not mention, true or not."""
        fact = self.town.fact(self.chance.choice(self.others), self.subject)
        return fact if self.chance.random() < 0.5 else fact.contrary(self.chance)

    def name(self) -> str | None:
        """Return a pronoun for the subject, or None where its name is due."""
        return (
            self.town.pronoun(self.subject) if self.named and self.chance.random() < 0.8 else None
        )

    def word(self, fact: Fact) -> str:
        """Word the fact in any way; a quality may be told twice, with its contrary denied, or
        likened.
        """
        chance, pronoun = self.chance, self.name() if fact.subject == self.subject else None
        # The first wordings come oftener than the last, as in any language.
        wording = min(chance.randrange(2 * WORDINGS) // 2, chance.randrange(WORDINGS))
        text, kind = clause_of(fact, wording, pronoun), chance.random()
        if fact.kind not in ALL or kind < 0.3:
            return text
        again = fact.synonym(chance).value
        likes = [f"as {like}" for like in POLE_OF[fact.value].likes]
        if kind < 0.7:
            return fill(
                chance.choice(OF_ONE),
                fact.subject,
                pronoun,
                v=fact.value,
                w=again,
                one=ONES[self.town.pronoun(self.subject)],
            )
        return (
            f"{text}, not {fact.contrary(chance).value}"
            if kind < 0.85
            else f"{text} {chance.choice((*likes, f'in {fact.kind}'))}"
        )

    def tell(self, fact: Fact) -> str:
        """Word the fact in any way, or only show it."""
        shows = fact.kind in ALL and self.chance.random() < 0.25
        return self.show(fact) if shows else self.word(fact)

    def show(self, fact: Fact) -> str:
        """Return a clause in which a quality shows."""
        return self.fill(self.chance.choice(POLE_OF[fact.value].signs))

    def fill(self, template: str, **values: str) -> str:
        """Fill a template of telling.py with the subject."""
        return fill(template, self.subject, self.name(), **values)

    def ask(self, fact: Fact) -> str:
        """Ask whether the fact holds."""
        return self.fill(self.chance.choice(ASKING_WHETHER), v=fact.value)

    def who(self) -> str:
        """Return whoever says something."""
        return self.chance.choice(("some", "people", "others", self.speakers[0]))


def prose(_: Scene, clauses: list[str]) -> list[str]:
    """Put clauses one after another, the last two joined."""
    return [*clauses[:-2], f"{clauses[-2]}, and {clauses[-1]}"] if len(clauses) > 2 else clauses


def letter(scene: Scene, clauses: list[str]) -> list[str]:
    """Write a letter."""
    writer, reader = scene.speakers
    return [f"dear {reader}", *clauses, f"yours, {writer}"]


def diary(scene: Scene, clauses: list[str]) -> list[str]:
    """Write a page of a diary."""
    return [f"{scene.speakers[0]} wrote in a diary: {clauses[0]}", *clauses[1:]]


def report(_: Scene, clauses: list[str]) -> list[str]:
    """Write what the newspaper wrote."""
    return [
        f"the newspaper reported that {clauses[0]}",
        *(f"it added that {clause}" for clause in clauses[1:]),
    ]


def talk(scene: Scene, clauses: list[str]) -> list[str]:
    """Write what people said to one another."""
    return [
        f'"{clause[0].upper()}{clause[1:]}," said {scene.chance.choice(scene.speakers)}'
        for clause in clauses
    ]


def notice(scene: Scene, clauses: list[str]) -> list[str]:
    """Write a notice on the wall."""
    building = scene.chance.choice(lexicon.PLACES)
    return [
        f"a notice hung on the door of the {building}",
        *(f"it read: {clause}" for clause in clauses),
    ]


Genre = Callable[[Scene, list[str]], list[str]]
GENRES: tuple[Genre, ...] = (prose, letter, diary, report, talk, notice)
