"""What a GPU does with our pre-training: agreement with the CPU and with itself, two processes, and only
then how fast steps go, as a share of the GPU's own matrix products (MFU).

    python benchmarks/gpu.py [--size 117m] [--batch 64] [--rounds 10] [--json FILE]

In the root of the checkout, on a machine with a GPU; windows and weights are made up.
"""

import os
import subprocess
import sys
from dataclasses import replace

import torch
from our_step import PROFILES, Size, named_size, our_step
from side_by_side import (
    finish,
    heading,
    in_turn,
    largest_product,
    machine_facts,
    parser,
    rates,
    shown,
    table,
)

from gpt1.train import launch
from gpt1.train.launch import Machine

TOLERANCE = 2e-3  # of ten losses in fp32
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def losses(size: Size, machine: Machine, updates: int) -> list[float]:
    """Of the first updates, without dropout."""
    step = our_step(size, size.network(), machine)
    return [step.take()["loss"] for _ in range(updates)]


def check(name: str, ours: list[float], others: list[float], most: float) -> None:
    """End where losses are further apart than `most`."""
    apart = max(abs(one - other) for one, other in zip(ours, others, strict=True))
    print(f"{name}: losses within {apart:.1e} (at most {most:.0e})")
    if not apart <= most:
        sys.exit("what is wrong need not be fast: no step was measured")


def main() -> None:
    options = parser(__doc__ or "", rounds=10)
    options.add_argument("--size", choices=sorted(PROFILES), default="117m")
    options.add_argument("--batch", type=int, default=64, help="windows an update (default 64)")
    options.add_argument("--losses", action="store_true", help="only those of ten tiny updates")
    arguments = options.parse_args()
    if not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} finds no GPU here: nothing was measured")
    machine = launch.read_machine()
    launch.prepare(machine)
    tiny = named_size("tiny", 8, None, "fp32", 0.0)
    gpu = losses(tiny, machine, 10)
    if arguments.losses:
        print(*gpu)
        return
    check("CPU", gpu, losses(tiny, Machine("cpu", machine.threads), 10), TOLERANCE)
    check("again", gpu, losses(tiny, machine, 10), 1e-6)
    if torch.cuda.device_count() > 1:
        command = [sys.executable, *TWO, __file__, "--losses"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        check("two processes", gpu, [float(word) for word in said.split()[:10]], TOLERANCE)

    size = named_size(arguments.size, arguments.batch, None, "bf16", 0.1)
    product = largest_product(torch.bfloat16, torch.device("cuda"), 1.0)
    ways = {
        name: our_step(size, size.network(), replace(machine, compiled=compiled)).take
        for name, compiled in (("compiled", True), ("not compiled", False))
    } | {"product": product.way(torch.bfloat16, torch.device("cuda"))}
    _, seconds = in_turn(ways, 3, arguments.rounds)
    limit = rates(seconds.pop("product"), product.flops())["median"]
    tokens = arguments.batch * size.model.context
    rows = []
    for name, own in seconds.items():
        per_second = rates(own, tokens)
        mfu = per_second["median"] * size.flops_per_token() / limit
        rows.append([name, shown(per_second, 0), f"{mfu:.2f}"])
    facts = machine_facts()
    print(heading(facts))
    print(table(["step", "tokens/s", "MFU"], rows))
    finish(arguments.json, facts, {"seconds": seconds})


if __name__ == "__main__":
    os.environ |= {"GPT1_DEVICE": "cuda"}
    os.environ.setdefault("GPT1_PROCESSES", "1")
    main()
