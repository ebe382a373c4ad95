"""Stage shard: cleaned books to token files, training and held-out books apart, with an index
(paper, section 4.1).
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpt1.base.files import read_json, stage_folder, writing_folder
from gpt1.corpus.books import (
    DocumentsPart,
    HoldOut,
    cleaned_books,
    documents_of,
    documents_parts,
    unit_names,
)
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.clean import NEWLINE
from gpt1.corpus.joining import Joiner
from gpt1.corpus.parallel import processes_for, workers
from gpt1.corpus.shards import (
    SPLITS,
    Part,
    SplitWriter,
    parts_of,
    read_words,
    token_type,
    write_index,
)
from gpt1.params.schema import read_params

Encoded = list[
    tuple[int, NDArray[np.unsignedinteger], int, bool]
]  # row, ids, words that are no line breaks, whether a document ends


def encode_part(vocabulary: Vocabulary, part: Part | DocumentsPart) -> Encoded:
    """Ids of one part of a cleaned book, or of each document in a part."""
    pieces = [(0, read_words(part), True)] if isinstance(part, Part) else documents_of(part)
    type_ = np.dtype(token_type(vocabulary.size)).newbyteorder("<")
    return [
        (
            row,
            np.array(vocabulary.encode_words(words), dtype=type_),
            len(words) - words.count(NEWLINE),
            ended,
        )
        for row, words, ended in pieces
    ]


def main() -> None:
    """Encode every book and document of data/clean with data/bpe, in order of their names."""
    params = read_params()
    source = stage_folder("bpe")
    vocabulary = Vocabulary.load(source)
    books = cleaned_books(stage_folder("clean"))
    hold_out = HoldOut(params.shard.heldout_seed, params.shard.heldout_fraction)
    parts = [documents_parts(book) if book.many else (parts_of(book.path), 0) for book in books]
    hold_out.check(
        unit_names((book, documents) for book, (_, documents) in zip(books, parts, strict=True))
    )
    tasks = [part for of_book, _ in parts for part in of_book]
    sizes = [part.bytes_ for part in tasks]
    with (
        writing_folder(stage_folder("shard")) as folder,
        workers(partial(Vocabulary.load, source), processes_for(sum(sizes))) as pool,
    ):
        writers = {split: SplitWriter(folder / f"{split}.bin") for split in SPLITS}
        line_end = np.array(
            vocabulary.encode_words([NEWLINE]),
            dtype=np.dtype(token_type(vocabulary.size)).newbyteorder("<"),
        )
        encoded = pool.map("encoding books", encode_part, tasks, sizes)
        for book, (of_book, _) in zip(books, parts, strict=True):
            if book.many:
                joiner = Joiner(book.name, writers, hold_out, line_end)
                for _ in of_book:
                    for found in next(encoded):
                        joiner.add(*found)
                continue
            writer = writers["heldout" if hold_out.holds(book.name) else "train"]
            writer.begin(book.name)
            for _ in of_book:
                for _, ids, words, _ in next(encoded):
                    writer.append(ids, words)
        list(encoded)
        splits = {split: writer.close() for split, writer in writers.items()}
        corpus_name = read_json(stage_folder("clean", "counts.json"))["corpus_name"]
        write_index(folder, splits, vocabulary.size, vocabulary.fingerprint, corpus_name)
