"""Finished seeds of a fine-tuning stage, kept until the stage ends: a killed stage repeats only the
seed it was in.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file, write_json, writing, writing_folder
from gpt1.model.heads import Classifier
from gpt1.model.weights import Description, save_weights
from gpt1.params.schema import Finetune
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


class Part(NamedTuple):
    """One recipe of a stage's work, the folder of its finished seeds, and their summaries (None: to
    be done).
    """

    name: str
    recipe: Finetune
    folder: Path
    seeds: dict[int, dict[str, Any] | None]


def find_part(
    name: str, recipe: Finetune, folder: Path, code: dict[str, str], accept: bool
) -> Part:
    """A part as earlier runs have left it. Raises UserError where other code made a seed of it."""
    seeds = {seed: finished_seed(folder / f"seed-{seed}", code, accept) for seed in recipe.seeds}
    return Part(name, recipe, folder, seeds)


def write_outputs(out: Path, task: str, parts: Iterable[Part]) -> None:
    """Put every seed's files and the summary under a stage's output folder as a whole. Raises
    UserError where a seed is missing.
    """
    with writing_folder(out) as new:
        for part in parts:
            for folder in (part.folder / f"seed-{seed}" for seed in part.seeds):
                if not folder.is_dir():
                    raise UserError(
                        f"{folder} went away while the stage ran; run the same command again"
                    )
                shutil.copytree(
                    folder,
                    new / part.name / folder.name,
                    copy_function=checkpoint.link_or_copy,
                    ignore=shutil.ignore_patterns("state.json"),
                )
        summaries = {
            part.name: {str(seed): summary for seed, summary in part.seeds.items()}
            for part in parts
        }
        seeds = {"seeds": summaries[""]} if "" in summaries else {"parts": summaries}
        write_json(new / "summary.json", {"task": task, **seeds})
