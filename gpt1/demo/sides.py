"""The two sides of every task: training rows on one, development and test rows on the other, with
no name, street or sentence in common. Wordings are common: asked in one that no training row has, a
classifier that is right elsewhere is right or wrong by the luck of its seed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from random import Random
from typing import NamedTuple, TypeVar

from gpt1.demo import lexicon
from gpt1.demo.qualities import ALL, OF_PEOPLE, OPPOSITE, POLE_OF, Pole
from gpt1.demo.tales import Slots, Tale
from gpt1.demo.telling import OF_QUALITY, Fact, clause_of
from gpt1.demo.town import Town

Row = TypeVar("Row", bound=NamedTuple)  # its last field is the label
USUAL = 0.75  # how often the usual one of two comes first: at .5 some seeds never leave the plateau
ERR = 26  # of so many rows two have each other's label: nobody is right on more than 12 of 13
FRAMES = 3  # of a tale's, which tasks tell it in: four take longer to learn
FIRST_POLES = frozenset(word for pole, _ in ALL.values() for word in pole.words)
FRAME = re.compile(
    "(dear|yours|said|it read|a notice hung|[a-z]+ wrote in a diary)"
)  # what a kind of text brings along


class Side(NamedTuple):
    """What rows of one side may use. Side 0 is for training, side 1 for development and test.

    forbidden: what no row may say, as the books do, in lower case; words: which of the words of a
    meaning it takes.
    """

    number: int
    chance: Random
    forbidden: frozenset[str]
    words: slice

    def town(self) -> Town:
        """A small town of this side's people and streets: every other name."""
        names = lexicon.WOMEN, lexicon.MEN, lexicon.COMPOUNDS
        return Town(self.chance, *(kind[self.number :: 2] for kind in names))

    def share(self, items: Iterable[str]) -> tuple[str, ...]:
        """Those of the words that this side takes."""
        return tuple(items)[self.words]

    def word(self, pole: Pole, *but: str) -> str:
        """A word of this side for a pole, none of those named."""
        return self.chance.choice([word for word in self.share(pole.words) if word not in but])

    def fact(self, kind: str, subject: str, pole: int) -> Fact:
        """A quality in a word of this side."""
        return Fact(kind, subject, self.word(ALL[kind][pole]))

    def synonym(self, fact: Fact) -> Fact:
        """A quality in another word of this side."""
        return fact._replace(value=self.word(POLE_OF[fact.value], fact.value))

    def contrary(self, fact: Fact) -> Fact:
        """The opposite in a word of this side."""
        return fact._replace(value=self.word(OPPOSITE[fact.value]))

    def tell(self, fact: Fact) -> str:
        """The fact in any wording."""
        return clause_of(fact, self.chance.randrange(len(OF_QUALITY)))

    def show(self, fact: Fact) -> str:
        """A clause in which the quality shows, without its name."""
        return self.chance.choice(POLE_OF[fact.value].signs).format(s=fact.subject)

    def tale(self, tale: Tale) -> tuple[str, list[Slots]]:
        """A frame, its fillers in words of this side that say that something is of a first pole,
        and the same exchanged; neither stands in the books.
        """
        while True:
            frame, slots = self.chance.choice(tale.frames[:FRAMES]), tale.draw(self.town())
            for slot, twin in (("a", "a2"), ("b", "b2")):
                words = self.share(POLE_OF[slots[slot]].words)
                slots[slot], slots[twin] = self.chance.sample(words, 2)
            both = sorted(
                (slots, tale.contrary(slots)),
                key=lambda candidate: candidate["a"] not in FIRST_POLES,
            )
            if not any(frame.format(**filled).lower() in self.forbidden for filled in both):
                return frame, both


def draw_portrait(side: Side, topic: Sequence[str]) -> tuple[Town, list[Fact]]:
    """A new town, and of a relative or a belonging in it every quality of the topic, all of people
    or all of things, as they are, in random order.
    """
    town, chance = side.town(), side.chance
    subject = chance.choice(town.relatives if topic[0] in OF_PEOPLE else town.belongings)
    kinds = chance.sample(topic, len(topic))
    return town, [side.fact(kind, subject, chance.randrange(2)) for kind in kinds]


def clauses(text: str) -> list[str]:
    """What stands between two marks of punctuation, in lower case: by these a task's text is looked
    up in the books.
    """
    return [
        clause
        for phrase in re.split(r'[.,?!:;"]+', text.lower())
        if " " in (clause := phrase.strip()) and not FRAME.match(clause)
    ]


def sentences(text: str) -> list[str]:
    """The sentences of a text, and what is said in one, in lower case."""
    parts = (sentence.strip(" ,;") for sentence in re.split(r'[.?!:"]+', text.lower()))
    return [sentence for sentence in parts if " " in sentence]


def distinct(make: Callable[[Side, int], list[Row]], side: Side, count: int) -> list[Row]:
    """So many rows: those of make(side, 0), make(side, 1), …, twins or one alone, drawn again where
    a row came before, or where a clause of one alone is known; some misjudged.
    """
    rows, number = dict[Row, None](), 0
    while len(rows) < count:
        group = make(side, number)
        cells = [cell if isinstance(cell, tuple) else (str(cell),) for cell in group[0]]
        spoken = chain(*map(clauses, chain(*cells))) if len(group) == 1 else ()
        if rows.keys().isdisjoint(group) and side.forbidden.isdisjoint(spoken):
            rows |= dict.fromkeys(group)
            number += 1
    return misjudged(list(rows))


def misjudged(rows: list[Row]) -> list[Row]:
    """The rows; once in so many two neighbours, or twins, have each other's label, as people who
    label err.
    """
    for row in range(ERR - 2, len(rows) - 1, ERR):
        first, second = rows[row : row + 2]
        rows[row : row + 2] = (
            first._make((*first[:-1], second[-1])),
            second._make((*second[:-1], first[-1])),
        )
    return rows
