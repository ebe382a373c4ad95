"""What this GPU does, in one command of about ten minutes: step, share of its peak, memory,
fine-tuning, resumption; a report of it.

    python benchmarks/gpu.py [--out data/logs/gpu]                             in the root of the checkout, on a machine with a GPU
    python benchmarks/gpu.py --device cpu --size tiny                          the same code without one

Writes report.md and report.json. Needs no network and no data: text, tasks and weights are made up.
One process, one GPU. Each part runs in a process of its own with a limit on its time; one that
fails is named in the report, the others go on, and the status is 1.
  step     pre-training at 64 x 512 in bf16 against a large product of the same type and the GPU's nominal peak, memory, slowest operators;
           beside Hugging Face's loop where transformers is installed
  agree    20 updates in fp32 without dropout by the engine of this device against the plain engine of the CPU: the losses
  finetune RTE's and SST-2's numbers and lengths of made-up rows, one epoch: rows/s, memory
  resume   the stage `pretrain` undisturbed, and again killed by SIGKILL after a checkpoint and gone on: the weights
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import made_up_run
import torch
from made_up_tasks import SHAPES, fresh_classifier, made_up_task, recipe_of
from our_step import PROFILES, named_size, our_step
from side_by_side import heading, in_own_process, machine_facts, output_of, peak_bytes, shown, table

from gpt1.base.files import read_json, write_json, writing
from gpt1.model.weights import read_tensors
from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.train import launch
from gpt1.train.batches import updates_in_epoch
from gpt1.train.finetuning import FinetuningRun, finetune_seed
from gpt1.train.launch import Machine

HERE = Path(__file__).resolve().parent
NOMINAL_FLOPS = {
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L4": 121e12,
}  # bf16, dense
PART_SECONDS = {"step": 270, "agree": 90, "finetune": 150, "resume": 240}
BATCHES = {"117m": 64, "4m": 256, "1m": 256, "tiny": 8}
UPDATES = {"117m": 240, "4m": 400, "1m": 400, "tiny": 120}  # of a resumed pre-training
AGREE_UPDATES, SEED = 20, 0


def this_machine(device: str) -> Machine:
    """One process on that device, ready to train."""
    os.environ |= {"GPT1_DEVICE": device, "GPT1_PROCESSES": "1"}
    machine = launch.read_machine()
    launch.prepare(machine)
    return machine


def gpu_bytes() -> int | None:
    """The most memory of the GPU that tensors of this process had."""
    return torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else None


def step(device: str, size: str, folder: Path) -> dict[str, Any]:
    """benchmarks/training_step.py, and the share of the GPU's nominal peak."""
    this_machine(device)
    out, ways = folder / "step.json", ["ours", *(["hf"] if find_spec("transformers") else [])]
    output_of(
        [
            str(HERE / "training_step.py"),
            "--size",
            size,
            "--batch",
            str(BATCHES[size]),
            "--precision",
            precision_on(device),
            "--ways",
            *ways,
            "--rounds",
            "8",
            "--warm-up",
            "3",
            "--profile",
            "--memory",
            "--json",
            str(out),
        ],
        None,
    )
    found: dict[str, Any] = read_json(out)
    name = torch.cuda.get_device_name() if device == "cuda" else ""
    found["nominal_flops"] = next(
        (flops for part, flops in NOMINAL_FLOPS.items() if part in name), None
    )
    return found


def precision_on(device: str) -> str:
    """bf16 but where the CPU would only emulate it."""
    return "fp32" if device == "cpu" and machine_facts()["cpu_bf16"] == "emulated" else "bf16"


