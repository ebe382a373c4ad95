"""What this GPU does, in one command of 39 minutes at most, or any part of it: first whether it is
right, then how fast; a report of it.

    python benchmarks/gpu.py [--out data/logs/gpu] [--shards data/shard]       in the root of the checkout, on a machine with a GPU
    python benchmarks/gpu.py --parts step sweep                                some of it
    python benchmarks/gpu.py --device cpu --size tiny                          the same code without one

On a machine without network, whose Python has torch, bring what it lacks as wheels, DeepSpeed's and
Hydra's among them; nothing is built:

    python -m pip install --no-index --no-deps --target SITE WHEELS/*.whl
    PYTHONPATH=SITE:$PWD python benchmarks/gpu.py

Needs no network and no data: text, tasks and weights are made up, but for the books of --shards.
One process, one GPU. Each part runs in a process of its own with a limit on its time, and what it
found is on disk as soon as it is there: PART.json and report.md, which ends with what was predicted
(step_budget.csv) beside what was measured. Where one of the first four fails, those after it are
not begun: what is wrong need not be fast. Status 1 where one failed. `--parts` alone: the report of
all PART.json in the folder again.
  tests        tests/test_gpu.py: golden numbers, mask bits, CPU against GPU, no waits, resumption
  agree        20 updates in fp32, and compiled in bf16, against the CPU: the losses
  processes    two processes that share the GPU by gloo, with ZeRO and without, against one
  resume       the stage `pretrain` undisturbed, and again killed by SIGKILL after a checkpoint and gone on: the bits
  step         pre-training at 64 x 512 in bf16 against a large product of the same type and the GPU's nominal peak, memory, slowest operators
  kernels      GPT1_KERNELS=1: tests/test_kernels.py, 20 updates with dropout against the CPU's, the same step beside one without
  sweep        the same by windows an update
  finetune     numbers and lengths of RTE's, SST-2's and RACE's rows, made up, one epoch: rows/s, memory
  evaluate     held-out loss and a task's logits: tokens/s
  plain_loop   the step of a short script's GPT: torch.compile, fused attention, torch's own dropout
  hugging_face the step of Hugging Face's model, where transformers is installed
  recipe       the stage `pretrain` for eight minutes: held-out loss, skipped updates, a checkpoint after SIGTERM
"""

import argparse
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from gpu_report import WORDS, report
from our_step import PROFILES
from side_by_side import in_own_process, machine_facts

from gpt1.base.files import write_json, writing

# which must be right first, and seconds of each part: 39 minutes together
CORRECT = ("tests", "agree", "processes", "resume")
PART_SECONDS = {
    "tests": 240,
    "agree": 120,
    "processes": 120,
    "resume": 240,
    "step": 240,
    "kernels": 240,
    "sweep": 180,
    "finetune": 210,
    "evaluate": 60,
    "plain_loop": 90,
    "hugging_face": 90,
    "recipe": 510,
}


def taken(part: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a part found, or what it said where it failed or was left out."""
    if part == "hugging_face" and not find_spec("transformers"):
        return {"said": "left out: transformers is not installed"}
    if part == "kernels" and arguments.device == "cpu":
        return {"said": "left out: on a CPU pytest tests/test_kernels.py has them interpreted"}
    seconds = arguments.limit * PART_SECONDS[part]
    print(f"{part}: at most {seconds:.0f} s", flush=True)
    script = str(Path(__file__).with_name("gpu_parts.py"))
    own = [script, part, arguments.device, arguments.size, str(seconds), arguments.shards]
    try:
        return {"found": in_own_process(own, seconds)}
    except RuntimeError as error:
        return {"said": f"failed:\n\n```\n{error}\n```", "failed": True}


def save_report(out: Path) -> None:
    with writing(out / "report.md") as file:
        file.write(report(out))


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options.add_argument("--size", choices=sorted(PROFILES), default="117m")
    options.add_argument("--parts", nargs="*", choices=list(WORDS), default=list(WORDS))
    options.add_argument(
        "--limit",
        type=float,
        default=1.0,
        help="times the ordinary limits on the parts' time (default 1)",
    )
    options.add_argument(
        "--out",
        type=Path,
        default=Path("data/logs/gpu"),
        help="folder of report.md and of each part's figures, earlier calls' too (default"
        " data/logs/gpu)",
    )
    options.add_argument("--shards", default="", help="a run's data/shard, for `recipe`")
    arguments = options.parse_args()
    if arguments.parts and arguments.device == "cuda" and not torch.cuda.is_available():
        print(
            f"torch {torch.__version__} finds no GPU here: nothing was measured (--device cpu"
            " --size tiny runs the same code without)"
        )
        return
    os.environ.setdefault("GPT1_MLFLOW", "off")
    out, started, failed = arguments.out, time.perf_counter(), list[str]()
    if arguments.parts:
        write_json(out / "machine.json", machine_facts())
    elif not (out / "machine.json").exists():
        sys.exit(f"{out}: expected machine.json and PART.json of earlier calls, found neither")
    for part in arguments.parts:
        begun = time.perf_counter()
        wrong = [name for name in failed if name in CORRECT]
        words = f"not begun: {', '.join(wrong)} failed"
        figures = {"said": words} if wrong else taken(part, arguments)
        failed += [part] * ("failed" in figures)
        write_json(out / f"{part}.json", {"seconds": time.perf_counter() - begun, **figures})
        save_report(out)
        print(f"{figures.get('said') or WORDS[part](figures['found'])}\n", flush=True)
    save_report(out)
    print(
        f"{out}/report.md after {time.perf_counter() - started:.0f} s"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
