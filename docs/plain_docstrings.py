"""Docstrings are plain text: what looks like a tag in them, data/<stage>, is shown and not taken
for HTML.
"""

import re
from typing import Any

from griffe import Extension, Object


def shown(text: str) -> str:
    """The text with every `<` outside of back quotes as the character that it is."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


class PlainDocstrings(Extension):
    """Griffe calls it for every object that it reads."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Mend one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = shown(obj.docstring.value)
