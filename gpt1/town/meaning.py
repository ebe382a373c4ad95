"""What a text of the town means, without names and wordings."""

import re
from functools import cache

from gpt1.town.qualities import ALL


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
