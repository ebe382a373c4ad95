"""More of made_surfaces.py: what other libraries wrote (parquet, arrow, packed text), records of
downloads.
"""

import gzip
import io
import json
from pathlib import Path

import made_forms
import pyarrow as pa
from made_surfaces import SENTENCES, Surface, put, read_task, vocabulary
from pyarrow import parquet


def write_export(form: str) -> None:
    made_forms.MADE["snli"].forms[form](Path("raw"))


def rows() -> list[str]:
    return [f"{SENTENCES[number % 3]} Chapter {number}." for number in range(12)]


def write_corpus() -> None:
    text = "\n".join(rows())
    put(
        "books/a.txt",
        f"*** START OF THE PROJECT GUTENBERG EBOOK A ***\n{text}\n*** END OF THE PROJECT GUTENBERG"
        " EBOOK A ***\n",
    )
    put("books/b.txt", text.encode("utf-16"))
    put("books/c.txt.gz", gzip.compress(text.encode(), mtime=0))
    put("books/d.txt.zst", pa.compress(text.encode(), codec="zstd", asbytes=True))
    put("books/e.jsonl", "".join(json.dumps({"text": row, "id": 1}) + "\n" for row in rows()))
    parquet.write_table(pa.table({"text": rows(), "id": list(range(12))}), "books/f.parquet")
    table = pa.table({"text": rows()})
    with pa.OSFile("books/g.arrow", "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=4)


def read_corpus() -> None:
    from gpt1.corpus.cleaning import clean_book, clean_documents
    from gpt1.corpus.documents import batches
    from gpt1.corpus.files import list_corpus
    from gpt1.corpus.inspection import inspect, read_book, refuse_binary

    cleaner = vocabulary()._cleaner
    files = list_corpus(Path("books"))
    books = {file: inspect(file) for file in files if file.form == "text"}
    refuse_binary(books.values())
    for book, found in books.items():
        clean_book(cleaner, book.name, read_book(book, found), io.StringIO())
    for file in files:
        if file.form != "text":
            for texts in batches(file, "text"):
                clean_documents(cleaner, texts)


SURFACES_OF_CORPORA = (
    *(
        Surface(f"export {form}", lambda form=form: write_export(form), lambda: read_task("snli"))  # type: ignore[misc]
        for form in ("parquet", "arrow", "jsonl")
    ),
    Surface("corpus", write_corpus, read_corpus),
)
