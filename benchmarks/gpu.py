"""What this GPU does, in one command of 35 minutes at most, or any part of it: first whether it is
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
found is on disk as soon as it is there: PART.json and report.md. Where one of the first four fails,
those after it are not begun: what is wrong need not be fast. Status 1 where one failed.
  tests        tests/test_gpu.py: golden numbers, mask bits, CPU against GPU, no waits, resumption
  agree        20 updates in fp32, and compiled in bf16, against the CPU: the losses
  processes    two processes that share the GPU by gloo, with ZeRO and without, against one
  resume       the stage `pretrain` undisturbed, and again killed by SIGKILL after a checkpoint and gone on: the bits
  step         pre-training at 64 x 512 in bf16 against a large product of the same type and the GPU's nominal peak, memory, slowest operators
  sweep        the same by windows an update
  finetune     numbers and lengths of RTE's, SST-2's and RACE's rows, made up, one epoch: rows/s, memory
  evaluate     held-out loss and a task's logits: tokens/s
  hugging_face the step of Hugging Face's model, where transformers is installed
  recipe       the stage `pretrain` for ten minutes: held-out loss, skipped updates, a checkpoint after SIGTERM
"""

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from our_step import PROFILES
from side_by_side import heading, in_own_process, machine_facts, shown, table

from gpt1.base.files import write_json, writing

# which must be right first, and seconds of each part: 35 minutes together
CORRECT = ("tests", "agree", "processes", "resume")
PART_SECONDS = {
    "tests": 240,
    "agree": 120,
    "processes": 120,
    "resume": 240,
    "step": 240,
    "sweep": 180,
    "finetune": 210,
    "evaluate": 60,
    "hugging_face": 90,
    "recipe": 600,
}


def millions(bytes_: float | None) -> str:
    return f"{bytes_ / 1e6:,.0f}" if bytes_ else "-"


def listed(chosen: dict[str, dict[str, str]]) -> str:
    return "; ".join(
        f"{way}: {', '.join(f'{name} {value}' for name, value in row.items())}"
        for way, row in chosen.items()
    )


def step_words(found: dict[str, Any]) -> str:
    nominal, rows = found["nominal_flops"], []
    for way, row in found["ways"].items():
        share = (
            found["flops_per_token"] * row["tokens_per_second"]["median"] / nominal
            if nominal
            else None
        )
        memory = found["memory"][way]
        rows.append(
            [
                way,
                shown(row["tokens_per_second"], 0),
                f"{row['share_of_limit']:.1%}",
                f"{share:.1%}" if share else "-",
                shown(row["times_hf"], 2) if row["times_hf"] else "-",
                f"{row['warm_up_seconds']:.0f}",
                millions(memory["cuda_bytes"]),
                millions(memory["peak_bytes"]),
            ]
        )
    head = [
        "way",
        "tokens/s: median (least to most)",
        "share of a large product",
        "share of the nominal peak",
        "times Hugging Face",
        "warm-up, s",
        "peak of the GPU, MB",
        "peak of the process, MB",
    ]
    return (
        f"{found['size']}, {found['batch']} x {found['context']}, {found['precision']}, dropout"
        f" {found['dropout']}; "
        f"{found['flops_per_token'] / 1e6:.0f} MFLOP a token; a large product:"
        f" {found['limit_flops']['median'] / 1e12:.1f} TFLOP/s\n\n"
        f"{table(head, rows)}\n\n{listed(found['chosen'])}\n\n```\n{found['profile']}\n```"
    )


def agree_words(found: dict[str, Any]) -> str:
    return "; ".join(
        f"{precision}: the losses of {row['updates']} updates without dropout by {row['engine']},"
        f" compiled: {row['compiled']}, and by the CPU's differ by {row['apart']:.0e} at most,"
        " relative"
        for precision, row in found.items()
    )


def processes_words(found: dict[str, Any]) -> str:
    return "; ".join(
        f"{what}: losses within {apart:.0e} of one process's" for what, apart in found.items()
    )


