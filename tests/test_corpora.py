"""Corpora in every form that people have them: packed books, .jsonl, .parquet, PG-19's and
Project Gutenberg's layouts.
"""

import gzip

import pyarrow as pa
import pytest
from made_corpora import FOOTER, FORMS, HEADER, zstandard
from made_data import put_files
from pyarrow import parquet

from gpt1.base.errors import UserError
from gpt1.corpus import files
from gpt1.corpus.decoding import body, read_book
from gpt1.corpus.files import document_texts, list_corpus

LONG = "A long story. " * 10_000
TEXTS = ["One two.\nThree", "", "four “five”", "six  "]


def texts_of(path, field="text"):
    file = list_corpus(path.parent)[0]
    return list(document_texts(file, field))


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_texts(tmp_path, name, monkeypatch):
    texts = [*TEXTS, None, *(f"Row {number} «{'ü' * number}»." for number in range(40))]
    FORMS[name](tmp_path / name, texts, "body")
    assert texts_of(tmp_path / name, "body") == texts
    monkeypatch.setattr(files, "BLOCK_BYTES", 7)
    assert texts_of(tmp_path / name, "body") == texts


PACKERS = {".txt": bytes, ".txt.gz": gzip.compress, ".txt.zst": zstandard, ".TXT.GZ": gzip.compress}


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("codec", ["utf-8", "windows-1252", "utf-16"])
def test_a_packed_book_is_the_book(tmp_path, suffix, codec, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 90)
    text = "".join(f"línea “{number}”\n" for number in range(60))
    (tmp_path / f"book{suffix}").write_bytes(PACKERS[suffix](text.encode(codec)))
    [book] = list_corpus(tmp_path)
    found = read_book(book)
    assert (book.name, found.encoding, found.text) == (f"book{suffix[:4]}", codec, text)


def test_what_is_no_file_of_a_corpus_is_left(tmp_path):
    left = "b.csv c.txt.bz2 d.parquet.gz e.json metadata.csv data/data-0.arrow"
    put_files(tmp_path, dict.fromkeys([*left.split(), "a.txt", "data/0.parquet"], "x"))
    assert [(file.name, file.form) for file in list_corpus(tmp_path)] == [
        ("a.txt", "text"),
        ("data/0.parquet", "parquet"),
    ]
    (tmp_path / "a.txt.gz").write_bytes(b"")
    with pytest.raises(UserError, match=r"a\.txt and a\.txt\.gz"):
        list_corpus(tmp_path)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "a.jsonl"])
def test_a_file_cut_short_is_named(tmp_path, name):
    path = tmp_path / name
    FORMS[name](path, [f"row {number} of some length" for number in range(2000)])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(UserError, match=rf"{name} cannot be read (as \.\w+ )?\(.+\)"):
        texts_of(path)


def test_a_table_without_the_column_names_those_of_texts(tmp_path):
    FORMS[name := "a.parquet"](tmp_path / name, TEXTS, "story")
    line = r"expected a column 'text' of texts, found 'story'; .* clean\.text_field=COLUMN"
    with pytest.raises(UserError, match=line):
        texts_of(tmp_path / name)
    with pytest.raises(UserError, match="expected a column 'id' of texts, found 'story'"):
        texts_of(tmp_path / name, "id")


def test_json_rows_that_are_none(tmp_path):
    rows = {
        '{"text": "a"}': "a",
        "": "",
        '{"text": "\\ud800 x"}': "\ud800 x",
        **dict.fromkeys(("{", "[1]", '"text"', '{"text": 3}', '{"other": "a"}', "[" * 100_000)),
    }
    lines = "\n".join(rows).encode() + b"\n\xff\n" + b'{"text": "last"}'
    (tmp_path / "a.jsonl").write_bytes(lines)
    assert texts_of(tmp_path / "a.jsonl") == [*rows.values(), None, "last"]


def test_bombs_and_endless_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "UNPACKED_FREELY", 100_000)
    same = pa.array(["x" * 50_000] * 2000).dictionary_encode()  # a text that 2,000 rows name
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\n" * 2_000_000))
    parquet.write_table(pa.table({"text": same}), tmp_path / "b.parquet")
    packed, table = list_corpus(tmp_path)
    with pytest.raises(UserError, match=r"a\.txt\.gz unpacks to more than 250 times"):
        read_book(packed)
    with pytest.raises(UserError, match=r"b\.parquet unpacks to more than 250 times"):
        list(document_texts(table, "text"))
    monkeypatch.setattr(files, "LONGEST_DOCUMENT", 10_000)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a"}\n{"text": "' + b"x" * 300_000)
    with pytest.raises(UserError, match="row 1 is longer than 10,000"):
        texts_of(tmp_path / "a.jsonl")
    (tmp_path / "c.txt").write_bytes(b"a\n" * 6_000)
    with pytest.raises(UserError, match=r"c\.txt is longer than 10,000"):
        read_book(list_corpus(tmp_path)[-1])


BA, LI = "Ba said so.\n", "Li went.\n" * 20
UNTOLD = "He said *** START OF THE PROJECT GUTENBERG EBOOK ***\nyes\n"
SMALL_PRINT = "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n"


@pytest.mark.parametrize(
    ("text", "expected", "licensed"),
    [
        ("Plain\nbook\n", "Plain\nbook\n", False),
        (f"{HEADER}{BA}{FOOTER}", BA, True),
        (f"{HEADER}{BA}{FOOTER}{HEADER}{LI}{FOOTER}", f"{BA}\n{LI}", True),
        (f"{HEADER}Produced by Li\n{SMALL_PRINT}{BA}{FOOTER}", BA, True),
        (f"{LI}{SMALL_PRINT}", LI, True),
        (f"{HEADER}{LI}{SMALL_PRINT}\nBa.\n", f"{LI}\n\nBa.\n", True),
        (f"{LI}{UNTOLD[8:]}", f"{LI}\nyes\n", True),
        (UNTOLD, UNTOLD, False),
        (
            f"{LONG}\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\nTwo.\n",
            f"{LONG}\n\nTwo.\n",
            True,
        ),
    ],
    ids=range(9),
)
def test_gutenbergs_licence(tmp_path, text, expected, licensed):
    assert body(text) == (expected, licensed)
    (tmp_path / "a.txt").write_text(text, encoding="utf-8-sig")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(text.encode("utf-16")))
    for book, width in zip(list_corpus(tmp_path), (1, 2), strict=True):
        found = read_book(book)
        stripped = width * (len(text) - len(expected))
        assert (found.text, found.licensed, found.stripped) == (expected, licensed, stripped)
