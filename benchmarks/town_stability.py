"""Whether the scores on the made-up town are a property of the method: the full model from several
pre-trainings, with several fine-tuning seeds of each, by the stages themselves, beside no
pre-training (the same seeds) and TF-IDF.

    python benchmarks/town_stability.py FOLDER --town 301 [--pretrainings 3] [--seeds 3]

FOLDER takes parameters and data; what lies there from an earlier call is not made again. Scores are
those of the tables, Table 5's mean is over its eight tasks; seconds are the processor's.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
from measuring import heading, table

from gpt1.base.files import stage_folder
from gpt1.params.profile import compose
from gpt1.params.schema import PARAMS, read_params
from gpt1.params.yaml import write_yaml
from gpt1.results.predictions import predictions_of
from gpt1.results.scores import scores_of
from gpt1.results.tables import FULL, averaged
from gpt1.stages import acquire, baselines, bpe, clean, encode, finetune, pretrain, shard, town

BESIDE = "no_pretraining"
OTHERS = ("embeddings_only", "no_aux_lm", "lstm", "lstm_equal")
LEARNED = 15  # points above what knows no books


def params_of(town: int, pretraining: int, seeds: int) -> dict[str, Any]:
    """Profile demo on this town, from this pre-training alone, without the other systems."""
    changes = [
        f"town.seed={town}",
        f"pretrain.seeds=[{pretraining}]",
        f"finetune.seeds={[*range(seeds)]}",
        *(f"ablations.{ablation}.tasks={{}}" for ablation in OTHERS),
    ]
    return compose("demo", changes)


def make_data() -> None:
    """The town's books and tasks, as the networks read them."""
    if stage_folder("baselines").is_dir():
        return
    town.main()
    acquire.main("books")
    for stage in (clean, bpe, shard):
        stage.main()
    for task in read_params().tasks:
        acquire.main(task)
        encode.main(task)
    baselines.main()


def scores() -> pd.DataFrame:
    """Every score of the tables that lies here."""
    params = read_params()
    names = ("table2", "table3", "table4", "table5")
    found = [scores_of(predictions_of(params, name), name) for name in names]
    return pd.concat(found).drop_duplicates(["column", "metric", "system", "seed"])


def lines_of(run: pd.DataFrame) -> list[list[str]]:
    """A line a column of the tables, and one of Table 5's mean."""
    mean = [(column.title, column.metric) for column in averaged()]
    eight = run[pd.MultiIndex.from_frame(run[["column", "metric"]]).isin(mean)]
    keys = ["system", "pretraining", "seed"]
    eight = eight.groupby(keys, dropna=False, as_index=False)["score"].mean()
    run = pd.concat([run, eight.assign(column="Table 5", metric="mean")])
    lines = []
    for (column, metric), rows in run.groupby(["column", "metric"], sort=False):
        of = {system: group["score"].astype(float) for system, group in rows.groupby("system")}
        if FULL not in of:
            continue
        full = of[FULL]
        beside = [
            float(of[name].max()) if name in of else float("nan") for name in (BESIDE, "tfidf")
        ]
        numbers = [full.mean(), full.std(), full.min(), full.max(), *beside]
        learned = all(not full.min() < other + LEARNED for other in beside)
        lines.append(
            [f"{column} {metric}", *(f"{n:.1f}" for n in numbers), "" if learned else "no"]
        )
    return lines


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("folder", type=Path)
    options.add_argument("--town", type=int, required=True, help="seed of the town")
    options.add_argument("--pretrainings", type=int, default=3)
    options.add_argument("--seeds", type=int, default=3, help="fine-tunings of each")
    given = options.parse_args()
    numbers = range(given.pretrainings)
    values = [params_of(given.town, number, given.seeds) for number in numbers]
    given.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(given.folder)
    print(heading(), flush=True)
    found, header = [], ["column", "mean", "deviation", "least", "greatest"]
    for pretraining in numbers:
        started = time.process_time()
        write_yaml(PARAMS, values[pretraining], "benchmarks/town_stability.py")
        make_data()
        if not stage_folder("pretrain", "transformer", f"seed-{pretraining}").is_dir():
            pretrain.main("transformer", str(pretraining))
        params = read_params()
        for task in params.tasks:
            finetune.main(task)
            if not pretraining and task in params.ablations[BESIDE].tasks:
                finetune.ablation(BESIDE, task)
        found.append(scores().assign(pretraining=pretraining))
        print(f"pre-training {pretraining}: {time.process_time() - started:.0f} s", flush=True)
        every = pd.concat(found)
        every = every[(every["system"] == FULL) | (every["pretraining"] == 0)]
        print(table([*header, f"{BESIDE}, most", "TF-IDF", "learned"], lines_of(every)), flush=True)


if __name__ == "__main__":
    main()
