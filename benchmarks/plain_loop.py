"""For the benchmarks: a plain training loop, and GPT-1 for it as a short script writes it: one
compiled module, torch's fused attention and its own dropout, autocast, its fused AdamW; no more.
"""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import torch
from our_step import Size, windows_of
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.gpt import Decoder

PADDED_TO = 128  # rows of the token embeddings: products of other numbers are slow


class Made(NamedTuple):
    """The mean loss where labels are given, else the logits [b, t, vocabulary]."""

    loss: Tensor | None
    logits: Tensor | None


class PlainGPT(nn.Module):
    """Our sizes and weights in one forward pass."""

    def __init__(self, size: Size, ours: Decoder) -> None:
        super().__init__()
        self.vocabulary, self.heads, self.rate = size.vocabulary, ours.heads, size.recipe.dropout
        self.blocks, self.positions = ours.blocks, nn.Parameter(ours.positions.detach().clone())
        rows = F.pad(ours.tokens.detach(), (0, 0, 0, -size.vocabulary % PADDED_TO))
        self.tokens = nn.Parameter(rows)

    def drop(self, x: Tensor) -> Tensor:
        """Torch's dropout."""
        return F.dropout(x, self.rate, self.training)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> Made:
        """Of token ids [b, t]; each state is to tell the label of the next place."""
        b, t = input_ids.shape
        rate = self.rate if self.training else 0.0
        x_btd = self.drop(F.embedding(input_ids, self.tokens) + self.positions[:t])
        for block in self.blocks:
            qkv_3bhtd = block.qkv(x_btd).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mixed_bhtd = F.scaled_dot_product_attention(*qkv_3bhtd, dropout_p=rate, is_causal=True)
            attended_btd = block.projection(mixed_bhtd.transpose(1, 2).reshape(b, t, -1))
            x_btd = block.attention_norm(x_btd + self.drop(attended_btd))
            fed_btd = block.contract(F.gelu(block.expand(x_btd), approximate="tanh"))
            x_btd = block.feed_forward_norm(x_btd + self.drop(fed_btd))
        logits_btv = F.linear(x_btd, self.tokens)[..., : self.vocabulary]
        if labels is None:
            return Made(None, logits_btv)
        predicted = logits_btv[:, :-1].float().flatten(0, 1)
        return Made(F.cross_entropy(predicted, labels[:, 1:].flatten()), None)


@torch.no_grad()
def check_equal(size: Size, ours: Decoder, theirs: Any) -> float:
    """The largest difference of logits on a short text, no dropout, relative to the largest; ends
    the program above 1e-4.
    """
    tokens_1t = torch.from_numpy(windows_of(size)(0)[:1, : min(64, size.model.context)])
    expected = F.linear(ours(tokens_1t).hidden_btd, ours.tokens)
    found = theirs.eval()(input_ids=tokens_1t).logits
    theirs.train()
    difference = float((found - expected).abs().max() / expected.abs().max())
    if not difference < 1e-4:
        raise SystemExit(
            "expected the other model to give our logits with our weights, found a difference of"
            f" {difference:.0e}"
        )
    return difference


def plain_step(size: Size, model: Any, compiled: bool, device: torch.device) -> Callable[[], float]:
    """The next update of a plain loop, at every call: autocast where bf16, clip, torch's fused
    AdamW. The loss of the batch.

    The loss has one target fewer a window than ours: it shifts within the window that it is given.
    """
    recipe, windows_at, updates = size.recipe, windows_of(size), count(1)
    model.to(device)
    forward = torch.compile(model) if compiled else model
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": recipe.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=recipe.learning_rate / recipe.warmup_updates,
        betas=(recipe.beta1, recipe.beta2),
        fused=True,
    )

    def step() -> float:
        tokens_bt = torch.from_numpy(windows_at(next(updates))[:, :-1]).to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=recipe.precision == "bf16"):
            loss = forward(input_ids=tokens_bt, labels=tokens_bt).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_gradient_norm)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step
