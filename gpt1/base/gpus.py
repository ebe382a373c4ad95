"""The GPUs of this machine, and those that torch can use."""

import os
import sys

from gpt1.base.machine import output
from gpt1.base.settings import setting


def usable_gpus() -> int:
    """Return how many GPUs torch can use; warn on stderr where there are GPUs and torch can use
    none.
    """
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count and (there := visible_gpus()):
        print(
            f"warning: torch {torch.__version__} can use none of the GPUs {', '.join(there)}, and"
            " networks run on the CPU: install a driver and a build of torch that fit, or set"
            " GPT1_DEVICE=cpu",
            file=sys.stderr,
            flush=True,
        )
    return count


def visible_gpus() -> list[str]:
    """Return GPUs by number from CUDA_VISIBLE_DEVICES, else from nvidia-smi; none with
    GPT1_DEVICE=cpu.
    """
    if setting("GPT1_DEVICE") == "cpu":
        return []
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return named.split(",") if named else []
    return output("nvidia-smi", "--query-gpu=index", "--format=csv,noheader").split()
