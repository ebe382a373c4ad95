"""Raw text to words, line by line: ftfy, the authors' standardisation, spaCy's English tokenizer,
lower case (their code; paper, section 4.1).
"""

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
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


def lines_and_parts(blocks: Iterable[str], longest: int) -> Iterator[str]:
    """Cut a text where ftfy does: after line breaks, and every `longest` characters."""
    rest = ""
    for block in blocks:
        rest += block
        if end := rest.rfind("\n") + 1:
            yield rest[:end]
            rest = rest[end:]
        while len(rest) > longest:
            yield rest[:longest]
            rest = rest[longest:]
    if rest:
        yield rest


def fixed(blocks: Iterable[str]) -> Iterator[str]:
    """Apply ftfy.fix_text to blocks; after the first `<` ftfy leaves HTML entities unchanged."""
    import ftfy

    config = ftfy.TextFixerConfig(explain=False)

    def fix(line: re.Match[str]) -> str:
        return str(ftfy.fix_text(line[0], config))

    for text in lines_and_parts(blocks, config.max_decode_length):
        if "<" in text and config.unescape_html:
            yield ftfy.fix_text(text, config)
            config = config._replace(unescape_html=False)
        else:
            yield LINE_FOR_FTFY.sub(fix, text)


def _lines(texts: Iterable[str]) -> Iterator[str]:
    """Yield lines, NEWLINE after each, long ones in parts. Raises UnbrokenTextError."""
    rest = ""
    for text in chain(texts, (NEWLINE,)):
        *whole, rest = (rest + text).split(NEWLINE)
        for line in whole:
            yield from _parts(line)
            yield NEWLINE
        *parts, rest = _parts(rest)
        yield from parts


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
    """Splits raw text into words, in bounded memory."""

    def __init__(self) -> None:
        self._tokenizer = _english()

    def clean(self, blocks: Iterable[str]) -> Iterator[str]:
        """Yield a text's words: a line's joined by blanks, NEWLINE alone between lines. Raises
        UnbrokenTextError.
        """
        started = broken = False
        for line in _lines(fixed(blocks)):
            if line == NEWLINE:
                broken = started
            elif text := standardise(line):
                if len(max(text.split(" "), key=len)) > LONGEST_CHUNK:
                    raise UnbrokenTextError
                if len(self._tokenizer.vocab.strings) > MOST_STRINGS:
                    self._tokenizer = _english()
                if broken:
                    yield NEWLINE
                # blanks keep a capital sigma at a word's end from its neighbours, as tokens do
                yield " ".join([token.text for token in self._tokenizer(text)]).lower()
                started, broken = True, False

    def words(self, text: str) -> list[str]:
        """Return a text's words, NEWLINE for a line break. Raises UnbrokenTextError."""
        words = " ".join(self.clean([text]))
        return words.split(" ") if words else []
