"""`bpe`: byte pairs learned from the training books, or the authors' own (paper, section 4.1)."""

from gpt1.base.files import stage_folder, writing_folder
from gpt1.corpus.books import cleaned_books
from gpt1.corpus.bpe import import_authors, read_vocabulary
from gpt1.corpus.learn import learn_from_books
from gpt1.corpus.parallel import kept_tasks
from gpt1.params.schema import read_params


def main() -> None:
    """Write data/bpe from data/clean/books, data/acquire/bpe/openai_bpe or
    data/acquire/weights/official, as bpe.source says.
    """
    params = read_params()
    clean = stage_folder("clean")
    with kept_tasks("bpe", [clean]) as task_folder, writing_folder(stage_folder("bpe")) as folder:
        if params.bpe.source == "learn":
            vocabulary, facts = learn_from_books(cleaned_books(clean), params, task_folder)
        elif params.bpe.source == "official":
            official = stage_folder("acquire", "weights", "official")
            vocabulary = read_vocabulary(official, "import them again: gpt1 import FOLDER")
            facts = {"source": "official"}
        else:
            authors = stage_folder("acquire", "bpe", "openai_bpe")
            vocabulary, facts = import_authors(authors, params.bpe.merges), {"source": "authors"}
        vocabulary.save(folder, facts)
