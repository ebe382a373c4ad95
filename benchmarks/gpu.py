"""What a GPU does with this code, in parts that each stand alone: a process with a time limit, a
section of a report in Markdown.

    python benchmarks/gpu.py [--minutes 9] [--parts agreement memory …] [--size tiny] [--report FILE]

In the root of the checkout, on a machine with a GPU; windows, weights and corpus are made up. A part that fails, takes too long or finds
no GPU is a line of the report, and the others go on. GPT1_DEVICE=cpu with --size tiny rehearses it without a GPU.
  machine        GPU, torch, and how fast it multiplies large bf16 matrices
  agreement      losses of 20 updates against the CPU's: fp32, bf16, compiled, the LSTM; fused attention
  speed          pre-training as the pipeline does it, with dropout: tokens/s, MFU
  resume         the stage, ended and gone on with, against one undisturbed: sha256 of every output
  processes      two on one device over gloo, by DeepSpeed, against one
  hugging-face   our step and Hugging Face's model in a plain loop, in turn
  memory         what pre-training takes with the rows that are chosen for a GPU of 24 GB, and for this one
MFU = operations of the model's own products a token (half of attention not counted) x tokens/s / the GPU's peak in bf16 by its data sheet.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import measuring
import numpy as np
import torch
from measuring import PROFILES, TINY, Size, heading, in_turn, named_size, our_step, spread, table
from training_step import make

from gpt1.base.machine import cores, setting
from gpt1.corpus.shards import write_index
from gpt1.estimate import PEAKS
from gpt1.model.lstm import Lstm
from gpt1.params.profile import compose
from gpt1.params.yaml import write_yaml
from gpt1.train import launch
from gpt1.train.launch import Machine
from gpt1.train.speed import rows_that_fit

Rows = Iterator[tuple[str, str]]  # what, and what was found
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
STAGE = ["-m", "gpt1.stages", "pretrain", "transformer", "0"]
LOSSES, ROUNDS, VOCABULARY, ONE_OF_TWO = 20, 10, 2000, "one-of-two"
RESUMED = [
    "pretrain.updates=120",
    "pretrain.warmup_updates=10",
    "pretrain.heldout_updates=60",
    "pretrain.dropout=0.1",
    "pretrain.precision=bf16",
    "pretrain.checkpoint_minutes=0.002",
]


def losses(size: Size, machine: Machine, network: Lstm | None = None) -> list[float]:
    """Of the first updates."""
    step = our_step(size, machine, network)
    return [step()["loss"] for _ in range(LOSSES)]


def rows_of(said: Iterable[str]) -> list[list[str]]:
    """Among the lines that a process has said, those of a part."""
    return [json.loads(line) for line in said if line.startswith('["')]


def compared(
    name: str, found: Sequence[float], expected: Sequence[float], most: float
) -> tuple[str, str]:
    """A row: how far two lists are apart, relative to 1 or to what is expected."""
    pairs = zip(found, expected, strict=True)
    apart = max(abs(one - other) / max(1.0, abs(other)) for one, other in pairs)
    return name, f"{'ok' if apart <= most else '**WRONG**'}: within {apart:.1e}, at most {most:.0e}"


def facts(machine: Machine, _size: Size) -> Rows:
    device = torch.device(machine.device)
    yield "machine", heading().strip()
    product = measuring.largest_product(torch.bfloat16, device, 0.2)
    seconds = min(in_turn({"": product.way(torch.bfloat16, device)}, 1, 3)[""])
    yield f"product of bf16 matrices of {product.side}^2", f"{product.flops() / seconds:.2e} FLOP/s"


def agreement(machine: Machine, _size: Size) -> Rows:
    cpu, eager = replace(machine, device="cpu"), replace(machine, compiled=False)
    size, low = (named_size("tiny", 8, precision, 0.0) for precision in ("fp32", "bf16"))
    expected, found = losses(size, cpu), losses(low, eager)
    yield compared("fp32", losses(size, eager), expected, 1e-4)
    yield compared("bf16 against fp32", found, expected, 2e-2)
    if machine.device == "cuda":  # a CPU takes minutes to compile
        compiled = losses(low, replace(machine, compiled=True))
        yield compared("bf16 compiled against not", compiled, found, 1e-2)
    ours, others = (
        losses(size, at, Lstm(size.model, 96, size.vocabulary, torch.Generator().manual_seed(0)))
        for at in (eager, cpu)
    )
    yield compared("LSTM fp32", ours, others, 1e-4)
    network = size.network().to(machine.device)
    tokens = torch.from_numpy(size.windows(0)[:, :-1]).to(machine.device)
    hidden = []
    for fused in (True, False):
        network.speed_up(False, fused)
        hidden.append(network(tokens).hidden_btd.flatten().tolist())
    yield compared("attention fused against written out", *hidden, 1e-4)


def speed(machine: Machine, size: Size) -> Rows:
    seconds = in_turn({"": our_step(size, machine)}, 4, ROUNDS)[""]
    each = measuring.rates(seconds, size.tokens())
    peak = next((peak for name, peak in PEAKS.items() if name in heading()), None)
    yield f"tokens/s, {size.recipe.batch_size} x {size.model.context} an update", spread(each, 0)
    flops = size.flops_per_token() * median(each)
    yield "MFU", f"{flops / peak:.1%}" if peak else "no peak is known"


def resume(machine: Machine, _size: Size) -> Rows:
    environment = os.environ | {"PYTHONPATH": str(Path.cwd()), "GPT1_MLFLOW": "off"}
    compiled = str(int(machine.device == "cuda"))
    environment |= {"GPT1_DETERMINISTIC": "1", "GPT1_COMPILE": compiled}
    params = compose("demo", [*TINY, *RESUMED])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        outputs, checkpoints = folder / "data/pretrain", folder / "data/checkpoints"
        write_yaml(folder / "params.yaml", params, "demo")
        write_shards(folder / "data/shard")

        def status(kill: bool) -> int:
            process = subprocess.Popen([sys.executable, *STAGE], cwd=folder, env=environment)
            while kill and process.poll() is None and not list(checkpoints.glob("*/update-*")):
                time.sleep(0.01)
            if kill:
                process.terminate()
            return process.wait()

        def sums() -> dict[str, str]:
            return {
                path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in outputs.rglob("*.*")
            }

        undisturbed, expected = status(False), sums()
        for made in (outputs, checkpoints):
            shutil.rmtree(made)
        yield (
            "undisturbed, ended, gone on",
            f"status {undisturbed}, {status(True)}, {status(False)}",
        )
        found = sums()
        equal = sum(found.get(name) == expected[name] for name in expected)
        right = "ok" if expected and found == expected else "**WRONG**"
        yield "outputs with equal bits", f"{right}: {equal} of {len(expected)}"


def write_shards(folder: Path) -> None:
    """A corpus of a book to learn from, and one held out."""
    folder.mkdir(parents=True)
    generator, splits = np.random.default_rng(0), {}
    for split, count in (("train", 400_000), ("heldout", 40_000)):
        (generator.zipf(1.3, count) % VOCABULARY).astype("<u2").tofile(folder / f"{split}.bin")
        size = {"tokens": count, "words": count, "sha256": ""}
        splits[split] = {**size, "books": [{"name": split, "offset": 0, **size}]}
    write_index(folder, splits, VOCABULARY, "0" * 16)


def processes(machine: Machine, _size: Size) -> Rows:
    expected = losses(named_size("tiny", 8, "fp32", 0.0), replace(machine, compiled=False))
    command = [sys.executable, *TORCHRUN, __file__, "--part", ONE_OF_TWO]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(rows_of(said.splitlines())[0][1])
    yield compared("two against one", found, expected, 1e-4)


def one_of_two(machine: Machine, _size: Size) -> Rows:
    import deepspeed

    rank, begin = int(os.environ["RANK"]), deepspeed.init_distributed
    os.environ["LOCAL_RANK"] = "0"
    # NCCL wants a GPU for each process
    deepspeed.init_distributed = lambda _, **options: begin("gloo", **options)
    machine = replace(machine, processes=2, rank=rank, launched=True, compiled=False)
    found = losses(named_size("tiny", 8, "fp32", 0.0), machine)
    if rank == 0:
        yield "losses", json.dumps(found)


def hugging_face(machine: Machine, size: Size) -> Rows:
    fewer = {"batch_size": size.recipe.batch_size // 4}  # theirs takes more memory
    size = size._replace(recipe=size.recipe.model_copy(update=fewer))
    ways = {way: make(way, size, machine) for way in ("ours", "hf")}
    seconds = in_turn(ways, 3, ROUNDS)
    for way, each in seconds.items():
        rates = spread(measuring.rates(each, size.tokens()), 0)
        yield f"{way}, {size.recipe.batch_size} windows", f"{rates} tokens/s"
    yield "ours, times Hugging Face's", measuring.times_faster(seconds["ours"], seconds["hf"])


def memory(machine: Machine, size: Size) -> Rows:
    if machine.device == "cpu":
        yield "not measured", "torch counts the memory of GPUs alone"
        return
    batch, context = size.recipe.batch_size, size.model.context
    there = torch.cuda.get_device_properties(0).total_memory
    for total in (min(24e9, there), there):
        rows = rows_that_fit(size.network(), batch, context, total)
        step = our_step(size, replace(machine, micro_batch=rows, compiled=False))
        torch.cuda.reset_peak_memory_stats()
        step()
        step()
        peak = torch.cuda.max_memory_allocated()
        fits = "ok" if peak < total else "**WRONG**"
        yield f"{rows} rows at a time, for {total / 1e9:.0f} GB", f"{fits}: {peak / 1e9:.2f} GB"
        del step
        torch.cuda.empty_cache()


PARTS = {  # and seconds of nine minutes
    "machine": (facts, 40),
    "agreement": (agreement, 100),
    "speed": (speed, 90),
    "resume": (resume, 120),
    "processes": (processes, 60),
    "hugging-face": (hugging_face, 70),
    "memory": (memory, 60),
}


def section(name: str, seconds: float, size: str) -> str:
    """A part's section of the report, from a process of its own."""
    command, began = [sys.executable, __file__, "--part", name, "--size", size], time.monotonic()
    with tempfile.TemporaryFile("w+") as words, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=words, stderr=errors, process_group=0)
        try:
            ended = f"status {process.wait(seconds)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            ended = f"no end within {seconds:.0f} s"
        words.seek(0)
        errors.seek(0)
        rows = rows_of(words)
        if ended != "status 0":
            last = [line for line in errors if line.strip()][-1:]
            rows.append(["**FAILED**", " ".join([ended, *last]).strip()])
    found = table(["what", "found"], rows)
    return f"## {name} ({time.monotonic() - began:.0f} s of {seconds:.0f})\n\n{found}\n"


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--minutes", type=float, default=9.0, help="for all parts (default 9)")
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options.add_argument("--size", choices=sorted(PROFILES), default="117m")
    options.add_argument("--report", type=Path, default=Path("gpu.md"))
    options.add_argument("--part", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.part:
        device = "cpu" if setting("GPT1_DEVICE") == "cpu" else "cuda"
        if device == "cuda" and not torch.cuda.is_available():
            sys.exit(f"torch {torch.__version__} finds no GPU; GPT1_DEVICE=cpu rehearses")
        machine = Machine(device, int(setting("GPT1_THREADS") or max(1, cores() // 2)))
        launch.prepare(machine)
        part = one_of_two if given.part == ONE_OF_TWO else PARTS[given.part][0]
        batch = 64 if given.size == "117m" else 8
        for row in part(machine, named_size(given.size, batch, "bf16", 0.1)):
            print(json.dumps(row), flush=True)
        return
    given.report.write_text(f"# benchmarks/gpu.py --size {given.size}\n")
    for name in given.parts:
        made = section(name, PARTS[name][1] * given.minutes / 9, given.size)
        print(made, flush=True)
        with given.report.open("a") as report:
            report.write(f"\n{made}")


if __name__ == "__main__":
    main()
