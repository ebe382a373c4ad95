"""Stage clean: raw books to words joined by blanks, a file a book, and the counts of every book (paper, section 4.1)."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpt1.config import read_params
from gpt1.errors import UserError
from gpt1.files import stage_folder, write_json, writing_folder
from gpt1.text.books import Book, Inspection, Piece, inspect, list_books, read_piece, refuse_binary
from gpt1.text.clean import LONGEST_CHUNK, NEWLINE, Cleaner, UnbrokenTextError
from gpt1.text.parallel import processes_for, workers


def inspect_book(_: dict[str, Any], book: Book) -> Inspection:
    """Inspect one book; it takes no tool."""
    return inspect(book)


def clean_piece(cleaner: Cleaner, task: tuple[Piece, Path]) -> tuple[Path, int]:
    """Write one piece of a book, cleaned, to the given path; that path and the number of its words. Raises UserError naming the book."""
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
        raise UserError(f"the book {piece.book.name} has more than {LONGEST_CHUNK:,} characters without a blank or line break, expected "
                        "English text; take it out of the corpus or mend it") from None
    return target, words


def assemble(inspections: list[Inspection], cleaned: Iterator[tuple[Path, int]], folder: Path) -> dict[str, Any]:
    """Join the cleaned pieces of each book into folder/<name>; the counts. A book without a word gets no file and is counted as empty."""
    books, empty = {}, []
    for inspection in inspections:
        total, target = 0, folder / inspection.book.name
        for _ in inspection.pieces:
            part, words = next(cleaned)
            if words:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("ab") as whole, part.open("rb") as file:
                    whole.write(f" {NEWLINE} ".encode() if total else b"")  # pieces are cut at line breaks
                    shutil.copyfileobj(file, whole)
            total += words
            part.unlink()
        if total:
            books[inspection.book.name] = {"bytes": inspection.bytes_, "words": total, "encoding": inspection.encoding}
        else:
            empty.append(inspection.book.name)
    list(cleaned)  # nothing is left: this ends the progress bar
    return {"books": books, "empty": empty,
            "totals": {"books": len(books), "bytes": sum(book["bytes"] for book in books.values()),
                       "words": sum(book["words"] for book in books.values()), "empty": len(empty),
                       "encodings": dict(Counter(str(book["encoding"]) for book in books.values()))}}


def main() -> None:
    """Clean every book of data/acquire/corpus/books."""
    params = read_params()
    source = stage_folder("acquire", "corpus", "books")
    books = list_books(source)
    sizes = [book.path.stat().st_size if book.path.exists() else 0 for book in books]
    with workers(dict, 1) as reader:  # quick beside cleaning; and a book that is refused is so before more processes start
        inspections = list(reader.map("reading books", inspect_book, books, sizes))
    refuse_binary(inspections)
    with writing_folder(stage_folder("clean")) as folder, workers(Cleaner, processes_for(sum(sizes))) as pool:
        pieces = [piece for inspection in inspections for piece in inspection.pieces]
        (folder / "parts").mkdir()
        tasks = [(piece, folder / "parts" / str(number)) for number, piece in enumerate(pieces)]
        cleaned = pool.map("cleaning books", clean_piece, tasks, [piece.stop - piece.start for piece in pieces])
        counts = assemble(inspections, cleaned, folder / "books")
        (folder / "parts").rmdir()
        if not counts["books"]:
            raise UserError(f"expected words in the books of {source}, found none in any of {len(books)}; bring books with text in them")
        write_json(folder / "counts.json", {"corpus_name": params.clean.corpus_name, **counts})
