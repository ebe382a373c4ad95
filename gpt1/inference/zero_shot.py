"""What a pre-trained network answers to the zero-shot sets (paper, section 5, Figure 2 right)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.inference.continuations import Prompts, log_probabilities, read_prompts
from gpt1.model.lstm import Network
from gpt1.model.weights import Description, load_weights
from gpt1.tasks.metrics import score
from gpt1.tasks.zero_shot import SETS, answers, best_threshold, continuation_scores


class PromptSet(NamedTuple):
    """One set as stage `prompt` writes it: set.json, and prompts by split."""

    name: str
    about: dict[str, Any]
    splits: dict[str, Prompts]

    @property
    def scored(self) -> Prompts:
        """Return the split that is scored."""
        return self.splits[self.about["scored_split"]]

    def answers(self, network: Network, batch_tokens: int) -> npt.NDArray[np.int8]:
        """Return a network's answers [n], with the threshold that is best on its train split.
        Raises UserError where a score is not finite.
        """
        set_, vocabulary_size = SETS[self.name], self.about["vocabulary_size"]
        scores = {}
        for split, prompts in self.splits.items():
            sums_nk = log_probabilities(network, prompts, vocabulary_size, batch_tokens)
            if not np.isfinite(sums_nk).all():
                raise UserError(
                    f"expected finite log-probabilities on {self.name}, found others: pre-training"
                    " has diverged; lower pretrain.learning_rate in params.yaml"
                )
            scores[split] = continuation_scores(set_.each, sums_nk, prompts.counted())
        threshold = np.nan
        if set_.rule == "threshold":
            threshold = best_threshold(scores["train"][:, 0], self.splits["train"].labels_n)
        return answers(set_.rule, scores[self.about["scored_split"]], threshold)


def read_set(folder: Path) -> PromptSet:
    """Read what stage `prompt` wrote. Raises UserError."""
    try:
        about = read_json(folder / "set.json")
    except (OSError, ValueError):
        raise UserError(f"{folder / 'set.json'} cannot be read; run dvc repro") from None
    names = {about["scored_split"]}
    if SETS[folder.name].rule == "threshold":
        names.add("train")
    splits = {name: read_prompts(folder / f"{name}.npz") for name in sorted(names)}
    return PromptSet(folder.name, about, splits)


def answer_sets(
    sets: list[PromptSet],
    files: Mapping[int, Path],
    network: Network,
    description: Description,
    batch_tokens: int,
) -> tuple[list[dict[str, Any]], dict[str, npt.NDArray[Any]]]:
    """Answer every set with each weights file of a network; return scores by update, and arrays of
    answers and labels.
    """
    arrays: dict[str, npt.NDArray[Any]] = {
        f"{set_.name}/labels": set_.scored.labels_n for set_ in sets
    }
    snapshots = []
    network.eval()
    bar = tqdm(files.items(), desc=f"zero-shot {description.kind}", unit="snapshot", disable=None)
    for update, path in bar:
        load_weights(path, description, network)
        scores = {}
        for set_ in sets:
            arrays[f"{set_.name}/{update}"] = answers = set_.answers(network, batch_tokens)
            scores[set_.name] = score(SETS[set_.name].task.metric, set_.scored.labels_n, answers)
        snapshots.append({"update": update, "scores": scores})
    return snapshots, arrays