def agree(device: str) -> dict[str, Any]:
    """Losses of the same updates by the engine of this device and by the CPU's plain one."""
    size = named_size("1m", 8, None, "fp32", 0.0)
    machine = this_machine(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    ours = our_step(size, size.network(), machine, True)
    plain = our_step(size, size.network(), replace(machine, device="cpu", compiled=False), False)
    losses = [(ours.take()["loss"], plain.take()["loss"]) for _ in range(AGREE_UPDATES)]
    return {
        "updates": AGREE_UPDATES,
        "last_losses": losses[-1],
        "largest_relative_difference": max(abs(a - b) / b for a, b in losses),
    }


def finetune(device: str, size: str, folder: Path) -> dict[str, Any]:
    """Rows a second of an epoch on made-up tasks."""
    profile, overrides, vocabulary = PROFILES[size]
    params, machine, found = validate(compose(profile, overrides)), this_machine(device), {}
    for name, shape in SHAPES.items():
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        task = made_up_task(
            name, 1.0 if device == "cuda" else 0.03, params.model.context, vocabulary
        )
        recipe, train = recipe_of(params, 1, precision_on(device)), task.splits["train"]
        updates = updates_in_epoch(len(train), recipe.batch_size, name)
        classifier, started = fresh_classifier(params, vocabulary, 2, SEED), time.perf_counter()
        run = FinetuningRun(classifier, recipe, task, SEED, machine, folder / "curve.jsonl", name)
        outcome = finetune_seed(run, lambda *_: None)
        seconds = time.perf_counter() - started
        found[name] = {
            "rows": len(train),
            "of_rows": shape.train,
            "seconds": seconds,
            "rows_per_second": updates * recipe.batch_size / seconds,
            "tokens_per_second": outcome.speed["tokens_per_second"],
            "dev_score": outcome.best_dev_score,
            "gpu_peak_bytes": gpu_bytes(),
            "peak_bytes": peak_bytes(),
        }
    return found


def resume(device: str, size: str, folder: Path) -> dict[str, Any]:
    """The stage's weights after an undisturbed run, and after one that was killed and went on."""
    settings = {"GPT1_DEVICE": device, "GPT1_PROCESSES": "1"}
    made_up_run.prepare(
        folder,
        size,
        2_000_000 if device == "cuda" else 100_000,
        [
            f"pretrain.updates={UPDATES[size]}",
            "pretrain.epochs=null",
            f"pretrain.batch_size={BATCHES[size]}",
            "pretrain.warmup_updates=10",
            f"pretrain.precision={precision_on(device)}",
            f"pretrain.heldout_updates={UPDATES[size]}",
            "pretrain.heldout_windows=64",
            "pretrain.checkpoint_minutes=0.02",
            "pretrain.dropout=0.1",
        ],
    )
    undisturbed = made_up_run.pretrain(folder, settings)
    _, expected = read_tensors(folder / made_up_run.OUT / "weights.safetensors")
    killed_at = kill_after_a_checkpoint(folder, settings)
    resumed = made_up_run.pretrain(folder, settings)
    _, found = read_tensors(folder / made_up_run.OUT / "weights.safetensors")
    return {
        "updates": UPDATES[size],
        "killed_after_checkpoint_of_update": killed_at,
        "equal_bits": undisturbed["sha256"] == resumed["sha256"],
        "largest_difference": max(
            float((found[name] - expected[name]).abs().max()) for name in expected
        ),
        "tokens_per_second": undisturbed["tokens_per_second"],
        "stage_seconds": undisturbed["stage_seconds"],
    }


def kill_after_a_checkpoint(folder: Path, settings: dict[str, str]) -> int | None:
    """Start the stage and kill it and its children a moment after its first checkpoint; that one's
    update, None if the run was faster.
    """
    child = subprocess.Popen(
        made_up_run.COMMAND,
        cwd=folder,
        env=made_up_run.environment(settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    newest = None
    while child.poll() is None and newest is None:
        newest = max(folder.glob("data/checkpoints/pretrain-transformer-*/update-*"), default=None)
        time.sleep(0.05)
    time.sleep(0.3)
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return int(newest.name.rpartition("-")[2]) if newest else None


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
    return (
        f"{found['updates']} updates, fp32, no dropout: the losses of DeepSpeed's engine here and"
        f" of the plain one on the CPU differ by {found['largest_relative_difference']:.0e} at"
        " most, relative"
    )


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
    end = (
        "the same bits"
        if found["equal_bits"]
        else f"weights that differ by {found['largest_difference']:.0e} at most"
    )
    return (
        f"{found['updates']} updates at {found['tokens_per_second']:,.0f} tokens/s; killed after"
        f" the checkpoint of update {found['killed_after_checkpoint_of_update']} and gone on: {end}"
    )


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "step": step_words,
    "agree": agree_words,
    "finetune": finetune_words,
    "resume": resume_words,
}


def child(part: str, device: str, size: str) -> dict[str, Any]:
    """One part, in this process."""
    with tempfile.TemporaryDirectory() as name:
        return {
            "step": lambda: step(device, size, Path(name)),
            "agree": lambda: agree(device),
            "finetune": lambda: finetune(device, size, Path(name)),
            "resume": lambda: resume(device, size, Path(name)),
        }[part]()


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
        help="folder of report.md and report.json",
    )
    options.add_argument("--child", choices=list(WORDS), help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.child:
        print(json.dumps(child(arguments.child, arguments.device, arguments.size)), flush=True)
        os._exit(0)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print(
            f"torch {torch.__version__} finds no GPU here: nothing was measured (--device cpu"
            " --size tiny runs the same code without)"
        )
        return
    facts, started, failed = machine_facts(), time.perf_counter(), []
    report, figures = [f"# This machine\n\n{heading(facts)}"], dict[str, Any]()
    for part in arguments.parts:
        begun = time.perf_counter()
        print(f"{part}: at most {arguments.limit * PART_SECONDS[part]:.0f} s", flush=True)
        try:
            figures[part] = in_own_process(
                [
                    str(Path(__file__)),
                    "--device",
                    arguments.device,
                    "--size",
                    arguments.size,
                    "--child",
                    part,
                ],
                arguments.limit * PART_SECONDS[part],
            )
            words = WORDS[part](figures[part])
        except RuntimeError as error:
            failed.append(part)
            words = f"failed:\n\n```\n{error}\n```"
        report.append(f"## {part} ({time.perf_counter() - begun:.0f} s)\n\n{words}")
        print(f"{words}\n", flush=True)
    report.append(f"{time.perf_counter() - started:.0f} s in all")
    with writing(arguments.out / "report.md") as file:
        file.write("\n\n".join(report) + "\n")
    write_json(arguments.out / "report.json", {"machine": facts, "failed": failed, **figures})
    print(
        f"{arguments.out}/report.md, {arguments.out}/report.json"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
