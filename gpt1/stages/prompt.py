"""`prompt SET`: a zero-shot set's official files as prompts (paper, section 5); clusters.npz says
which examples belong together.
"""

from gpt1.base.files import stage_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.encoding import encode_texts
from gpt1.params.schema import read_params, refuse_unknown
from gpt1.tasks.arrays import write_splits
from gpt1.tasks.prompts import described, prompt_split, read_splits, set_texts
from gpt1.tasks.zero_shot import SETS


def main(name: str) -> None:
    """Make prompts of the official files, one npz a split."""
    params = read_params()
    refuse_unknown(name, params.zero_shot, "zero_shot", SETS)
    set_, context, official = SETS[name], params.model.context, stage_folder("acquire/tasks", name)
    scored, splits = read_splits(set_, params, official)
    vocabulary = Vocabulary.load(stage_folder("bpe"))
    texts = set_texts(set_.rule, splits.values())
    ids = encode_texts(f"prompt-{name}", texts, stage_folder("bpe"))
    prompts = {
        split: prompt_split(set_, split, rows, ids, context, vocabulary.size)
        for split, rows in splits.items()
    }
    about = described(set_, scored, prompts[scored].about, vocabulary, ids, context)
    write_splits(stage_folder("prompt", name), "set.json", about, prompts, vocabulary)
