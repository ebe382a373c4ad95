"""What a GPU does with our training: whether it is right (tests/test_gpu.py), and only then how fast
pre-training steps go, compiled and not, and the most memory that they take.

    python benchmarks/gpu.py [--size 117m] [--batch 64] [--rounds 10] [--json FILE]

In the root of the checkout, on a machine with a GPU; windows and weights are made up. training_step.py
sets the same step beside other code's, finetuning.py a fine-tuning.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import torch
from our_step import PROFILES, named_size, our_step
from side_by_side import finish, heading, in_turn, machine_facts, parser, rates, shown, table

from gpt1.train import launch

TESTS = Path(__file__).resolve().parents[1] / "tests" / "test_gpu.py"
WARM_UP = 3


def main() -> None:
    options = parser(__doc__ or "", rounds=10)
    options.add_argument("--size", choices=sorted(PROFILES), default="117m")
    options.add_argument("--batch", type=int, default=64, help="windows an update (default 64)")
    arguments = options.parse_args()
    if not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} finds no GPU here: nothing was measured")
    if subprocess.run([sys.executable, "-m", "pytest", "-p", "no:xdist", str(TESTS)]).returncode:
        sys.exit("what is wrong need not be fast: nothing was measured")
    os.environ |= {"GPT1_DEVICE": "cuda", "GPT1_PROCESSES": "1"}
    facts, machine = machine_facts(), launch.read_machine()
    launch.prepare(machine)
    size = named_size(arguments.size, arguments.batch, None, "bf16", 0.1)
    tokens, rows, found = arguments.batch * size.model.context, [], {}
    for way, compiled in (("compiled", True), ("not compiled", False)):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        step = our_step(size, size.network(), replace(machine, compiled=compiled), False)
        warm, seconds = in_turn({way: step.take}, WARM_UP, arguments.rounds)
        rate, memory = rates(seconds[way], tokens), torch.cuda.max_memory_allocated()
        flops = rate["median"] * size.flops_per_token()
        found[way] = {"tokens_a_second": rate, "flops": flops, "bytes": memory, **step.chosen}
        rows.append(
            (way, shown(rate, 0), f"{flops / 1e12:.1f}", f"{memory / 1e9:.1f}", f"{warm[way]:.0f}")
        )
    print(heading(facts))
    header = ("step", "tokens/s", "TFLOP/s of products", "GB of the GPU", f"first {WARM_UP}, s")
    print(table(header, rows))
    finish(arguments.json, facts, found)


if __name__ == "__main__":
    main()
