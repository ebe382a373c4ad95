"""Words to ids on every core: the texts of tasks, each once, and cleaned books into token files.

Of a file of documents a long one is a book of its own; short ones follow one another in runs, for
windows lie inside books and most would be shorter than a window.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpt1.base.files import fingerprint
from gpt1.corpus.books import (
    BookPart,
    CleanedBook,
    HoldOut,
    document_name,
    parts_of,
    unit_names,
    units_of,
)
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.parallel import kept_tasks, mapped
from gpt1.corpus.shards import SPLITS, SplitWriter, token_type
from gpt1.corpus.words import NEWLINE

BATCH_CHARACTERS = 200_000  # of text encoded at a time: a second of work
QUICK = 4  # times as quick as cleaning it is to encode cleaned words
# of a document that is a book of its own: a window that crosses two documents is rare in longer
# ones
LONG_WORDS = 10_000

Ids = NDArray[np.unsignedinteger]


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in their order, in batches of about BATCH_CHARACTERS."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def encode_batch(vocabulary: Vocabulary, texts: list[str]) -> list[NDArray[Any]]:
    """Ids of texts, one after another, and how many each text has."""
    ids = [vocabulary.encode(text) for text in texts]
    return [
        np.array(list(chain.from_iterable(ids)), dtype=np.uint32),
        np.array(list(map(len, ids)), dtype=np.int64),
    ]


def encode_texts(name: str, texts: Sequence[str], vocabulary_folder: Path) -> dict[str, list[int]]:
    """{text: its ids}. The texts must differ from one another; `name`: of whoever asks, as
    kept_tasks takes it.
    """
    tasks = list(batches(texts))
    sizes = [sum(map(len, batch)) for batch in tasks]
    load = partial(Vocabulary.load, vocabulary_folder)
    ids: dict[str, list[int]] = {}
    with kept_tasks(name, [vocabulary_folder], fingerprint(texts)) as kept:
        for batch, (encoded, lengths) in zip(
            tasks, mapped(name, load, encode_batch, tasks, sizes, kept), strict=True
        ):
            every = np.split(encoded, np.cumsum(lengths)[:-1])
            ids.update(zip(batch, (one.tolist() for one in every), strict=True))
    return ids


def encode_words(vocabulary: Vocabulary, words: list[str]) -> Ids:
    """Ids of cleaned words as they stand in a token file."""
    type_ = np.dtype(token_type(vocabulary.size)).newbyteorder("<")
    return np.array(vocabulary.encode_words(words), dtype=type_)


def encode_part(vocabulary: Vocabulary, part: BookPart) -> list[NDArray[Any]]:
    """The ids of a part, and of each document in it (a book is one): row, how many ids, words that
    are no line breaks, whether it ends there, [documents, 4].
    """
    ids, facts = [encode_words(vocabulary, [])], []
    for row, words, ended in units_of(part):
        ids.append(encode_words(vocabulary, words))
        facts.append((row, len(ids[-1]), len(words) - words.count(NEWLINE), ended))
    return [np.concatenate(ids), np.array(facts, dtype=np.int64).reshape(-1, 4)]


def encode_books(
    books: list[CleanedBook],
    hold_out: HoldOut,
    vocabulary_folder: Path,
    vocabulary: Vocabulary,
    kept: Path,
    folder: Path,
) -> dict[str, dict[str, Any]]:
    """Write <split>.bin into `folder` for both splits; their parts of the index; `kept`: a folder
    of kept_tasks. Raises UserError where all or none is held out.
    """
    cut = [(book, *parts_of(book)) for book in books]
    hold_out.check(unit_names((book, documents) for book, _, documents in cut))
    tasks = [part for _, parts, _ in cut for part in parts]
    sizes = [part.bytes_ for part in tasks]
    load = partial(Vocabulary.load, vocabulary_folder)
    encoded = mapped("encoding books", load, encode_part, tasks, sizes, kept, QUICK)
    writers = {split: SplitWriter(folder / f"{split}.bin") for split in SPLITS}
    for book, parts, _ in cut:
        joiner = Joiner(book.name, writers, hold_out, encode_words(vocabulary, [NEWLINE]))
        writer = writers[hold_out.split_of(book.name)]
        if not book.many:
            writer.begin(book.name)
        for _ in parts:
            whole, facts = next(encoded)
            ids = np.split(whole, np.cumsum(facts[:, 1])[:-1])
            for (row, _, words, ended), own in zip(facts.tolist(), ids, strict=bool(len(facts))):
                if book.many:
                    joiner.add(row, own, words, bool(ended))
                else:
                    writer.append(own, words)
    list(encoded)  # nothing is left: this ends the progress bar
    return {split: writer.close() for split, writer in writers.items()}


class Joiner:
    """Puts the documents of one file, in order, into the token files of the splits that they belong
    to.
    """

    def __init__(
        self,
        name: str,
        writers: Mapping[str, SplitWriter],
        hold_out: HoldOut,
        line_end: Ids,
    ) -> None:
        self.name, self.writers, self.hold_out, self.line_end = name, writers, hold_out, line_end
        self.ids: list[Ids] = []
        self.words = 0
        self.first: dict[str, int | None] = dict.fromkeys(
            writers
        )  # row of the first document of the run that is open

    def add(self, row: int, ids: Ids, words: int, ended: bool) -> None:
        """Go on with the document of that row, and end it."""
        self.ids.append(ids)
        self.words += words
        if ended:
            if self.words:
                self._put(row)
            self.ids, self.words = [], 0

    def _put(self, row: int) -> None:
        split = self.hold_out.split_of(document_name(self.name, row))
        writer, first = self.writers[split], self.first[split]
        long = self.words >= LONG_WORDS
        if first is None or long:
            writer.begin(document_name(self.name, row))
            writer.books[-1]["documents"] = 1
            self.first[split] = None if long else row
        else:
            writer.append(self.line_end, 0)
            writer.books[-1] |= {
                "name": document_name(self.name, first) + f"-{row}",
                "documents": writer.books[-1]["documents"] + 1,
            }
        for ids in self.ids:
            writer.append(ids, 0)
        writer.books[-1]["words"] += self.words
