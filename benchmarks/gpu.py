"""What a GPU does with our pre-training: agreement with the CPU and with itself, two processes, and only
then how fast steps go, as a share of the GPU's own matrix products (MFU).

    python benchmarks/gpu.py [--size 117m] [--batch 64] [--rounds 10]

In the root of the checkout, on a machine with a GPU; windows and weights are made up.
"""

import os
import subprocess
import sys

import torch
import training_step
from measuring import named_size, our_step

from gpt1.train import launch
from gpt1.train.launch import Machine

TOLERANCE = 2e-3  # of ten losses in fp32
TWO = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def losses(machine: Machine) -> list[float]:
    """Of ten updates of a tiny network without dropout."""
    step = our_step(named_size("tiny", 8, "fp32", 0.0), machine)
    return [step()["loss"] for _ in range(10)]


def check(name: str, ours: list[float], others: list[float], most: float) -> None:
    """End where losses are further apart than `most`."""
    apart = max(abs(one - other) for one, other in zip(ours, others, strict=True))
    print(f"{name}: losses within {apart:.1e} (at most {most:.0e})", flush=True)
    if not apart <= most:
        sys.exit("what is wrong need not be fast: no step was measured")


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} finds no GPU here: nothing was measured")
    machine = launch.read_machine()
    launch.prepare(machine)
    gpu = losses(machine)
    if machine.launched:
        print(*gpu)
        return
    check("CPU", gpu, losses(Machine("cpu", machine.threads)), TOLERANCE)
    check("again", gpu, losses(machine), 1e-6)
    if torch.cuda.device_count() > 1:
        command = [sys.executable, *TWO, __file__]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        check("two processes", gpu, [float(word) for word in said.split()[:10]], TOLERANCE)
    ways = ["--ways", "ours", "ours-eager", "hf", "--batch", "64", "--rounds", "10"]
    sys.argv[1:] = [*ways, *sys.argv[1:]]
    training_step.main()


if __name__ == "__main__":
    os.environ |= {"GPT1_DEVICE": "cuda"}
    os.environ.setdefault("GPT1_PROCESSES", "1")
    main()
