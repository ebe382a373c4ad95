"""`shard`: cleaned books as token files, training and held-out books apart (paper, section 4.1)."""

from gpt1.base.files import stage_folder, writing_folder
from gpt1.corpus.books import HoldOut, cleaned_books
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.encoding import encode_books
from gpt1.corpus.parallel import kept_tasks
from gpt1.corpus.shards import write_index
from gpt1.params.schema import read_params


def main() -> None:
    """Encode every book and document of data/clean with data/bpe, in order of their names."""
    params = read_params()
    clean, bpe = stage_folder("clean"), stage_folder("bpe")
    vocabulary = Vocabulary.load(bpe)
    books = cleaned_books(clean)
    hold_out = HoldOut(params.shard.heldout_seed, params.shard.heldout_fraction)
    with (
        kept_tasks("shard", [clean, bpe]) as task_folder,
        writing_folder(stage_folder("shard")) as folder,
    ):
        splits = encode_books(books, hold_out, bpe, task_folder, folder)
        write_index(folder, splits, vocabulary.size, vocabulary.fingerprint)
