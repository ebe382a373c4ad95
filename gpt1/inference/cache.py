"""Texts that grow token by token, with what a network remembers of them: keys and values of the
Transformer, the LSTM's state.

A Transformer sees `context` tokens at most. Past that its window slides: `window_start` says from
which token on the next one is predicted, and a text whose window has moved is read again from
there, at positions 0, 1, ...; so half of the context, or more, is always seen. The LSTM has no
window. Shape letters as in gpt.py, and r some of the b rows, l layers, c places for keys and
values.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from gpt1.model.block import KeyValueCache
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder, Hidden, Tree
from gpt1.model.lstm import Lstm, Network, State

Texts = Sequence[Sequence[int]]
PADDING = 0  # any id will do


def window_start(length: int, context: int) -> int:
    """The first of `length` tokens that are seen when the next is predicted: 0 up to the context,
    then in steps of half a context.
    """
    step = context // 2
    return max(0, -(-(length - context) // step)) * step


def padded(texts: Texts, device: torch.device) -> tuple[Tensor, Tensor]:
    """Texts as rows padded on the right [b, t], and their lengths [b] (not on the device)."""
    longest = max(map(len, texts))
    rows = [[*text, *[PADDING] * (longest - len(text))] for text in texts]
    return torch.tensor(rows, device=device), torch.tensor([len(text) for text in texts])


class Reading(ABC):
    """Texts that a network reads on; `hidden_bd` is its state after each one's last token."""

    hidden_bd: Tensor

    def __init__(self, texts: Texts) -> None:
        self.texts = [list(text) for text in texts]

    def append(self, tokens_b: Tensor) -> None:
        """One more token of each text."""
        for text, token in zip(self.texts, tokens_b.tolist(), strict=True):
            text.append(token)
        self._advance(tokens_b)

    def keep(self, rows: Sequence[int]) -> None:
        """These texts in this order, some perhaps more than once, others gone."""
        if list(rows) != list(range(len(self.texts))):
            self.texts = [list(self.texts[row]) for row in rows]
            index_r = torch.tensor(rows, device=self.hidden_bd.device)
            self.hidden_bd = self.hidden_bd.index_select(0, index_r)
            self._select(index_r)

    @abstractmethod
    def _advance(self, tokens_b: Tensor) -> None: ...

    @abstractmethod
    def _select(self, index_r: Tensor) -> None: ...


class CachedDecoder(Reading):
    """Texts that a Transformer reads on, and the keys and values [b, h, c, d] of their windows,
    layer by layer.
    """

    def __init__(self, decoder: Decoder, texts: Texts, longest: int) -> None:
        super().__init__(texts)
        self.decoder = decoder
        width, places = decoder.tokens.shape[1], min(longest, decoder.context)
        shape = (len(texts), decoder.heads, places, width // decoder.heads)
        self._layers = [
            (decoder.tokens.new_zeros(shape), decoder.tokens.new_zeros(shape))
            for _ in decoder.blocks
        ]
        self.hidden_bd = self._read(range(len(texts)))

    def _advance(self, tokens_b: Tensor) -> None:
        context, lengths = self.decoder.context, [len(text) for text in self.texts]
        starts = [window_start(length, context) for length in lengths]
        moved = [
            row
            for row, length in enumerate(lengths)
            if starts[row] != window_start(length - 1, context)
        ]
        if len(moved) == len(self.texts):
            self.hidden_bd = self._read(moved)
            return
        # those that moved take the step too, at a place of no matter, before they are read again
        places = [
            0 if row in moved else length - 1 - starts[row] for row, length in enumerate(lengths)
        ]
        self.hidden_bd = self._step(tokens_b, places)
        if moved:
            self.hidden_bd[moved] = self._read(moved)

    def _select(self, index_r: Tensor) -> None:
        self._layers = [
            (keys.index_select(0, index_r), values.index_select(0, index_r))
            for keys, values in self._layers
        ]

    def _read(self, rows_r: Sequence[int]) -> Tensor:
        """Read the windows of these rows, from position 0 on; the hidden state [r, d] after the
        last token of each.
        """
        device, context = self.decoder.tokens.device, self.decoder.context
        texts = [self.texts[row] for row in rows_r]
        index_r = torch.tensor(list(rows_r), device=device)
        tokens_rt, lengths_r = padded(
            [text[window_start(len(text), context) :] for text in texts], device
        )
        t = tokens_rt.shape[1]

        def cache(layer: tuple[Tensor, Tensor]) -> KeyValueCache:
            def keep_all(key_rhtd: Tensor, value_rhtd: Tensor) -> tuple[Tensor, Tensor]:
                for cached_bhcd, new_rhtd in zip(layer, (key_rhtd, value_rhtd), strict=True):
                    cached_bhcd[index_r, :, :t] = new_rhtd
                return key_rhtd, value_rhtd

            return keep_all

        # Padding comes last: nobody sees it.
        read: Hidden = self.decoder(tokens_rt, NO_DROPOUT, caches=list(map(cache, self._layers)))
        return read.hidden_btd[torch.arange(len(texts), device=device), lengths_r.to(device) - 1]

    def _step(self, tokens_b: Tensor, places: list[int]) -> Tensor:
        """The hidden state [b, d] of one more token of each row, which stands at that row's place
        and sees what stands up to there.
        """
        device, reach = tokens_b.device, max(places) + 1
        rows_b = torch.arange(len(places), device=device)
        places_b = torch.tensor(places, device=device)
        seen_b1c = torch.arange(reach, device=device) <= places_b[:, None, None]

        def cache(layer: tuple[Tensor, Tensor]) -> KeyValueCache:
            def keep_one(key_bh1d: Tensor, value_bh1d: Tensor) -> tuple[Tensor, Tensor]:
                for cached_bhcd, new_bh1d in zip(layer, (key_bh1d, value_bh1d), strict=True):
                    cached_bhcd[rows_b, :, places_b] = new_bh1d[:, :, 0]
                return layer[0][:, :, :reach], layer[1][:, :, :reach]

            return keep_one

        tree, caches = Tree(seen_b1c, places_b[:, None]), list(map(cache, self._layers))
        stepped: Hidden = self.decoder(tokens_b[:, None], NO_DROPOUT, tree=tree, caches=caches)
        return stepped.hidden_btd[:, 0]


class CachedLstm(Reading):
    """Texts that an LSTM reads on, and its state after each; `hidden_bd` is what its softmax
    reads.
    """

    def __init__(self, lstm: Lstm, texts: Texts) -> None:
        super().__init__(texts)
        self.lstm = lstm
        tokens_bt, lengths_b = padded(texts, lstm.tokens.device)
        hidden_btd, self._state = lstm.state_after(tokens_bt, lengths_b)
        self.hidden_bd = hidden_btd[torch.arange(len(texts)), lengths_b - 1]

    def _advance(self, tokens_b: Tensor) -> None:
        hidden, self._state = self.lstm.resume(tokens_b[:, None], self._state)
        self.hidden_bd = hidden.hidden_btd[:, 0]

    def _select(self, index_r: Tensor) -> None:
        self._state = State(*(part_bu.index_select(0, index_r) for part_bu in self._state))


def read(network: Network, texts: Texts, longest: int) -> Reading:
    """Texts, read by a network, to go on from; none will come to have more than `longest` tokens.
    Raises ValueError for an empty text.
    """
    if not all(map(len, texts)):
        raise ValueError(
            "expected texts of one token or more, found an empty one: a network says what comes"
            " after something"
        )
    if isinstance(network, Lstm):
        return CachedLstm(network, texts)
    return CachedDecoder(network, texts, longest)
