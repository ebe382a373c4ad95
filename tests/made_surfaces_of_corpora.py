"""More of made_surfaces.py: the books and documents of a corpus."""

import gzip
import io
from pathlib import Path

from made_corpora import FOOTER, FORMS, HEADER, zstandard
from made_surfaces import SENTENCES, Surface, put, vocabulary

from gpt1.corpus.cleaning import clean_book, clean_documents
from gpt1.corpus.files import list_corpus
from gpt1.corpus.inspection import inspect, read_book, refuse_binary


def write_corpus():
    rows = [f"{SENTENCES[number % 3]} Chapter {number}." for number in range(12)]
    text = "\n".join(rows)
    put("books/a.txt", f"{HEADER}{text}\n{FOOTER}")
    put("books/b.txt", text.encode("utf-16"))
    put("books/c.txt.gz", gzip.compress(text.encode(), mtime=0))
    put("books/d.txt.zst", zstandard(text.encode()))
    for name in ("e.jsonl", "f.parquet"):
        FORMS[f"a.{name.partition('.')[2]}"](Path("books", name), rows)


def read_corpus():
    cleaner = vocabulary()._cleaner
    files = list_corpus(Path("books"))
    books = {file: inspect(file) for file in files if file.form == "text"}
    refuse_binary(books.values())
    for book, found in books.items():
        clean_book(cleaner, book.name, read_book(book, found), io.StringIO())
    for file in files:
        if file.form != "text":
            clean_documents(cleaner, file, "text", io.StringIO())


SURFACES_OF_CORPORA = (Surface("corpus", write_corpus, read_corpus),)
