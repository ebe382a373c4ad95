"""Stage dev_scores: the dev score of each fine-tuning, for `dvc exp show` and `dvc plots diff`.
Recipes are chosen by it, never by a test split.
"""

import csv
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder, write_json, writing, writing_folder
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import Params, read_params

SWEPT = {  # of a recipe, what `dvc plots diff -x` may draw scores over
    "batch_size",
    "classifier_dropout",
    "dropout",
    "epochs",
    "lambda_lm",
    "learning_rate",
    "warmup_fraction",
    "weight_decay",
}


def main() -> None:
    """Write both files and print the means over seeds. Raises UserError where nothing is
    fine-tuned by the recipes of params.yaml.
    """
    params = read_params()
    rows = [row for task in params.tasks for row in scored(params, task)]
    if not rows:
        raise UserError(
            "no task is fine-tuned by the recipe of params.yaml: gpt1 run finetune fine-tunes on"
            " all of them"
        )
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["task"], []).append(row["score"])
    means = {task: round(fmean(of_seeds), 2) for task, of_seeds in scores.items()}
    with writing_folder(stage_folder("report", "dev_scores")) as folder:
        write_json(folder / "scores.json", means)
        with writing(folder / "scores.csv") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(", ".join(f"{task} {mean:g}" for task, mean in means.items()))


def scored(params: Params, task: str) -> Iterator[dict[str, Any]]:
    """Yield a row per finished seed of a task: task, seed, score x 100, and the numbers of its
    recipe. A seed has no row where it is missing or has another recipe than params.yaml's: `dvc exp
    run --single-item` may train some tasks alone.
    """
    chosen = finetune_recipe(params, task)
    recipe = chosen.model_dump(mode="json", exclude={"seeds"})
    numbers = {name: value for name, value in recipe.items() if name in SWEPT}
    for seed in chosen.seeds:
        folder = stage_folder("finetune", params.tasks[task].group, task, f"seed-{seed}")
        trained_by = folder / "recipe.json"
        if trained_by.exists() and read_json(trained_by) == recipe:
            score = round(100 * float(read_json(folder / "summary.json")["best_dev_score"]), 2)
            yield {"task": task, "seed": seed, "score": score} | numbers
