"""The two sides of every task: training rows on one, development and test rows on the other, with
no name, street or telling in common; of a tale's frames the last is not for training.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from random import Random
from typing import NamedTuple, TypeVar

from gpt1.demo import lexicon
from gpt1.demo.qualities import ALL, OF_PEOPLE, OPPOSITE, POLE_OF
from gpt1.demo.tales import Slots, Tale
from gpt1.demo.telling import OF_QUALITY, Fact, clause_of, synonym
from gpt1.demo.town import Town

Row = TypeVar("Row", bound=tuple[object, ...])
FRAME = re.compile(
    "(dear|yours|said|it read|a notice hung|[a-z]+ wrote in a diary)"
)  # what a kind of text brings along


class Side(NamedTuple):
    """What rows of one side may use. Side 0 is for training, side 1 for development and test.

    known: what stands in the books, in lower case.
    """

    number: int
    chance: Random
    known: frozenset[str] = frozenset()

    def half(self, items: Iterable[str]) -> tuple[str, ...]:
        """This side's half: every other one."""
        return tuple(items)[self.number :: 2]

    def town(self) -> Town:
        """A small town of this side's people and streets."""
        return Town(self.chance, *map(self.half, (lexicon.WOMEN, lexicon.MEN, lexicon.COMPOUNDS)))

    def wording(self, of: Sequence[str]) -> str:
        """One of this side's wordings."""
        return self.chance.choice(self.half(of))

    def fact(self, kind: str, subject: str, pole: int) -> Fact:
        """A quality in a word of this side."""
        return Fact(kind, subject, self.wording(ALL[kind][pole].words))

    def synonym(self, fact: Fact) -> Fact:
        """A quality in another word of this side."""
        return synonym(self.chance, fact, self.half(POLE_OF[fact.value].words))

    def contrary(self, fact: Fact) -> Fact:
        """The opposite in a word of this side."""
        return fact._replace(value=self.wording(OPPOSITE[fact.value].words))

    def tell(self, fact: Fact, shown: float = 0.0) -> str:
        """The fact in a wording of this side; by the chance `shown` without naming the quality."""
        if self.chance.random() < shown:
            return self.wording(POLE_OF[fact.value].signs).format(s=fact.subject)
        return clause_of(fact, self.chance.randrange(self.number, len(OF_QUALITY), 2))

    def tale(self, tale: Tale) -> tuple[str, Slots, Slots]:
        """A frame, its fillers in words of this side, and the same exchanged; neither stands in the
        books. The last frame is not for training.
        """
        while True:
            frame, slots = self.chance.choice(self._frames(tale)), tale.draw(self.town())
            for slot, twin in (("a", "a2"), ("b", "b2")):
                if slot in slots:
                    words = self.half(POLE_OF[slots[slot]].words)
                    slots[slot], slots[twin] = self.chance.sample(words, 2)
            both = slots, tale.contrary(slots)
            if not any(frame.format(**filled).lower() in self.known for filled in both):
                return frame, *both

    def again(self, tale: Tale, frame: str) -> str:
        """Another frame of the same meaning."""
        return self.chance.choice([other for other in self._frames(tale) if other != frame])

    def _frames(self, tale: Tale) -> Sequence[str]:
        return tale.frames[: len(tale.frames) - 1 + self.number]


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
        for part in re.split(r'[.,?!:;"]+', text.lower())
        if " " in (clause := part.strip()) and not FRAME.match(clause)
    ]


def sentences(text: str) -> list[str]:
    """The sentences of a text, and what is said in one, in lower case."""
    parts = (part.strip(" ,;") for part in re.split(r'[.?!:"]+', text.lower()))
    return [part for part in parts if " " in part]


def distinct(make: Callable[[Side, int], list[Row]], side: Side, count: int) -> list[Row]:
    """So many rows: those of make(side, 0), make(side, 1), …, twins or one alone, drawn again where
    a row came before, or where a clause of one alone is known.
    """
    rows, number = dict[Row, None](), 0
    while len(rows) < count:
        group = make(side, number)
        cells = [cell if isinstance(cell, tuple) else (str(cell),) for cell in group[0]]
        spoken = chain(*map(clauses, chain(*cells))) if len(group) == 1 else ()
        if rows.keys().isdisjoint(group) and side.known.isdisjoint(spoken):
            rows |= dict.fromkeys(group)
            number += 1
    return list(rows)
