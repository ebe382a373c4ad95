"""Words to ids on every core: the texts of tasks, each once, and cleaned books into token files.

Of a file of documents a long one is a book of its own; short ones follow one another in runs, for
windows lie inside books and most would be shorter than a window.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from gpt1.corpus.parallel import processes_for, workers
from gpt1.corpus.shards import SPLITS, SplitWriter, token_type
from gpt1.corpus.words import NEWLINE

BATCH_CHARACTERS = 200_000  # of text handed to a process at a time: a second of work
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


def encode_batch(vocabulary: Vocabulary, texts: list[str]) -> list[Ids]:
    """Ids of each text; arrays travel between processes faster than lists."""
    return [np.array(vocabulary.encode(text), dtype=np.uint32) for text in texts]


def encode_texts(label: str, texts: Sequence[str], vocabulary_folder: Path) -> dict[str, list[int]]:
    """{text: its ids}. The texts must differ from one another; `label` names the progress shown."""
    tasks = list(batches(texts))
    sizes = [sum(map(len, batch)) for batch in tasks]
    ids: dict[str, list[int]] = {}
    with workers(partial(Vocabulary.load, vocabulary_folder), processes_for(sum(sizes))) as pool:
        for batch, encoded in zip(tasks, pool.map(label, encode_batch, tasks, sizes), strict=True):
            ids.update(zip(batch, (one.tolist() for one in encoded), strict=True))
    return ids


def encode_words(vocabulary: Vocabulary, words: list[str]) -> Ids:
    """Ids of cleaned words as they stand in a token file."""
    type_ = np.dtype(token_type(vocabulary.size)).newbyteorder("<")
    return np.array(vocabulary.encode_words(words), dtype=type_)


def encode_part(vocabulary: Vocabulary, part: BookPart) -> list[tuple[int, Ids, int, bool]]:
    """Of each document in a part (a book is one): row, ids, words that are no line breaks, whether
    it ends there.
    """
    return [
        (row, encode_words(vocabulary, words), len(words) - words.count(NEWLINE), ended)
        for row, words, ended in units_of(part)
    ]


def encode_books(
    books: list[CleanedBook],
    hold_out: HoldOut,
    vocabulary_folder: Path,
    vocabulary: Vocabulary,
    folder: Path,
) -> dict[str, dict[str, Any]]:
    """Write <split>.bin into `folder` for both splits; their parts of the index. Raises UserError
    where all or none is held out.
    """
    cut = [(book, *parts_of(book)) for book in books]
    hold_out.check(unit_names((book, documents) for book, _, documents in cut))
    tasks = [part for _, parts, _ in cut for part in parts]
    sizes = [part.bytes_ for part in tasks]
    writers = {split: SplitWriter(folder / f"{split}.bin") for split in SPLITS}
    with workers(partial(Vocabulary.load, vocabulary_folder), processes_for(sum(sizes))) as pool:
        encoded = pool.map("encoding books", encode_part, tasks, sizes)
        for book, parts, _ in cut:
            joiner = Joiner(book.name, writers, hold_out, encode_words(vocabulary, [NEWLINE]))
            writer = writers[hold_out.split_of(book.name)]
            if not book.many:
                writer.begin(book.name)
            for _ in parts:
                for row, ids, words, ended in next(encoded):
                    if book.many:
                        joiner.add(row, ids, words, ended)
                    else:
                        writer.append(ids, words)
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
