"""`baselines`: TF-IDF and a constant answer on every task, with logits.npz as a fine-tuning's."""

import sys

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from gpt1.base.files import read_json, stage_folder, write_json, writing_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.params.schema import read_params
from gpt1.tasks.baselines import candidates, chosen, read_rows, scores


def main() -> None:
    """Fit, tune and score every system on every task. One thread, for more would change the
    rounding.
    """
    params = read_params()
    vocabulary = Vocabulary.load(stage_folder("bpe"))
    section = params.baselines
    with threadpool_limits(1), writing_folder(stage_folder("baselines")) as folder:
        for name in tqdm(params.tasks, desc="baselines", unit="task", disable=None):
            encoded, tuned = stage_folder("encode", params.tasks[name].group, name), {}
            about = read_json(encoded / "task.json")
            splits = {
                split: read_rows(encoded, split, about, vocabulary)
                for split, counts in about["splits"].items()
                if counts["labelled"]
            }
            for system in section.systems:
                tried = list(candidates(system, about, splits, section))
                taken, logits = chosen(about, tried, splits)
                out = folder / name / system / "seed-0"
                out.mkdir(parents=True)
                np.savez(out / "logits.npz", allow_pickle=False, **logits)
                tuned[system] = {"settings": taken.settings, **scores(about, logits, splits)}
            write_json(folder / name / "scores.json", {"metric": about["metric"], "systems": tuned})
    print(f"{len(section.systems)} systems on {len(params.tasks)} tasks", file=sys.stderr)
