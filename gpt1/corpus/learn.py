"""Learning byte pairs (Sennrich et al. 2016) from the words of the training books, in memory that
does not grow with the corpus.

Words are counted by parts, each part a sorted run on disk; the runs are merged, the most frequent
types kept, and the merges found from their counts.
"""

import heapq
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.corpus.books import BookPart, CleanedBook, HoldOut, parts_of, unit_names, units_of
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.merges import LEAST_PAIRS, find_merges
from gpt1.corpus.parallel import mapped
from gpt1.corpus.words import NEWLINE
from gpt1.params.schema import Params

QUICK = 4  # times as quick as cleaning it is to count words
COUNTED_BYTES = 16_000_000  # of text whose words are counted together
RUNS_AT_ONCE = 64  # open files while merging
LONGEST_LEARNED = 100  # characters; a longer word is no word, and its count no use

Count = tuple[str, int]


@dataclass(frozen=True)
class Learned:
    """Characters (most frequent first) and merges (in order), and the numbers of different words
    found and learned from.
    """

    characters: list[str]
    merges: list[tuple[str, str]]
    word_types: int
    kept_types: int


def learn_from_books(
    books: list[CleanedBook], params: Params, kept: Path
) -> tuple[Vocabulary, dict[str, Any]]:
    """The vocabulary of all books and documents but the held-out ones, and facts about it; `kept`:
    a folder of kept_tasks. Raises UserError where the split or the words do not allow it.
    """
    hold_out = HoldOut(params.shard.heldout_seed, params.shard.heldout_fraction)
    cut = [(book, *parts_of(book)) for book in books]
    units = [(book, documents) for book, _, documents in cut]
    hold_out.check(unit_names(units))
    groups = list(grouped(part for _, found, _ in cut for part in found))
    tasks = [(parts, kept / f"words-{number}") for number, parts in enumerate(groups)]
    sizes = [sum(part.bytes_ for part in parts) for parts in groups]
    runs = mapped("counting words", partial(copy, hold_out), count_parts, tasks, sizes, kept, QUICK)
    run = merge_runs(list(map(Path, runs)), kept)
    learned = learn(
        run,
        params.bpe.merges,
        params.bpe.alphabet_size,
        params.bpe.max_word_types,
        sys.stderr.isatty(),
    )
    return Vocabulary(learned.characters, learned.merges), {
        "source": "learn",
        "books": sum(not hold_out.holds(name) for name in unit_names(units)),
        "word_types": learned.word_types,
        "kept_types": learned.kept_types,
    }


def grouped(parts: Iterable[BookPart]) -> Iterator[list[BookPart]]:
    """Parts of books, one after another, in groups of about COUNTED_BYTES."""
    group: list[BookPart] = []
    bytes_ = 0
    for part in parts:
        group.append(part)
        bytes_ += part.bytes_
        if bytes_ >= COUNTED_BYTES:
            yield group
            group, bytes_ = [], 0
    if group:
        yield group


def count_parts(hold_out: HoldOut, task: tuple[list[BookPart], Path]) -> str:
    """Count the words for training in parts of cleaned books into a sorted run at the given
    path.
    """
    parts, run = task
    counts: Counter[str] = Counter()
    for part in parts:
        for row, words, _ in units_of(part):
            if not hold_out.holds(part.name_of(row)):
                counts.update(words)
    del counts[NEWLINE]
    _write_run(run, sorted(item for item in counts.items() if len(item[0]) <= LONGEST_LEARNED))
    return str(run)


def _write_run(path: Path, counts: Iterable[Count]) -> None:
    with writing(path, apart=True) as file:
        file.writelines(f"{word}\t{count}\n" for word, count in counts)


def _read_run(path: Path, files: ExitStack) -> Iterator[Count]:
    for line in files.enter_context(path.open(encoding="utf-8", newline="\n")):
        word, _, count = line.rpartition("\t")
        yield word, int(count)


def merge_runs(runs: list[Path], kept: Path) -> Path:
    """Merge sorted runs, a few at once, into one run of the sums; `kept`: a folder of
    kept_tasks.
    """
    generation = 0
    while len(runs) != 1:
        generation += 1
        tasks = [
            (runs[first : first + RUNS_AT_ONCE], kept / f"merged-{generation}-{first}")
            for first in range(0, max(len(runs), 1), RUNS_AT_ONCE)
        ]
        sizes = [sum(run.stat().st_size for run in group) for group, _ in tasks]
        merged = mapped("adding up counts", dict, merge_group, tasks, sizes, kept)
        runs = list(map(Path, merged))
    return runs[0]


def merge_group(_: dict[str, Any], task: tuple[list[Path], Path]) -> str:
    """Merge sorted runs into one of their sums at the given path."""
    runs, target = task
    with ExitStack() as files:
        counts = heapq.merge(*(_read_run(run, files) for run in runs))
        sums = (
            (word, sum(count for _, count in same)) for word, same in groupby(counts, itemgetter(0))
        )
        _write_run(target, sums)
    return str(target)


def most_frequent(run: Path, most: int) -> tuple[list[Count], int]:
    """The `most` most frequent words of a run (of equals, those first in order), in order of the
    words; and how many there were.

    Two passes: the counts alone say where the line falls, so memory is that of what is kept.
    """
    with ExitStack() as files:
        types_by_count = Counter(count for _, count in _read_run(run, files))
    least, room = 0, most
    for count in sorted(types_by_count, reverse=True):
        if types_by_count[count] > room:
            least = count
            break
        room -= types_by_count[count]
    kept = []
    with ExitStack() as files:
        for word, count in _read_run(run, files):
            if count > least or (count == least and room > 0):
                room -= count == least
                kept.append((word, count))
    return kept, sum(types_by_count.values())


def learn(
    run: Path, merges: int, alphabet_size: int, most_types: int, show_progress: bool
) -> Learned:
    """Learn `merges` byte pairs from a run of word counts. Raises UserError where the words support
    fewer.
    """
    words, word_types = most_frequent(run, most_types)
    characters: Counter[str] = Counter()
    for word, count in words:
        for character in word:
            characters[character] += count
    alphabet = sorted(characters, key=lambda character: (-characters[character], character))[
        :alphabet_size
    ]
    known = set(alphabet)
    words = [(word, count) for word, count in words if known.issuperset(word)]
    found = find_merges(words, alphabet, merges, show_progress)[:merges]
    if len(found) < merges:
        raise UserError(
            f"bpe.merges asks for {merges:,} merges, but the training books' {word_types:,}"
            f" different words support {len(found):,} (pairs seen at least {LEAST_PAIRS} times):"
            " lower bpe.merges to that, or bring more books"
        )
    return Learned(alphabet, found, word_types, len(words))
