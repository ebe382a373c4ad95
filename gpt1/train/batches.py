"""Encoded examples as right-padded tensors, in seeded order (paper, section 4.1)."""

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays
from gpt1.model.packing import to_device

# any id will do: under the causal mask nothing before it sees it, and the losses leave it out
PADDING = 0

Integers = npt.NDArray[np.int64]


class Examples(NamedTuple):
    """A split as `encode` writes it."""

    tokens: npt.NDArray[np.unsignedinteger]  # of all sequences
    offsets: Integers  # where each sequence begins
    labels: npt.NDArray[Any]
    sequences: int  # of an example

    def __len__(self) -> int:
        return len(self.labels)

    def lengths(self, rows: Integers) -> Integers:
        """Return these examples' lengths in tokens, [rows, sequences]."""
        first = rows[:, None] * self.sequences + np.arange(self.sequences)
        lengths: Integers = self.offsets[first + 1] - self.offsets[first]
        return lengths


class Batch(NamedTuple):
    """Padded examples of one micro-batch."""

    tokens_bkt: Tensor  # padded on the right
    lengths_bk: Tensor  # on the host
    labels_b: Tensor  # classes (int64) or scores (float32)

    def to(self, device: torch.device) -> "Batch":
        """Copy tokens and labels to a device."""
        tokens_bkt, labels_b = to_device(self.tokens_bkt, device), to_device(self.labels_b, device)
        return Batch(tokens_bkt, self.lengths_bk, labels_b)


def read_examples(path: Path, sequences: int) -> Examples:
    """Read one split of an encoded task. Raises UserError where the file is missing or damaged."""
    try:
        arrays = read_arrays(path, ("tokens", "offsets", "labels"))
        tokens, offsets, labels = arrays.values()
        if {tokens.ndim, offsets.ndim, labels.ndim} != {1} or any(
            array.dtype.kind not in "iu" for array in (tokens, offsets)
        ):
            raise ValueError("arrays of another kind")
        offsets = offsets.astype(np.int64)
        if (
            len(offsets) != len(labels) * sequences + 1
            or (offsets[0], offsets[-1]) != (0, len(tokens))
            or (np.diff(offsets) < 0).any()
        ):
            raise ValueError(f"they are not {sequences} sequences for each label")
    except (OSError, KeyError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path}: expected arrays tokens, offsets and labels, found none ({error}); run dvc"
            " repro"
        ) from None
    return Examples(tokens, offsets, labels, sequences)


@lru_cache(maxsize=2)  # an epoch's end and the next one's beginning, which is drawn ahead
def order(examples: int, seed: int, epoch: int) -> Integers:
    """Return an epoch's order of examples: a permutation by Philox with key (seed, epoch),
    read-only.
    """
    permutation = np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(examples)
    permutation.setflags(write=False)
    return permutation


def updates_in_epoch(examples: int, batch_size: int, place: str) -> int:
    """Count the whole batches of an epoch. Raises UserError where there is none."""
    if examples < batch_size:
        raise UserError(
            f"{place}: expected at least one batch of {batch_size} training rows, found {examples}"
            " rows; lower finetune.batch_size in params.yaml or give more rows"
        )
    return examples // batch_size


def batch_rows(examples: int, batch_size: int, seed: int, update: int) -> Integers:
    """Return the rows of the global batch of `update` (from 1)."""
    epoch, place = divmod(update - 1, examples // batch_size)
    return order(examples, seed, epoch)[place * batch_size : (place + 1) * batch_size]


def by_length(examples: Examples, rows: Integers) -> Integers:
    """Sort rows by their longest sequence; ties keep their order."""
    return rows[np.argsort(examples.lengths(rows).max(axis=1), kind="stable")]


def split_batch(rows: Integers, rank: int, processes: int, micro_batch: int) -> list[Integers]:
    """Divide one process's part of a batch into equal micro-batches of at most `micro_batch` rows.
    Raises UserError where the processes cannot share the batch equally.
    """
    if len(rows) % processes:
        raise UserError(
            f"expected a number of processes that divides the batch of {len(rows)}, found"
            f" {processes}; set GPT1_PROCESSES to a divisor of batch_size"
        )
    # Every processes-th row: whatever their number, a batch has the same rows.
    own = rows[rank::processes]
    return np.array_split(own, -(-len(own) // micro_batch))


def pad(examples: Examples, rows: Integers) -> Batch:
    """Pad rows of a split to the longest sequence among them."""
    lengths_bk = examples.lengths(rows)
    starts_bk = examples.offsets[:-1].reshape(-1, examples.sequences)[rows]
    t = int(lengths_bk.max())
    columns_t = np.arange(t)
    real_bkt = columns_t < lengths_bk[..., None]
    # All places at once, without a loop over rows; padding points at token 0 and is replaced.
    places_bkt = np.where(real_bkt, starts_bk[..., None] + columns_t, 0)
    tokens_bkt = np.where(real_bkt, examples.tokens[places_bkt].astype(np.int64), PADDING)
    return Batch(
        torch.from_numpy(tokens_bkt),
        torch.from_numpy(lengths_bk),
        torch.from_numpy(examples.labels[rows]),
    )


def evaluation_batches(
    examples: Examples, rank: int, processes: int, most_tokens: int
) -> list[Integers]:
    """Return one process's rows, shortest first, in batches of at most `most_tokens` with padding,
    or of one row. All processes get as many; some may be empty.
    """
    # Neighbours of one length need little padding; `logits_of` puts answers back in file order.
    rows = by_length(examples, np.arange(len(examples)))
    longest, batches, start = examples.lengths(rows).max(axis=1), [], 0
    while start < len(rows):
        next_longest = longest[start : start + most_tokens * processes]
        fits = (
            np.arange(1, len(next_longest) + 1) * next_longest * examples.sequences
            <= most_tokens * processes
        )
        end = start + max(processes, int(fits.sum()))
        batches.append(rows[start:end][rank::processes])
        start = end
    return batches
