"""`clean`: a raw corpus as words joined by blanks (paper, section 4.1)."""

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.corpus.cleaning import clean_files, tell_left_out
from gpt1.corpus.files import list_corpus
from gpt1.corpus.parallel import kept_tasks
from gpt1.params.schema import read_params


def main() -> None:
    """Clean every book and document of data/acquire/corpus/books."""
    params, source = read_params(), stage_folder("acquire", "corpus", "books")
    clean = params.clean
    files = [] if params.sources["books"].folder == "none" else list_corpus(source)
    with (
        kept_tasks("clean", [source]) as task_folder,
        writing_folder(stage_folder("clean")) as folder,
    ):
        counts = clean_files(files, clean.text_field, task_folder, folder)
        if files and not counts["totals"]["words"]:
            raise UserError(
                f"expected words in the books of {source}, found none in any of {len(files)};"
                " bring books with text in them"
            )
        write_json(folder / "counts.json", counts | {"corpus_name": clean.corpus_name})
    tell_left_out(counts)
