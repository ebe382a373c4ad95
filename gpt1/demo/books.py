"""The books: each about its own town, day after day. What is true stays true until a sentence
changes it.
"""

from random import Random

from gpt1.demo import happenings, lexicon, tales, talks
from gpt1.demo.scenes import Scene
from gpt1.demo.town import Town

TALES = (6, 9)  # of a page, at least and at most
PARTS = (
    (0.15, happenings.turn),
    (0.15, talks.relation),
    (0.1, happenings.happen),
    (0.4, happenings.mood),
    (0.3, happenings.thank),
)


def write_page(scene: Scene) -> None:
    """Write one part of a day: what somebody or something is like, talk about it, tales, events,
    moods.
    """
    chance = scene.chance
    talks.introduce(scene)
    for _ in range(chance.randint(2, 4)):
        chance.choice(talks.TALKS)(scene)
    for _ in range(chance.randint(*TALES)):
        tales.tell(scene)
    for share, write_part in PARTS:
        if chance.random() < share:
            write_part(scene)


def write_book(seed: str, pages: int) -> str:
    """Return the book of a seed."""
    chance = Random(seed)
    town = Town(chance, lexicon.WOMEN, lexicon.MEN, lexicon.COMPOUNDS, things=8)
    name = chance.choice(lexicon.SURNAME_STARTS) + chance.choice(lexicon.SURNAME_ENDS)
    paragraphs = [f"The days of {name.capitalize()}."]
    for _ in range(pages):
        scene = Scene(town, chance)
        write_page(scene)
        paragraphs.append(" ".join(scene.sentences))
    return "\n\n".join(paragraphs) + "\n"
