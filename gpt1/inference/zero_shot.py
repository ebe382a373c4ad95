"""What a pre-trained network answers to the zero-shot sets (paper, section 5, Figure 2 right).

Shape letters: n prompts, k continuations of each, b rows (a continuation after its prefix), t
positions, s scored tokens, d width, v vocabulary.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays, read_json_file
from gpt1.model.lstm import Network
from gpt1.model.weights import Description, transfer_weights
from gpt1.tasks.metrics import score
from gpt1.tasks.zero_shot import (
    SETS,
    Floats,
    Integers,
    answers,
    best_threshold,
    continuation_scores,
)

LOGITS_AT_ONCE = 1 << 22  # 16 MB


class Prompts(NamedTuple):
    """Prompts as stage `prompt` writes them: prefixes and their continuations in turn."""

    tokens: npt.NDArray[np.unsignedinteger]
    offsets: Integers  # where each begins
    uncounted_nk: Integers  # first tokens of each continuation that do not count
    labels_n: Integers

    def counted(self) -> Integers:
        """Return how many tokens of each continuation are scored, [n, k]."""
        lengths_nj = np.diff(self.offsets).reshape(len(self.labels_n), -1)
        counted_nk: Integers = lengths_nj[:, 1:] - self.uncounted_nk
        return counted_nk

    def texts(self) -> list[Tensor]:
        """Return the tokens of the n * k continuations, each after its prefix."""
        parts = np.split(self.tokens.astype(np.int64), self.offsets[1:-1])
        group_size = self.uncounted_nk.shape[1] + 1
        return [
            torch.from_numpy(np.concatenate([parts[first], continuation]))
            for first in range(0, len(parts), group_size)
            for continuation in parts[first + 1 : first + group_size]
        ]


def read_prompts(path: Path) -> Prompts:
    """Read one split of a zero-shot set. Raises UserError."""
    try:
        return Prompts(*read_arrays(path, ("tokens", "offsets", "uncounted", "labels")).values())
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{path}: expected arrays tokens, offsets, uncounted and labels, found none ({error});"
            " run dvc repro"
        ) from None


@torch.inference_mode()
def log_probabilities(
    network: Network, prompts: Prompts, vocabulary_size: int, batch_tokens: int
) -> Floats:
    """Sum the log-probabilities (nats) of each continuation's counted tokens, [n, k], by a float32
    softmax; about `batch_tokens` positions at a time.
    """
    embedding_vd = network.tokens[:vocabulary_size]
    device, at_once = embedding_vd.device, max(1, LOGITS_AT_ONCE // vocabulary_size)
    texts, counted = prompts.texts(), prompts.counted().flatten()
    sums = np.zeros(len(texts))
    for rows in _batches([len(text) for text in texts], batch_tokens):
        # Padding comes last: the causal mask hides it.
        tokens_bt = pad_sequence([texts[row] for row in rows], batch_first=True)
        place_t = torch.arange(1, tokens_bt.shape[1])
        end_b1 = torch.tensor([[len(texts[row])] for row in rows])
        counted_b = torch.from_numpy(counted[rows])
        scored_bt = (place_t < end_b1) & (place_t >= end_b1 - counted_b[:, None])
        hidden_btd = network(tokens_bt[:, :-1].to(device)).hidden_btd
        hidden_sd = hidden_btd[scored_bt.to(device)]
        targets_s = tokens_bt[:, 1:][scored_bt].to(device)
        losses_s = torch.cat(
            [
                F.cross_entropy((hidden @ embedding_vd.T).float(), targets, reduction="none")
                for hidden, targets in zip(
                    torch.split(hidden_sd, at_once), torch.split(targets_s, at_once), strict=True
                )
            ]
        )
        parts = torch.split(losses_s.double().cpu(), counted_b.tolist())
        sums[rows] = [-chunk.numpy().sum() for chunk in parts]
    return sums.reshape(prompts.uncounted_nk.shape)


def _batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    rows = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    while rows:
        at_once = max(1, batch_tokens // lengths[rows[0]])
        yield rows[:at_once]
        rows = rows[at_once:]


class PromptSet(NamedTuple):
    """A set as stage `prompt` writes it: set.json, and prompts by split."""

    name: str
    about: dict[str, Any]
    splits: dict[str, Prompts]

    @property
    def scored(self) -> Prompts:
        """Return the split that is scored."""
        return self.splits[self.about["scored_split"]]

    def answers(self, network: Network, batch_tokens: int) -> npt.NDArray[np.int8]:
        """Return a network's answers [n]; a threshold is the best on train. Raises UserError for
        scores that are not finite.
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
            scores[split] = continuation_scores(set_.rule, sums_nk, prompts.counted())
        threshold = np.nan
        if set_.rule == "threshold":
            threshold = best_threshold(scores["train"][:, 0], self.splits["train"].labels_n)
        return answers(set_.rule, scores[self.about["scored_split"]], threshold)


def read_set(folder: Path) -> PromptSet:
    """Read what stage `prompt` wrote. Raises UserError."""
    about = read_json_file(folder / "set.json", "run dvc repro")
    splits = {name: read_prompts(folder / f"{name}.npz") for name in about["splits"]}
    return PromptSet(folder.name, about, splits)


def answer_sets(
    sets: list[PromptSet],
    files: Mapping[int, Path],
    network: Network,
    description: Description,
    batch_tokens: int,
) -> tuple[list[dict[str, Any]], dict[str, npt.NDArray[Any]]]:
    """Answer every set with each weights file; return scores by update, answers and labels."""
    arrays: dict[str, npt.NDArray[Any]] = {
        f"{set_.name}/labels": set_.scored.labels_n for set_ in sets
    }
    snapshots = []
    network.eval()
    bar = tqdm(files.items(), desc=f"zero-shot {description.kind}", unit="snapshot", disable=None)
    for update, path in bar:
        transfer_weights(path, description, network, "all")
        scores = {}
        for set_ in sets:
            arrays[f"{set_.name}/{update}"] = answers = set_.answers(network, batch_tokens)
            scores[set_.name] = score(SETS[set_.name].task.metric, set_.scored.labels_n, answers)
        snapshots.append({"update": update, "scores": scores})
    return snapshots, arrays
