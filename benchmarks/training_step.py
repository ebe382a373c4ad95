"""Our pre-training step against Hugging Face's OpenAIGPTLMHeadModel in a plain loop, and against
the limit of matrix products.

    python benchmarks/training_step.py [--size 117m] [--batch 4] [--precision bf16] [--dropout 0.1] [--ways ours hf …]

In the root of the checkout. The ways are measured in turn in one process: the same sizes, weights,
windows, threads, dropout, clipping.
  ours           as the pipeline trains here: its engine, its micro-batches, forward, backward, clip, Adam
  ours-eager     the same without torch.compile
  hf             a short script: autocast where bf16, torch's clipping and fused AdamW, the whole batch at once
  hf-compiled    the same through torch.compile
The limit is that of a large product of the same type (fp32 where the processor has no bf16), taken in turn
with the steps; share = operations of the model's own products a token (half of attention is masked,
so not counted) x tokens/s / limit. The first two calls of each way, compilation included, do not count.
glibc is told to keep memory, as our training does, for all.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from statistics import median

import torch
from measuring import (
    PROFILES,
    Size,
    check_equal,
    hugging_face,
    in_turn,
    largest_product,
    named_size,
    our_step,
    parser,
    prepared_machine,
    rates,
    spread,
    table,
    times_faster,
)
from torch.nn import functional as F

from gpt1.train.launch import Machine
from gpt1.train.speed import arithmetic

WAYS = ("ours", "ours-eager", "hf", "hf-compiled")
BATCHES = {"117m": 4, "4m": 32, "1m": 32, "tiny": 8}
LIMIT, WARM_UP = "limit", 2


def plain_step(size: Size, compiled: bool, device: torch.device) -> Callable[[], float]:
    """The next update of a plain loop, at every call: the loss of the batch, which has one target
    fewer a window than ours, for it shifts within the window that it is given.
    """
    recipe, updates, ours = size.recipe, count(1), size.network()
    model = hugging_face(ours, size.model, recipe.dropout)
    with torch.no_grad():
        tokens_1t = torch.from_numpy(size.windows(0)[:1, : min(64, size.model.context)])
        found = model.eval()(input_ids=tokens_1t).logits
        check_equal(F.linear(ours(tokens_1t).hidden_btd, ours.tokens), found)
    model.train().to(device)
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
        tokens_bt = torch.from_numpy(size.windows(next(updates))[:, :-1]).to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=recipe.precision == "bf16"):
            loss = forward(input_ids=tokens_bt, labels=tokens_bt).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_gradient_norm)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def make(way: str, size: Size, machine: Machine) -> Callable[[], object]:
    """A step of that way, not yet warm."""
    if way.startswith("hf"):
        return plain_step(size, way == "hf-compiled", torch.device(machine.device))
    return our_step(size, replace(machine, compiled=False) if way == "ours-eager" else machine)


def main() -> None:
    options = parser(__doc__, rounds=5)
    options.add_argument("--size", choices=sorted(PROFILES), default="117m")
    options.add_argument("--batch", type=int, help=f"windows an update (default: {BATCHES})")
    options.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    options.add_argument("--dropout", type=float, default=0.1)
    options.add_argument("--ways", nargs="+", choices=WAYS, default=["ours", "hf"])
    given = options.parse_args()
    machine = prepared_machine()
    device = torch.device(machine.device)
    size = named_size(
        given.size, given.batch or BATCHES[given.size], given.precision, given.dropout
    )
    dtype = torch.bfloat16 if arithmetic(device, given.precision) == "bf16" else torch.float32
    product = largest_product(dtype, device)
    ways = {way: make(way, size, machine) for way in given.ways}
    seconds = in_turn(ways | {LIMIT: product.way(dtype, device)}, WARM_UP, given.rounds)
    limit = rates(seconds[LIMIT], product.flops())
    print(
        f"{given.size}, {size.recipe.batch_size} x {size.model.context} tokens, {given.precision},"
        f" dropout {given.dropout}\nlimit: {spread([rate / 1e9 for rate in limit], 0)} GFLOP/s, a"
        f" product of two matrices of {product.side}^2 in {dtype}; the model's products:"
        f" {size.flops_per_token() / 1e6:.0f} MFLOP a token\n"
    )
    rows = []
    for way in given.ways:
        per_second = rates(seconds[way], size.tokens())
        share = size.flops_per_token() * median(per_second) / median(limit)
        times = times_faster(seconds[way], seconds["hf"]) if "hf" in seconds else "-"
        rows.append([way, spread(per_second, 0), f"{share:.2f}", times])
    header = ["way", "tokens/s: median (least to most)", "share of the limit"]
    print(table([*header, "times Hugging Face"], rows))


if __name__ == "__main__":
    main()
