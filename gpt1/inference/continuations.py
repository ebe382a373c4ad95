"""Log-probabilities of continuations by a pre-trained network (paper, section 5), each prefix
computed once for all of its continuations.

Shape letters as in gpt.py, and n prompts, k continuations of each, p prefix tokens, c continuation
tokens that are fed, s scored tokens, u positions that predict them.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays
from gpt1.inference.cache import PADDING
from gpt1.inference.perplexity import target_log_probabilities
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder, Hidden, Tree
from gpt1.model.layout import Real
from gpt1.model.lstm import Lstm, Network, State

SHARING = 4  # prompts that one row may hold: attention grows with the square of its length

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Prompts(NamedTuple):
    """Prompts as stage `prompt` writes them: the tokens of each prefix and its k continuations one
    after another, where each begins.
    """

    tokens: npt.NDArray[np.unsignedinteger]
    offsets: Integers
    uncounted_nk: Integers
    labels_n: Integers

    def lengths(self) -> Integers:
        """Tokens of prefix and continuations, [n, 1 + k]."""
        return np.diff(self.offsets).reshape(len(self.labels_n), -1)

    def counted(self) -> Integers:
        """Tokens of each continuation that are scored, [n, k]."""
        return self.lengths()[:, 1:] - self.uncounted_nk


class Packed(NamedTuple):
    """Some rows side by side, padded on the right: prefixes, and of continuations all but the last
    token, for it predicts nothing.

    A row has the continuations of every prompt with its prefix. The scored tokens are targets_s;
    target i is predicted at predictors_u[predictor_s[i]] of the b * (p + k * c) positions, prefix
    first, and belongs to continuation owner_s[i] of all prompts'.
    """

    prefix_bp: Tensor
    prefix_lengths_b: Tensor
    inputs_bkc: Tensor
    input_lengths_bk: Tensor
    predictors_u: Tensor
    predictor_s: Tensor
    targets_s: Tensor
    owner_s: Tensor

    def to(self, device: torch.device) -> "Packed":
        """The same prompts on a device."""
        return Packed(*(tensor.to(device) for tensor in self))


def read_prompts(path: Path, continuations: int) -> Prompts:
    """Read one split of a zero-shot set. Raises UserError where the file is absent, damaged or does
    not add up.
    """
    try:
        arrays = read_arrays(path, ("tokens", "offsets", "uncounted", "labels"))
        prompts = Prompts(*arrays.values())
        n = len(prompts.labels_n)
        if (
            prompts.tokens.ndim != 1
            or any(array.dtype.kind not in "iu" for array in prompts[:3])
            or prompts.offsets.shape != (n * (continuations + 1) + 1,)
            or prompts.uncounted_nk.shape != (n, continuations)
            or prompts.labels_n.shape != (n,)
            or prompts.offsets[0]
            or prompts.offsets[-1] != len(prompts.tokens)
            or (np.diff(prompts.offsets.astype(np.int64)) < 0).any()
        ):
            raise ValueError("they do not fit together")
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise UserError(
            f"{path}: expected arrays tokens, offsets, uncounted and labels of {continuations}"
            f" continuations a prompt, found none ({error}); run dvc repro"
        ) from None
    return prompts


def pack(prompts: Prompts, batch_tokens: int) -> list[Packed]:
    """All prompts in batches of about `batch_tokens` positions, padding included, neighbours of
    like length together.

    Raises ValueError for a prompt in which a counted token has nothing before it, or no token
    counts.
    """
    lengths_nj = prompts.lengths()
    if (prompts.counted() < 1).any() or (
        (lengths_nj[:, 0] == 0) & (prompts.uncounted_nk < 1).any(axis=1)
    ).any():
        raise ValueError(
            "expected prompts whose continuations all have a counted token, with a token before it;"
            " found others"
        )
    return [
        _padded(prompts, lengths_nj, rows)
        for rows in _batches(lengths_nj, _rows(prompts, lengths_nj[:, 0]), batch_tokens)
    ]


def _rows(prompts: Prompts, prefix_n: Integers) -> list[list[int]]:
    """The prompts of each row: those of one and the same prefix, as twin sentences have, up to
    SHARING of them; others stand alone.
    """
    rows: list[list[int]] = []
    open_rows: dict[bytes, list[int]] = {}
    starts_n = prompts.offsets[:-1].reshape(len(prefix_n), -1)[:, 0]
    for number, (start, length) in enumerate(zip(starts_n, prefix_n, strict=True)):
        prefix = prompts.tokens[start : start + length].tobytes()
        row = open_rows.get(prefix, [])
        if not prefix or not 0 < len(row) < SHARING:
            row = open_rows[prefix] = []
            rows.append(row)
        row.append(number)
    return rows


def _batches(lengths_nj: Integers, rows: list[list[int]], batch_tokens: int) -> Iterator[Integers]:
    """Prompts [b, prompts of a row] of each batch; rows with as many prompts, with a prefix or
    without, of like length stand together.
    """
    longest_n = lengths_nj[:, 1:].max(axis=1) - 1

    def size(row: list[int]) -> tuple[int, bool, int, int]:
        return (
            len(row),
            bool(lengths_nj[row[0], 0]),
            int(lengths_nj[row[0], 0]),
            int(longest_n[row].max()),
        )

    batch: list[list[int]] = []
    fed = 0
    for row in sorted(rows, key=size):
        prompts, bare, prefix, longest = size(row)
        fed = max(fed, longest)
        width = prefix + prompts * (lengths_nj.shape[1] - 1) * fed
        if batch and (
            (len(batch) + 1) * width > batch_tokens or size(batch[-1])[:2] != (prompts, bare)
        ):
            yield np.array(batch)
            batch, fed = [], longest
        batch.append(row)
    if batch:
        yield np.array(batch)


def _padded(prompts: Prompts, lengths_nj: Integers, rows_bg: Integers) -> Packed:
    b, own = len(rows_bg), lengths_nj.shape[1] - 1
    k = rows_bg.shape[1] * own
    starts_nj = prompts.offsets[:-1].reshape(-1, own + 1)
    prefix_lengths_b, lengths_bk = (
        lengths_nj[rows_bg[:, 0], 0],
        lengths_nj[rows_bg, 1:].reshape(b, k),
    )
    p, longest = int(prefix_lengths_b.max()), int(lengths_bk.max())
    c = longest - 1
    prefix_bp = _ragged(prompts.tokens, starts_nj[rows_bg[:, 0], 0], prefix_lengths_b, p)
    continuation_bkl = _ragged(
        prompts.tokens, starts_nj[rows_bg, 1:].reshape(b, k), lengths_bk, longest
    )
    place_l = np.arange(longest)
    counted_bkl = (place_l < lengths_bk[..., None]) & (
        place_l >= prompts.uncounted_nk[rows_bg].reshape(b, k, 1)
    )
    in_row_bkl = np.where(
        place_l == 0,
        prefix_lengths_b[:, None, None] - 1,
        p + c * np.arange(k)[:, None] + place_l - 1,
    )
    position_bkl = np.arange(b)[:, None, None] * (p + k * c) + in_row_bkl
    owner_bkl = np.broadcast_to(
        (rows_bg[..., None] * own + np.arange(own)).reshape(b, k, 1), counted_bkl.shape
    )
    predictors_u, predictor_s = np.unique(position_bkl[counted_bkl], return_inverse=True)
    return Packed(
        *map(
            torch.from_numpy,
            (
                prefix_bp,
                prefix_lengths_b,
                continuation_bkl[..., :c].copy(),
                lengths_bk - 1,
                predictors_u,
                predictor_s,
                continuation_bkl[counted_bkl],
                owner_bkl[counted_bkl],
            ),
        )
    )


def _ragged(
    tokens: npt.NDArray[np.unsignedinteger], starts: Integers, lengths: Integers, longest: int
) -> Integers:
    """Runs of tokens [..., longest], padded on the right."""
    place = np.arange(longest)
    real = place < lengths[..., None]
    return np.where(
        real, tokens[np.where(real, starts[..., None] + place, 0)].astype(np.int64), PADDING
    )


@torch.inference_mode()
def log_probabilities(
    network: Network,
    prompts: Prompts,
    batches: Sequence[Packed],
    vocabulary_size: int,
    device: torch.device,
) -> Floats:
    """Sum of the log-probabilities (nats) of the counted tokens of each continuation, [n, k], by
    the softmax over the vocabulary's rows.

    `batches` are the prompts packed. In float32 whatever the network was trained in; the network
    must be on `device`.
    """
    embedding_vd = network.tokens[:vocabulary_size]
    states = _lstm_states if isinstance(network, Lstm) else _decoder_states
    sums = np.zeros(prompts.uncounted_nk.size)
    for batch in (batch.to(device) for batch in batches):
        states_ud = states(network, batch).flatten(0, 1)[batch.predictors_u]  # type: ignore[arg-type]  # of its own network
        found_s = target_log_probabilities(
            states_ud, embedding_vd, batch.targets_s, batch.predictor_s
        )
        np.add.at(sums, batch.owner_s.cpu().numpy(), found_s.double().cpu().numpy())
    return sums.reshape(prompts.uncounted_nk.shape)


def _decoder_states(decoder: Decoder, batch: Packed) -> Tensor:
    """Hidden states [b, p + k * c, d]: a row is a prefix and all of its continuations, each of
    which sees the prefix and itself.
    """
    b, p = batch.prefix_bp.shape
    k, c = batch.inputs_bkc.shape[1:]
    device = batch.prefix_bp.device
    tokens_bq = torch.cat([batch.prefix_bp, batch.inputs_bkc.flatten(1)], dim=1)
    place_p, place_c = torch.arange(p, device=device), torch.arange(c, device=device)
    real_bq = torch.cat(
        [
            place_p < batch.prefix_lengths_b[:, None],
            (place_c < batch.input_lengths_bk[..., None]).flatten(1),
        ],
        dim=1,
    )
    real = Real(real_bq.flatten().nonzero().squeeze(1))
    if c == 0 or (p == 0 and k == 1):  # one text a row: the causal mask is all there is
        alone: Hidden = decoder(tokens_bq, NO_DROPOUT, real)
        return alone.hidden_btd
    positions_bq = (
        torch.cat(
            [place_p.expand(b, p), (batch.prefix_lengths_b[:, None] + place_c).repeat(1, k)], dim=1
        )
        * real_bq
    )
    branch_q = torch.cat(
        [torch.zeros_like(place_p), torch.arange(1, k + 1, device=device).repeat_interleave(c)]
    )
    seen_qq = ((branch_q == branch_q[:, None]) | (branch_q == 0)).tril()
    allowed_bqq = (seen_qq & real_bq[:, None]) | torch.eye(
        p + k * c, dtype=torch.bool, device=device
    )  # padding sees itself: no empty row
    together: Hidden = decoder(tokens_bq, NO_DROPOUT, real, Tree(allowed_bqq, positions_bq))
    return together.hidden_btd


def _lstm_states(lstm: Lstm, batch: Packed) -> Tensor:
    """Hidden states [b, p + k * c, d]: the state after a prefix goes on into each of its
    continuations.
    """
    b, p = batch.prefix_bp.shape
    k, c = batch.inputs_bkc.shape[1:]
    inputs_nc = batch.inputs_bkc.flatten(0, 1)
    if p == 0:
        alone: Hidden = lstm(inputs_nc, NO_DROPOUT)
        return alone.hidden_btd.reshape(b, k * c, -1)
    hidden_bpd, state = lstm.state_after(batch.prefix_bp, batch.prefix_lengths_b)
    if c == 0:
        return hidden_bpd
    branched = State(*(part_bu.repeat_interleave(k, dim=0) for part_bu in state))
    return torch.cat(
        [hidden_bpd, lstm.resume(inputs_nc, branched)[0].hidden_btd.reshape(b, k * c, -1)], dim=1
    )
