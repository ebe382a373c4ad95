"""Books and documents of every form through the stages: cleaned, held out by their names alone, in
token files.
"""

import gzip
import random
import shutil
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
from made_corpora import FOOTER, FORMS, HEADER
from made_data import as_json_lines, put_files
from test_stages_text import STAGES, outputs_of, run_here, sentence, write_params

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.corpus import books as books_module
from gpt1.corpus import encoding
from gpt1.corpus.books import DOCUMENT_END, HoldOut
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.shards import Shards
from gpt1.corpus.words import Cleaner


def mixed_corpus(folder):
    """Books and documents of every form under data/acquire; {name: its texts}."""
    generator = random.Random(0)
    source = folder / "data/acquire/corpus/books"
    source.mkdir(parents=True)

    def say(sentences):
        return "\n".join(sentence(generator) for _ in range(sentences))

    books = {f"book{number}.txt": [say(20)] for number in range(4)}
    for name, [text] in books.items():
        (source / name).write_text(text, encoding="utf-8")
    packed = {"packed.txt": [say(20)]}
    (source / "packed.txt.gz").write_bytes(gzip.compress(packed["packed.txt"][0].encode()))
    many = {}
    for name in ("a.jsonl.zst", "b.parquet", "c.jsonl"):
        texts = [say(generator.randint(1, 3)) for _ in range(150)]
        texts[7] = ""
        texts[11] = say(60)
        texts[12] = f"{HEADER}{texts[12]}\n{FOOTER}"
        if name == "b.parquet":
            texts[20] = None
        FORMS[f"a.{name.split('.', 1)[1]}"](source / name, texts)
        many[name.removesuffix(".zst")] = [
            (text or "").replace(HEADER, "").replace(f"\n{FOOTER}", "") for text in texts
        ]
    return books | packed | many


@pytest.fixture(scope="module")
def cleaner():
    return Cleaner()


def run_stages(folder, patch):
    """The three stages, with what is a block made small."""
    write_params(folder, clean={"corpus_name": "a mixture"}, bpe={"merges": 40})
    patch.setattr(books_module, "BLOCK_CHARACTERS", 900)
    for name in STAGES:
        run_here(name, folder, patch)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, cleaner):
    folder = tmp_path_factory.mktemp("mixed")
    texts = mixed_corpus(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpt1.corpus.cleaning.Cleaner", lambda: cleaner)
        patch.setattr(encoding, "LONG_WORDS", 150)
        run_stages(folder, patch)
    return folder, texts


@pytest.mark.slow
def test_any_number_of_tasks_gives_the_same_files(mixed, tmp_path, monkeypatch):
    shutil.copytree(mixed[0] / "data/acquire", tmp_path / "data/acquire")
    found = []
    for tasks in ("1", "3"):
        monkeypatch.setenv("GPT1_TEXT_TASKS", tasks)
        run_stages(tmp_path, monkeypatch)
        found.append(outputs_of(tmp_path))
        assert not [*tmp_path.glob("data/checkpoints/text/*")]
    assert found[0] == found[1]


def test_documents_are_counted(mixed):
    folder, texts = mixed
    counts = read_json(folder / "data/clean/counts.json")
    assert list(counts["books"]) == sorted(name for name in texts if name.endswith(".txt"))
    for name, row in counts["documents"].items():
        found = [row[kind] for kind in ("documents", "empty", "unreadable", "licensed")]
        assert found == [150, 1, int(name == "b.parquet"), 1]
    assert counts["totals"]["documents"] == 450
    assert counts["totals"]["words"] == sum(
        row["words"] for kind in ("books", "documents") for row in counts[kind].values()
    )
    assert list(counts["documents"]) == ["a.jsonl", "b.parquet", "c.jsonl"]


def test_documents_reach_their_split_by_their_names_alone(mixed, cleaner):
    folder, texts = mixed
    hold_out = HoldOut(0, 0.3)
    vocabulary, opened = Vocabulary.load(folder / "data/bpe"), Shards.open(folder / "data/shard")
    line_end = vocabulary.encode_words(["\n"])
    expected = {"train": [], "heldout": []}
    units = Counter()
    for name, of_file in sorted(texts.items()):
        several, short_before = len(of_file) > 1, dict.fromkeys(expected, False)
        for row, text in enumerate(of_file):
            unit = f"{name}#{row}" if several else name
            split = "heldout" if hold_out.holds(unit) else "train"
            if not (words := cleaner.words(text)):
                continue
            short = several and len(words) - words.count("\n") < 150
            if short and short_before[split]:
                expected[split] += line_end
            expected[split] += vocabulary.encode_words(words)
            short_before[split] = short
            units[split] += several
    for split, ids in expected.items():
        stored = np.fromfile(folder / "data/shard" / f"{split}.bin", dtype="<u2").tolist()
        assert stored == ids
        facts = opened.index["splits"][split]
        assert facts["documents"] == units[split] > 50
        books = facts["books"]
        ends = np.cumsum([book["tokens"] for book in books]).tolist()
        assert [book["offset"] for book in books] == [0, *ends[:-1]]
        assert len(books) < 20, "short documents stand together"
        assert len({book["name"] for book in books}) == len(books)


def test_what_is_held_out_never_reaches_the_byte_pairs(mixed, tmp_path, monkeypatch):
    folder, texts = mixed
    hold_out, other = HoldOut(0, 0.3), " qqq qqq qqq "
    shutil.copytree(folder / "data/clean", tmp_path / "data/clean")
    cleaned = tmp_path / "data/clean"
    path = cleaned / "documents/a.jsonl"
    parts = path.read_text(encoding="utf-8").split(DOCUMENT_END)
    held_out = [row for row in range(150) if hold_out.holds(f"a.jsonl#{row}")]
    assert 20 < len(held_out) < 80
    for row in held_out:
        parts[row] = other
    path.write_text(DOCUMENT_END.join(parts).lstrip(" "), encoding="utf-8")
    books = [name for name in texts if name.endswith(".txt") and hold_out.holds(name)]
    assert books
    for name in books:
        (cleaned / "books" / name).write_text(other.strip(), encoding="utf-8")
    write_params(tmp_path, bpe={"merges": 40})
    run_here("bpe", tmp_path, monkeypatch)
    for name in ("merges.txt", "vocab.json", "meta.json"):
        assert (tmp_path / "data/bpe" / name).read_bytes() == (
            folder / "data/bpe" / name
        ).read_bytes()


STORIES = [{"story": "a b"}] * 3
NO_TEXT = "rows have no text in 'text'"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (STORIES, rf"a\.jsonl: 3 of 3 {NO_TEXT} .*first is row 0, .*found fields story"),
        ([{"text": "a b"}] * 98 + [{}], f"1 of 99 {NO_TEXT} .*first is row 98, .*fields text;"),
        ([{"text": "a b"}] * 99 + [{}], None),  # no more than one in a hundred
        ([{"text": ""}] * 50, "expected words in the books of .*, found none in any of 1"),
    ],
)
def test_a_corpus_without_texts_is_refused(tmp_path, monkeypatch, cleaner, rows, message):
    monkeypatch.setattr("gpt1.corpus.cleaning.Cleaner", lambda: cleaner)
    put_files(tmp_path / "data/acquire/corpus/books", {"a.jsonl": as_json_lines(rows)})
    write_params(tmp_path)
    with pytest.raises(UserError, match=message) if message else nullcontext():
        run_here("clean", tmp_path, monkeypatch)
    assert (tmp_path / "data/clean").exists() == (message is None)
