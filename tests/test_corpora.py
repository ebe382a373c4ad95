"""Corpora in every form that people have them: packed books, .jsonl, .parquet, .arrow, PG-19's and
Project Gutenberg's layouts.
"""

import gzip
from contextlib import nullcontext

import pyarrow as pa
import pytest
from made_corpora import FOOTER, FORMS, HEADER, zstandard
from made_data import put_files
from pyarrow import parquet

from gpt1.base.errors import UserError
from gpt1.corpus import documents, files
from gpt1.corpus.documents import batches
from gpt1.corpus.files import list_corpus
from gpt1.corpus.inspection import body, inspect, read_book, recognised, refuse_wrong_name

LONG = "A long story. " * 10_000
TEXTS = ["One two.\nThree", "", "four “five”", "six  "]


def texts_of(path, field="text"):
    file = list_corpus(path.parent)[0]
    return [text for batch in batches(file, field) for text in batch]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_texts(tmp_path, name, monkeypatch):
    texts = [*TEXTS, None, *(f"Row {number} «{'ü' * number}»." for number in range(40))]
    FORMS[name](tmp_path / name, texts, "body")
    assert texts_of(tmp_path / name, "body") == texts
    monkeypatch.setattr(documents, "BATCH_CHARACTERS", 60)
    monkeypatch.setattr(files, "BLOCK_BYTES", 7)
    found = list(batches(list_corpus(tmp_path)[0], "body"))
    assert len(found) > 5
    assert [text for batch in found for text in batch] == texts
    assert max(sum(len(text or "") for text in batch) for batch in found) <= 60 + 50


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst", ".TXT.GZ"])
def test_a_packed_book_is_the_book(tmp_path, suffix, monkeypatch):
    for codec in ["utf-8", "cp1252", "utf-16"]:
        monkeypatch.setattr(files, "BLOCK_BYTES", 90)
        text = "".join(f"línea “{number}”\n" for number in range(60))
        pack = {".gz": gzip.compress, ".zst": zstandard}.get(
            suffix[-4:].lower().removeprefix("t"), zstandard if "zst" in suffix else bytes
        )
        (tmp_path / f"book{suffix}").write_bytes(pack(text.encode(codec)))
        [book] = list_corpus(tmp_path)
        found = inspect(book)
        assert book.name == f"book{suffix[:4]}"
        assert found.encoding == {"cp1252": "windows-1252"}.get(codec, codec)
        assert "".join(read_book(book, found)) == text


def test_what_is_no_file_of_a_corpus_is_left(tmp_path):
    for name in (
        "a.txt",
        "b.csv",
        "c.txt.bz2",
        "d.parquet.gz",
        "e.json",
        "metadata.csv",
        "data/cache-1f.arrow",
        "data/data-0.arrow",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [(file.name, file.form) for file in list_corpus(tmp_path)] == [
        ("a.txt", "text"),
        ("data/data-0.arrow", "arrow"),
    ]
    (tmp_path / "a.txt.gz").write_bytes(b"")
    with pytest.raises(
        UserError, match=r"holds a\.txt and a\.txt\.gz, one file packed and not; take one"
    ):
        list_corpus(tmp_path)


def damaged(folder, name):
    FORMS[name](folder / name, [f"row {number} of some length" for number in range(2000)])
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) * 2 // 3])
    return folder / name


