"""Stage shard: cleaned books to token files, training and held-out books apart, with an index (paper, section 4.1)."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpt1.config import read_params
from gpt1.files import read_json, stage_folder, writing_folder
from gpt1.text.books import heldout_books, list_books
from gpt1.text.bpe import Vocabulary
from gpt1.text.clean import NEWLINE
from gpt1.text.parallel import processes_for, workers
from gpt1.text.shards import SPLITS, Part, SplitWriter, parts_of, read_words, token_type, write_index


def encode_part(vocabulary: Vocabulary, part: Part) -> tuple[NDArray[np.unsignedinteger], int]:
    """Ids of one part of a cleaned book, and how many of its words are no line breaks."""
    words = read_words(part)
    ids = np.array(vocabulary.encode_words(words), dtype=np.dtype(token_type(vocabulary.size)).newbyteorder("<"))
    return ids, len(words) - words.count(NEWLINE)


def main() -> None:
    """Encode every book of data/clean/books with data/bpe, in order of their names."""
    params = read_params()
    source = stage_folder("bpe")
    vocabulary = Vocabulary.load(source)
    books = list_books(stage_folder("clean", "books"))
    heldout = heldout_books([book.name for book in books], params.shard.heldout_seed, params.shard.heldout_fraction)
    parts = [parts_of(book.path) for book in books]
    tasks = [part for of_book in parts for part in of_book]
    sizes = [part.stop - part.start for part in tasks]
    with writing_folder(stage_folder("shard")) as folder, workers(partial(Vocabulary.load, source), processes_for(sum(sizes))) as pool:
        writers = {split: SplitWriter(folder / f"{split}.bin") for split in SPLITS}
        encoded = pool.map("encoding books", encode_part, tasks, sizes)
        for book, of_book in zip(books, parts, strict=True):
            writer = writers["heldout" if book.name in heldout else "train"]
            writer.begin(book.name)
            for _ in of_book:
                writer.append(*next(encoded))
        list(encoded)
        splits = {split: writer.close() for split, writer in writers.items()}
        corpus_name = read_json(stage_folder("clean", "counts.json"))["corpus_name"]
        write_index(folder, splits, vocabulary.size, vocabulary.fingerprint, corpus_name)
