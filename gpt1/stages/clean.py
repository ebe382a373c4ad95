"""Stage clean: a raw corpus to words joined by blanks, a file a book or a file of documents, and
their counts (paper, section 4.1).
"""

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.corpus.books import DOCUMENTS
from gpt1.corpus.cleaning import (
    bytes_to_clean,
    clean_books,
    clean_rows,
    inspect_books,
    tell_left_out,
    totals,
)
from gpt1.corpus.files import list_corpus
from gpt1.corpus.inspection import recognised, refuse_wrong_name
from gpt1.corpus.parallel import processes_for, workers
from gpt1.corpus.words import Cleaner
from gpt1.params.schema import read_params


def main() -> None:
    """Clean every book and document of data/acquire/corpus/books."""
    clean = read_params().clean
    source = stage_folder("acquire", "corpus", "books")
    files = list_corpus(source)
    many = [file for file in files if file.form != "text"]
    inspections = inspect_books(files)
    refuse_wrong_name(clean.corpus_name, found := recognised(inspections, len(many)))
    with (
        writing_folder(stage_folder("clean")) as folder,
        workers(Cleaner, processes_for(bytes_to_clean(files))) as pool,
    ):
        counts = clean_books(pool, inspections, folder)
        if many:
            counts["documents"] = {
                file.name: clean_rows(pool, file, clean.text_field, folder / DOCUMENTS / file.name)
                for file in many
            }
        counts["totals"] = totals(counts, inspections)
        if not counts["totals"]["words"]:
            raise UserError(
                f"expected words in the books of {source}, found none in any of {len(files)}; bring"
                " books with text in them"
            )
        counts |= {"corpus_name": clean.corpus_name} | ({"recognised": found} if found else {})
        write_json(folder / "counts.json", counts)
    tell_left_out(counts)
