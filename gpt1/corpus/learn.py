"""Learning byte pairs (Sennrich et al. 2016) from the words of the training books, in memory that
does not grow with the corpus.

Words are counted by parts, each part a sorted run on disk; the runs are merged, the most frequent
types kept, and Hugging Face's trainer finds the merges.
"""

import heapq
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.corpus.books import BookPart, CleanedBook, HoldOut, parts_of, unit_names, units_of
from gpt1.corpus.bpe import WORD_END, Vocabulary
from gpt1.corpus.parallel import processes_for, run_alone, workers
from gpt1.corpus.words import NEWLINE
from gpt1.params.schema import Params

RUNS_AT_ONCE = 64  # open files while merging
LONGEST_LEARNED = 100  # characters; a longer word is no word, and its count no use
LEAST_PAIRS = 2  # a pair seen once is not merged (Sennrich et al.'s own default)
REPEATED_CHARACTERS = 20_000

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
    books: list[CleanedBook], params: Params, folder: Path
) -> tuple[Vocabulary, dict[str, Any]]:
    """The vocabulary of all books and documents but the held-out ones, and facts about it, with
    temporary files in `folder`. Raises UserError where the split or the words do not allow it.
    """
    hold_out = HoldOut(params.shard.heldout_seed, params.shard.heldout_fraction)
    cut = [(book, *parts_of(book)) for book in books]
    units = [(book, documents) for book, _, documents in cut]
    hold_out.check(unit_names(units))
    parts = [part for _, found, _ in cut for part in found]
    sizes = [part.bytes_ for part in parts]
    tasks = [(part, folder / str(number)) for number, part in enumerate(parts)]
    with workers(partial(copy, hold_out), processes_for(sum(sizes))) as pool:
        run = merge_runs(list(pool.map("counting words", count_part, tasks, sizes)), folder)
    learned: Learned = run_alone(
        learn,
        run,
        params.bpe.merges,
        params.bpe.alphabet_size,
        params.bpe.max_word_types,
        sys.stderr.isatty(),
    )
    run.unlink()
    return Vocabulary(learned.characters, learned.merges), {
        "source": "learn",
        "books": sum(not hold_out.holds(name) for name in unit_names(units)),
        "word_types": learned.word_types,
        "kept_types": learned.kept_types,
    }


def count_part(hold_out: HoldOut, task: tuple[BookPart, Path]) -> Path:
    """Count the words for training in one part of a cleaned book into a sorted run at the given
    path.
    """
    part, run = task
    training = (words for row, words, _ in units_of(part) if not hold_out.holds(part.name_of(row)))
    counts = Counter(chain.from_iterable(training))
    del counts[NEWLINE]
    _write_run(run, sorted(item for item in counts.items() if len(item[0]) <= LONGEST_LEARNED))
    return run


def _write_run(path: Path, counts: Iterable[Count]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\t{count}\n" for word, count in counts)


def _read_run(path: Path, files: ExitStack) -> Iterator[Count]:
    for line in files.enter_context(path.open(encoding="utf-8", newline="\n")):
        word, _, count = line.rpartition("\t")
        yield word, int(count)


def merge_runs(runs: list[Path], folder: Path) -> Path:
    """Merge sorted runs, a few at once, into one run of the sums in `folder`; the merged ones are
    deleted.
    """
    generation = 0
    while len(runs) != 1 or generation == 0:
        generation += 1
        merged = []
        for first in range(0, max(len(runs), 1), RUNS_AT_ONCE):
            group, target = (
                runs[first : first + RUNS_AT_ONCE],
                folder / f"merged-{generation}-{first}",
            )
            with ExitStack() as files:
                counts = heapq.merge(*(_read_run(run, files) for run in group))
                _write_run(
                    target,
                    (
                        (word, sum(count for _, count in same))
                        for word, same in groupby(counts, itemgetter(0))
                    ),
                )
            for run in group:
                run.unlink()
            merged.append(target)
        runs = merged
    return runs[0]


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
    found = _train(words, alphabet, merges, show_progress)[:merges]
    if len(found) < merges:
        raise UserError(
            f"bpe.merges asks for {merges:,} merges, but the training books' {word_types:,}"
            f" different words support {len(found):,} (pairs seen at least {LEAST_PAIRS} times):"
            " lower bpe.merges to that, or bring more books"
        )
    return Learned(alphabet, found, word_types, len(words))


def _train(
    words: list[Count], alphabet: list[str], merges: int, show_progress: bool
) -> list[tuple[str, str]]:
    """Merges in order, each with a result of its own. The trainer takes text, so each word is said
    as often as it was counted.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    def said() -> Iterator[str]:
        for word, count in words:
            at_once = REPEATED_CHARACTERS // (len(word) + 1)
            for start in range(0, count, at_once):
                yield f"{word} " * min(at_once, count - start)

    tokenizer = Tokenizer(models.BPE(end_of_word_suffix=WORD_END))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ended = [
        character + WORD_END for character in alphabet
    ]  # named in order: equal counts are decided by ids, else given at random
    tokenizer.train_from_iterator(
        said(),
        trainers.BpeTrainer(
            vocab_size=len(alphabet) + len(ended) + merges,
            min_frequency=LEAST_PAIRS,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            special_tokens=ended,
            end_of_word_suffix=WORD_END,
            show_progress=show_progress,
        ),
    )
    results: set[str] = set()
    kept = []
    for left, right in json.loads(tokenizer.to_str())["model"]["merges"]:
        if (
            left + right not in results
        ):  # a second way to a piece that is there already: the layout gives a piece one id
            results.add(left + right)
            kept.append((left, right))
    return kept
