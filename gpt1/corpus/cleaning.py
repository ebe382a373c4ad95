"""A corpus cleaned: books in pieces and files of documents in batches, on every core; and the
counts of both.
"""

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.corpus.books import BOOKS, DOCUMENT_END
from gpt1.corpus.documents import batches, text_fields
from gpt1.corpus.files import CorpusFile
from gpt1.corpus.gutenberg import body
from gpt1.corpus.inspection import Inspection, Piece, inspect, read_piece, refuse_binary
from gpt1.corpus.parallel import Workers, workers
from gpt1.corpus.words import LONGEST_CHUNK, NEWLINE, Cleaner, UnbrokenTextError

UNPACKED_TIMES = 3  # text packed by gzip, Zstandard or Parquet is about so many times its file
UNREADABLE_SHARE = 0.01  # of a file's rows; with more the corpus is refused
SUMMED = ("documents", "unreadable", "licensed", "stripped")  # told of only where there are any


def inspect_books(files: list[CorpusFile]) -> list[Inspection]:
    """Inspect every book among the files, in this very process: quick beside cleaning, and a book
    that is refused is so before more processes start. Raises UserError where one is no text.
    """
    books = [file for file in files if file.form == "text"]
    sizes = [book.path.stat().st_size if book.path.exists() else 0 for book in books]
    with workers(dict, 1) as reader:
        inspections = list(reader.map("reading books", _inspect, books, sizes))
    refuse_binary(inspections)
    return inspections


def _inspect(_: dict[str, Any], book: CorpusFile) -> Inspection:
    return inspect(book)


def bytes_to_clean(files: list[CorpusFile]) -> int:
    """About how many bytes of text there are."""
    return sum(
        file.path.stat().st_size * (UNPACKED_TIMES if file.packed or file.form == "parquet" else 1)
        for file in files
    )


def clean_books(pool: Workers, inspections: list[Inspection], folder: Path) -> dict[str, Any]:
    """Write every book, cleaned, into folder/books; the counts. Raises UserError."""
    parts = folder / "parts"
    parts.mkdir()
    pieces = [piece for inspection in inspections for piece in inspection.pieces]
    cleaned = pool.map(
        "cleaning books",
        clean_piece,
        [(piece, parts / str(number)) for number, piece in enumerate(pieces)],
        [piece.stop - piece.start for piece in pieces],
    )
    counts = assemble(inspections, cleaned, folder / BOOKS)
    parts.rmdir()
    return counts


def clean_piece(cleaner: Cleaner, task: tuple[Piece, Path]) -> tuple[Path, int]:
    """Write one piece of a book, cleaned, to the given path; that path and the number of its words.
    Raises UserError naming the book.
    """
    piece, target = task
    words, blank = 0, ""
    try:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            for found in cleaner.clean(read_piece(piece), piece.tags_before):
                text = " ".join(found)
                file.write(blank + text)
                words += text.count(" ") + 1 - found.count(NEWLINE)
                blank = " "
    except UnbrokenTextError:
        raise UserError(
            f"the book {piece.book.name} has more than {LONGEST_CHUNK:,} characters without a blank"
            " or line break, expected English text; take it out of the corpus or mend it"
        ) from None
    return target, words


def clean_documents(
    cleaner: Cleaner, texts: list[str | None]
) -> tuple[str, Counter[str], int | None]:
    """Documents cleaned, DOCUMENT_END after each; counts of them; the first that cannot be read.
    Such a one is left empty.
    """
    found: list[str] = []
    counts: Counter[str] = Counter(documents=len(texts))
    unreadable = None
    for number, text in enumerate(texts):
        try:
            kept, licensed = body(text) if text is not None else ("", False)
            cleaned = " ".join([words for batch in cleaner.clean([kept], False) for words in batch])
        except UnbrokenTextError:
            text, cleaned, kept, licensed = None, "", "", False
        counts["unreadable"] += text is None
        counts["empty"] += text is not None and not cleaned
        counts["licensed"] += licensed
        counts["stripped"] += len(text or "") - len(kept)
        counts["words"] += (
            sum(1 for word in cleaned.split(" ") if word != NEWLINE) if cleaned else 0
        )
        unreadable = number if text is None and unreadable is None else unreadable
        found += [cleaned, DOCUMENT_END] if cleaned else [DOCUMENT_END]
    return " ".join(found), counts, unreadable


