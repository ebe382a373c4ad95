"""What a text of the town says, without whose things it says it of, and how it words it."""

import re
from functools import cache

from gpt1.demo.qualities import ALL


@cache
def _tellings() -> re.Pattern[str]:
    """A word of a quality, a clause in which one shows, or a quality that is asked about."""
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
    """The words of qualities, and the clauses in which they show, that stand in a text, or all its
    words where there are none; in no order, so that twins, which differ in it alone, say the same.
    """
    parts = _tellings().findall(text) or re.findall(r"\w+", text)
    return "|".join(sorted(telling.lower() for telling in parts))
