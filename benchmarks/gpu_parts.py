"""For gpu.py: what each part does, in a process of its own; its figures as JSON on the last line.

    python benchmarks/gpu_parts.py PART DEVICE SIZE SECONDS SHARDS        (gpu.py calls it so)

A part that shows a fault raises RuntimeError, which gpu.py takes for a failure.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import made_up_run
import numpy as np
import torch
from gpu_made import BATCHES, precision_on, prepared, started, this_machine
from gpu_right import agree, agreement, passed, processes, resume, tests
from made_up_tasks import SHAPES, fresh_classifier, made_up_task, recipe_of
from our_step import PROFILES, corpus_of, named_size, our_step, windows_of
from side_by_side import output_of, peak_bytes

from gpt1.base.files import read_json
from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.train.batches import updates_in_epoch
from gpt1.train.engine import make_engine
from gpt1.train.finetuning import FinetuningRun, finetune_seed, logits_of
from gpt1.train.loop import Stop
from gpt1.train.objectives import Finetuning, Pretraining
from gpt1.train.pretraining import heldout_values

HERE = Path(__file__).resolve().parent
NOMINAL_FLOPS = {
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L4": 121e12,
}  # bf16, dense
SWEPT = {"117m": (8, 16, 32, 64, 128), "4m": (64, 256), "1m": (64, 256), "tiny": (4, 8)}
SEED = 0
LEFT_SECONDS = 60.0  # of the recipe's time: compilation, and a checkpoint after the signal


def gpu_bytes() -> int | None:
    """The most memory of the GPU that tensors of this process had."""
    return torch.cuda.max_memory_allocated() if torch.cuda.is_initialized() else None


def step(device: str, size: str, folder: Path, _seconds: float, _shards: str) -> Any:
    """benchmarks/training_step.py: ours, compiled and not, with operators and memory."""
    return training_step(device, size, folder, ["ours", "ours-eager"], "--profile", "--memory")


def kernels(device: str, size: str, folder: Path, _seconds: float, _shards: str) -> Any:
    """Our kernels: their tests; losses with dropout, whose masks are the CPU's; and their step."""
    found = {**passed("tests/test_kernels.py"), "agree": agreement(device, size, 0.1, True)}
    ways = ["ours-kernels", "ours"]
    return found | {"step": training_step(device, size, folder, ways, "--profile", "--memory")}


def hugging_face(device: str, size: str, folder: Path, _seconds: float, _shards: str) -> Any:
    """The same of Hugging Face's model in a plain loop, at half the batch: its logits are many."""
    return training_step(device, size, folder, ["hf"])


def plain_loop(device: str, size: str, folder: Path, _seconds: float, _shards: str) -> Any:
    """The same of a short script's GPT."""
    return training_step(device, size, folder, ["plain-compiled"])


def training_step(device: str, size: str, folder: Path, ways: list[str], *more: str) -> Any:
    this_machine(device)
    out, batch = folder / "step.json", BATCHES[size] // (2 if "hf" in ways else 1)
    command = [HERE / "training_step.py", "--size", size, "--batch", batch, "--ways", *ways]
    rounds, warm_up = (8, 3) if device == "cuda" else (2, 1)
    command += ["--precision", precision_on(device), "--rounds", rounds, "--warm-up", warm_up]
    output_of([*map(str, command), *more, "--json", str(out)], None)
    name = torch.cuda.get_device_name() if device == "cuda" else ""
    nominal = next((flops for part, flops in NOMINAL_FLOPS.items() if part in name), None)
    return {**read_json(out), "nominal_flops": nominal}


def sweep(device: str, size: str, _folder: Path, _seconds: float, _shards: str) -> Any:
    """Seconds of an update by its windows, the median of six after two."""
    found = dict[str, Any]()
    for batch in SWEPT[size]:
        chosen = named_size(size, batch, None, precision_on(device), 0.1)
        machine = this_machine(device, GPT1_COMPILE=str(int(device == "cuda")))
        take = our_step(chosen, chosen.network(), machine, False).take
        times = []
        for _ in range(9):
            take()
            times.append(time.perf_counter())
        seconds = float(np.median([after - before for before, after in pairwise(times[2:])]))
        tokens = batch * chosen.model.context
        flops = tokens * chosen.flops_per_token() / seconds
        found[str(batch)] = {
            "seconds": seconds,
            "tokens_per_second": tokens / seconds,
            "flops_per_second": flops,
            "gpu_peak_bytes": gpu_bytes(),
        }
        del take  # and with it the network: the next peak is the next size's
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
    return found