@pytest.mark.parametrize("name", [name for name in FORMS if name != "a.jsonl"])
def test_a_file_cut_short_is_named(tmp_path, name):
    path = damaged(tmp_path, name)
    with pytest.raises(
        UserError,
        match=(
            rf"{name} cannot be (unpacked|read as \.\w+) \(.+\); get it again or take it out of the"
            r" corpus$"
        ),
    ):
        texts_of(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_table_without_the_column_names_those_of_texts(tmp_path, name):
    FORMS[name](tmp_path / name, TEXTS, "story")
    line = "expected a column 'text' of texts, found 'story'; name it: .* clean\\.text_field=COLUMN"
    with pytest.raises(UserError, match=line):
        texts_of(tmp_path / name)
    with pytest.raises(UserError, match="expected a column 'id' of texts, found 'story'"):
        texts_of(tmp_path / name, "id")


def test_json_rows_that_are_none(tmp_path):
    rows = [
        '{"text": "a"}',
        "{",
        "[1]",
        '"text"',
        '{"text": 3}',
        '{"other": "a"}',
        "",
        '{"text": "\\ud800 x"}',
        "[" * 100_000,
    ]
    (tmp_path / "a.jsonl").write_bytes("\n".join(rows).encode() + b"\n\xff\n" + b'{"text": "last"}')
    assert texts_of(tmp_path / "a.jsonl") == [
        "a",
        None,
        None,
        None,
        None,
        None,
        "",
        "\ud800 x",
        None,
        None,
        "last",
    ]


def test_bombs_and_endless_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "UNPACKED_FREELY", 100_000)
    same = pa.array(["x" * 50_000] * 2000).dictionary_encode()  # a text that 2,000 rows name
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\n" * 2_000_000))
    parquet.write_table(pa.table({"text": same}), tmp_path / "b.parquet")
    packed, table = list_corpus(tmp_path)
    with pytest.raises(UserError, match=r"a\.txt\.gz unpacks to more than 250 times its size"):
        inspect(packed)
    with pytest.raises(UserError, match=r"b\.parquet unpacks to more than 250 times its size"):
        list(batches(table, "text"))
    monkeypatch.setattr(documents, "LONGEST_DOCUMENT", 10_000)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a"}\n{"text": "' + b"x" * 300_000)
    with pytest.raises(UserError, match="row 1 is longer than 10,000"):
        texts_of(tmp_path / "a.jsonl")


def test_gutenbergs_licence(tmp_path):
    for text, expected, licensed in [
        ("Plain\nbook\n", "Plain\nbook\n", False),
        (f"{HEADER}Ba said.\n{FOOTER}", "Ba said.\n", True),
        (f"{HEADER}One.\n{FOOTER}{HEADER}Two.\n{FOOTER}", "One.\n\nTwo.\n", True),
        (
            (
                f"{HEADER}Produced by Li\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN"
                f" ETEXTS*Ver.04.29.93*END*\nBa.\n{FOOTER}"
            ),
            "Ba.\n",
            True,
        ),
        (
            "He said *** START OF THE PROJECT GUTENBERG EBOOK ***\nyes\n",
            "He said *** START OF THE PROJECT GUTENBERG EBOOK ***\nyes\n",
            False,
        ),
        (
            f"{LONG}\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\nTwo.\n",
            f"{LONG}\n\nTwo.\n",
            True,
        ),
    ]:
        assert body(text) == (expected, licensed)
        for name, data in (
            ("a.txt", text.encode("utf-8-sig")),
            ("b.txt.gz", gzip.compress(text.encode("utf-16"))),
        ):
            (tmp_path / name).write_bytes(data)
        for book in list_corpus(tmp_path):
            found = inspect(book)
            assert "".join(read_book(book, found)) == expected
            width = 2 if book.packed else 1
            assert (found.licensed, found.stripped) == (
                licensed,
                width * (len(text) - len(expected) + (len(found.spans) - 1)),
            )


@pytest.mark.parametrize(
    ("books", "kind"),
    [
        ({"train/10.txt": "a", "train/7.txt": "b", "test/9.txt": "c"}, "PG-19"),
        ({"train/10.txt": "a", "validation/x.txt": "b"}, ""),
        ({"1.txt": f"{HEADER}a", "2.txt": f"{HEADER}b", "3.txt": "c"}, "Project Gutenberg"),
        ({"1.txt": f"{HEADER}a", "2.txt": "b", "3.txt": "c"}, ""),
    ],
)
def test_what_a_corpus_is_recognised_as(tmp_path, books, kind):
    put_files(tmp_path, books)
    found = [inspect(book) for book in list_corpus(tmp_path)]
    assert (recognised(found, 0), recognised(found, 1)) == (kind, "")
    refuse_wrong_name("my novels", kind)
    for name in ("BooksCorpus", "Toronto Book Corpus", "bookcorpus (mine)"):
        line = rf"recognised as {kind}; .* gpt1 profile PROFILE 'clean\.corpus_name={kind}'"
        with pytest.raises(UserError, match=line) if kind else nullcontext():
            refuse_wrong_name(name, kind)
