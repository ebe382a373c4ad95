"""The books: each about a town of its own, day after day; what is so stays so until a sentence
changes it.
"""

from random import Random
from typing import NamedTuple

from gpt1.demo import happenings, lexicon, scenes, tales
from gpt1.demo.scenes import Scene, Statement
from gpt1.demo.town import Event, Town

TALES = (6, 9)  # of a page, at least and at most
PARTS = (
    (0.15, happenings.turn),
    (0.15, scenes.relation),
    (0.1, happenings.happen),
    (0.4, happenings.mood),
    (0.3, happenings.thank),
)


class Book(NamedTuple):
    """A book's text, and what it says of its town: every statement, and the events in their
    order.
    """

    title: str
    text: str
    statements: list[Statement]
    events: list[Event]


def write_page(scene: Scene) -> None:
    """One part of a day: what somebody or something is like, talk about it, tales, what happens,
    and how they feel.
    """
    chance = scene.chance
    scenes.introduce(scene)
    for _ in range(chance.randint(2, 4)):
        chance.choice(scenes.TALKS)(scene)
    for _ in range(chance.randint(*TALES)):
        tales.tell(scene)
    for share, part in PARTS:
        if chance.random() < share:
            part(scene)


def write_book(seed: str, pages: int) -> Book:
    """The book that the seed gives."""
    chance = Random(seed)
    town = Town(chance, list(lexicon.WOMEN), list(lexicon.MEN), people=8, things=8)
    name = f"{chance.choice(lexicon.SURNAME_STARTS)}{chance.choice(lexicon.SURNAME_ENDS)}"
    paragraphs, statements = [], []
    for number in range(pages):
        scene = Scene(town, chance)
        if number % 5 == 0:
            town.day += 1
        write_page(scene)
        paragraphs.append(" ".join(scene.sentences))
        statements += scene.statements
    return Book(
        name,
        f"The days of {name.capitalize()}.\n\n" + "\n\n".join(paragraphs) + "\n",
        statements,
        town.events,
    )
