"""What a pre-trained network answers to the zero-shot sets (paper, section 5, Figure 2 right)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.inference.continuations import (
    Floats,
    Integers,
    Prompts,
    log_probabilities,
    read_prompts,
)
from gpt1.model.lstm import Network
from gpt1.model.weights import Description, load_weights
from gpt1.tasks.zero_shot import (
    SETS,
    ZeroShotSet,
    answers,
    best_threshold,
    continuation_scores,
    score_answers,
)

Answers = npt.NDArray[np.int8]


@dataclass(frozen=True)
class PromptSet:
    """One set as stage `prompt` writes it: set.json, its rule, the prompts of each split; how many
    positions go through a network at a time.
    """

    about: dict[str, Any]
    set_: ZeroShotSet
    splits: dict[str, Prompts]
    batch_tokens: int

    @property
    def labels_n(self) -> Integers:
        """The labels of the split that is scored."""
        return self.splits[self.about["scored_split"]].labels_n

    def scores(self, network: Network, split: str) -> Floats:
        """The score [n, k] of each continuation. Raises UserError where it is no number."""
        prompts, rows = self.splits[split], self.about["vocabulary_size"]
        sums_nk = log_probabilities(network, prompts, rows, self.batch_tokens)
        if not np.isfinite(sums_nk).all():
            raise UserError(
                f"expected finite log-probabilities on {self.about['set']}, found others:"
                " pre-training has diverged; lower pretrain.learning_rate in params.yaml"
            )
        return continuation_scores(self.set_.each, sums_nk, prompts.counted())

    def answers(self, network: Network) -> Answers:
        """A network's answers [n]; a threshold is the best on the train split for this very
        network.
        """
        threshold = np.nan
        if self.set_.rule == "threshold":
            scores_n = self.scores(network, "train")[:, 0]
            threshold = best_threshold(scores_n, self.splits["train"].labels_n)
        scores_nk = self.scores(network, self.about["scored_split"])
        return answers(self.set_.rule, scores_nk, threshold)

    def score(self, answers_n: Answers) -> float:
        """The set's metric of some answers."""
        return score_answers(self.set_, self.labels_n, answers_n)

    def record(self) -> dict[str, Any]:
        """What a reader of scores wants to know of the set."""
        return {key: self.about[key] for key in ("title", "metric", "random", "notes")} | {
            "examples": len(self.labels_n),
            "split": self.about["scored_split"],
        }


def read_set(folder: Path, batch_tokens: int) -> PromptSet:
    """Read what stage `prompt` wrote. Raises UserError where it is absent or damaged."""
    try:
        about, set_ = read_json(folder / "set.json"), SETS[folder.name]
    except (OSError, ValueError, KeyError):
        raise UserError(
            f"{folder / 'set.json'} is not there, or cannot be read; run dvc repro"
        ) from None
    names = {about["scored_split"], *(["train"] if set_.rule == "threshold" else [])}
    splits = {name: read_prompts(folder / f"{name}.npz", about["continuations"]) for name in names}
    return PromptSet(about, set_, splits, batch_tokens)


def one_vocabulary(sets: dict[str, PromptSet]) -> tuple[int, str]:
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


def answer_sets(
    sets: Mapping[str, PromptSet],
    files: Mapping[int, Path],
    network: Network,
    wanted: Description,
    update_tokens: int,
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What a network answers to every set with the weights of each of the files by update: the
    scores, for scores.json, and the arrays of answers and labels.
    """
    arrays: dict[str, npt.NDArray[Any]] = {f"{one}/labels": sets[one].labels_n for one in sets}
    snapshots, kind = [], wanted.kind
    network.eval()
    for update, path in tqdm(
        files.items(), desc=f"zero-shot {kind}", unit="snapshot", disable=None
    ):
        load_weights(path, wanted, network)
        scores = {}
        for one, set_ in sets.items():
            arrays[f"{one}/{update}"] = answers_n = set_.answers(network)
            scores[one] = set_.score(answers_n)
        tokens = update * update_tokens
        snapshots.append({"update": update, "tokens": tokens, "scores": scores})
    records = {one: set_.record() for one, set_ in sets.items()}
    return {"network": kind, "snapshots": snapshots, "sets": records}, arrays


def in_words(about: dict[str, Any]) -> Iterator[str]:
    """A line a set: its score by the first snapshot and by the last."""
    for name, set_ in about["sets"].items():
        first, last = about["snapshots"][0], about["snapshots"][-1]
        yield (
            f"{name}: {set_['metric']} {first['scores'][name]:.3f} at update {first['update']},"
            f" {last['scores'][name]:.3f} at update {last['update']} (guessing {set_['random']})"
        )
