"""Our pre-training step against Hugging Face's OpenAIGPTLMHeadModel in a plain loop, and against
the limit of matrix products.

    python benchmarks/training_step.py [--size 117m] [--batch 4] [--precision bf16] [--ways ours hf …] [--profile] [--memory] [--growth N]

In the root of the checkout. The ways are measured in turn in one process: the same sizes, weights,
windows, threads, dropout, clipping.
(sizes lstm, lstm-1m: the LSTM beside a Transformer of 4 or 1 million, in the first two ways)
  ours           as the pipeline trains here: its engine, its micro-batches, forward, backward, clip, Adam
  ours-eager     the same without torch.compile
  hf             autocast where bf16, torch's fused AdamW, the whole batch at once; that model offers one attention, its own
  hf-compiled    the same through torch.compile
The limit is that of a large product of the same type (fp32 where the processor has no bf16), taken in turn
with the steps; share = operations of the model's own products a token (half of attention is masked,
so not counted) x tokens/s / limit. The first calls of each way are warm-up, compilation included,
and stand apart. glibc is told to keep memory, as our training does, for all. --memory: peak of two
updates in a process of its own, each way. --growth N: N updates of the whole pre-training (curve,
held-out text, checkpoints) with the memory resident every 100 of them.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from our_step import LSTMS, PROFILES, Size, Step, corpus_of, named_size, our_step
from plain_loop import check_equal, plain_step
from side_by_side import (
    finish,
    heading,
    in_own_process,
    in_turn,
    largest_product,
    machine_facts,
    parser,
    peak_bytes,
    rates,
    resident_bytes,
    shown,
    spread,
    table,
    times_faster,
)

from gpt1.model.gpt import Decoder
from gpt1.model.weights import Description
from gpt1.train import launch
from gpt1.train.launch import Machine
from gpt1.train.precision import arithmetic
from gpt1.train.pretraining import PretrainingRun, pretrain

WAYS = (
    "ours",
    "ours-eager",
    "hf",
    "hf-compiled",
)
BATCHES = {"117m": 4, "4m": 32, "1m": 32, "tiny": 8, "lstm": 32, "lstm-1m": 32}
LIMIT, LIMIT_SECONDS = "matmul", 3.0
GROWTH_EVERY = 100


def make(way: str, size: Size, machine: Machine) -> Step:
    """A step of that way, not yet warm, and what was chosen for it."""
    network = size.network()
    if not way.startswith("ours"):
        if not isinstance(network, Decoder):
            sys.exit(f"{way} has no LSTM; --ways ours ours-eager do")
        from hugging_face import language_model

        theirs: Any = language_model(size, network)
        print(
            f"{way}: our weights give our logits within {check_equal(size, network, theirs):.0e}",
            file=sys.stderr,
        )
        compiled, device = way.endswith("compiled"), torch.device(machine.device)
        chosen = {"transformers": version("transformers"), "compiled": str(compiled)}
        return Step(plain_step(size, theirs, compiled, device), chosen)
    machine = replace(machine, compiled=False) if way == "ours-eager" else machine
    return our_step(size, network, machine)


def measure(
    size: Size, ways: list[str], machine: Machine, warm_up: int, rounds: int
) -> dict[str, Any]:
    """Every way's seconds and rates, the limit's, the share of it, and how many times faster than
    Hugging Face each is.
    """
    device = torch.device(machine.device)
    dtype = torch.bfloat16 if arithmetic(device, size.recipe.precision) == "bf16" else torch.float32
    product = largest_product(dtype, device, LIMIT_SECONDS)
    made = {way: make(way, size, machine) for way in ways}
    warm, seconds = in_turn(
        {way: step.take for way, step in made.items()} | {LIMIT: product.way(dtype, device)},
        warm_up,
        rounds,
    )
    tokens = size.recipe.batch_size * size.model.context
    limit = rates(seconds[LIMIT], product.flops())
    found: dict[str, Any] = {
        "limit_flops": limit,
        "limit_side": product.side,
        "limit_type": str(dtype),
        "ways": {},
        "flops_per_token": size.flops_per_token(),
        "chosen": {way: step.chosen for way, step in made.items()},
    }
    for way in ways:
        per_second = rates(seconds[way], tokens)
        found["ways"][way] = {
            "tokens_per_second": per_second,
            "seconds": seconds[way],
            "warm_up_seconds": warm[way],
            "share_of_limit": size.flops_per_token() * per_second["median"] / limit["median"],
            "times_hf": times_faster(seconds[way], seconds["hf"]) if "hf" in seconds else None,
        }
    return found


def show(found: Mapping[str, Any]) -> None:
    """The table of a measurement."""
    rows = [
        [
            way,
            shown(row["tokens_per_second"], 0),
            f"{row['share_of_limit']:.2f}",
            shown(row["times_hf"], 2) if row["times_hf"] else "-",
            f"{row['warm_up_seconds']:.1f}",
        ]
        for way, row in found["ways"].items()
    ]
    print(
        table(
            [
                "way",
                "tokens/s: median (least to most)",
                "share of the limit",
                "times Hugging Face",
                "warm-up, s",
            ],
            rows,
        )
    )
    print(
        f"\nlimit: {shown({name: value / 1e9 for name, value in found['limit_flops'].items()}, 0)}"
        f" GFLOP/s, a product of two matrices of {found['limit_side']}^2 in {found['limit_type']};"
        f" the model's products: {found['flops_per_token'] / 1e6:.0f} MFLOP a token"
    )
    for way, chosen in found["chosen"].items():
        print(f"{way}: " + ", ".join(f"{name} {value}" for name, value in chosen.items()))


def profile(step: Callable[[], object], sort: str) -> str:
    """Of one step, the 25 operators that take most time by themselves."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    activities = [
        ProfilerActivity.CPU,
        *([ProfilerActivity.CUDA] if torch.cuda.is_available() else []),
    ]
    with profiler(activities=activities) as taken:
        step()
    lines = taken.key_averages().table(sort_by=sort, row_limit=25, max_name_column_width=60)
    return str(lines)


