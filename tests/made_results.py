"""Results as `shard`, `pretrain`, `encode` and `finetune` write them, made up in the current folder
from labels and answers.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_stages import with_rows

from gpt1.base.locks import locked
from gpt1.params.schema import read_params
from gpt1.params.yaml import read_yaml
from gpt1.tracking import live

ROOT = Path(__file__).parents[1]
OUTPUTS = {
    "snli": 3,
    "mnli": 3,
    "qnli": 2,
    "rte": 2,
    "scitail": 2,
    "race": 4,
    "story_cloze": 2,
    "mrpc": 2,
    "qqp": 2,
    "stsb": 6,
    "sst2": 2,
    "cola": 2,
}


def write_params(tasks: list[str], seeds: list[int], **sections: dict[str, Any]) -> None:
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


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder with params.yaml of one task and two seeds, as if nothing had been set of
    MLflow.
    """
    monkeypatch.chdir(folder)
    for name in ("MLFLOW_TRACKING_URI", "GPT1_MLFLOW", "RANK"):
        monkeypatch.delenv(name, raising=False)
    write_params(["rte"], [0, 1])


def begin(fingerprint: str = "f1") -> live.Tracker:
    """The tracker of a pre-training."""
    return live.Tracker("pretrain", "transformer/seed-0", read_params(), fingerprint)


def client() -> Any:
    """MLflow's client of the database in this folder."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{Path('mlflow.db').absolute()}")


def empty_mlflow(temporary: pytest.TempPathFactory) -> Path:
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


def group(task: str) -> str:
    return str(read_yaml(ROOT / "conf" / "paper.yaml")["tasks"][task]["group"])


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def write_pretraining(points: int = 3) -> None:
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
    (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def logits(answers: list[int], outputs: int) -> np.ndarray:
    """Logits whose largest entry is the answer."""
    table = np.full((len(answers), outputs), -20.0, np.float32)
    table[np.arange(len(answers)), answers] = 20.0
    return table


def write_task(
    task: str,
    labels: dict[str, list[float]],
    answers: dict[int, dict[str, list[int]]],
    subset: list[int] | None = None,
    rows_read: int = 1000,
    cluster: int = 1,
) -> None:
    """Labels by split (test among them only where public) and, by seed, answers by
    "<split>/<weights>"; so many rows on end are a cluster.
    """
    encoded, finetuned = (Path("data", verb, group(task), task) for verb in ("encode", "finetune"))
    splits: dict[str, Any] = {
        split: {"examples": len(given), "labelled": True, "sha256": ""}
        for split, given in labels.items()
    }
    splits["train"] = {"examples": 900, "rows_read": rows_read, "labelled": True, "sha256": ""}
    if "test" not in labels:
        splits["test"] = {"examples": 2, "labelled": False, "sha256": ""}
    target = "score" if task == "stsb" else "class"
    write_json(
        encoded / "task.json",
        {
            "task": task,
            "outputs": OUTPUTS[task],
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
    clusters = {split: np.arange(len(given)) // cluster for split, given in labels.items()}
    np.savez(encoded / "clusters.npz", allow_pickle=False, **clusters)
    for seed, given_answers in answers.items():
        folder = finetuned / f"seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            folder / "logits.npz",
            **{name: logits(row, OUTPUTS[task]) for name, row in given_answers.items()},
        )
        lines = [
            {"update": 10, "tokens": 700, "loss": 1.5, "task_loss": 1.0, "lm_loss": 1.0},
            {"update": 20, "tokens": 1500, "epoch": 1, "dev_score": 0.5},
        ]
        (folder / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        write_json(
            folder / "summary.json", {"best_update": 20, "best_dev_score": 0.5, "updates": 20}
        )


def write_baseline(task: str, system: str, answers: dict[str, list[int]]) -> None:
    """Answers of a baseline to a task by "<split>/<weights>", as the stage writes them."""
    folder = Path("data/baselines", task, system, "seed-0")
    folder.mkdir(parents=True)
    arrays = {name: logits(row, OUTPUTS[task]) for name, row in answers.items()}
    np.savez(folder / "logits.npz", allow_pickle=False, **arrays)


def simple(task: str, right: int, of: int, seeds: tuple[int, ...] = (0,)) -> None:
    """A two-class task whose dev labels alternate, with the first `right` rows answered rightly at
    the last update, two fewer for each further seed.
    """
    given = [i % 2 for i in range(of)]
    results = {}
    for seed in seeds:
        answers = [label ^ (i >= right - 2 * seed) for i, label in enumerate(given)]
        results[seed] = {"dev/last": answers, "dev/best": answers}
    write_task(task, {"dev": given}, results)


GLUE_TASKS = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")


def ablation_rows(ablations: tuple[str, ...], tasks: tuple[str, ...]) -> dict[str, None]:
    """ABLATION-TASK of every ablation on every task."""
    return dict.fromkeys(f"{ablation}-{task}" for ablation in ablations for task in tasks)


def write_lstms() -> None:
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


def drawn_logits(labels: np.ndarray, outputs: int, skill: float, seed: int) -> np.ndarray:
    """Normal logits [n, outputs], those of the labels higher by `skill`; a label between two
    classes counts for both.
    """
    table = np.random.default_rng(seed).normal(size=(len(labels), outputs))
    low = np.floor(labels).astype(int)
    table[np.arange(len(labels)), low] += skill * (1 - (labels - low))
    table[np.arange(len(labels)), np.minimum(low + 1, outputs - 1)] += skill * (labels - low)
    return table.astype(np.float32)


def write_plot(
    tasks: tuple[str, ...],
    skills: dict[str, float],
    seeds: tuple[int, ...],
    rows: int,
    cluster: int = 1,
) -> None:
    """Labels of tasks, and for each system (full, or an ablation of params.yaml) logits drawn with
    its skill.
    """
    for task in tasks:
        generator = np.random.default_rng(len(task) + ord(task[0]))
        splits = ("dev", "dev_mismatched") if task == "mnli" else ("dev",)
        labels = {
            split: np.round(generator.uniform(0, 5, rows), 1).astype(np.float32)
            if task == "stsb"
            else generator.integers(OUTPUTS[task], size=rows)
            for split in splits
        }
        given_labels = {split: given.tolist() for split, given in labels.items()}
        write_task(task, given_labels, {}, cluster=cluster)
        for place, (system, skill) in enumerate(skills.items()):
            folder = (
                Path("data/finetune", group(task), task)
                if system == "full"
                else Path("data/ablation", f"{system}-{task}")
            )
            for seed in seeds:
                made = {
                    f"{split}/{weights}": drawn_logits(
                        given, OUTPUTS[task], skill, 97 * place + 2 * seed + len(split) + number
                    )
                    for split, given in labels.items()
                    for number, weights in enumerate(("last", "best"))
                }
                (folder / f"seed-{seed}").mkdir(parents=True, exist_ok=True)
                np.savez(folder / f"seed-{seed}" / "logits.npz", **made)
