"""Results as `shard`, `pretrain`, `encode` and `finetune` write them, made up in the current folder
from labels and answers.
"""

import json
import os
from pathlib import Path

import numpy as np
from made_data import as_json_lines, paper, with_rows

from gpt1.base.files import write_json
from gpt1.base.locks import locked
from gpt1.params.schema import read_params
from gpt1.params.yaml import read_yaml
from gpt1.tasks.definitions import TASKS
from gpt1.tracking import live

ROOT = Path(__file__).parents[1]


def write_params(tasks, seeds, **sections):
    """params.yaml: the paper's, with these tasks and seeds, and keys of sections laid over."""
    values = read_yaml(ROOT / "conf" / "paper.yaml")
    values["profile"] = "made_up"
    values["finetune"]["seeds"] = seeds
    values["tasks"] = {name: row for name, row in values["tasks"].items() if name in tasks}
    values |= {"transfer": {}, "zero_shot": {}}
    ablated = sections.pop("ablation", {})
    for section, changed in sections.items():
        values[section] |= changed
    Path("params.yaml").write_text(json.dumps(with_rows(values, ablated)))


def enter(folder, monkeypatch):
    """Work in a folder with params.yaml of one task and two seeds, as if nothing had been set of
    MLflow.
    """
    monkeypatch.chdir(folder)
    for name in ("MLFLOW_TRACKING_URI", "GPT1_MLFLOW", "RANK"):
        monkeypatch.delenv(name, raising=False)
    write_params(["rte"], [0, 1])


def begin(fingerprint="f1"):
    """The tracker of a pre-training."""
    return live.Tracker("pretrain", "transformer/seed-0", read_params(), fingerprint)


