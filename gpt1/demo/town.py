"""A town and its days: who lives there, what they own, what they are like and where they go. Facts
hold until an event changes them.
"""

from random import Random
from typing import NamedTuple

from gpt1.demo import lexicon
from gpt1.demo.qualities import ALL, OF_PEOPLE, OF_THINGS, RELATIVES, opposite, pole_of
from gpt1.demo.telling import Fact

THING_KINDS = ("owner", "colour", "material")
PERSON_KINDS = ("place", "pet", "food", "street", "age", "friend")


class Event(NamedTuple):
    """From `day` on the fact of this kind about this subject has the new value."""

    day: int
    fact: Fact


def with_article(noun: str) -> str:
    """The noun with a or an."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


COMPOUNDS = tuple(
    f"{start.capitalize()}{end}" for start in lexicon.SURNAME_STARTS for end in lexicon.SURNAME_ENDS
)


def compound_names(chance: Random, count: int, odd: int | None = None) -> list[str]:
    """Names such as Ashbrook, all different; those whose place among all is odd (1) or even (0)
    where that is asked for.
    """
    return chance.sample(COMPOUNDS if odd is None else COMPOUNDS[odd::2], count)


class Town:
    """People by name, things by noun ("the kite"), and every fact about them as it stands.

    All have qualities, and so have relatives ("Anna's aunt") and belongings ("Anna's kite").
    `women` and `men` are the names to draw from, `odd` says which streets.
    """

    def __init__(
        self,
        chance: Random,
        women: list[str],
        men: list[str],
        people: int = 8,
        things: int = 4,
        odd: int | None = None,
    ) -> None:
        self.chance = chance
        self.women = chance.sample(women, people // 2)
        self.men = chance.sample(men, people - people // 2)
        self.people = self.women + self.men
        chance.shuffle(self.people)
        nouns = chance.sample(lexicon.THINGS, things + people)
        self.things = [f"the {noun}" for noun in nouns[:things]]
        self.belongings = [
            f"{person}'s {noun}" for person, noun in zip(self.people, nouns[things:], strict=True)
        ]
        self.relatives = [f"{person}'s {chance.choice(list(RELATIVES))}" for person in self.people]
        self.surnames = dict(zip(self.people, compound_names(chance, people, odd), strict=True))
        self.events: list[Event] = []
        self.day = 0
        self.pools: dict[str, list[str]] = {
            "owner": self.people,
            "friend": self.people,
            "colour": list(lexicon.COLOURS),
            "material": list(lexicon.MATERIALS),
            "place": [f"the {place}" for place in lexicon.PLACES],
            "pet": [with_article(animal) for animal in lexicon.ANIMALS],
            "food": list(lexicon.FOODS),
            "age": list(lexicon.NUMBERS),
            "street": [
                f"{name} {chance.choice(lexicon.STREET_KINDS)}"
                for name in compound_names(chance, people, odd)
            ],
        }
        self.values: dict[tuple[str, str], str] = {}
        for kinds, subjects in ((THING_KINDS, self.things), (PERSON_KINDS, self.people)):
            for kind in kinds:
                for subject in subjects:
                    self.change(
                        Fact(
                            kind,
                            subject,
                            chance.choice(
                                [value for value in self.pools[kind] if value != subject]
                            ),
                        )
                    )
        for qualities, owners in (
            (OF_THINGS, self.belongings + self.things),
            (OF_PEOPLE, self.relatives + self.people),
        ):
            for noun, quality in qualities.items():
                for subject in owners:
                    self.change(
                        Fact(noun, subject, chance.choice(chance.choice(quality.poles).words))
                    )

    def change(self, fact: Fact) -> None:
        """An event: from now on the fact holds."""
        self.values[fact.kind, fact.subject] = fact.value
        self.events.append(Event(self.day, fact))

    def fact(self, kind: str, subject: str) -> Fact:
        """The fact of this kind about this subject as it stands; for a quality in any of its
        words.
        """
        value = self.values[kind, subject]
        return Fact(
            kind,
            subject,
            self.chance.choice(ALL[kind].poles[value in ALL[kind].poles[1].words].words)
            if kind in ALL
            else value,
        )

    def qualities_of(self, subject: str) -> tuple[str, ...]:
        """The nouns of the qualities of a relative or a belonging."""
        return tuple(OF_PEOPLE if subject in (*self.people, *self.relatives) else OF_THINGS)

    def poles(self, kind: str, subject: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words for what the subject is of a quality, and those for what it is not."""
        value = self.values[kind, subject]
        return pole_of(kind, value).words, opposite(kind, value).words

    def contrary(self, fact: Fact) -> Fact:
        """The opposite of a quality, in any word."""
        return fact._replace(value=self.chance.choice(opposite(fact.kind, fact.value).words))

    def new_value(self, kind: str, subject: str) -> str:
        """A value of the kind that the subject does not have now."""
        return self.chance.choice(
            [
                value
                for value in self.pools[kind]
                if value not in (self.values[kind, subject], subject)
            ]
        )

    def pronoun(self, subject: str) -> str:
        """She, he or it."""
        if subject in self.people:
            return "she" if subject in self.women else "he"
        return RELATIVES.get(subject.split()[-1], "it")

    def someone(self, *but: str) -> str:
        """One of the people, none of those named."""
        return self.chance.choice([person for person in self.people if person not in but])
