"""Byte pairs: the authors' ids, an independent slow encoder, the layout of ids, learning by a naive
reference.
"""

import json
import os
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.corpus.books import CleanedBook, HoldOut
from gpt1.corpus.bpe import Vocabulary, import_authors
from gpt1.corpus.learn import count_words, learn

NONE_HELD_OUT = HoldOut(0, 0.0)
# the example of Sennrich et al. 2016, and one letter alone
WORDS = Counter({"low": 5, "lower": 2, "newest": 6, "widest": 3, "a": 9})


@pytest.fixture(scope="module")
def authors():
    for data in (os.environ.get("GPT1_DATA", "none"), Path(__file__).parents[1] / "data/raw"):
        if Path(data, "openai_bpe/vocab_40000.bpe").exists():
            return import_authors(Path(data, "openai_bpe"), 40_000)
    pytest.skip(
        "the authors' BPE files are neither in $GPT1_DATA/openai_bpe nor in data/raw/openai_bpe"
    )


def ranks_of(things):
    return {thing: rank for rank, thing in enumerate(things)}


def slow_pieces(word, ranks):
    """Byte pairs as the paper of Sennrich et al. defines them: merge the best pair everywhere,
    again and again.
    """
    pieces = [*word[:-1], word[-1] + "</w>"]
    while len(pieces) > 1:
        best = min(pairwise(pieces), key=lambda pair: ranks.get(pair, 10**9))
        if best not in ranks:
            break
        merged, place = [], 0
        while place < len(pieces):
            count = 2 if tuple(pieces[place : place + 2]) == best else 1
            merged.append("".join(pieces[place : place + count]))
            place += count
        pieces = merged
    return pieces


def assert_greedy(merges, words):
    """Each merge is a pair seen most often when everything is recounted after the merges before
    it.
    """
    for step, merge in enumerate(merges):
        ranks, pairs = ranks_of(merges[:step]), Counter()
        for word, count in words.items():
            for pair in pairwise(slow_pieces(word, ranks)):
                pairs[pair] += count
        assert pairs[merge] == max(pairs.values())


