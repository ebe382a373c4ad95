"""A town and its facts, which hold until an event changes them."""

from collections.abc import Sequence
from random import Random

from gpt1.town import lexicon
from gpt1.town.qualities import ALL, OF_PEOPLE, OF_THINGS, POLE_OF, RELATIVES
from gpt1.town.telling import Fact, with_articles

THING_KINDS = ("owner", "colour", "material")
PERSON_KINDS = ("place", "pet", "food", "street", "age", "friend")
PEOPLE = 8


class Town:
    """People by name, things by noun ("the kite"), and facts about them; relatives ("Anna's aunt")
    and belongings ("Anna's kite") have qualities too. `names`: which it may take.
    """

    def __init__(
        self,
        chance: Random,
        names: slice,
        *,
        things: int = 4,
    ) -> None:
        self.chance = chance
        compounds = lexicon.COMPOUNDS[names]
        self.women = chance.sample(lexicon.WOMEN[names], PEOPLE // 2)
        self.men = chance.sample(lexicon.MEN[names], PEOPLE // 2)
        self.people = self.women + self.men
        chance.shuffle(self.people)
        nouns = chance.sample(lexicon.THINGS, things + PEOPLE)
        self.things = [f"the {noun}" for noun in nouns[:things]]
        self.belongings = [
            f"{person}'s {noun}" for person, noun in zip(self.people, nouns[things:], strict=True)
        ]
        self.relatives = [f"{person}'s {chance.choice(list(RELATIVES))}" for person in self.people]
        chance.sample(compounds, PEOPLE)  # once surnames: what is drawn after them stays as it was
        self.pools: dict[str, Sequence[str]] = {
            "owner": self.people,
            "friend": self.people,
            "colour": lexicon.COLOURS,
            "material": lexicon.MATERIALS,
            "place": [f"the {place}" for place in lexicon.PLACES],
            "pet": [with_articles(f"a {animal}") for animal in lexicon.ANIMALS],
            "food": lexicon.FOODS,
            "age": lexicon.NUMBERS,
            "street": [
                f"{name} {chance.choice(lexicon.STREET_KINDS)}"
                for name in chance.sample(compounds, PEOPLE)
            ],
        }
        self.values: dict[tuple[str, str], str] = {}
        for kinds, subjects in ((THING_KINDS, self.things), (PERSON_KINDS, self.people)):
            for kind in kinds:
                for subject in subjects:
                    self.values[kind, subject] = self.new_value(kind, subject)
        for qualities, owners in (
            (OF_THINGS, self.belongings + self.things),
            (OF_PEOPLE, self.relatives + self.people),
        ):
            for noun, poles in qualities.items():
                for subject in owners:
                    self.values[noun, subject] = chance.choice(chance.choice(poles).words)

    def change(self, fact: Fact) -> None:
        """Record that the fact holds from now on."""
        self.values[fact.kind, fact.subject] = fact.value

    def fact(self, kind: str, subject: str) -> Fact:
        """Return the fact as it stands; a quality in any word."""
        value = self.values[kind, subject]
        return Fact(
            kind, subject, self.chance.choice(POLE_OF[value].words) if kind in ALL else value
        )

    def new_value(self, kind: str, subject: str) -> str:
        """Return a value that the subject does not have now."""
        others = (self.values.get((kind, subject)), subject)
        return self.chance.choice([value for value in self.pools[kind] if value not in others])

    def pronoun(self, subject: str) -> str:
        """Return she, he or it."""
        if subject in self.people:
            return "she" if subject in self.women else "he"
        return RELATIVES.get(subject.split()[-1], "it")

    def someone(self, *but: str) -> str:
        """Return one of the people, none of those named."""
        return self.chance.choice([person for person in self.people if person not in but])