def memory(way: str, size: Size, machine: Machine) -> dict[str, float]:
    """Bytes of this process: with torch imported, and at most in two updates. (On a GPU, `cuda`: of
    its memory.)
    """
    torch.ones(2, 2) @ torch.ones(2, 2)
    before = resident_bytes()
    step = make(way, size, machine)
    for _ in range(2):
        step.take()
    cuda = torch.cuda.max_memory_allocated() if machine.device == "cuda" else 0
    return {"before_bytes": before, "peak_bytes": peak_bytes(), "cuda_bytes": cuda}


def growth(size: Size, machine: Machine, updates: int) -> dict[str, Any]:
    """Bytes resident every GROWTH_EVERY updates of the whole pre-training, in a temporary
    folder.
    """
    found = dict[int, int]()
    recipe = size.recipe.model_copy(
        update={
            "log_updates": GROWTH_EVERY,
            "heldout_updates": 5 * GROWTH_EVERY,
            "checkpoint_minutes": 0.2,
            "warmup_updates": min(size.recipe.warmup_updates, updates),
        }
    )

    def note(update: int, _values: Mapping[str, float]) -> None:
        found[update] = resident_bytes()

    description = Description("transformer", size.model.model_dump(), size.vocabulary, "made up")
    with tempfile.TemporaryDirectory() as folder:
        run = PretrainingRun(
            size.network(),
            description,
            recipe,
            recipe.seeds[0],
            updates,
            corpus_of(size),
            machine,
            Path(folder),
        )
        pretrain(run, note)
    later = [bytes_ for update, bytes_ in sorted(found.items()) if update > updates // 4]
    return {
        "resident_bytes": found,
        "after_a_quarter_bytes": later[0],
        "last_bytes": later[-1],
        "later": spread(later),
    }


def children(arguments: argparse.Namespace, ways: list[str]) -> dict[str, Any]:
    """Peak memory of each way and growth, each in a process of its own."""
    own = [
        str(Path(__file__)),
        "--size",
        arguments.size,
        "--batch",
        str(arguments.batch),
        "--precision",
        arguments.precision,
        "--dropout",
        str(arguments.dropout),
        *(["--context", str(arguments.context)] if arguments.context else []),
        *(["--threads", str(arguments.threads)] if arguments.threads else []),
    ]
    found = dict[str, Any]()
    if arguments.memory:
        found["memory"] = {
            way: in_own_process([*own, "--ways", way, "--child", "memory"], None) for way in ways
        }
        rows = [
            [way, *(f"{bytes_ / 1e6:,.0f}" for bytes_ in row.values())]
            for way, row in found["memory"].items()
        ]
        print(
            "\n" + table(["way", "before, MB", "peak of two updates, MB", "of the GPU, MB"], rows)
        )
    if arguments.growth:
        found["growth"] = grown = in_own_process(
            [*own, "--growth", str(arguments.growth), "--child", "growth"], None
        )
        print(
            "\n"
            + table(
                ["update", "resident, MB"],
                [
                    [update, f"{bytes_ / 1e6:,.1f}"]
                    for update, bytes_ in sorted(
                        (int(update), bytes_) for update, bytes_ in grown["resident_bytes"].items()
                    )
                ],
            )
        )
        print(
            "\nfrom a quarter of the way to the end:"
            f" {(grown['last_bytes'] - grown['after_a_quarter_bytes']) / 1e6:+.1f} MB"
        )
    return found


def main() -> None:
    options = parser(__doc__, 5)
    options.add_argument("--size", choices=sorted(PROFILES | LSTMS), default="117m")
    options.add_argument(
        "--batch", type=int, help=f"windows an update (default by size: {BATCHES})"
    )
    options.add_argument("--context", type=int, help="tokens of a window (default: the size's own)")
    options.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    options.add_argument("--dropout", type=float, default=0.1)
    options.add_argument("--ways", nargs="+", choices=WAYS, default=["ours", "hf"])
    options.add_argument(
        "--warm-up",
        type=int,
        default=2,
        help="calls of each way before the measured ones (default 2)",
    )
    options.add_argument(
        "--profile",
        action="store_true",
        help="operators of one step of the first way, after the measurement",
    )
    options.add_argument("--memory", action="store_true")
    options.add_argument("--growth", type=int, metavar="UPDATES")
    options.add_argument("--child", choices=("memory", "growth"), help=argparse.SUPPRESS)
    arguments = options.parse_args()
    arguments.batch = arguments.batch or BATCHES[arguments.size]
    machine = launch.read_machine()
    machine = replace(machine, threads=arguments.threads or machine.threads)
    launch.prepare(machine)
    size = named_size(
        arguments.size, arguments.batch, arguments.context, arguments.precision, arguments.dropout
    )
    if arguments.child:
        print(
            json.dumps(
                memory(arguments.ways[0], size, machine)
                if arguments.child == "memory"
                else growth(size, machine, arguments.growth)
            ),
            flush=True,
        )
        os._exit(0)  # nothing of DeepSpeed's leave-taking may come after the last line
    facts = machine_facts()
    print(
        f"{heading(facts)}\n{arguments.size}, {arguments.batch} x {size.model.context} tokens,"
        f" {arguments.precision}, dropout {arguments.dropout}\n"
    )
    found = (
        measure(size, arguments.ways, machine, arguments.warm_up, arguments.rounds)
        if arguments.rounds
        else {}
    )
    if found:
        show(found)
    if arguments.profile:
        step = make(arguments.ways[0], size, machine)
        for _ in range(arguments.warm_up):
            step.take()
        sort = "self_device_time_total" if machine.device == "cuda" else "self_cpu_time_total"
        found["profile"] = profile(step.take, sort)
        print(f"\n{arguments.ways[0]}, one step:\n{found['profile']}")
    found |= children(arguments, arguments.ways)
    finish(
        arguments.json,
        facts,
        {
            "size": arguments.size,
            "batch": arguments.batch,
            "context": size.model.context,
            "precision": arguments.precision,
            "dropout": arguments.dropout,
            **found,
        },
    )


if __name__ == "__main__":
    main()
