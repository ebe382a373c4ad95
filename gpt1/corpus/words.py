"""Raw text to words, line by line: ftfy, the authors' standardisation, spaCy's English tokenizer,
lower case (their code; paper, section 4.1).
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

NEWLINE = "\n"
LONGEST_CHUNK = (
    2_000  # spaCy takes quadratic time over a run of punctuation: two seconds at this length
)
LONGEST_LINE = 100_000  # characters: a longer one is cut at white space, which bounds memory
MOST_STRINGS = 200_000  # spaCy keeps every string that it ever saw: start afresh after so many

REPLACED = (("—", "-"), ("–", "-"), ("―", "-"), ("…", "..."), ("´", "'"))
RUN = re.compile(r"""([-~!";?+,)(/*\[\]}{|_])\1*""")  # of one of these marks
# A line with a character other than these is the only kind that ftfy could change, unless the text
# holds tags.
LINE_FOR_FTFY = re.compile(r"^[\t -%'-~]*+[^\t\n -%'-~][^\n]*\n?", re.MULTILINE)


class UnbrokenTextError(Exception):
    """More than LONGEST_CHUNK characters without white space: no English text."""


def standardise(text: str) -> str:
    r"""Apply the authors' standardisation: plain dashes, blanks around runs of punctuation, single
    blanks, ` \n ` for line breaks.
    """
    for sign, plain in REPLACED:
        text = text.replace(sign, plain)
    text = RUN.sub(r" \g<0> ", text)
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return " \n ".join(line for line in lines if line)


def fixed(text: str) -> str:
    """Apply ftfy.fix_text, only to lines that it could change."""
    import ftfy

    if "<" in text:  # after the first one ftfy leaves HTML entities unchanged
        return str(ftfy.fix_text(text))
    return LINE_FOR_FTFY.sub(lambda line: str(ftfy.fix_text(line[0])), text)


def _parts(line: str) -> list[str]:
    """Cut a line at white space into parts of LONGEST_LINE. Raises UnbrokenTextError."""
    parts = []
    while len(line := line.lstrip()) > LONGEST_LINE:
        chunk, *more = line[:LONGEST_LINE].rsplit(None, 1)
        if not more:
            raise UnbrokenTextError
        parts.append(chunk)
        line = line[len(chunk) :]
    return [*parts, line]


def _english() -> Any:
    """Return spaCy's English tokenizer without importing torch, which takes long."""
    absent = sys.modules.setdefault("torch", None) is None  # type: ignore[arg-type]
    try:
        import spacy
    finally:
        if absent:
            del sys.modules["torch"]
    return spacy.blank("en").tokenizer


class Cleaner:
    """Splits raw text into words."""

    def __init__(self) -> None:
        self._tokenizer = _english()

    def clean(self, text: str) -> Iterator[str]:
        """Yield a text's words: a line's joined by blanks, NEWLINE alone between lines. Raises
        UnbrokenTextError.
        """
        started = broken = False
        for line in fixed(text).split(NEWLINE):
            for part in map(standardise, _parts(line)):
                if not part:
                    continue
                if len(max(part.split(" "), key=len)) > LONGEST_CHUNK:
                    raise UnbrokenTextError
                if len(self._tokenizer.vocab.strings) > MOST_STRINGS:
                    self._tokenizer = _english()
                if broken:
                    yield NEWLINE
                # blanks keep a capital sigma at a word's end from its neighbours, as tokens do
                yield " ".join([token.text for token in self._tokenizer(part)]).lower()
                started, broken = True, False
            broken = started

    def words(self, text: str) -> list[str]:
        """Return a text's words, NEWLINE for a line break. Raises UnbrokenTextError."""
        words = " ".join(self.clean(text))
        return words.split(" ") if words else []
