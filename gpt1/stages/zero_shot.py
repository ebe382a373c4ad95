"""`zero_shot`: every snapshot of a pre-training answers the zero-shot sets (paper, section 5,
Figure 2 right): scores.json, answers.npz.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder, write_json, writing_folder
from gpt1.inference.continuations import (
    Floats,
    Packed,
    Prompts,
    log_probabilities,
    pack,
    read_prompts,
)
from gpt1.model.lstm import Network
from gpt1.model.networks import describe, make_network
from gpt1.model.weights import load_weights
from gpt1.params.schema import NetworkName, Params, read_params
from gpt1.tasks.zero_shot import (
    SETS,
    ZeroShotSet,
    answers,
    best_threshold,
    continuation_scores,
    score_answers,
)
from gpt1.train import launch
from gpt1.train.schedules import snapshot_updates


class Asked(NamedTuple):
    """The prompts of one split, and the same in batches."""

    prompts: Prompts
    batches: list[Packed]


class Loaded(NamedTuple):
    """One set: set.json, its rule, the split to score, and train where a threshold is chosen
    there.
    """

    about: dict[str, Any]
    set_: ZeroShotSet
    scored: Asked
    train: Asked | None


def read_set(name: str, batch_tokens: int) -> Loaded:
    """Read what stage `prompt` wrote. Raises UserError where it is absent or damaged."""
    folder = stage_folder("prompt", name)
    if name not in SETS or not (folder / "set.json").is_file():
        raise UserError(
            f"{folder / 'set.json'} is not there; expected a zero-shot set of {', '.join(SETS)},"
            f" made by python -m gpt1.stages prompt {name}; run dvc repro"
        )
    about = read_json(folder / "set.json")

    def asked(split: str) -> Asked:
        prompts = read_prompts(folder / f"{split}.npz", about["continuations"])
        return Asked(prompts, pack(prompts, batch_tokens))

    return Loaded(
        about,
        SETS[name],
        asked(about["scored_split"]),
        asked("train") if about["rule"] == "threshold" else None,
    )


def snapshots_of(name: str, params: Params) -> dict[int, Path]:
    """{update: file} of a pre-training's snapshots in order. Raises UserError naming the first that
    is missing.
    """
    folder = stage_folder("pretrain", name)
    if not (folder / "summary.json").is_file():
        raise UserError(
            f"{folder / 'summary.json'} is not there; run python -m gpt1.stages pretrain {name}"
            " first, or dvc repro"
        )
    updates = sorted(
        snapshot_updates(
            read_json(folder / "summary.json")["updates"], params.pretrain.snapshots_per_decade
        )
    )
    paths = {update: folder / "snapshots" / f"{update:08d}.safetensors" for update in updates}
    missing = [path for path in paths.values() if not path.is_file()]
    if missing:
        raise UserError(
            f"{missing[0]}: expected the snapshots of {len(paths)} updates, found"
            f" {len(paths) - len(missing)} of them; run dvc repro -f pretrain@{name}"
        )
    return paths


def scores_of(
    loaded: Loaded, asked: Asked, network: Network, device: torch.device, path: Path
) -> Floats:
    """The score [n, k] of each continuation. Raises UserError where a snapshot gives no numbers."""
    sums_nk = log_probabilities(
        network, asked.prompts, asked.batches, loaded.about["vocabulary_size"], device
    )
    if not np.isfinite(sums_nk).all():
        raise UserError(
            f"{path}: expected finite log-probabilities on {loaded.about['set']}, found others;"
            " pre-training has diverged: lower pretrain.learning_rate in params.yaml"
        )
    return continuation_scores(loaded.set_.each, sums_nk, asked.prompts.counted())


def answers_of(
    loaded: Loaded, network: Network, device: torch.device, path: Path
) -> npt.NDArray[np.int8]:
    """One snapshot's answers [n] to a set; a threshold is the best on the train split for this very
    snapshot.
    """
    threshold = np.nan
    if loaded.train is not None:
        threshold = best_threshold(
            scores_of(loaded, loaded.train, network, device, path)[:, 0],
            loaded.train.prompts.labels_n,
        )
    return answers(
        loaded.set_.rule, scores_of(loaded, loaded.scored, network, device, path), threshold
    )


def one_vocabulary(sets: dict[str, Loaded]) -> tuple[int, str]:
    """Size and fingerprint of the vocabulary of all sets. Raises UserError where they differ."""
    found = {
        name: (int(one.about["vocabulary_size"]), str(one.about["vocabulary_fingerprint"]))
        for name, one in sets.items()
    }
    if len(set(found.values())) > 1:
        raise UserError(
            f"data/prompt: expected sets of one vocabulary, found {found}; run dvc repro"
        )
    return next(iter(found.values()))


def main(name: str) -> None:
    """Read sets and snapshots, let every snapshot answer every set, write answers and scores."""
    params, machine = read_params(), launch.read_machine()
    if name not in get_args(NetworkName):
        raise UserError(
            f"expected one of the networks {', '.join(get_args(NetworkName))}; found {name}"
        )
    launch.prepare(machine)
    device, context = torch.device(machine.device), params.model.context
    sets = {
        set_name: read_set(set_name, machine.micro_batch_for(context) * context)
        for set_name in params.zero_shot
    }
    snapshots: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {
        f"{set_name}/labels": one.scored.prompts.labels_n for set_name, one in sets.items()
    }
    if sets:
        wanted = describe(name, params, *one_vocabulary(sets))
        network = (
            make_network(name, params, wanted.vocabulary_size, torch.Generator()).to(device).eval()
        )
        for update, path in tqdm(
            snapshots_of(name, params).items(),
            desc=f"zero-shot {name}",
            unit="snapshot",
            disable=None,
        ):
            load_weights(path, wanted, network)
            found = {
                set_name: answers_of(one, network, device, path) for set_name, one in sets.items()
            }
            arrays |= {f"{set_name}/{update}": given for set_name, given in found.items()}
            snapshots.append(
                {
                    "update": update,
                    "tokens": update * params.pretrain.batch_size * context,
                    "scores": {
                        set_name: score_answers(
                            one.set_, one.scored.prompts.labels_n, found[set_name]
                        )
                        for set_name, one in sets.items()
                    },
                }
            )
    with writing_folder(stage_folder("zero_shot", name)) as folder:
        np.savez(folder / "answers.npz", allow_pickle=False, **arrays)
        write_json(
            folder / "scores.json",
            {
                "network": name,
                "snapshots": snapshots,
                "sets": {
                    set_name: (
                        {key: one.about[key] for key in ("title", "metric", "random", "notes")}
                        | {
                            "examples": len(one.scored.prompts.labels_n),
                            "split": one.about["scored_split"],
                        }
                    )
                    for set_name, one in sets.items()
                },
            },
        )
    for set_name, one in sets.items():
        first, last = snapshots[0], snapshots[-1]
        print(
            f"{set_name}: {one.about['metric']} {first['scores'][set_name]:.3f} at update"
            f" {first['update']}, {last['scores'][set_name]:.3f} at update {last['update']}"
            f" (guessing {one.about['random']})",
            file=sys.stderr,
        )