def finetune(device: str, size: str, folder: Path, _seconds: float, _shards: str) -> Any:
    """Rows a second of an epoch on made-up tasks, and of the evaluation of their dev split."""
    profile, overrides, vocabulary = PROFILES[size]
    params, machine, found = validate(compose(profile, overrides)), this_machine(device), {}
    for name, shape in SHAPES.items():
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        share = 1.0 if device == "cuda" else 0.02
        task = made_up_task(name, share, params.model.context, vocabulary)
        recipe, train = recipe_of(params, 1, precision_on(device)), task.splits["train"]
        updates = updates_in_epoch(len(train), recipe.batch_size, name)
        combine = "choose" if shape.sequences > 1 else "single"
        classifier = fresh_classifier(params, vocabulary, 2, SEED, combine)
        begun = time.perf_counter()
        run = FinetuningRun(classifier, recipe, task, SEED, machine, folder / "curve.jsonl", name)
        outcome = finetune_seed(run, lambda *_: None)
        seconds = time.perf_counter() - begun
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


def evaluate(device: str, size: str, _folder: Path, _seconds: float, _shards: str) -> Any:
    """Tokens a second of the held-out loss, and of a task's logits; the second of two runs."""
    profile, overrides, vocabulary = PROFILES[size]
    params, machine = validate(compose(profile, overrides)), this_machine(device)
    precision, found = precision_on(device), dict[str, float]()
    chosen = named_size(size, BATCHES[size], None, precision, 0.1)
    network, windows = chosen.network(), np.concatenate([windows_of(chosen)(n) for n in range(4)])
    engine = make_engine(Pretraining(network, precision), chosen.recipe, machine)
    corpus, rows = corpus_of(chosen)._replace(heldout_windows=windows), BATCHES[size]
    task = made_up_task("rte", 1.0 if device == "cuda" else 0.05, params.model.context, vocabulary)
    train, classifier = task.splits["train"], fresh_classifier(params, vocabulary, 2, SEED)
    objective = Finetuning(classifier, 0.1, 0.5, precision)
    other, most = make_engine(objective, params.finetune, machine), rows * params.model.context
    works: dict[str, tuple[Callable[[], object], int]] = {
        "held-out loss": (
            partial(heldout_values, engine, corpus, rows, Stop()),
            windows[:, 1:].size,
        ),
        "logits": (partial(logits_of, other, objective, train, most, Stop()), len(train.tokens)),
    }
    for name, (work, tokens) in works.items():
        work()
        begun = time.perf_counter()
        work()
        found[name] = tokens / (time.perf_counter() - begun)
    return found


def recipe(device: str, size: str, folder: Path, seconds: float, shards: str) -> Any:
    """The stage `pretrain` until its time is over, on the books of `shards` (a run's data/shard)
    where it is given: held-out losses, updates skipped, tokens a second, a checkpoint at the end.
    """
    own = ("pretrain.updates=6000", "pretrain.heldout_updates=500", "pretrain.log_updates=50")
    if device == "cpu":
        own = ("pretrain.updates=600", "pretrain.heldout_updates=50", "pretrain.log_updates=10")
    prepared(folder, size, device, 2_000_000 if device == "cuda" else 100_000, *own)
    if shards:
        shutil.rmtree(folder / "data/shard")
        shutil.copytree(shards, folder / "data/shard")
    child, begun = started(folder, {"GPT1_DEVICE": device, "GPT1_PROCESSES": "1"}), time.monotonic()
    try:
        said = child.communicate(timeout=max(10.0, seconds - LEFT_SECONDS))[1]
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGTERM)
        said = child.communicate()[1]
    if child.returncode not in (0, 128 + signal.SIGTERM):
        raise RuntimeError(f"the stage ended with status {child.returncode}:\n{said[-2000:]}")
    # beside the outputs where the stage came to its end, else beside the checkpoints
    [curve] = (
        [folder / made_up_run.OUT / "curve.jsonl"]
        if child.returncode == 0
        else folder.glob("data/checkpoints/*/curve.jsonl")
    )
    points = [json.loads(line) for line in curve.read_text().splitlines()]
    heldout = [(p["update"], p["heldout_loss"]) for p in points if "heldout_loss" in p]
    if len(heldout) > 1 and shards and heldout[-1][1] >= heldout[0][1]:
        raise RuntimeError(f"the held-out loss does not fall: {heldout}")
    return {
        "updates": points[-1]["update"] if points else 0,
        "tokens_per_second": points[-1]["tokens"] / (time.monotonic() - begun) if points else None,
        "heldout_losses": heldout,
        "losses": [(p["update"], p["loss"]) for p in points if "loss" in p],
        "skipped_updates": max((p.get("skipped_updates", 0) for p in points), default=0),
        "said_last": said.strip().splitlines()[-1:],
    }


PARTS = {
    part.__name__: part
    for part in (
        tests,
        agree,
        processes,
        resume,
        step,
        kernels,
        sweep,
        finetune,
        evaluate,
        plain_loop,
        hugging_face,
        recipe,
    )
}


def main() -> None:
    part, device, size, seconds, shards = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        found = PARTS[part](device, size, Path(name), float(seconds), shards)
    print(json.dumps(found), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
