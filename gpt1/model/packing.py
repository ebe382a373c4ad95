"""Which padding is computed, and which sequences attend together. Shape letters are as in
gpt.py.
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
    """Neighbouring sequences that attend separately, padded to t only."""

    start: int  # its sequences are `start` to before `end`
    end: int
    t: int
    first: int  # its computed tokens are `first` to before `last`
    last: int


class Packing(NamedTuple):
    """The m computed tokens of b sequences."""

    b: int
    t: int
    computed_m: Tensor | None  # their places; None: everywhere
    bias_tt: Tensor | None  # added to the scores, -inf where blind; None: torch's fused attention

    def tokens(self) -> int:
        """Return m."""
        return self.b * self.t if self.computed_m is None else len(self.computed_m)

    def of(self, group: AttentionGroup) -> "Packing":
        """Return the packing of one group."""
        assert self.computed_m is not None
        computed_m = self.computed_m[group.first : group.last]
        return Packing(
            group.end - group.start,
            group.t,
            # Places of the whole batch become places of the group, whose rows are shorter.
            (computed_m // self.t - group.start) * group.t + computed_m % self.t,
            None if self.bias_tt is None else self.bias_tt[: group.t, : group.t],
        )

    def packed(self, x_btd: Tensor) -> Tensor:
        """Return the rows of the computed tokens, [m, d]."""
        x_md = x_btd.flatten(0, 1)
        return x_md if self.computed_m is None else x_md.index_select(0, self.computed_m)

    def padded(self, x_md: Tensor) -> Tensor:
        """Put rows [m, d] into their places of [b, t, d], zeros elsewhere."""
        if self.computed_m is not None:
            x_md = x_md.new_zeros(self.b * self.t, x_md.shape[1]).index_copy(
                0, self.computed_m, x_md
            )
        return x_md.view(self.b, self.t, -1)


def groups_of(lengths_n: Tensor, t: int, worth: float) -> list[AttentionGroup]:
    """Cut a sorted batch where this saves more than `worth` attention scores."""
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


def round_up(m: int) -> int:
    """Round m up by at most an eighth, to one of few numbers."""
    # each new shape costs oneDNN more than a small bfloat16 product
    step = 1 << max(0, m.bit_length() - 4)
    return -(-m // step) * step


class Computed(NamedTuple):
    """The tokens to compute of n right-padded sequences."""

    places_m: Tensor  # among the n · t
    last_n: Tensor  # position of each sequence's last token
    groups: Sequence[AttentionGroup] = ()  # none: all attend together


def computed_places(lengths_n: Tensor, t: int, device: torch.device) -> Computed:
    """Return the tokens to compute: all within their lengths, then padding that makes m one of few
    numbers.
    """
    # all on the host, so that nothing waits for a GPU
    real = (torch.arange(t) < lengths_n[:, None]).flatten()
    real_m, padding = real.nonzero().squeeze(1), real.logical_not_().nonzero().squeeze(1)
    places_m = torch.cat([real_m, padding[: round_up(len(real_m)) - len(real_m)]])
    groups = groups_of(lengths_n, t, WORTH_A_GROUP.get(device.type, math.inf))
    return Computed(
        to_device(places_m, device),
        to_device(lengths_n - 1, device),
        groups if len(groups) > 1 else (),
    )


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor of the host to a device."""
    source = tensor.pin_memory() if device.type == "cuda" else tensor
    return source.to(device, non_blocking=True)
