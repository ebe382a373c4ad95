"""Where the real tokens of a batch stand: what is computed of its padding, and which of its
sequences attend together. Shape letters as in gpt.py.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from gpt1.model.device import to_device

LENGTHS = 8  # sequences of a batch are padded to a multiple of it
# scores that are worth one more group: on a GPU launches cost more
WORTH_A_GROUP = {"cpu": 1 << 14}


class AttentionGroup(NamedTuple):
    """Neighbouring sequences that attend apart from the others of a batch, since they are shorter:
    from `start` to before `end`, padded to t, and their real tokens from `first` to before `last`.
    """

    start: int
    end: int
    t: int
    first: int
    last: int


class Layout(NamedTuple):
    """Where the m tokens to compute of b sequences of t positions stand (None: everywhere): the
    real ones, and a little padding that makes m one of few numbers; the rest of the padding is left
    out of everything but attention.

    `bias_tt` is added to the scores: -inf for what a position does not see, else 0. None: each sees
    all before it, and torch's fused attention is used.
    """

    b: int
    t: int
    real_m: Tensor | None
    bias_tt: Tensor | None

    def tokens(self) -> int:
        """m."""
        return self.b * self.t if self.real_m is None else len(self.real_m)

    def of(self, group: AttentionGroup) -> "Layout":
        """The layout of one group of sequences."""
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
        """The rows of the real tokens, [m, d]."""
        return (
            x_btd.flatten(0, 1)
            if self.real_m is None
            else x_btd.flatten(0, 1).index_select(0, self.real_m)
        )

    def padded(self, x_md: Tensor) -> Tensor:
        """The rows in their places, zeros elsewhere, [b, t, d]."""
        if self.real_m is not None:
            x_md = x_md.new_zeros(self.b * self.t, x_md.shape[1]).index_copy(0, self.real_m, x_md)
        return x_md.view(self.b, self.t, -1)


def groups_of(lengths_n: Tensor, t: int, worth: float) -> list[AttentionGroup]:
    """A batch cut where the first half of what is left, or all of it, needs so much less padding
    that it saves more than `worth` scores: for a batch that is sorted by length.
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
    """m or a little more, at most an eighth: one of eight numbers
    between a power of two and the next. oneDNN makes a bfloat16 product of every new shape anew,
    which takes longer than a small product itself.
    """
    step = 1 << max(0, m.bit_length() - 4)
    return -(-m // step) * step


class Real(NamedTuple):
    """Places [m] of the tokens to compute among the b · t of a batch, and the groups that attend
    apart (none: all together).
    """

    places_m: Tensor
    groups: Sequence[AttentionGroup] = ()


class Places(NamedTuple):
    """The tokens to compute of right-padded sequences, and the place [n] of each one's last."""

    real: Real
    last_n: Tensor


def places_of(lengths_n: Tensor, t: int, device: torch.device) -> Places:
    """Places of right-padded sequences of these lengths, which are on the host, padded to t."""
    return Places(real_places(lengths_n, t, device), to_device(lengths_n - 1, device))


def real_places(lengths_n: Tensor, t: int, device: torch.device) -> Real:
    """Of the n · t places of right-padded sequences those that are within their lengths, in
    ascending order, and after them as much of the padding as makes m one of few numbers.

    Made on the host, where the lengths are, so that it does not wait for a GPU's count.
    """
    real = (torch.arange(t) < lengths_n[:, None]).flatten()
    real_m, padding = real.nonzero().squeeze(1), real.logical_not_().nonzero().squeeze(1)
    places_m = torch.cat([real_m, padding[: few(len(real_m)) - len(real_m)]])
    groups = groups_of(lengths_n, t, WORTH_A_GROUP.get(device.type, math.inf))
    return Real(to_device(places_m, device), groups if len(groups) > 1 else ())
