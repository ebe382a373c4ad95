"""A corpus cleaned: books, files of documents, and counts of both."""

import re
import shutil
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.corpus.books import BOOKS, DOCUMENT_END, DOCUMENTS
from gpt1.corpus.files import CorpusFile, bytes_of, document_texts, refuse_unreadable
from gpt1.corpus.inspection import Inspection, body, inspect, read_book, refuse_binary
from gpt1.corpus.parallel import mapped
from gpt1.corpus.words import LONGEST_CHUNK, NEWLINE, Cleaner, UnbrokenTextError

SUMMED = ("documents", "unreadable", "licensed", "stripped")  # told of only where there are any


@dataclass(frozen=True)
class Cleaning:
    """One file to clean, its target, and the field of texts. inspection: None for documents."""

    file: CorpusFile
    inspection: Inspection | None
    target: Path
    field: str


def inspect_files(files: Sequence[CorpusFile], task_folder: Path) -> list[Inspection | None]:
    """Look through every book; None for documents. Raises UserError where a book is no text."""
    results = mapped("reading books", dict, _inspect, files, bytes_of(files), task_folder)
    inspected = [Inspection(**result) if result else None for result in results]
    refuse_binary(result for result in inspected if result)
    return inspected


def _inspect(_: Any, file: CorpusFile) -> dict[str, Any] | None:
    return asdict(inspect(file)) if file.form == "text" else None


def clean_files(
    files: Sequence[CorpusFile],
    inspected: Sequence[Inspection | None],
    field: str,
    task_folder: Path,
    folder: Path,
) -> dict[str, Any]:
    """Write cleaned files into folder/books and folder/documents; return their counts. Raises
    UserError.
    """
    items = [
        Cleaning(file, result, task_folder / (BOOKS if result else DOCUMENTS) / file.name, field)
        for file, result in zip(files, inspected, strict=True)
    ]
    by_words = defaultdict[int, list[Cleaning]](list)  # equal books have equally many
    counts: dict[str, Any] = {"books": {}, "empty": []}
    cleaned = mapped("cleaning", Cleaner, clean_file, items, bytes_of(files), task_folder)
    for cleaning, row in zip(items, cleaned, strict=True):
        name = cleaning.file.name
        if not cleaning.inspection:
            counts.setdefault("documents", {})[name] = row
        elif not row["words"]:
            counts["empty"].append(name)
        else:
            others = by_words[row["words"]]
            same = (
                earlier.file.name
                for earlier in others
                if without_accents(earlier.target) == without_accents(cleaning.target)
            )
            if first := next(same, ""):
                counts.setdefault("equal", {})[name] = first
                continue
            others.append(cleaning)
            counts["books"][name] = row
        if row["words"]:
            target = folder / cleaning.target.relative_to(task_folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(cleaning.target, target)
    return counts


def without_accents(cleaned: Path) -> str:
    """Return a cleaned book as its ASCII edition has it."""
    text = unicodedata.normalize("NFKD", cleaned.read_text(encoding="utf-8"))
    return re.sub("[\u0300-\u036f]", "", text)


def clean_file(cleaner: Cleaner, cleaning: Cleaning) -> dict[str, Any]:
    """Write one file, cleaned; return its counts. Raises UserError."""
    source, inspection = cleaning.file, cleaning.inspection
    with writing(cleaning.target, apart=True) as file:
        if not inspection:
            return clean_documents(cleaner, source, cleaning.field, file)
        words = clean_book(cleaner, source.name, read_book(source, inspection), file)
    row = {"bytes": inspection.bytes_, "words": words, "encoding": inspection.encoding}
    return row | ({"stripped": inspection.stripped} if inspection.stripped else {})


def clean_book(cleaner: Cleaner, name: str, blocks: Iterator[str], file: TextIO) -> int:
    """Write a book, cleaned; return the number of words. Raises UserError naming it."""
    words, blank = 0, ""
    try:
        for text in cleaner.clean(blocks):
            file.write(blank + text)
            words += count_words(text)
            blank = " "
    except UnbrokenTextError:
        raise UserError(
            f"the book {name} has more than {LONGEST_CHUNK:,} characters without a blank"
            " or line break, expected English text; take it out of the corpus or mend it"
        ) from None
    return words


def count_words(cleaned: str) -> int:
    """Count the words of a cleaned text; a line break is none."""
    return cleaned.count(" ") + 1 - cleaned.count(NEWLINE) if cleaned else 0


def clean_documents(
    cleaner: Cleaner, source: CorpusFile, field: str, file: TextIO
) -> dict[str, int]:
    """Write documents, cleaned, DOCUMENT_END after each; return their counts. Raises UserError
    where too many cannot be read.
    """
    counts, first, blank = Counter[str](), None, ""
    for row, text in enumerate(document_texts(source, field)):
        try:
            body_text, licensed = body(text or "")
            cleaned = " ".join(cleaner.clean([body_text]))
        except UnbrokenTextError:
            text, cleaned, body_text, licensed = None, "", "", False
        if text is None and first is None:
            first = row
        counts["documents"] += 1
        counts["unreadable"] += text is None
        counts["empty"] += text is not None and not cleaned
        counts["licensed"] += licensed
        counts["stripped"] += len(text or "") - len(body_text)
        counts["words"] += count_words(cleaned)
        file.write(f"{blank}{cleaned} {DOCUMENT_END}" if cleaned else blank + DOCUMENT_END)
        blank = " "
    refuse_unreadable(source, field, counts, first)
    counts["bytes"] = bytes_of([source])
    return {name: counts[name] for name in (*SUMMED, "words", "empty", "bytes")}


def totals(counts: dict[str, Any], inspections: list[Inspection]) -> dict[str, Any]:
    """Return sums over all files."""
    books, files = counts["books"], counts.get("documents", {})
    every = Counter({"equal": len(counts.get("equal", ()))})
    for row in (*map(vars, inspections), *files.values()):
        every.update({name: row.get(name, 0) for name in SUMMED})
    rows = [*books.values(), *files.values()]
    return {
        "books": len(books),
        "bytes": sum(row["bytes"] for row in rows),
        "words": sum(row["words"] for row in rows),
        "empty": len(counts["empty"]) + sum(row["empty"] for row in files.values()),
        "encodings": dict(Counter(book["encoding"] for book in books.values())),
        **+every,
    }


def tell_left_out(counts: dict[str, Any]) -> None:
    """Say on stderr what was left out."""
    sums, lines = counts["totals"], []
    if "stripped" in sums:
        lines.append(
            f"Project Gutenberg's licence stripped from {sums.get('licensed', 0):,} books"
            f" ({sums['stripped']:,} bytes)"
        )
    books = counts["books"].items()
    lost = [name for name, row in books if 2 * row.get("stripped", 0) >= row["bytes"]]
    if sums["empty"] or lost:
        lines.append(
            f"{sums['empty']:,} books or documents have no words, {len(lost):,} lost half or more"
            f" with the licence: {', '.join([*counts['empty'], *lost][:5]) or 'documents alone'}"
        )
    if "equal" in sums:
        name, other = next(iter(counts["equal"].items()))
        lines.append(
            f"{sums['equal']:,} books have the text of another and are left out, the first"
            f" {name}, which is {other}; counts.json names all"
        )
    if "unreadable" in sums:
        lines.append(
            f"{sums['unreadable']:,} of {sums['documents']:,} documents could not be read and are"
            " left out"
        )
    for line in lines:
        print(f"clean: {line}", file=sys.stderr)
