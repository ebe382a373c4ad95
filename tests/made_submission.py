"""Results of a run on as many test rows as GLUE has, made up in the current folder, and what a
submission says of them.
"""

import json
from pathlib import Path

import numpy as np
from made_results import group, write_task

ROWS = {
    "CoLA.tsv": 1063,
    "SST-2.tsv": 1821,
    "MRPC.tsv": 1725,
    "STS-B.tsv": 1379,
    "QQP.tsv": 390_965,
    "MNLI-m.tsv": 9796,
    "MNLI-mm.tsv": 9847,
    "QNLI.tsv": 5463,
    "RTE.tsv": 3000,
    "WNLI.tsv": 146,
    "AX.tsv": 1104,
}  # GLUE's test files
SPLITS = {
    "mnli": {"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv", "diagnostic": "AX.tsv"}
} | {
    task: {"test": name}
    for task, name in (
        ("cola", "CoLA.tsv"),
        ("sst2", "SST-2.tsv"),
        ("mrpc", "MRPC.tsv"),
        ("stsb", "STS-B.tsv"),
        ("qqp", "QQP.tsv"),
        ("qnli", "QNLI.tsv"),
        ("rte", "RTE.tsv"),
    )
}
SPELLED = {
    "MNLI-m.tsv": ["entailment", "neutral", "contradiction"],
    "QNLI.tsv": ["entailment", "not_entailment"],
}
SPELLED |= {
    "MNLI-mm.tsv": SPELLED["MNLI-m.tsv"],
    "AX.tsv": SPELLED["MNLI-m.tsv"],
    "RTE.tsv": SPELLED["QNLI.tsv"],
}
CLASSES = {"stsb": 6, "mnli": 3}
BEST_SEED = {"cola": 1, "stsb": 1}  # of the others both are equally good, and 0 comes first


def classes_of(name: str, seed: int, classes: int) -> list[int]:
    """The made-up answers of a seed to the rows of a file."""
    rows = np.arange(ROWS[name])
    return ((rows * (3 if name == "MNLI-mm.tsv" else 1) + rows // 7 + seed) % classes).tolist()


def write_run(tasks=SPLITS) -> None:
    """A run's results in the current folder, of as many test rows as GLUE has."""
    for task in tasks:
        classes = CLASSES.get(task, 2)
        answers = {
            seed: {
                f"{split}/best": classes_of(name, seed, classes)
                for split, name in SPLITS[task].items()
            }
            for seed in (0, 1)
        }
        write_task(task, {"dev": [0, 1]}, answers)
        folder = Path("data/encode", group(task), task, "task.json")
        about = json.loads(folder.read_text())
        about["splits"] = {"dev": {"examples": 2, "labelled": True}} | {
            split: {
                "examples": ROWS[name],
                "available": ROWS[name],
                "rows_read": ROWS[name],
                "labelled": task in ("mrpc", "stsb"),
            }
            for split, name in SPLITS[task].items()
        }
        folder.write_text(json.dumps(about))
        seed = f"seed-{BEST_SEED.get(task, 0)}"
        path = Path("data/finetune", group(task), task, seed, "summary.json")
        summary = json.loads(path.read_text())
        summary["best_dev_score"] = 0.75 if task in BEST_SEED else 0.5
        path.write_text(json.dumps(summary))


def changed_split(task: str, split: str, **counts: int) -> None:
    path = Path("data/encode", group(task), task, "task.json")
    about = json.loads(path.read_text())
    about["splits"][split] |= counts
    path.write_text(json.dumps(about))