def client():
    """MLflow's client of the database in this folder."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{Path('mlflow.db').absolute()}")


def empty_mlflow(temporary):
    """An empty database of MLflow's, which takes it seconds to make: one for all test processes, to
    be copied.
    """
    worker = "PYTEST_XDIST_WORKER" in os.environ
    path = (
        temporary.getbasetemp().parent if worker else temporary.getbasetemp()
    ) / "empty-mlflow.db"
    with locked(Path(f"{path}.lock")):
        if not path.exists():
            from mlflow import MlflowClient

            MlflowClient(tracking_uri=f"sqlite:///{path}.partial").search_experiments()
            path.with_name(f"{path.name}.partial").rename(path)
    return path


def group(task):
    return str(paper().tasks[task].group)


def write_pretraining(points=3):
    write_json(
        Path("data/shard/index.json"),
        {
            "splits": {
                "train": {
                    "tokens": 15_100_000,
                    "words": 12_345_678,
                    "books": [{"name": f"b{i}"} for i in range(86)],
                },
                "heldout": {"tokens": 1000, "words": 900, "books": []},
            }
        },
    )
    folder = Path("data/pretrain/transformer/seed-0")
    write_json(
        folder / "summary.json",
        {
            "updates": 2000,
            "tokens": 8_192_000,
            "heldout_perplexity": 75.06,
            "heldout_word_perplexity": 180.12,
            "parameters": {"total": 4_612_352},
        },
    )
    lines = [
        {"update": 10 * i, "tokens": 40960 * i, "loss": 9.0 - i, "learning_rate": 1e-4}
        for i in range(1, points + 1)
    ]
    (folder / "curve.jsonl").write_text(as_json_lines(lines))


def logits(answers, outputs):
    """Logits whose largest entry is the answer."""
    table = np.full((len(answers), outputs), -20.0, np.float32)
    table[np.arange(len(answers)), answers] = 20.0
    return table


def write_task(
    task,
    labels,
    answers,
    subset=None,
):
    """Labels by split (test among them only where public) and, by seed, answers by
    "<split>/<weights>".
    """
    encoded, finetuned = (Path("data", verb, group(task), task) for verb in ("encode", "finetune"))
    splits = {
        split: {"examples": len(given), "labelled": True, "sha256": ""}
        for split, given in labels.items()
    }
    splits["train"] = {"examples": 900, "labelled": True, "sha256": ""}
    if "test" not in labels:
        splits["test"] = {"examples": 2, "labelled": False, "sha256": ""}
    target = "score" if task == "stsb" else "class"
    write_json(
        encoded / "task.json",
        {
            "task": task,
            "outputs": TASKS[task].outputs,
            "target": target,
            "splits": splits,
            **({"subsets": ["middle", "high"]} if subset else {}),
        },
    )
    for split, given in labels.items():
        more = {"subset": np.array(subset, np.int8)} if subset else {}
        np.savez(
            encoded / f"{split}.npz",
            labels=np.array(given, np.float32 if target == "score" else np.int64),
            **more,
        )
    clusters = {split: np.arange(len(given)) for split, given in labels.items()}
    np.savez(encoded / "clusters.npz", allow_pickle=False, **clusters)
    for seed, given_answers in answers.items():
        folder = finetuned / f"seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            folder / "logits.npz",
            **{name: logits(row, TASKS[task].outputs) for name, row in given_answers.items()},
        )
        lines = [
            {"update": 10, "tokens": 700, "loss": 1.5, "task_loss": 1.0, "lm_loss": 1.0},
            {"update": 20, "tokens": 1500, "epoch": 1, "dev_score": 0.5},
        ]
        (folder / "curve.jsonl").write_text(as_json_lines(lines))
        write_json(
            folder / "summary.json", {"best_update": 20, "best_dev_score": 0.5, "updates": 20}
        )


def write_baseline(task, system, answers):
    """Answers of a baseline to a task by "<split>/<weights>", as the stage writes them."""
    folder = Path("data/baselines", task, system, "seed-0")
    folder.mkdir(parents=True)
    arrays = {name: logits(row, TASKS[task].outputs) for name, row in answers.items()}
    np.savez(folder / "logits.npz", allow_pickle=False, **arrays)


def simple(task, right, of, seeds=(0,)):
    """A two-class task whose dev labels alternate, with the first `right` rows answered rightly at
    the last update, two fewer for each further seed.
    """
    given = [i % 2 for i in range(of)]
    results = {}
    for seed in seeds:
        answers = [label ^ (i >= right - 2 * seed) for i, label in enumerate(given)]
        results[seed] = {"dev/last": answers, "dev/best": answers}
    write_task(task, {"dev": given}, results)


def ablation_rows(ablations, tasks):
    """ABLATION-TASK of every ablation on every task."""
    return dict.fromkeys(f"{ablation}-{task}" for ablation in ablations for task in tasks)


def write_lstms():
    for network, total in (("lstm", 1_234_567), ("lstm_equal", 4_600_000)):
        write_json(
            Path("data/pretrain", network, "seed-0", "summary.json"),
            {
                "updates": 2000,
                "tokens": 8_192_000,
                "heldout_perplexity": 91.04,
                "heldout_word_perplexity": 222.2,
                "parameters": {"total": total},
            },
        )


def drawn_logits(labels, outputs, skill, seed):
    """Normal logits [n, outputs], those of the labels higher by `skill`; a label between two
    classes counts for both.
    """
    table = np.random.default_rng(seed).normal(size=(len(labels), outputs))
    low = np.floor(labels).astype(int)
    table[np.arange(len(labels)), low] += skill * (1 - (labels - low))
    table[np.arange(len(labels)), np.minimum(low + 1, outputs - 1)] += skill * (labels - low)
    return table.astype(np.float32)


def write_plot(
    tasks,
    skills,
    seeds,
    rows,
):
    """Labels of tasks, and for each system (full, or an ablation of params.yaml) logits drawn with
    its skill.
    """
    for task in tasks:
        generator = np.random.default_rng(len(task) + ord(task[0]))
        splits = ("dev", "dev_mismatched") if task == "mnli" else ("dev",)
        labels = {
            split: np.round(generator.uniform(0, 5, rows), 1).astype(np.float32)
            if task == "stsb"
            else generator.integers(TASKS[task].outputs, size=rows)
            for split in splits
        }
        given_labels = {split: given.tolist() for split, given in labels.items()}
        write_task(task, given_labels, {})
        for place, (system, skill) in enumerate(skills.items()):
            folder = (
                Path("data/finetune", group(task), task)
                if system == "full"
                else Path("data/ablation", f"{system}-{task}")
            )
            for seed in seeds:
                made = {
                    f"{split}/{weights}": drawn_logits(
                        given,
                        TASKS[task].outputs,
                        skill,
                        97 * place + 2 * seed + len(split) + number,
                    )
                    for split, given in labels.items()
                    for number, weights in enumerate(("last", "best"))
                }
                (folder / f"seed-{seed}").mkdir(parents=True, exist_ok=True)
                np.savez(folder / f"seed-{seed}" / "logits.npz", **made)