def sweep_words(found: dict[str, Any]) -> str:
    return table(
        ["windows", "ms an update", "tokens/s", "TFLOP/s", "peak of the GPU, MB"],
        [
            [
                batch,
                f"{1e3 * row['seconds']:,.1f}",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['flops_per_second'] / 1e12:,.1f}",
                millions(row["gpu_peak_bytes"]),
            ]
            for batch, row in found.items()
        ],
    )


def evaluate_words(found: dict[str, Any]) -> str:
    return "; ".join(f"{what}: {rate:,.0f} tokens/s" for what, rate in found.items())


def recipe_words(found: dict[str, Any]) -> str:
    return (
        f"{found['updates']} updates at {found['tokens_per_second'] or 0:,.0f} tokens/s, start"
        f" included; {found['skipped_updates']} skipped; held-out losses {found['heldout_losses']};"
        f" {' '.join(found['said_last'])}"
    )


def tests_words(found: dict[str, Any]) -> str:
    return f"tests/test_gpu.py: {found['passed']} passed, {found['skipped']} skipped"


def finetune_words(found: dict[str, Any]) -> str:
    return table(
        [
            "made-up rows as",
            "rows",
            "seconds",
            "rows/s",
            "tokens/s",
            "dev accuracy",
            "peak of the GPU, MB",
        ],
        [
            [
                name,
                row["rows"],
                f"{row['seconds']:.1f}",
                f"{row['rows_per_second']:,.0f}",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['dev_score']:.3f}",
                millions(row["gpu_peak_bytes"]),
            ]
            for name, row in found.items()
        ],
    )


def resume_words(found: dict[str, Any]) -> str:
    return (
        f"{found['updates']} updates at {found['tokens_per_second']:,.0f} tokens/s; killed after"
        f" the checkpoint of update {found['killed_after_checkpoint_of_update']} and gone on: the same bits"
    )


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "tests": tests_words,
    "agree": agree_words,
    "processes": processes_words,
    "resume": resume_words,
    "step": step_words,
    "sweep": sweep_words,
    "finetune": finetune_words,
    "evaluate": evaluate_words,
    "hugging_face": step_words,
    "recipe": recipe_words,
}


def taken(part: str, arguments: argparse.Namespace) -> tuple[str, bool]:
    """What a part says for the report, and whether it failed; its figures go to disk."""
    seconds = arguments.limit * PART_SECONDS[part]
    print(f"{part}: at most {seconds:.0f} s", flush=True)
    if part == "hugging_face" and not find_spec("transformers"):
        return "left out: transformers is not installed", False
    script = str(Path(__file__).with_name("gpu_parts.py"))
    own = [script, part, arguments.device, arguments.size, str(seconds), arguments.shards]
    try:
        found = in_own_process(own, seconds)
    except RuntimeError as error:
        write_json(arguments.out / f"{part}.json", {"failed": str(error)})
        return f"failed:\n\n```\n{error}\n```", True
    write_json(arguments.out / f"{part}.json", found)
    return WORDS[part](found), False


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options.add_argument("--size", choices=sorted(PROFILES), default="117m")
    options.add_argument("--parts", nargs="+", choices=list(WORDS), default=list(WORDS))
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
        help="folder of report.md and of each part's figures (default data/logs/gpu)",
    )
    options.add_argument("--shards", default="", help="a run's data/shard, for `recipe`")
    arguments = options.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print(
            f"torch {torch.__version__} finds no GPU here: nothing was measured (--device cpu"
            " --size tiny runs the same code without)"
        )
        return
    facts, started, failed = machine_facts(), time.perf_counter(), list[str]()
    report = [f"# This machine\n\n{heading(facts)}"]
    write_json(arguments.out / "machine.json", facts)
    for part in arguments.parts:
        begun = time.perf_counter()
        wrong = [name for name in failed if name in CORRECT]
        if wrong:
            words = f"not begun: {', '.join(wrong)} failed"
        else:
            words, fails = taken(part, arguments)
            failed += [part] * fails
        report.append(f"## {part} ({time.perf_counter() - begun:.0f} s)\n\n{words}")
        print(f"{words}\n", flush=True)
        with writing(arguments.out / "report.md") as file:
            file.write("\n\n".join(report) + "\n")
    print(
        f"{arguments.out}/report.md after {time.perf_counter() - started:.0f} s"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
