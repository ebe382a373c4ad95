"""`encode TASK`: official files as token ids, shaped as in Figure 1 of the paper; clusters.npz says
which rows belong together.
"""

from gpt1.base.files import stage_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.encoding import encode_texts
from gpt1.params.schema import read_params, refuse_unknown
from gpt1.sources.definitions import is_made_up
from gpt1.tasks.arrays import described, encode_split, texts_of, write_splits
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.readers import read_task
from gpt1.town.qualities import quality_words


def main(name: str) -> None:
    """Encode the official files, one npz a split."""
    params = read_params()
    refuse_unknown(name, params.tasks, "tasks", TASKS)
    task, row = TASKS[name], params.tasks[name]
    official = stage_folder("acquire", "tasks", name)
    splits, release = read_task(task, official, row, params.encode.max_unreadable_fraction)
    vocabulary = Vocabulary.load(stage_folder("bpe"))
    texts = texts_of(example for rows in splits.values() for example in rows.examples)
    ids = encode_texts(f"encode-{name}", texts, stage_folder("bpe"))
    meaning_of = quality_words if is_made_up(params.sources[name].folder) else None
    encoded = {
        split: encode_split(task, rows, ids, vocabulary, params.model.context, meaning_of)
        for split, rows in splits.items()
    }
    folder = stage_folder("encode", row.group, name)
    write_splits(folder, "task.json", described(task, release), encoded, vocabulary)
