"""Where the real tokens of a batch are: which padding is computed, and which sequences attend
together. Shape letters as in gpt.py.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

LENGTHS = 8  # sequences of a batch are padded to a multiple of it
# scores that are worth one more group: on a GPU launches cost more
WORTH_A_GROUP = {"cpu": 1 << 14}


class AttentionGroup(NamedTuple):
    """Neighbouring sequences, `start` to before `end`, that attend separately because they are
    shorter: padded to t, their real tokens are `first` to before `last`.
    """

    start: int
    end: int
    t: int
    first: int
    last: int


class Layout(NamedTuple):
    """Where the m computed tokens of b sequences of t positions are (None: everywhere): the real
    ones, and a little padding that makes m one of few numbers. The rest of the padding takes part
    in attention only.

    `bias_tt` is added to the scores: -inf for what a position does not see, else 0. None: each sees
    all before it, and torch's fused attention is used.
    """

    b: int
    t: int
    real_m: Tensor | None
    bias_tt: Tensor | None

    def tokens(self) -> int:
        """Return m."""
        return self.b * self.t if self.real_m is None else len(self.real_m)

    def of(self, group: AttentionGroup) -> "Layout":
        """Return the layout of one group of sequences."""
        assert self.real_m is not None
        real_m = self.real_m[group.first : group.last]
        return Layout(
            group.end - group.start,
            group.t,
            # Places of the whole batch become places of the group, whose rows are shorter.
            (real_m // self.t - group.start) * group.t + real_m % self.t,
            None if self.bias_tt is None else self.bias_tt[: group.t, : group.t],
        )

    def real(self, x_btd: Tensor) -> Tensor:
        """Return the rows of the real tokens, [m, d]."""
        return (
            x_btd.flatten(0, 1)
            if self.real_m is None
            else x_btd.flatten(0, 1).index_select(0, self.real_m)
        )

    def padded(self, x_md: Tensor) -> Tensor:
        """Put rows into their places, zeros elsewhere, [b, t, d]."""
        if self.real_m is not None:
            x_md = x_md.new_zeros(self.b * self.t, x_md.shape[1]).index_copy(0, self.real_m, x_md)
        return x_md.view(self.b, self.t, -1)


def groups_of(lengths_n: Tensor, t: int, worth: float) -> list[AttentionGroup]:
    """Cut a batch, sorted by length, where this saves more than `worth` attention scores of
    padding.
    """
    groups, start, first, lengths = list[AttentionGroup](), 0, 0, lengths_n.tolist()
    while start < len(lengths):
        half, end = (start + len(lengths) + 1) // 2, len(lengths)
        # To what the first half and the whole of the rest would be padded.
        shorter, longest = (
            min(t, -(-max(lengths[start:stop]) // LENGTHS) * LENGTHS) for stop in (half, end)
        )
        # Scores saved: attention takes t squared of them for each sequence.
        if (half - start) * (longest**2 - shorter**2) > worth:
            end, longest = half, shorter
        last = first + sum(lengths[start:end])
        groups.append(AttentionGroup(start, end, longest, first, last))
        start, first = end, last
    return groups


def few(m: int) -> int:
    """Round m up by at most an eighth, to one of eight numbers between two powers of two: oneDNN
    prepares a bfloat16 product anew for every shape, which takes longer than a small product
    itself.
    """
    step = 1 << max(0, m.bit_length() - 4)
    return -(-m // step) * step


class Real(NamedTuple):
    """The places [m] of the tokens to compute among the b · t of a batch, and the groups that
    attend separately (none: all together).
    """

    places_m: Tensor
    groups: Sequence[AttentionGroup] = ()


class Places(NamedTuple):
    """The tokens to compute of right-padded sequences, and the place [n] of each sequence's last
    token.
    """

    real: Real
    last_n: Tensor


def places_of(lengths_n: Tensor, t: int, device: torch.device) -> Places:
    """Return the places of right-padded sequences of these lengths (on the host), padded to t."""
    return Places(real_places(lengths_n, t, device), to_device(lengths_n - 1, device))


def real_places(lengths_n: Tensor, t: int, device: torch.device) -> Real:
    """Return those of the n · t places of right-padded sequences that are within their lengths,
    ascending, and then as much padding as makes m one of few numbers.

    This runs on the host, where the lengths are, so it does not wait for a GPU.
    """
    real = (torch.arange(t) < lengths_n[:, None]).flatten()
    real_m, padding = real.nonzero().squeeze(1), real.logical_not_().nonzero().squeeze(1)
    places_m = torch.cat([real_m, padding[: few(len(real_m)) - len(real_m)]])
    groups = groups_of(lengths_n, t, WORTH_A_GROUP.get(device.type, math.inf))
    return Real(to_device(places_m, device), groups if len(groups) > 1 else ())


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor of the host to a device."""
    source = tensor.pin_memory() if device.type == "cuda" else tensor
    return source.to(device, non_blocking=True)
