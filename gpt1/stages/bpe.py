"""Stage bpe: byte pairs learned from the training books, or the authors' own, in one layout of ids
(paper, section 4.1).
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from gpt1.base.files import stage_folder, writing_folder
from gpt1.corpus.books import DocumentsPart, HoldOut, cleaned_books, documents_parts, unit_names
from gpt1.corpus.bpe import Vocabulary, import_authors, read_vocabulary
from gpt1.corpus.learn import Learned, count_part, learn, merge_runs
from gpt1.corpus.parallel import alone, processes_for, workers
from gpt1.corpus.shards import Part, parts_of
from gpt1.params.schema import Params, read_params


def learn_from_books(params: Params, work_folder: Path) -> tuple[Vocabulary, dict[str, Any]]:
    """Learn from all books and documents but the held-out ones, with temporary files in
    `work_folder`.
    """
    hold_out = HoldOut(params.shard.heldout_seed, params.shard.heldout_fraction)
    parts: list[Part | DocumentsPart] = []
    counted = []
    for book in cleaned_books(stage_folder("clean")):
        found, documents = documents_parts(book) if book.many else (parts_of(book.path), 0)
        counted.append((book, documents))
        if book.many or not hold_out.holds(book.name):
            parts += found
    hold_out.check(unit_names(counted))
    training = sum(not hold_out.holds(name) for name in unit_names(counted))
    tasks = [(part, work_folder / str(number)) for number, part in enumerate(parts)]
    sizes = [part.bytes_ for part in parts]
    with workers(
        partial(HoldOut, hold_out.seed, hold_out.fraction), processes_for(sum(sizes))
    ) as pool:
        run = merge_runs(list(pool.map("counting words", count_part, tasks, sizes)), work_folder)
    learned: Learned = alone(
        learn,
        run,
        params.bpe.merges,
        params.bpe.alphabet_size,
        params.bpe.max_word_types,
        sys.stderr.isatty(),
    )
    run.unlink()
    facts = {
        "source": "learn",
        "books": training,
        "word_types": learned.word_types,
        "kept_types": learned.kept_types,
    }
    return Vocabulary(learned.characters, learned.merges), facts


def main() -> None:
    """Write data/bpe from data/clean/books, data/acquire/bpe/openai_bpe or
    data/acquire/weights/official, as bpe.source says.
    """
    params = read_params()
    with writing_folder(stage_folder("bpe")) as folder:
        if params.bpe.source == "learn":
            (folder / "runs").mkdir()
            vocabulary, facts = learn_from_books(params, folder / "runs")
            (folder / "runs").rmdir()
        elif params.bpe.source == "official":
            source = stage_folder("acquire", "weights", "official")
            vocabulary = read_vocabulary(
                source / "vocab.json",
                source / "merges.txt",
                "import them again: gpt1 import FOLDER",
            )
            facts = {"source": "official"}
        else:
            vocabulary, facts = (
                import_authors(stage_folder("acquire", "bpe", "openai_bpe"), params.bpe.merges),
                {"source": "authors"},
            )
        vocabulary.save(folder, facts)
