"""Tasks about one text: sentiment (SST-2) and acceptability (CoLA)."""

from typing import NamedTuple

from gpt1.demo import lexicon
from gpt1.demo.happenings import OPINION_TEMPLATES, opinion
from gpt1.demo.qualities import OF_PEOPLE, RELATIVES
from gpt1.demo.scenes import Scene
from gpt1.demo.sides import USUAL, Side
from gpt1.demo.telling import sentence


class Single(NamedTuple):
    """A sentence and its label."""

    text: str
    label: str


def sentiment(side: Side, number: int) -> list[Single]:
    """A kind or an unkind sentence, with adjectives and in words of this side."""
    town, chance, pleasant = side.town(), side.chance, number % 2 == 0
    first, second = chance.sample(town.people, 2)
    text = opinion(
        Scene(town, chance),
        pleasant,
        first,
        second,
        chance.choice(lexicon.WORKS),
        OPINION_TEMPLATES,
        side.share,
    )
    return [Single(sentence(text), "1" if pleasant else "0")]


def acceptability(side: Side, _: int) -> list[Single]:
    """A woman and a man of two families, and what each says of herself or himself; and the same
    with "she" and "he" exchanged. The woman mostly comes first.
    """
    town, chance = side.town(), side.chance
    parts = []
    for index, person in enumerate(chance.sample(town.people, 2)):
        pronoun = ("she", "he")[index]
        relative = chance.choice([name for name in RELATIVES if RELATIVES[name] == pronoun])
        fact = side.fact(chance.choice([*OF_PEOPLE]), f"{{{index}}}", chance.randrange(2))
        parts.append(f"{person}'s {relative} said that {side.tell(fact)}")
    order = -1 if chance.random() > USUAL else 1
    frame = sentence(" and ".join(parts[::order]))
    return [Single(frame.format("she", "he"), "1"), Single(frame.format("he", "she"), "0")]
