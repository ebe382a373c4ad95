"""The two sides of every task: training rows on one, dev and test rows on the other. They share
wordings, but no name, street or sentence.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from random import Random
from typing import NamedTuple, TypeVar

from gpt1.town.qualities import ALL, OF_PEOPLE, POLE_OF
from gpt1.town.tales import Slots, Tale, exchanged
from gpt1.town.telling import OF_QUALITY, Fact, clause_of
from gpt1.town.town import Town

Row = TypeVar("Row", bound=NamedTuple)  # its last field is the label
USUAL = 0.75  # how often the usual one of two comes first: at .5 some seeds never leave the plateau
ERR = 26  # of so many rows two have each other's label: who knows the truth scores about 92 %
FRAMES = 3  # of a tale's, which tasks tell it in: four take longer to learn
FIRST_POLES = frozenset(word for pole, _ in ALL.values() for word in pole.words)
FRAME = re.compile(
    "(dear|yours|said|it read|a notice hung|[a-z]+ wrote in a diary)"
)  # what a kind of text brings along


class Side(NamedTuple):
    """What the rows of one side may use."""

    names: slice  # every other name of people and streets
    chance: Random
    forbidden: frozenset[str]  # sentences of the books, in lower case
    words: slice  # which of a meaning

    def town(self) -> Town:
        """Return a small town of this side."""
        return Town(self.chance, self.names)

    def fact(self, kind: str, subject: str, pole: int) -> Fact:
        """Return a quality in any word."""
        return Fact(kind, subject, self.chance.choice(ALL[kind][pole].words))

    def tell(self, fact: Fact) -> str:
        """Return the fact in any wording."""
        return clause_of(fact, self.chance.randrange(len(OF_QUALITY)))

    def show(self, fact: Fact) -> str:
        """Return a clause that shows the quality without naming it."""
        return self.chance.choice(POLE_OF[fact.value].signs).format(s=fact.subject)

    def tale(self, tale: Tale) -> tuple[str, list[Slots]]:
        """Return a frame and two fillings, one of a first pole and its contrary; neither is in the
        books.
        """
        while True:
            frame, slots = self.chance.choice(tale.frames[:FRAMES]), tale.draw(self.town())
            for slot, twin in (("a", "a2"), ("b", "b2")):
                words = POLE_OF[slots[slot]].words[self.words]
                slots[slot], slots[twin] = self.chance.sample(words, 2)
            both = sorted((slots, exchanged(slots)), key=lambda way: way["a"] not in FIRST_POLES)
            if not any(frame.format(**filled).lower() in self.forbidden for filled in both):
                return frame, both


def draw_portrait(side: Side, topic: Sequence[str]) -> tuple[Town, list[Fact]]:
    """Return a new town and, of one subject, every quality of the topic in random order."""
    town, chance = side.town(), side.chance
    subject = chance.choice(town.relatives if topic[0] in OF_PEOPLE else town.belongings)
    kinds = chance.sample(topic, len(topic))
    return town, [side.fact(kind, subject, chance.randrange(2)) for kind in kinds]


def clauses(text: str) -> list[str]:
    """Return the clauses of a text, in lower case, by which texts are looked up in the books."""
    return [
        clause
        for phrase in re.split(r'[.,?!:;"]+', text.lower())
        if " " in (clause := phrase.strip()) and not FRAME.match(clause)
    ]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, and quoted ones, in lower case."""
    parts = (sentence.strip(" ,;") for sentence in re.split(r'[.?!:"]+', text.lower()))
    return [sentence for sentence in parts if " " in sentence]


def distinct(make: Callable[[Side, int], list[Row]], side: Side, count: int) -> list[Row]:
    """Return `count` rows of make(side, 0), make(side, 1), …, each a row or two twins, drawn again
    where one is not new or has a forbidden clause. Some get a wrong label.
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
    """Exchange the labels of two neighbours once in 26 rows: people who label err too."""
    for row in range(ERR - 2, len(rows) - 1, ERR):
        first, second = rows[row : row + 2]
        rows[row : row + 2] = (
            first._make((*first[:-1], second[-1])),
            second._make((*second[:-1], first[-1])),
        )
    return rows
