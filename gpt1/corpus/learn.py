"""Byte pairs (Sennrich et al. 2016) learned by Hugging Face's tokenizers."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.corpus.books import CleanedBook, HoldOut, unit_names
from gpt1.corpus.bpe import WORD_END, Vocabulary
from gpt1.corpus.files import bytes_of
from gpt1.corpus.parallel import mapped
from gpt1.corpus.words import NEWLINE
from gpt1.params.schema import Params

LONGEST_LEARNED = 100  # characters; a longer word is no word, and its count no use
LEAST_PAIRS = 2  # a pair seen once is not merged (Sennrich et al.'s own default)
REPEATED = 10_000  # times a word is handed to the trainer at once


@dataclass(frozen=True)
class Learned:
    """Characters (most frequent first), merges, and how many words were found and used."""

    characters: list[str]
    merges: list[tuple[str, str]]
    word_types: int
    kept_types: int


def learn_from_books(
    books: list[CleanedBook], params: Params, task_folder: Path
) -> tuple[Vocabulary, dict[str, Any]]:
    """Return the vocabulary of the books for training, and facts about it. Raises UserError for one
    book, or too few words.
    """
    hold_out = HoldOut(params.shard.heldout_seed, params.shard.heldout_fraction)
    hold_out = hold_out.for_corpus(unit_names(books))
    counts: Counter[str] = Counter()
    prepare = partial(copy, hold_out)
    for counted in mapped(
        "counting words", prepare, count_words, books, bytes_of(books), task_folder
    ):
        counts.update(counted)
    bpe = params.bpe
    learned = learn(counts, bpe.merges, bpe.alphabet_size, bpe.max_word_types)
    return Vocabulary(learned.characters, learned.merges), {
        "source": "learn",
        "books": sum(not hold_out.holds(name) for name in unit_names(books)),
        "word_types": learned.word_types,
        "kept_types": learned.kept_types,
    }


def count_words(hold_out: HoldOut, book: CleanedBook) -> dict[str, int]:
    """Count the words of a cleaned book that are for training."""
    counts: Counter[str] = Counter()
    for row, words, _ in book.units():
        if not hold_out.holds(book.name_of(row)):
            counts.update(words)
    del counts[NEWLINE]
    return {word: count for word, count in counts.items() if len(word) <= LONGEST_LEARNED}


def learn(counts: dict[str, int], merges: int, alphabet_size: int, most_types: int) -> Learned:
    """Learn `merges` byte pairs from the most frequent words. Raises UserError where these support
    fewer.
    """
    words = sorted(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most_types])
    characters: Counter[str] = Counter()
    for word, count in words:
        for character in word:
            characters[character] += count
    alphabet = sorted(characters, key=lambda character: (-characters[character], character))[
        :alphabet_size
    ]
    alphabet_set = set(alphabet)
    words = [(word, count) for word, count in words if alphabet_set.issuperset(word)]
    pairs = find_merges(words, alphabet, merges)
    if len(pairs) < merges:
        raise UserError(
            f"bpe.merges asks for {merges:,} merges, but the training books' {len(counts):,}"
            f" different words support {len(pairs):,} (pairs seen at least {LEAST_PAIRS} times):"
            " lower bpe.merges to that, or bring more books"
        )
    return Learned(alphabet, pairs, len(counts), len(words))


def find_merges(
    words: Iterable[tuple[str, int]], alphabet: list[str], merges: int
) -> list[tuple[str, str]]:
    """Return at most `merges` merges, in order, of counted words; no two have one result."""
    # Of equally frequent pairs the one whose pieces came first is merged: characters that end a
    # word by the alphabet's order, others by code points, then merges.
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Split
    from tokenizers.trainers import BpeTrainer

    def texts() -> Iterator[str]:
        for word, count in words:
            for done in range(0, count, REPEATED):
                yield f"{word} " * min(REPEATED, count - done)

    tokenizer = Tokenizer(BPE(end_of_word_suffix=WORD_END))
    tokenizer.pre_tokenizer = Split(" ", "removed")
    trainer = BpeTrainer(
        vocab_size=2 * len(alphabet) + merges,
        min_frequency=LEAST_PAIRS,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        special_tokens=[character + WORD_END for character in alphabet],
        end_of_word_suffix=WORD_END,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    by_result: dict[
        str, tuple[str, str]
    ] = {}  # a second way to a piece is left out: the layout gives a piece one id
    for left, right in json.loads(tokenizer.to_str())["model"]["merges"]:
        by_result.setdefault(left + right, (left, right))
    return list(by_result.values())[:merges]
