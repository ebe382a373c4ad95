"""Results as `transfer`, `zero_shot` and `pretrain` write them, made up in the current folder, of
known scores.
"""

import json
import math
from pathlib import Path
from typing import Any

import made_results
import numpy as np
from made_stages import with_rows

from gpt1.params.yaml import read_yaml

ZERO_SHOT_CLASSES = {"cola": 2, "sst2": 2, "race": 4, "dprd": 2}


def write_params(layers: int, seeds: list[int], made_up: bool, **sections: dict[str, Any]) -> None:
    """params.yaml: the paper's with so many layers, MNLI and RACE and CoLA and SST-2, and keys of
    sections laid over.
    """
    values = read_yaml(made_results.ROOT / "conf" / "paper.yaml")
    values["profile"] = "made_up"
    values["model"]["layers"] = layers
    values["finetune"]["seeds"] = seeds
    values["tasks"] = {
        name: row
        for name, row in values["tasks"].items()
        if name in ("mnli", "race", "cola", "sst2")
    }
    if made_up:
        values["world"] = {"town": {"seed": 0, "books": 3, "pages": 3}}
        values["sources"] = {
            name: row | {"folder": "world/town"} for name, row in values["sources"].items()
        }
    for section, changed in sections.items():
        values[section] |= changed
    Path("params.yaml").write_text(json.dumps(with_rows(values)))


def answers(labels: np.ndarray, right: int, classes: int, seed: int) -> np.ndarray:
    """Answers [n] of which exactly `right` are right, drawn by the seed."""
    wrong = np.random.default_rng(seed).permutation(len(labels))[right:]
    given = labels.copy()
    given[wrong] = (given[wrong] + 1) % classes
    return given


def write_transfer(
    task: str, split: str, rows: int, right: dict[int, dict[int, int]], layers: int
) -> None:
    """Labels of a task, and for each number of layers and seed answers with so many right; all
    `layers` are its fine-tuning.
    """
    classes = made_results.OUTPUTS[task]
    labels = np.arange(rows) % classes
    weights = "best" if split == "test" else "last"
    names = {f"{split}/{weights}"} | {f"{split}/best"}
    given = {
        count: {seed: answers(labels, number, classes, seed) for seed, number in by_seed.items()}
        for count, by_seed in right.items()
    }
    made_results.write_task(
        task,
        {split: labels.tolist(), **({"dev": labels.tolist()} if split == "test" else {})},
        {seed: {name: row.tolist() for name in names} for seed, row in given[layers].items()},
    )
    for count, by_seed in given.items():
        for seed, row in by_seed.items():
            if count != layers:
                path = Path("data/transfer", task, f"layers-{count}", f"seed-{seed}", "logits.npz")
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savez(
                    path, **{name: made_results.logits(row.tolist(), classes) for name in names}
                )


def write_zero_shot(
    network: str, rows: int, right: dict[str, dict[int, int]], seed: int = 0
) -> None:
    """scores.json and answers.npz of a pre-training: for each set and update answers with so many
    of the rows right.
    """
    folder = Path("data/zero_shot", network, f"seed-{seed}")
    arrays, scores = {}, {}
    for name, by_update in right.items():
        labels = np.arange(rows) % ZERO_SHOT_CLASSES[name]
        arrays[f"{name}/labels"] = labels
        for update, number in by_update.items():
            given = answers(labels, number, ZERO_SHOT_CLASSES[name], update + seed)
            arrays[f"{name}/{update}"] = given.astype(np.int8)
            scores[name, update] = matthews(labels, given) if name == "cola" else number / rows
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "answers.npz", **arrays)
    updates = sorted({update for by_update in right.values() for update in by_update})
    made_results.write_json(
        folder / "scores.json",
        {
            "network": network,
            "sets": {
                name: {
                    "title": name,
                    "metric": "matthews" if name == "cola" else "accuracy",
                    "examples": rows,
                    "random": 0.5,
                    "notes": ["positive is 2 pieces here"] if name == "sst2" else [],
                }
                for name in right
            },
            "snapshots": [
                {
                    "update": update,
                    "tokens": 1024 * update,
                    "scores": {name: scores[name, update] for name in right},
                }
                for update in updates
            ],
        },
    )


def matthews(labels: np.ndarray, given: np.ndarray) -> float:
    """Matthews correlation of two classes by its definition; 0 where undefined."""
    cells = [
        float(np.sum((labels == one) & (given == other)))
        for one, other in ((1, 1), (0, 0), (0, 1), (1, 0))
    ]
    both, neither, false_positive, false_negative = cells
    below = math.prod(
        (
            both + false_positive,
            both + false_negative,
            neither + false_positive,
            neither + false_negative,
        )
    )
    return (both * neither - false_positive * false_negative) / math.sqrt(below) if below else 0.0


def write_pretraining(
    network: str, points: list[dict[str, float]], tokens_an_update: int, parameters: dict[str, int]
) -> None:
    """curve.jsonl with these points and a summary that agrees with it."""
    folder = Path("data/pretrain", network, "seed-0")
    folder.mkdir(parents=True, exist_ok=True)
    lines = [{"tokens": point["update"] * tokens_an_update} | point for point in points]
    (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    updates, loss = (
        max(point["update"] for point in points),
        [point["heldout_loss"] for point in points if "heldout_loss" in point][-1],
    )
    made_results.write_json(
        folder / "summary.json",
        {
            "network": network,
            "updates": updates,
            "tokens": updates * tokens_an_update,
            "heldout_loss": loss,
            "heldout_perplexity": math.exp(loss),
            "heldout_word_perplexity": math.exp(1.3 * loss),
            "parameters": parameters | {"total": sum(parameters.values())},
        },
    )
