"""A corpus cleaned: books in pieces and files of documents, each written for itself, the pieces
then joined in order; and the counts of both.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from filecmp import cmp
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from pydantic import TypeAdapter

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.corpus.books import BOOKS, DOCUMENT_END, DOCUMENTS
from gpt1.corpus.documents import batches, text_fields
from gpt1.corpus.files import CorpusFile
from gpt1.corpus.gutenberg import body
from gpt1.corpus.inspection import Inspection, Piece, inspect, read_piece, refuse_binary
from gpt1.corpus.parallel import mapped
from gpt1.corpus.words import LONGEST_CHUNK, NEWLINE, Cleaner, UnbrokenTextError

QUICK = 50  # times as quick as cleaning it is to look through a file
UNREADABLE_SHARE = 0.01  # of a file's rows; with more the corpus is refused
SUMMED = ("documents", "unreadable", "licensed", "stripped")  # told of only where there are any

Found = Inspection | None  # of a file of documents
FOUND: TypeAdapter[Found] = TypeAdapter(Found)


@dataclass(frozen=True)
class Part:
    """What is cleaned together, where to write it, and the field of a document's text."""

    part: Piece | CorpusFile
    target: Path
    field: str

    @property
    def bytes_(self) -> int:
        """How much text it is."""
        if isinstance(self.part, Piece):
            return self.part.stop - self.part.start
        return self.part.path.stat().st_size


def inspect_files(files: Sequence[CorpusFile], kept: Path) -> list[Found]:
    """Look through every book. Raises UserError where one is no text."""
    sizes = [file.path.stat().st_size for file in files]
    found = mapped("reading books", dict, _inspect, files, sizes, kept, QUICK)
    inspected = [FOUND.validate_python(one) for one in found]
    refuse_binary(one for one in inspected if isinstance(one, Inspection))
    return inspected


def _inspect(_: dict[str, Any], file: CorpusFile) -> Any:
    found: Found = inspect(file) if file.form == "text" else None
    return FOUND.dump_python(found, mode="json")


def clean_files(
    files: Sequence[CorpusFile], inspected: Sequence[Found], field: str, kept: Path, folder: Path
) -> dict[str, Any]:
    """Write every book, cleaned, into folder/books and every file of documents into
    folder/documents; their counts. Raises UserError.
    """
    parts: list[Sequence[Piece | CorpusFile]] = [
        found.pieces if found else [file] for file, found in zip(files, inspected, strict=True)
    ]
    own = kept / "parts"
    own.mkdir(exist_ok=True)
    items = [
        Part(part, own / f"{file}-{number}", field)
        for file, found in enumerate(parts)
        for number, part in enumerate(found)
    ]
    cleaned = mapped("cleaning", Cleaner, clean_part, items, [item.bytes_ for item in items], kept)
    results = zip(items, cleaned, strict=True)
    by_words: dict[int, list[str]] = {}  # equal books have equally many
    counts: dict[str, Any] = {"books": {}, "empty": []}
    for file, found, whole in zip(files, inspected, parts, strict=True):
        results_of_it = list(islice(results, len(whole)))
        if found is None:
            rows = keep_documents(field, *results_of_it[0], folder / DOCUMENTS / file.name)
            counts.setdefault("documents", {})[file.name] = rows
        elif words := join_book(results_of_it, book := folder / BOOKS / file.name):
            others = by_words.setdefault(words, [])
            same = (one for one in others if cmp(folder / BOOKS / one, book, shallow=False))
            if (first := next(same, None)) is not None:
                book.unlink()
                counts.setdefault("equal", {})[file.name] = first
                continue
            others.append(file.name)
            counts["books"][file.name] = {
                "bytes": found.bytes_,
                "words": words,
                "encoding": found.encoding,
                **({"stripped": found.stripped} if found.stripped else {}),
            }
        else:
            counts["empty"].append(file.name)
    list(results)  # nothing is left: this ends the progress bar
    return counts


def clean_part(cleaner: Cleaner, item: Part) -> dict[str, Any]:
    """Write one part of a book or of a file of documents, cleaned; the counts of it. Raises
    UserError.
    """
    with writing(item.target, apart=True) as file:
        if isinstance(item.part, Piece):
            return {"words": clean_piece(cleaner, item.part, file)}
        return clean_file(cleaner, item.part, item.field, file)


def clean_piece(cleaner: Cleaner, piece: Piece, file: TextIO) -> int:
    """Write one piece of a book, cleaned; the number of its words. Raises UserError naming the
    book.
    """
    words, blank = 0, ""
    try:
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
    return words


def clean_file(cleaner: Cleaner, documents: CorpusFile, field: str, file: TextIO) -> dict[str, Any]:
    """Write the documents of a file, cleaned; counts of them, and `first`: the first of them, if
    any, that cannot be read.
    """
    counts: Counter[str] = Counter()
    first = None
    for texts in batches(documents, field):
        text, found, unreadable = clean_documents(cleaner, texts)
        file.write((" " if counts["documents"] else "") + text)
        if first is None and unreadable is not None:
            first = counts["documents"] + unreadable
        counts.update(found)
    return {**counts, "first": first}


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


def join_book(parts: Sequence[tuple[Part, dict[str, Any]]], target: Path) -> int:
    """Join the cleaned pieces of a book; the number of its words. A book without a word gets no
    file.
    """
    kept = [item.target for item, found in parts if found["words"]]
    if kept:
        join(kept, f" {NEWLINE} ", target)  # pieces are cut at line breaks
    return sum(found["words"] for _, found in parts)


def join(parts: Sequence[Path], between: str, target: Path) -> None:
    """Put parts together into one new file; one alone is linked where the disk allows it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if len(parts) == 1:
        with suppress(OSError):
            os.link(parts[0], target)
            return
    with target.open("wb") as whole:
        for number, part in enumerate(parts):
            whole.write(between.encode() if number else b"")
            with part.open("rb") as file:
                shutil.copyfileobj(file, whole)


def keep_documents(field: str, item: Part, found: dict[str, Any], target: Path) -> dict[str, int]:
    """Put the cleaned documents of one file in their place; their counts. Raises UserError where
    too many cannot be read.
    """
    assert isinstance(item.part, CorpusFile)
    counts = Counter(found)
    if counts["unreadable"] > UNREADABLE_SHARE * counts["documents"]:
        raise UserError(
            f"{item.part.path}: {counts['unreadable']:,} of {counts['documents']:,} rows have no"
            f" text in {field!r} (or no blanks in it), the first is row {found['first']}, counted"
            f" from 0; found fields {text_fields(item.part)}; name the field of the texts (gpt1"
            " profile PROFILE clean.text_field=FIELD) or mend the file"
        )
    if counts["words"]:
        join([item.target], "", target)
    names = ("documents", "words", "empty", "unreadable", "licensed", "stripped")
    return {"bytes": item.bytes_, **{name: counts[name] for name in names}}


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
        **({"equal": len(counts["equal"])} if "equal" in counts else {}),
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
    if "equal" in sums:
        name, other = next(iter(counts["equal"].items()))
        print(
            f"clean: {sums['equal']:,} books have the text of another and are left out, the first"
            f" {name}, which is {other}; counts.json names all",
            file=sys.stderr,
        )
    if "unreadable" in sums:
        print(
            f"clean: {sums['unreadable']:,} of {sums['documents']:,} documents could not be read"
            " and are left out",
            file=sys.stderr,
        )
