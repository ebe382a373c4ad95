"""For the benchmarks: a plain training loop, as a short script writes it: autocast, torch's own
clipping and fused AdamW.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import torch
from our_step import Size, windows_of
from torch.nn import functional as F

from gpt1.model.gpt import Decoder


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
