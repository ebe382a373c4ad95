"""The two sides of every task: training rows on one, development and test rows on the other, with no name, street or telling in common."""

import re
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import NamedTuple, TypeVar

from gpt1.demo import words
from gpt1.demo.telling import Fact, ask, tell
from gpt1.demo.town import PERSON_KINDS, THING_KINDS, Town

Row = TypeVar("Row", bound=tuple[object, ...])
MOST_DRAWS = 5000
FRAME = re.compile("(dear|yours|said|it read|a notice hung|[a-z]+ wrote in a diary)")  # what a kind of text brings along


class Side(NamedTuple):
    """What rows of one side may use. Side 0 is for training, side 1 for development and test."""

    number: int
    chance: Random

    def half(self, items: Iterable[str]) -> tuple[str, ...]:
        """This side's half: every other one."""
        return tuple(items)[self.number::2]

    def town(self) -> Town:
        """A small town of this side's people and streets."""
        return Town(self.chance, list(self.half(words.WOMEN)), list(self.half(words.MEN)), people=8, things=8, odd=self.number)

    def wordings(self, count: int, of: int) -> list[int]:
        """Different wordings of this side, out of `of` that there are."""
        return self.chance.sample(range(self.number, of, 2), count)

    def tell(self, fact: Fact) -> str:
        """The fact in a wording of this side."""
        return tell(fact, self.wordings(1, 8)[0])

    def ask(self, fact: Fact) -> str:
        """The question for it in a wording of this side, for an hour of this side: without, it would often stand in the books."""
        return f"{ask(fact, self.wordings(1, 6)[0])} {self.chance.choice(self.half(words.HOURS))}"

    def tell_twice(self, fact: Fact, other: Fact) -> tuple[str, str]:
        """Two facts in two different wordings."""
        one, two = self.wordings(2, 8)
        return tell(fact, one), tell(other, two)


class Facts(NamedTuple):
    """Two subjects of one town: the kind `shared` of both, and the kind `other` of each; no value twice."""

    first: Fact
    second: Fact
    first_other: Fact
    second_other: Fact


def draw_facts(side: Side) -> Facts:
    """Facts about two people or two things of a new town."""
    while True:
        town = side.town()
        subjects, kinds = (town.people, PERSON_KINDS) if side.chance.random() < 0.5 else (town.things, THING_KINDS)
        first, second = side.chance.sample(subjects, 2)
        shared, other = side.chance.sample(kinds, 2)
        facts = Facts(town.fact(shared, first), town.fact(shared, second), town.fact(other, first), town.fact(other, second))
        if len({fact.value for fact in facts} | {first, second}) == 6:
            return facts


def clauses(text: str) -> list[str]:
    """What stands between two marks of punctuation, in lower case: by these a task's text is looked up in the books."""
    return [clause for part in re.split(r'[.,?!:;"]+', text.lower()) if " " in (clause := part.strip()) and not FRAME.match(clause)]


def distinct(make: Callable[[int], Row], count: int, known: set[str]) -> list[Row]:
    """Rows make(0) … make(count - 1), drawn again where a clause of their texts is in `known`, or the row came before."""
    rows: dict[Row, None] = {}
    for number in range(count):
        for _ in range(MOST_DRAWS):
            row = make(number)
            if row not in rows and not any(clause in known for text in row_texts(row) for clause in clauses(text)):
                break
        else:
            raise RuntimeError(f"no new row in {MOST_DRAWS} draws; the last was {row}")
        rows[row] = None
    return list(rows)


def row_texts(row: Iterable[object]) -> Iterator[str]:
    """The texts of a row of any task."""
    for cell in row:
        if isinstance(cell, tuple):
            yield from row_texts(cell)
        elif isinstance(cell, str):
            yield cell
