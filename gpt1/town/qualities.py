"""Qualities of people and things ("the size of the kite"). Each has two poles; a pole has four
words of one meaning, used nowhere else, and four clauses that show it.
"""

import re
from functools import cache
from typing import NamedTuple


class Pole(NamedTuple):
    """Words of one meaning, likenesses, and clauses that show it; {s} is the subject."""

    words: tuple[str, ...]
    likes: tuple[str, ...]
    signs: tuple[str, ...]


def _pole(words: str, likes: str, signs: str) -> Pole:
    return Pole(tuple(words.split()), tuple(likes.split("|")), tuple(signs.split("|")))


OF_THINGS = {
    "weight": (
        _pole(
            "heavy weighty leaden ponderous",
            "lead|a rock",
            "nobody could lift {s}|the table broke under {s}|four men pulled {s} along|{s} "
            "sank to the bottom at once",
        ),
        _pole(
            "light weightless airy feathery",
            "a feather|foam",
            "a child could lift {s}|the wind carried {s} off|one finger was enough to hold "
            "{s}|{s} floated on the water",
        ),
    ),
    "heat": (
        _pole(
            "hot burning scorching boiling",
            "fire|the sun",
            "{s} burned the fingers|butter melted upon {s}|steam rose from {s}|nobody could"
            " touch {s} without a glove",
        ),
        _pole(
            "cold icy frozen chilly",
            "snow|winter",
            "{s} numbed the fingers|ice grew upon {s}|{s} made everybody shiver|one could "
            "have kept fish upon {s}",
        ),
    ),
    "cleanness": (
        _pole(
            "clean spotless washed scrubbed",
            "a mirror|a whistle",
            "one could have eaten from {s}|{s} smelt of soap|no speck was upon {s}|somebody"
            " had just rinsed {s}",
        ),
        _pole(
            "dirty filthy muddy grimy",
            "a gutter|a pigsty",
            "{s} wanted a bath|flies sat upon {s}|one could write in the dust upon {s}|mud "
            "stuck to {s}",
        ),
    ),
    "price": (
        _pole(
            "valuable costly precious expensive",
            "diamonds|a palace",
            "only a king could buy {s}|a thief wanted {s}|they locked {s} in an iron "
            "box|the bank lent money upon {s}",
        ),
        _pole(
            "cheap inexpensive worthless paltry",
            "pebbles|trash",
            "a penny was enough to buy {s}|no thief wanted {s}|they gave {s} away for "
            "nothing|every beggar had one like {s}",
        ),
    ),
}
OF_PEOPLE = {
    "mood": (
        _pole(
            "happy glad cheerful merry",
            "a lark|a bride",
            "{s} sang all day|{s} danced in the street|{s} laughed with everybody|{s} never"
            " stopped smiling",
        ),
        _pole(
            "sad unhappy gloomy sorrowful",
            "a funeral|a rainy Sunday",
            "{s} wept all day|{s} sobbed aloud|{s} did not smile once|nothing could console {s}",
        ),
    ),
    "wealth": (
        _pole(
            "rich wealthy prosperous moneyed",
            "a duke|a bank",
            "{s} paid for everybody|servants waited upon {s}|{s} owned nine houses|{s} "
            "drove in a coach",
        ),
        _pole(
            "poor needy penniless destitute",
            "a beggar|a church mouse",
            "{s} could not pay the rent|{s} went in torn shoes|{s} begged for bread|nobody "
            "lent {s} a penny",
        ),
    ),
    "strength": (
        _pole(
            "strong mighty powerful sturdy",
            "an ox|a bear",
            "{s} carried two sacks at once|{s} bent an iron bar|nobody could wrestle with "
            "{s}|{s} pulled out trees",
        ),
        _pole(
            "weak feeble frail delicate",
            "a baby|a reed",
            "{s} could not carry a basket|a breeze threw {s} over|{s} leaned on a "
            "stick|somebody had to hold {s} up",
        ),
    ),
}
ALL = OF_THINGS | OF_PEOPLE
RELATIVES = {
    "aunt": "she",
    "uncle": "he",
    "brother": "he",
    "sister": "she",
    "nephew": "he",
    "niece": "she",
    "mother": "she",
    "father": "he",
    "grandmother": "she",
    "grandfather": "he",
    "daughter": "she",
    "son": "he",
}
POLE_OF = {word: pole for poles in ALL.values() for pole in poles for word in pole.words}
OPPOSITE = {  # word -> the other pole
    word: other
    for first, second in ALL.values()
    for pole, other in ((first, second), (second, first))
    for word in pole.words
}


@cache
def _tellings() -> re.Pattern[str]:
    poles = [pole for poles in ALL.values() for pole in poles]
    signs = [
        re.escape(text.strip())
        for pole in poles
        for sign in pole.signs
        for text in [max(sign.split("{s}"), key=len)]
    ]
    words = [rf"\b{word}\b" for word in (*ALL, *(word for pole in poles for word in pole.words))]
    return re.compile("|".join([*sorted(signs, key=len, reverse=True), *words]), re.IGNORECASE)


def quality_words(text: str) -> str:
    """Return a text's words and signs of qualities, or else all words; sorted, so that twins are
    equal.
    """
    parts = _tellings().findall(text) or re.findall(r"\w+", text)
    return "|".join(sorted(telling.lower() for telling in parts))
