"""Imported weights in the place of a pre-training: what they make of the held-out books."""

import math
from typing import Any

import torch
from numpy.typing import NDArray

from gpt1.base.errors import UserError
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.lstm import Network
from gpt1.params.schema import Pretrain
from gpt1.train.launch import Machine
from gpt1.train.objectives import Pretraining


@torch.inference_mode()
def heldout_values(
    network: Network,
    recipe: Pretrain,
    windows_bt: NDArray[Any],
    words_per_token: float,
    machine: Machine,
) -> dict[str, float]:
    """Loss in nats a token over windows [b, context + 1], and perplexity for each token and for
    each word that the tokens make.

    Raises UserError where they are not finite.
    """
    device, rows, nats = torch.device(machine.device), machine.micro_batch_for(network.context), 0.0
    objective = Pretraining(network.to(device).eval(), recipe.precision)
    for start in range(0, len(windows_bt), rows):
        part_bt = torch.from_numpy(windows_bt[start : start + rows]).to(device)
        nats += float(objective(part_bt, NO_DROPOUT)["loss"]) * len(part_bt)
    loss = nats / len(windows_bt)
    if not math.isfinite(loss):
        raise UserError(
            "data/acquire/weights/official: expected a finite loss on the held-out books, found"
            " none; bring the weights again: gpt1 import FOLDER"
        )
    return {
        "heldout_loss": loss,
        "heldout_perplexity": math.exp(loss),
        "heldout_word_perplexity": math.exp(loss / words_per_token),
    }
