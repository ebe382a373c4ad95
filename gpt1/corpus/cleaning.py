"""A corpus cleaned: books, files of documents, and counts of both."""

import re
import shutil
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.corpus.books import BOOKS, DOCUMENT_END, DOCUMENTS
from gpt1.corpus.decoding import NotTextError, body, read_book
from gpt1.corpus.files import CorpusFile, bytes_of, document_texts, refuse_unreadable
from gpt1.corpus.parallel import mapped
from gpt1.corpus.words import LONGEST_CHUNK, NEWLINE, Cleaner, UnbrokenTextError

SUMMED = ("documents", "unreadable", "licensed", "stripped")  # told of only where there are any


def clean_files(
    files: Sequence[CorpusFile], field: str, task_folder: Path, folder: Path
) -> dict[str, Any]:
    """Write cleaned files into folder/books and folder/documents; return their counts. Raises
    UserError.
    """
    by_words = defaultdict[int, list[CorpusFile]](list)  # equal books have equally many
    counts: dict[str, Any] = {"books": {}, "empty": []}
    refused, sums = list[str](), Counter[str]()
    work = partial(clean_file, field=field, folder=task_folder)
    rows = mapped("cleaning", Cleaner, work, files, bytes_of(files), task_folder)
    for file, row in zip(files, rows, strict=True):
        if problem := row.get("problem"):
            refused.append(f"{file.name} ({problem})")
            continue
        sums.update({name: row.get(name, 0) for name in SUMMED})
        cleaned = cleaned_path(task_folder, file)
        if file.form != "text":
            counts.setdefault("documents", {})[file.name] = row
        elif not row["words"]:
            counts["empty"].append(file.name)
        else:
            others = by_words[row["words"]]
            same = (
                earlier.name
                for earlier in others
                if without_accents(cleaned_path(task_folder, earlier)) == without_accents(cleaned)
            )
            if first := next(same, ""):
                counts.setdefault("equal", {})[file.name] = first
                continue
            others.append(file)
            del row["licensed"]
            counts["books"][file.name] = row
        if row["words"]:
            target = cleaned_path(folder, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(cleaned, target)
    if refused:
        more = f" and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise UserError(
            "expected books as text (UTF-8, UTF-16 with a mark, or windows-1252), found"
            f" {len(refused)} that are not: {', '.join(refused[:5])}{more}; take them out of the"
            " corpus or save them as UTF-8"
        )
    return counts | {"totals": totals(counts, sums)}


def cleaned_path(folder: Path, file: CorpusFile) -> Path:
    """Return where a cleaned file lies in a folder."""
    return folder / (BOOKS if file.form == "text" else DOCUMENTS) / file.name


def without_accents(cleaned: Path) -> str:
    """Return a cleaned book as its ASCII edition has it."""
    text = unicodedata.normalize("NFKD", cleaned.read_text(encoding="utf-8"))
    return re.sub("[\u0300-\u036f]", "", text)


def clean_file(cleaner: Cleaner, file: CorpusFile, field: str, folder: Path) -> dict[str, Any]:
    """Write one file, cleaned; return its counts, or {"problem": why it is no text}. Raises
    UserError.
    """
    with writing(cleaned_path(folder, file), apart=True) as target:
        if file.form != "text":
            return clean_documents(cleaner, file, field, target)
        try:
            book = read_book(file)
            cleaned = " ".join(cleaner.clean(book.text))
        except NotTextError as error:
            return {"problem": str(error)}
        except UnbrokenTextError:
            raise UserError(
                f"the book {file.name} has more than {LONGEST_CHUNK:,} characters without a blank"
                " or line break, expected English text; take it out of the corpus or mend it"
            ) from None
        target.write(cleaned)
    row = {"bytes": bytes_of([file]), "words": count_words(cleaned), "encoding": book.encoding}
    stripped = {"stripped": book.stripped} if book.stripped else {}
    return row | stripped | {"licensed": int(book.licensed)}


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
            cleaned = " ".join(cleaner.clean(body_text))
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


def totals(counts: dict[str, Any], sums: Counter[str]) -> dict[str, Any]:
    """Return sums over all files."""
    books, files = counts["books"], counts.get("documents", {})
    rows = [*books.values(), *files.values()]
    return {
        "books": len(books),
        "bytes": sum(row["bytes"] for row in rows),
        "words": sum(row["words"] for row in rows),
        "empty": len(counts["empty"]) + sum(row["empty"] for row in files.values()),
        "encodings": dict(Counter(book["encoding"] for book in books.values())),
        **(sums | Counter(equal=len(counts.get("equal", ())))),
    }


def tell_left_out(counts: dict[str, Any]) -> None:
    """Say on stderr how many were left out, or lost the licence."""
    sums, books = counts["totals"], counts["books"].values()
    lost = sum(2 * row.get("stripped", 0) >= row["bytes"] for row in books)
    numbers = {
        "without words": sums["empty"],
        "equal to an earlier one": sums.get("equal", 0),
        "unreadable": sums.get("unreadable", 0),
        "freed of Project Gutenberg's licence": sums.get("licensed", 0),
        "half or more of which was licence": lost,
    }
    if told := ", ".join(f"{number:,} {kind}" for kind, number in numbers.items() if number):
        print(f"clean: books or documents: {told} (data/clean/counts.json)", file=sys.stderr)
