"""`encode TASK`: official files as token ids, shaped as in Figure 1 of the paper; clusters.npz says
which rows belong together.
"""

import sys

import numpy as np

from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.encoding import encode_texts
from gpt1.params.schema import read_params, refuse_unknown
from gpt1.sources.definitions import is_made_up
from gpt1.tasks.arrays import about_split, described, example_arrays, texts_of
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.readers import read_task
from gpt1.tasks.rows import CLUSTERS, cluster_ids
from gpt1.tasks.shapes import Symbols
from gpt1.town.qualities import quality_words


def main(name: str) -> None:
    """Encode the official files, one npz a split."""
    params = read_params()
    refuse_unknown(name, params.tasks, "tasks", TASKS)
    task, row = TASKS[name], params.tasks[name]
    official = stage_folder("acquire", "tasks", name)
    splits, release = read_task(task, official, row, params.encode.max_unreadable_fraction)
    vocabulary = Vocabulary.load(stage_folder("bpe"))
    symbols = Symbols(vocabulary.start, vocabulary.delimiter, vocabulary.extract)
    texts = texts_of(example for rows in splits.values() for example in rows.examples)
    ids = encode_texts(f"encode-{name}", texts, stage_folder("bpe"))
    about, clusters = {}, {}
    made_up = is_made_up(params.sources[name].folder)
    with writing_folder(stage_folder("encode", row.group, name)) as folder:
        for split, rows in splits.items():
            arrays, truncated = example_arrays(
                task, rows.examples, ids, symbols, params.model.context
            )
            np.savez(folder / f"{split}.npz", **arrays)
            about[split] = about_split(task, rows, arrays, truncated)
            clusters[split] = cluster_ids(task, rows.examples, quality_words if made_up else None)
        np.savez(folder / CLUSTERS, allow_pickle=False, **clusters)
        write_json(folder / "task.json", described(task, vocabulary, about, release))
    counts = ", ".join(f"{split} {counts['examples']}" for split, counts in about.items())
    print(f"{name}: {counts}", file=sys.stderr)
