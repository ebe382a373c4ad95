"""`baselines`: systems that the networks must beat, on every task. Writes each system's logits as a
fine-tuning does, `data/baselines/<task>/<system>/seed-0/logits.npz`, and scores.json per task.
"""

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from gpt1.base.files import LOGS, read_json, stage_folder, write_json, writing_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.params.schema import Params, read_params
from gpt1.tasks.baselines import (
    DecodedRows,
    SettingsGrid,
    candidates,
    chosen,
    read_rows,
    scores,
)

Splits = Mapping[str, DecodedRows]


def main() -> None:
    """Fit, tune and score every system on every task of params.yaml. One thread: the
    number of threads would change the rounding. Seconds go to the log.
    """
    params = read_params()
    vocabulary = Vocabulary.load(stage_folder("bpe"))
    section = params.baselines
    grid = SettingsGrid(section.penalties, section.words)
    seconds: dict[str, dict[str, float]] = {}
    with threadpool_limits(1), writing_folder(stage_folder("baselines")) as folder:
        for name in tqdm(params.tasks, desc="baselines", unit="task", disable=None):
            about, splits = read_labelled(params, name, vocabulary)
            (folder / name).mkdir()
            tuned, seconds[name] = {}, {}
            for system in section.systems:
                started = time.perf_counter()
                taken, logits = chosen(about, list(candidates(system, about, splits, grid)), splits)
                out = folder / name / system / "seed-0"
                out.mkdir(parents=True)
                np.savez(out / "logits.npz", allow_pickle=False, **logits)
                tuned[system] = {"settings": taken.settings, **scores(about, logits, splits)}
                seconds[name][system] = round(time.perf_counter() - started, 2)
            write_json(folder / name / "scores.json", {"metric": about["metric"], "systems": tuned})
    write_json(LOGS / "baselines" / "seconds.json", seconds)
    total = sum(sum(by_system.values()) for by_system in seconds.values())
    print(f"{len(section.systems)} systems on {len(seconds)} tasks: {total:.0f} s", file=sys.stderr)


def read_labelled(
    params: Params, name: str, vocabulary: Vocabulary
) -> tuple[dict[str, Any], Splits]:
    """task.json of an encoded task, and its splits that have labels."""
    encoded = stage_folder("encode", params.tasks[name].group, name)
    about = read_json(encoded / "task.json")
    labelled = [split for split, counts in about["splits"].items() if counts["labelled"]]
    return about, {split: read_rows(encoded, split, about, vocabulary) for split in labelled}
