"""A town and its days: who lives there, what they own and where it lies. Facts stay true until an event changes them."""

from random import Random
from typing import NamedTuple

from gpt1.demo import words
from gpt1.demo.telling import Fact

THING_KINDS = ("owner", "colour", "material", "kept")
PERSON_KINDS = ("place", "trade", "pet", "food", "street", "age", "friend")
CHANGING = ("owner", "colour", "kept", "place")  # what events may change


class Event(NamedTuple):
    """From `day` on the fact of this kind about this subject has the new value."""

    day: int
    fact: Fact


def with_article(noun: str) -> str:
    """The noun with a or an."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def compound_names(chance: Random, count: int, odd: int | None = None) -> list[str]:
    """Names such as Ashbrook, all different; those whose place among all is odd (1) or even (0) where that is asked for."""
    names = [f"{start.capitalize()}{end}" for start in words.SURNAME_STARTS for end in words.SURNAME_ENDS]
    return chance.sample(names if odd is None else names[odd::2], count)


class Town:
    """People by name, things by noun ("the kite"), and every fact about them as it stands.

    `women` and `men` are the names to draw from, `odd` says which streets. Within a town no two things share a colour, no two people a
    trade, and so on (but for owners and friends), so that a value names one subject.
    """

    def __init__(self, chance: Random, women: list[str], men: list[str], people: int = 8, things: int = 10,
                 odd: int | None = None) -> None:
        self.chance = chance
        self.women = chance.sample(women, people // 2)
        self.men = chance.sample(men, people - people // 2)
        self.people = self.women + self.men
        chance.shuffle(self.people)
        self.things = [f"the {noun}" for noun in chance.sample(words.THINGS, things)]
        self.surnames = dict(zip(self.people, compound_names(chance, people, odd), strict=True))
        self.events: list[Event] = []
        self.day = 0
        streets = [f"{name} {chance.choice(words.STREET_KINDS)}" for name in compound_names(chance, people, odd)]
        self.pools: dict[str, list[str]] = {
            "owner": self.people, "friend": self.people,
            "colour": list(words.COLOURS), "material": list(words.MATERIALS),
            "kept": [f"the {place}" for place in words.PLACES], "place": [f"the {place}" for place in words.PLACES],
            "trade": [with_article(trade) for trade in words.TRADES], "pet": [with_article(animal) for animal in words.ANIMALS],
            "food": list(words.FOODS), "street": streets, "age": list(words.NUMBERS)}
        self.values: dict[tuple[str, str], str] = {}
        for kind in (*THING_KINDS, *PERSON_KINDS):
            subjects = self.things if kind in THING_KINDS else self.people
            pool = self.pools[kind]
            drawn = chance.sample(pool, len(subjects)) if len(pool) >= len(subjects) else [chance.choice(pool) for _ in subjects]
            for subject, value in zip(subjects, drawn, strict=True):
                while value == subject:  # nobody is her own best friend
                    value = chance.choice(pool)
                self.change(Fact(kind, subject, value))

    def change(self, fact: Fact) -> None:
        """An event: from now on the fact holds."""
        self.values[fact.kind, fact.subject] = fact.value
        self.events.append(Event(self.day, fact))

    def fact(self, kind: str, subject: str) -> Fact:
        """The fact of this kind about this subject as it stands."""
        return Fact(kind, subject, self.values[kind, subject])

    def kinds_of(self, subject: str) -> tuple[str, ...]:
        """The kinds of facts that there are about a subject."""
        return THING_KINDS if subject in self.things else PERSON_KINDS

    def other_value(self, fact: Fact) -> str:
        """Another value of the same kind, one that some other subject of the town has, and not the subject itself."""
        subjects = self.things if fact.kind in THING_KINDS else self.people
        values = [value for subject in subjects if (value := self.values[fact.kind, subject]) not in (fact.value, fact.subject)]
        return self.chance.choice(values)

    def new_value(self, kind: str, subject: str) -> str:
        """A value of the kind that the subject does not have now."""
        now = self.values[kind, subject]
        taken = set(self.values.values()) if kind == "colour" else {now}
        free = [value for value in self.pools[kind] if value not in taken]
        return self.chance.choice(free or [value for value in self.pools[kind] if value != now])

    def pronoun(self, person: str) -> str:
        """She or he."""
        return "she" if person in self.women else "he"

    def someone(self, *but: str) -> str:
        """One of the people, none of those named."""
        return self.chance.choice([person for person in self.people if person not in but])
