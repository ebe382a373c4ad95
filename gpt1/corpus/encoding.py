"""Texts of tasks, and cleaned books, as ids. No window crosses books, so short documents are joined
to one book.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from gpt1.base.files import fingerprint
from gpt1.corpus.books import CleanedBook, HoldOut, unit_names
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.files import bytes_of
from gpt1.corpus.parallel import kept_tasks, mapped
from gpt1.corpus.shards import SPLITS, SplitWriter, token_type
from gpt1.corpus.words import NEWLINE

# of a document that is a book of its own: a window that crosses two documents is rare in longer
# ones
LONG_WORDS = 10_000


def encode_texts(name: str, texts: Sequence[str], vocabulary_folder: Path) -> dict[str, list[int]]:
    """Return {text: ids} of different texts; `name`: see kept_tasks."""
    load, characters = partial(Vocabulary.load, vocabulary_folder), sum(map(len, texts))
    with kept_tasks(name, [vocabulary_folder], fingerprint(texts)) as task_folder:
        encoded = mapped(name, load, Vocabulary.encode, texts, characters, task_folder)
        return dict(zip(texts, encoded, strict=True))


def encode_words(vocabulary: Vocabulary, words: list[str]) -> NDArray[np.unsignedinteger]:
    """Return ids of cleaned words in a token file's type."""
    type_ = np.dtype(token_type(vocabulary.size)).newbyteorder("<")
    return np.array(vocabulary.encode_words(words), dtype=type_)


def encode_books(
    books: list[CleanedBook],
    hold_out: HoldOut,
    vocabulary_folder: Path,
    task_folder: Path,
    folder: Path,
) -> dict[str, dict[str, Any]]:
    """Write `<split>.bin` of both splits; return their parts of the index. Raises UserError for a
    single book.
    """
    if books:  # profile official needs none
        hold_out = hold_out.for_corpus(unit_names(books))
    load = partial(Vocabulary.load, vocabulary_folder)
    work = partial(encode_book, hold_out=hold_out, task_folder=task_folder)
    writers = {split: SplitWriter(folder / f"{split}.bin") for split in SPLITS}
    for result in mapped("encoding books", load, work, books, bytes_of(books), task_folder):
        for split, writer in writers.items():
            writer.extend(Path(result["folder"]) / f"{split}.bin", result[split])
    return {split: writer.close() for split, writer in writers.items()}


def encode_book(
    vocabulary: Vocabulary, book: CleanedBook, hold_out: HoldOut, task_folder: Path
) -> dict[str, Any]:
    """Write `<split>.bin` of one file into a new folder; return it, and each split's rows of the
    index.
    """
    folder = task_folder / uuid4().hex  # a task that Ray repeats may for a while run twice
    folder.mkdir()
    writers = {split: SplitWriter(folder / f"{split}.bin") for split in SPLITS}
    line_end = encode_words(vocabulary, [NEWLINE])
    run: dict[str, int | None] = dict.fromkeys(writers)  # row with which the open run begins
    ids, count = [], 0
    for row, words, ended in book.units():
        ids.append(encode_words(vocabulary, words))
        count += len(words) - words.count(NEWLINE)
        if ended and count:
            split = hold_out.split_of(book.name_of(row))
            writer, first = writers[split], run[split]
            if first is None or count >= LONG_WORDS:
                writer.begin(book.name_of(row))
                if book.documents is not None:
                    writer.books[-1]["documents"] = 1
                run[split] = None if count >= LONG_WORDS else row
            else:
                writer.append(line_end, 0)
                writer.books[-1]["name"] = f"{book.name_of(first)}-{row}"
                writer.books[-1]["documents"] += 1
            writer.append(np.concatenate(ids), count)
        if ended:
            ids, count = [], 0
    return {
        "folder": str(folder),
        **{split: writer.close()["books"] for split, writer in writers.items()},
    }