def assemble(
    inspections: list[Inspection], cleaned: Iterator[tuple[Path, int]], folder: Path
) -> dict[str, Any]:
    """Join the cleaned pieces of each book into folder/<name>; the counts. A book without a word
    gets no file and is counted as empty.
    """
    books: dict[str, dict[str, Any]] = {}
    empty = []
    for inspection in inspections:
        total, target = 0, folder / inspection.book.name
        for _ in inspection.pieces:
            part, words = next(cleaned)
            if words:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("ab") as whole, part.open("rb") as file:
                    whole.write(
                        f" {NEWLINE} ".encode() if total else b""
                    )  # pieces are cut at line breaks
                    shutil.copyfileobj(file, whole)
            total += words
            part.unlink()
        if total:
            books[inspection.book.name] = {
                "bytes": inspection.bytes_,
                "words": total,
                "encoding": inspection.encoding,
                **({"stripped": inspection.stripped} if inspection.stripped else {}),
            }
        else:
            empty.append(inspection.book.name)
    list(cleaned)  # nothing is left: this ends the progress bar
    return {"books": books, "empty": empty}


def clean_rows(pool: Workers, file: CorpusFile, field: str, target: Path) -> dict[str, int]:
    """Write the documents of one file, cleaned, to `target`; their counts. Raises UserError where
    too many cannot be read.
    """
    counts: Counter[str] = Counter()
    first = None
    size = file.path.stat().st_size
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8", newline="\n") as whole:
        for text, found, unreadable in pool.stream(
            f"cleaning {file.name}", clean_documents, batches(file, field), size
        ):
            whole.write((" " if counts["documents"] else "") + text)
            if first is None and unreadable is not None:
                first = counts["documents"] + unreadable
            counts.update(found)
    if counts["unreadable"] > UNREADABLE_SHARE * counts["documents"]:
        raise UserError(
            f"{file.path}: {counts['unreadable']:,} of {counts['documents']:,} rows have no text in"
            f" {field!r} (or no blanks in it), the first is row {first}, counted from 0; found"
            f" fields {text_fields(file)}; name the field of the texts (gpt1 profile PROFILE"
            " clean.text_field=FIELD) or mend the file"
        )
    if not counts["words"]:
        target.unlink()
    return {
        "bytes": size,
        **{
            name: counts[name]
            for name in ("documents", "words", "empty", "unreadable", "licensed", "stripped")
        },
    }


def totals(counts: dict[str, Any], inspections: list[Inspection]) -> dict[str, Any]:
    """Sums over all books and files of documents."""
    books, files = counts["books"], counts.get("documents", {})
    every: Counter[str] = Counter()
    for row in (*map(vars, inspections), *files.values()):
        every.update({name: row.get(name, 0) for name in SUMMED})
    rows = [*books.values(), *files.values()]
    return {
        "books": len(books),
        "bytes": sum(row["bytes"] for row in rows),
        "words": sum(row["words"] for row in rows),
        "empty": len(counts["empty"]) + sum(row["empty"] for row in files.values()),
        "encodings": dict(Counter(str(book["encoding"]) for book in books.values())),
        **+every,
    }


def tell_left_out(counts: dict[str, Any]) -> None:
    """Say on stderr what was left out, if anything."""
    sums = counts["totals"]
    if "stripped" in sums:
        print(
            f"clean: Project Gutenberg's licence stripped from {sums.get('licensed', 0):,} books"
            f" ({sums['stripped']:,} bytes)",
            file=sys.stderr,
        )
    if "unreadable" in sums:
        print(
            f"clean: {sums['unreadable']:,} of {sums['documents']:,} documents could not be read"
            " and are left out",
            file=sys.stderr,
        )
