"""Stage word_vectors: vectors of the words of the books that the networks are pre-trained on, for
each window: vectors.npz and words.txt.
"""

import numpy as np
from threadpoolctl import threadpool_limits

from gpt1.base.files import stage_folder, writing, writing_folder
from gpt1.corpus.books import HoldOut, cleaned_books
from gpt1.params.schema import read_params
from gpt1.tasks.baselines.vectors import learn_vectors


def main() -> None:
    """Count, decompose and write. One thread: the number of threads would change the rounding."""
    params = read_params()
    wanted = params.baselines
    with threadpool_limits(1):
        words, vectors = learn_vectors(
            cleaned_books(stage_folder("clean")),
            HoldOut(params.shard.heldout_seed, params.shard.heldout_fraction),
            wanted.words,
            wanted.windows,
            max(wanted.dimensions),
        )
    with writing_folder(stage_folder("word_vectors")) as folder:
        with writing(folder / "words.txt") as file:
            file.write("".join(f"{word}\n" for word in words))
        arrays = {str(window): vectors_wd for window, vectors_wd in vectors.items()}
        np.savez(folder / "vectors.npz", allow_pickle=False, **arrays)
