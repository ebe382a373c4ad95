"""Finished seeds of a fine-tuning stage, kept until the stage ends: a killed stage repeats only the
seed it was in.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file, write_json, writing, writing_folder
from gpt1.model.heads import Classifier
from gpt1.model.weights import Description, save_weights
from gpt1.train import checkpoint
from gpt1.train.finetuning import Outcome

WEIGHTS = "weights.safetensors"


def keep_seed(
    folder: Path,
    outcome: Outcome,
    classifier: Classifier,
    description: Description,
    with_weights: bool,
    code: dict[str, str],
) -> dict[str, Any]:
    """Keep a finished seed until the stage ends: its outputs, and state.json to know them whole by.
    Returns its summary.
    """
    with writing_folder(folder) as out:
        if with_weights:
            classifier.load_state_dict(outcome.best_weights)
            save_weights(out / WEIGHTS, classifier, description)
        with writing(out / "logits.npz", "wb") as file:
            np.savez(file, allow_pickle=False, **dict(sorted(outcome.logits.items())))
        checkpoint.link_or_copy(str(folder.with_suffix(".jsonl")), str(out / "curve.jsonl"))
        summary: dict[str, Any] = {
            "best_update": outcome.best_update,
            "best_dev_score": outcome.best_dev_score,
            "updates": outcome.updates,
            "skipped_updates": outcome.skipped_updates,
        }
        write_json(
            out / "state.json",
            {
                "code": code,
                "summary": summary,
                "sha256": {path.name: sha256_file(path) for path in sorted(out.iterdir())},
            },
        )
    return summary


def finished_seed(folder: Path, code: dict[str, str], accept: bool) -> dict[str, Any] | None:
    """Summary of a seed kept by an earlier run, or None. Raises UserError where other code made
    it.
    """
    try:
        state = read_json(folder / "state.json")
        if any(
            Path(name).name != name or sha256_file(folder / name) != digest
            for name, digest in state["sha256"].items()
        ):
            return None
        code_then, summary = dict(state["code"]), dict[str, Any](state["summary"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    checkpoint.check_code(code_then, code, folder.parent, accept)
    return summary


def copy_seeds(folder: Path, seeds: Iterable[int], out: Path) -> None:
    """Put the seeds kept in `folder` under an output folder, under which they have their names.
    Raises UserError where one is missing.
    """
    for seed in seeds:
        if not (folder / f"seed-{seed}").is_dir():
            raise UserError(
                f"{folder}/seed-{seed} went away while the stage ran; run the same command again"
            )
        shutil.copytree(
            folder / f"seed-{seed}",
            out / f"seed-{seed}",
            copy_function=checkpoint.link_or_copy,
            ignore=shutil.ignore_patterns("state.json"),
        )
