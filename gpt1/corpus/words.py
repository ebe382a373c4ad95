"""Raw text to words: ftfy, the authors' standardisation, spaCy's English tokenizer, lower case
(their code; paper, section 4.1).

Pieces of a text give exactly the words of the whole: ftfy treats lines one by one, standardisation
never looks past white space, and spaCy looks past a blank only when it matches its special cases,
none of which is longer than CONTEXT tokens or holds a newline.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain
from typing import Any

NEWLINE = "\n"
CONTEXT = 16  # spaCy's longest English special case has 11 tokens; a chunk has one or more
CACHED_CHUNKS = 2**16
CACHED_LENGTH = (
    100  # longer chunks are rare and not kept, so that the cache is bounded in bytes too
)
RENEWAL_CHUNKS = 40_000  # spaCy keeps every string it ever saw: start afresh after so many new ones
LONGEST_CHUNK = (
    2_000  # spaCy takes quadratic time over a run of punctuation: two seconds at this length
)
LONGEST_UNCUT = 2_000_000  # the same before standardisation, which may yet part it: bounds memory

REPLACED = (("—", "-"), ("–", "-"), ("―", "-"), ("…", "..."), ("´", "'"))
SPACED = tuple("""-~!";?+,)(/*[]}{|_""")
# A line with a character other than these is the only kind that ftfy could change, unless the text
# holds tags.
LINE_FOR_FTFY = re.compile(r"^[\t -%'-~]*+[^\t\n -%'-~][^\n]*\n?", re.MULTILINE)


class UnbrokenTextError(Exception):
    """A run of more than LONGEST_CHUNK characters without white space: no English text."""


def standardise(text: str) -> str:
    """The authors' standardisation: plain dashes, blanks around runs of punctuation, single blanks,
    ` \\n ` for line breaks.
    """
    for sign, plain in REPLACED:
        text = text.replace(sign, plain)
    # one by one and without a regular expression where no run is longer than one: seven times as
    # fast
    for mark in SPACED:
        run = mark + mark in text
        text = (
            re.sub(f"{re.escape(mark)}+", r" \g<0> ", text)
            if run
            else text.replace(mark, f" {mark} ")
        )
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return " \n ".join(line for line in lines if line)


def lines_and_parts(blocks: Iterable[str], longest: int) -> Iterator[str]:
    """A text cut where ftfy cuts it: after line breaks, and lines longer than `longest`
    every `longest` characters.
    """
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
    """ftfy.fix_text of a text that comes in blocks; from the first `<` on, ftfy leaves HTML
    entities as they are.
    """
    import ftfy

    config = ftfy.TextFixerConfig(explain=False)
    for text in lines_and_parts(blocks, config.max_decode_length):
        if "<" in text and config.unescape_html:
            yield ftfy.fix_text(text, config)
            config = config._replace(unescape_html=False)
        else:
            yield "".join(_fixed_lines(text, partial(ftfy.fix_text, config=config)))


def _fixed_lines(text: str, fix: Callable[[str], str]) -> Iterator[str]:
    """`text` with `fix` applied to the lines that it could change."""
    end = 0
    for line in LINE_FOR_FTFY.finditer(text):
        yield text[end : line.start()]
        yield fix(line[0])
        end = line.end()
    yield text[end:]


def chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Standardised text as lists of what stands between its blanks, NEWLINE for a line break.
    Raises UnbrokenTextError.
    """
    rest, started = "", False
    for text in chain(texts, (None,)):
        rest += text or ""
        whole, *tail = rest.rsplit(None, 1) or [""]
        head = rest.rstrip() if text is None else whole if tail else ""
        if head:
            gap = head[: len(head) - len(head.lstrip())]
            pieces = standardise(head).split(" ")
            if len(max(pieces, key=len)) > LONGEST_CHUNK:
                raise UnbrokenTextError
            yield [NEWLINE, *pieces] if started and "\n" in gap else pieces
            rest, started = rest[len(head) :], True
        elif len(whole) > LONGEST_UNCUT:
            raise UnbrokenTextError


def _spacy_alone() -> Any:
    """spaCy without torch: its neural parts, which the tokenizer does not need, would load it, and
    that takes twice as long as the rest.
    """
    absent = sys.modules.setdefault("torch", None) is None  # type: ignore[arg-type]
    try:
        import spacy
    finally:
        if absent:
            del sys.modules["torch"]
    return spacy


def _english_tokenizers() -> tuple[Callable[[str], Any], Callable[[str], Any], re.Pattern[str]]:
    """spaCy's English tokenizer; the same without its second look, for special cases across tokens;
    the cases which that could find.
    """
    spacy = _spacy_alone()
    from spacy.tokenizer import Tokenizer

    full: Any = spacy.blank("en").tokenizer
    # a special case in which no affix is found while it is loaded is not put among those matched
    # later
    loading = True

    def affix(search: Callable[[str], Any], nothing: Any) -> Callable[[str], Any]:
        return lambda string: nothing if loading else search(string)

    first_look = Tokenizer(
        full.vocab,
        full.rules,
        affix(full.prefix_search, None),
        affix(full.suffix_search, None),
        affix(full.infix_finditer, ()),
        full.token_match,
        full.url_match,
    )
    loading = False
    cases = [
        case
        for case in full.rules
        if full.find_prefix(case) or full.find_suffix(case) or full.find_infix(case) or " " in case
    ]
    return full, first_look, re.compile("|".join(map(re.escape, cases)))


class Cleaner:
    """Turns raw text into words. Memory is bounded: both what it remembers and what spaCy does."""

    def __init__(self) -> None:
        self._full, self._first_look, self._cases = _english_tokenizers()
        self._seen = 0
        self._remembered = lru_cache(maxsize=CACHED_CHUNKS)(self._alone)

    def _alone(self, chunk: str) -> str | None:
        """The words of a chunk joined by blanks; None where its neighbours could change them."""
        if chunk == NEWLINE:
            return NEWLINE
        self._seen += 1
        if self._seen % RENEWAL_CHUNKS == 0:
            self._full, self._first_look, self._cases = _english_tokenizers()
        tokens = [token.text for token in self._full(chunk)]
        if self._cases.search(chunk) and tokens != [
            token.text for token in self._first_look(chunk)
        ]:
            return None
        return " ".join([token.lower() for token in tokens])

    def _among(self, window: list[str], place: int) -> str:
        """The words of window[place], seen among its neighbours."""
        left, right = (
            window[max(0, place - CONTEXT) : place],
            window[place + 1 : place + 1 + CONTEXT],
        )
        start = sum(map(len, left)) + len(left)
        document = self._full(" ".join([*left, window[place], *right]))
        return " ".join(
            [
                token.text.lower()
                for token in document
                if start <= token.idx < start + len(window[place])
            ]
        )

    def tokens(self, batches: Iterable[list[str]]) -> Iterator[list[str]]:
        """For batches of chunks, lists with one string a chunk: its words joined by blanks. Works
        with CONTEXT chunks on each side.
        """
        before: list[str] = []
        held: list[str] = []
        remembered, alone = self._remembered, self._alone
        for batch in chain(batches, (None,)):
            held += batch or []
            ready = len(held) if batch is None else len(held) - CONTEXT
            if ready <= 0:
                continue
            cleaned = [
                remembered(chunk) if len(chunk) < CACHED_LENGTH else alone(chunk)
                for chunk in held[:ready]
            ]
            window = before + held
            yield [
                self._among(window, len(before) + place) if words is None else words
                for place, words in enumerate(cleaned)
            ]
            before, held = window[: len(before) + ready][-CONTEXT:], held[ready:]

    def clean(self, blocks: Iterable[str]) -> Iterator[list[str]]:
        """The words of a text that comes in blocks: lists of strings, each some words joined by
        blanks, NEWLINE alone. Raises UnbrokenTextError.
        """
        return self.tokens(chunks(fixed(blocks)))

    def words(self, text: str) -> list[str]:
        """The words of a whole text, lower-cased, NEWLINE for a line break. Raises
        UnbrokenTextError.
        """
        words = " ".join(chain.from_iterable(self.clean([text])))
        return words.split(" ") if words else []