@pytest.mark.golden
def test_golden_ids(authors):
    if "GPT1_GOLDEN" not in os.environ:
        pytest.skip("$GPT1_GOLDEN names no folder with golden_ids.jsonl")
    text = Path(os.environ["GPT1_GOLDEN"], "golden_ids.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["text"] for row in rows if authors.encode(row["text"]) != row["ids"]] == []
    assert len(rows) > 100


@pytest.mark.golden
def test_the_authors_layout(authors):
    found = (authors.size, authors.start, authors.delimiter, authors.extract)
    assert found == (40478, 40478, 40479, 40480)
    pieces = authors.pieces
    assert [pieces[at] for at in (0, 477, 40477)] == ["<unk>", "th", "\n</w>"]
    assert pieces[239:477] == tuple(character + "</w>" for character in pieces[1:239])
    assert authors.encode("\n") == []
    assert authors.encode("a\nb") == [pieces.index("a</w>"), 40477, pieces.index("b</w>")]


@pytest.mark.golden
def test_words_are_encoded_as_by_the_slow_encoder(authors):
    ranks, ids = ranks_of(authors.merges), ranks_of(authors.pieces)
    pieces = [piece.removesuffix("</w>") for piece in authors.pieces[1:-1]] + ["漢", "\u0301", "😀"]
    for word in [*drawn(3000, pieces, 4), "x" * 300, "ab" * 120]:
        slow = [ids.get(piece, 0) for piece in slow_pieces(word, ranks)]
        assert authors.encode_words([word]) == slow


def drawn(count, letters, longest):
    """Words, and how often each comes."""
    draw = random.Random(3)
    words = ["".join(draw.choices(letters, k=draw.randint(1, longest))) for _ in range(count)]
    return Counter({word: draw.randint(1, 9) for word in words})


@pytest.mark.parametrize(("words", "merges"), [(WORDS, 6), (drawn(60, "aabcde", 6), 40)])
def test_learning_is_greedy(words, merges):
    learned = learn(words, merges, 50, 100)
    assert len(learned.merges) == merges
    assert_greedy(learned.merges, words)
    frequency = Counter("".join(words.elements()))
    assert learned.characters == sorted(frequency, key=lambda one: (-frequency[one], one))


def test_layout_of_a_learned_vocabulary():
    vocabulary = Vocabulary("ab", [("a", "b</w>"), ("a", "a")])
    assert vocabulary.pieces == ("<unk>", "a", "b", "a</w>", "b</w>", "ab</w>", "aa", "\n</w>")
    assert vocabulary.encode_words(["ab", "aab", "\n", "b", "c", "cab"]) == [5, 1, 5, 7, 4, 0, 0, 5]
    assert vocabulary.decode([5, 7, 6, 4]) == "ab \n aab "
    assert vocabulary.decode([8, 3, 10]) == "_start_ a _classify_ "
    for outside in (-1, 11):
        with pytest.raises(ValueError, match="expected ids below 11"):
            vocabulary.decode([outside])


def test_learned_again_equal_and_saved_and_loaded(tmp_path):
    words = drawn(800, "abcdefgh", 7)
    learned, again = (learn(words, 200, 8, 1000) for _ in range(2))
    assert learned == again
    vocabulary = Vocabulary(learned.characters, learned.merges)
    assert vocabulary.size == 1 + 2 * 8 + 200 + 1 == len(set(vocabulary.pieces))
    vocabulary.save(tmp_path, {"source": "learn"})
    loaded = Vocabulary.load(tmp_path)
    assert (loaded.pieces, loaded.fingerprint) == (vocabulary.pieces, vocabulary.fingerprint)
    about = read_json(tmp_path / "meta.json")
    assert {"source", "size", "fingerprint", "spacy", "ftfy"} <= set(about)
    ranks = ranks_of(learned.merges)
    for word in words:
        pieces = [loaded.pieces[id_] for id_ in loaded.encode_words([word])]
        assert pieces == slow_pieces(word, ranks)


def test_words_are_counted_and_the_most_frequent_kept(tmp_path):
    kinds = ["a", "b", "\n", "a.b", "é", "漢", "zz", "x" * 100, "x" * 101]
    words = random.Random(2).choices(kinds, k=500)
    (tmp_path / "book").write_text(" ".join(words), encoding="utf-8", newline="\n")
    counts = Counter(word for word in words if word != "\n" and len(word) <= 100)
    assert count_words(NONE_HELD_OUT, CleanedBook("book", tmp_path / "book")) == counts
    for most in range(3, 8):
        learned = learn(counts, 0, 50, most)
        kept = sorted(counts, key=lambda word: (-counts[word], word))[:most]
        assert set(learned.characters) == set("".join(kept))
        assert (learned.word_types, learned.kept_types) == (7, most)


def write_authors(folder, table, merges):
    (folder / "encoder_bpe_40000.json").write_text(json.dumps(table), encoding="utf-8")
    (folder / "vocab_40000.bpe").write_text(merges, encoding="utf-8")


SMALL = {"<unk>": 0, "a": 1, "b": 2, "a</w>": 3, "b</w>": 4, "ab": 5, "\n</w>": 6}


@pytest.mark.parametrize(
    ("table", "merges", "message"),
    [
        (SMALL, "#version: 0.2\na b\n", "expected the authors' 40,478 entries, found 7"),
        (SMALL, "#version: 0.2\na b c\n", "line 2: expected two pieces"),
        (SMALL, "#version: 0.2\nb a\n", r"do not fit together: id 5 should be 'ba', found 'ab'"),
        (SMALL | {"b": 9}, "#version: 0.2\na b\n", "ids 0 to n-1, each once"),
        ([1, 2], "#version: 0.2\na b\n", "its value is no dict"),
    ],
)
def test_files_that_are_not_the_authors(tmp_path, table, merges, message):
    write_authors(tmp_path, table, merges)
    with pytest.raises(UserError, match=rf"{message}.*(bring the two files|bpe\.source)"):
        import_authors(tmp_path, 1)


def test_files_that_are_absent_or_damaged(tmp_path):
    with pytest.raises(UserError, match=r"expected JSON, found none.*bring the two files"):
        import_authors(tmp_path, 1)
    write_authors(tmp_path, SMALL, "#version: 0.2\na b\n")
    (tmp_path / "encoder_bpe_40000.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="expected JSON, found none"):
        import_authors(tmp_path, 1)
    with pytest.raises(UserError, match="dvc repro bpe"):
        Vocabulary.load(tmp_path)
