"""Byte pairs (Sennrich et al. 2016; paper, section 4.1) in the authors' layout of ids: 0 `<unk>`,
characters, these with `</w>`, merges in order, the line break.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import fingerprint, read_json_file, write_json, writing
from gpt1.corpus.words import LONGEST_CHUNK, NEWLINE, Cleaner, UnbrokenTextError

UNKNOWN, WORD_END, LINE_END = "<unk>", "</w>", "\n</w>"
VERSION_LINE = "#version: 0.2"
SPECIAL_SYMBOLS = (
    "_start_",
    "_delimiter_",
    "_classify_",
)  # the authors' names; they follow the vocabulary
AUTHORS_FILES = ("encoder_bpe_40000.json", "vocab_40000.bpe")
AUTHORS_ENTRIES = 40_478
CACHED_WORDS = 2**16
SHOWN_CHARACTERS = 40
CACHED_LENGTH = 100  # longer words are rare and not kept, so that the cache is bounded in bytes too


class Vocabulary:
    """Pieces of words and their ids. `size` leaves out three special symbols that follow: start,
    delimiter, extract.
    """

    def __init__(self, characters: Sequence[str], merges: Sequence[tuple[str, str]]) -> None:
        self.characters, self.merges = tuple(characters), tuple(merges)
        ended = [character + WORD_END for character in characters]
        self.pieces = (
            UNKNOWN,
            *characters,
            *ended,
            *(left + right for left, right in merges),
            LINE_END,
        )
        self.table = {piece: id_ for id_, piece in enumerate(self.pieces)}
        self.size = len(self.pieces)
        self._decoded = (*self.pieces, *(symbol + WORD_END for symbol in SPECIAL_SYMBOLS))
        self.start, self.delimiter, self.extract = range(self.size, len(self._decoded))
        self.fingerprint = fingerprint([self.pieces, self.merges])
        self._remembered = lru_cache(maxsize=CACHED_WORDS)(self._word)

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary":
        """Read vocab.json and merges.txt of stage bpe. Raises UserError."""
        return read_vocabulary(folder, "run the stage that writes it again: dvc repro bpe")

    def save(self, folder: Path, facts: dict[str, Any]) -> None:
        """Write vocab.json, merges.txt, and meta.json with `facts`."""
        from importlib.metadata import version

        write_json(folder / "vocab.json", self.table)
        with writing(folder / "merges.txt") as file:
            file.write(
                "\n".join((VERSION_LINE, *(f"{left} {right}" for left, right in self.merges)))
                + "\n"
            )
        write_json(
            folder / "meta.json",
            {
                **facts,
                "size": self.size,
                "characters": len(self.characters),
                "merges": len(self.merges),
                "fingerprint": self.fingerprint,
                "ftfy": version("ftfy"),
                "spacy": version("spacy"),
            },
        )

    @cached_property
    def byte_pairs(self) -> Any:
        """Return the BPE model of tokenizers."""
        from tokenizers.models import BPE

        return BPE(self.table, list(self.merges), unk_token=UNKNOWN, end_of_word_suffix=WORD_END)

    @cached_property
    def _cleaner(self) -> Cleaner:
        return Cleaner()

    def _word(self, word: str) -> tuple[int, ...]:
        if word == NEWLINE:
            return (self.size - 1,)
        return tuple([token.id for token in self.byte_pairs.tokenize(word)])

    def encode_words(self, words: Iterable[str]) -> list[int]:
        """Return ids of cleaned words (NEWLINE: a line break); an unknown piece is id 0."""
        remembered, alone = self._remembered, self._word
        return list(
            chain.from_iterable(
                [remembered(word) if len(word) < CACHED_LENGTH else alone(word) for word in words]
            )
        )

    def encode(self, text: str) -> list[int]:
        """Return ids of raw text, as the authors' encoder gives them. Raises UserError."""
        try:
            return self.encode_words(self._cleaner.words(text))
        except UnbrokenTextError:
            raise UserError(
                f"expected English text, found {text[:SHOWN_CHARACTERS]!r} … with more than"
                f" {LONGEST_CHUNK:,} characters without a blank or line break; mend it or leave"
                " it out"
            ) from None

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, a blank at each word's end. Raises ValueError for unknown ids."""
        pieces = []
        for id_ in ids:
            if not 0 <= id_ < len(self._decoded):
                raise ValueError(f"expected ids below {len(self._decoded)}, found {id_}")
            pieces.append(self._decoded[id_])
        return "".join(pieces).replace(WORD_END, " ")


def read_vocabulary(
    folder: Path, what_to_do: str, names: tuple[str, str] = ("vocab.json", "merges.txt")
) -> Vocabulary:
    """Read a JSON table {piece: id} and a list of merges. Raises UserError for another layout than
    the authors'.
    """
    table_path, merges_path = (folder / name for name in names)
    table = read_json_file(table_path, what_to_do)
    try:
        _, *lines = merges_path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{merges_path}: expected merges, found none ({error}); {what_to_do}"
        ) from None
    merges = []
    for row, line in enumerate(lines, start=2):
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise UserError(
                f"{merges_path}, line {row}: expected two pieces with a blank between, found"
                f" {line!r}; {what_to_do}"
            )
        merges.append((left, right))
    return vocabulary_from(table, merges, f"{table_path} and {merges_path}", what_to_do)


def vocabulary_from(
    table: dict[str, Any], merges: Sequence[Sequence[str]], where: str, what_to_do: str
) -> Vocabulary:
    """Make a vocabulary of {piece: id} and merges. Raises UserError for another layout than the
    authors'.
    """
    if sorted(table.values(), key=str) != sorted(range(len(table)), key=str):
        raise UserError(
            f"{where}: expected pieces with the ids 0 to n-1, each once, found gaps or repeats;"
            f" {what_to_do}"
        )
    pieces = sorted(table, key=lambda piece: int(table[piece]))
    characters = pieces[1 : 1 + (len(pieces) - len(merges) - 2) // 2]
    vocabulary = Vocabulary(characters, [(left, right) for left, right in merges])
    for id_, (expected, piece) in enumerate(zip_longest(vocabulary.pieces, pieces)):
        if expected != piece:
            raise UserError(
                f"{where} do not fit together: id {id_} should be"
                f" {expected!r}, found {piece!r}; {what_to_do}"
            )
    if strange := next((piece for merge in merges for piece in merge if piece not in table), None):
        raise UserError(
            f"{where}: expected merges of pieces that are in the table, found {strange!r};"
            f" {what_to_do}"
        )
    return vocabulary


def import_authors(folder: Path, merges: int) -> Vocabulary:
    """Read the authors' two files. Raises UserError for other numbers of entries or merges."""
    what_to_do = (
        "bring the two files of openai/finetune-transformer-lm, folder model, or set bpe.source to"
        " learn"
    )
    vocabulary = read_vocabulary(folder, what_to_do, AUTHORS_FILES)
    if vocabulary.size != AUTHORS_ENTRIES:
        raise UserError(
            f"{folder}: expected the authors' {AUTHORS_ENTRIES:,} entries, found"
            f" {vocabulary.size:,}; {what_to_do}"
        )
    if len(vocabulary.merges) != merges:
        raise UserError(
            f"bpe.merges is {merges:,}, but the authors' files hold {len(vocabulary.merges):,}"
            " merges; set it to that number, or bpe.source to learn"
        )
    return vocabulary
