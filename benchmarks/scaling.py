"""How training scales: DeepSpeed against its plain twin, processes, and ever more data.

  python benchmarks/scaling.py [--parts engine processes data] [--size 1m] [--books FOLDER]        in the root of the checkout

engine     the same update by the plain engine and by DeepSpeed in one process, in turn in one process
processes  the stage `pretrain` with 1, 2 … processes (--processes) that share the threads, in turn; tokens/s without its start, and
           how far the weights are from those of the first
data       the stages clean, bpe, shard and pretrain (a fixed number of updates) on 1, 3 and 10 times the books (--times): seconds for a
           million tokens, and the most memory of all processes together. Without --books, books of the made-up town; each further
           copy has made-up words in place of all but the commonest, so that the word types grow too
"""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up_run
import torch
from our_step import PROFILES, named_size, our_step
from side_by_side import (
    finish,
    heading,
    in_turn,
    machine_facts,
    parser,
    rates,
    shown,
    spread,
    table,
    times_faster,
)
from text import prepare, watch

from gpt1.base.files import read_json
from gpt1.demo.files import write_books
from gpt1.model.weights import read_tensors
from gpt1.params.profile import compose
from gpt1.train import launch
from gpt1.train.launch import Machine

PARTS = ("engine", "processes", "data")
STAGES = (["clean"], ["bpe"], ["shard"], ["pretrain", "transformer"])
TOWN_BOOKS, TOWN_PAGES = 40, 150  # some 4 MB
MILLION = 1e6


def engine(
    size_name: str, batch: int, precision: str, machine: Machine, rounds: int
) -> dict[str, Any]:
    """Rates of the two engines, and how many times faster the plain one is."""
    size = named_size(size_name, batch, None, precision, 0.1)
    steps = {
        name: our_step(size, size.network(), machine, name == "deepspeed").take
        for name in ("plain", "deepspeed")
    }
    warm, seconds = in_turn(steps, 3, rounds)
    last = {name: step()["loss"] for name, step in steps.items()}
    tokens = batch * size.model.context
    found = {
        "tokens_per_second": {name: rates(each, tokens) for name, each in seconds.items()},
        "warm_up_seconds": warm,
        "plain_times_faster": times_faster(seconds["plain"], seconds["deepspeed"]),
        "losses_differ": abs(last["plain"] - last["deepspeed"]) / last["plain"],
    }
    print(
        "\n"
        + table(
            ["engine, one process", "tokens/s: median (least to most)", "warm-up, s"],
            [
                [name, shown(values, 0), f"{warm[name]:.1f}"]
                for name, values in found["tokens_per_second"].items()
            ],
        )
    )
    print(
        f"\nplain is {shown(found['plain_times_faster'], 3)} times as fast; the losses of update"
        f" {rounds + 4} differ by {found['losses_differ']:.0e} relative"
    )
    return found


def processes(
    size_name: str,
    batch: int,
    precision: str,
    machine: Machine,
    rounds: int,
    counts: list[int],
    updates: int,
) -> dict[str, Any]:
    """Rates of the stage with each number of processes, and the distance of their weights."""
    overrides = [
        f"pretrain.updates={updates}",
        f"pretrain.batch_size={batch}",
        f"pretrain.precision={precision}",
        "pretrain.epochs=null",
        "pretrain.warmup_updates=5",
        f"pretrain.heldout_updates={updates}",
        "pretrain.heldout_windows=4",
        "pretrain.dropout=0.1",
        "pretrain.checkpoint_minutes=60",
    ]
    runs: dict[int, list[dict[str, Any]]] = {count: [] for count in counts}
    weights: dict[int, dict[str, torch.Tensor]] = {}
    with tempfile.TemporaryDirectory() as name:
        made_up_run.prepare(Path(name), size_name, 200_000, overrides)
        for number in range(rounds):
            for count in counts if number % 2 == 0 else reversed(counts):
                settings = {
                    "GPT1_PROCESSES": str(count),
                    "GPT1_THREADS": str(max(1, machine.threads // count)),
                    "GPT1_DEVICE": "cpu",
                }
                runs[count].append(made_up_run.pretrain(Path(name), settings))
                weights[count] = read_tensors(Path(name) / made_up_run.OUT / "weights.safetensors")[
                    1
                ]
    first = weights[counts[0]]
    found = {
        str(count): {
            "threads_each": max(1, machine.threads // count),
            "tokens_per_second": spread([run["tokens_per_second"] for run in runs[count]]),
            "stage_seconds": spread([run["stage_seconds"] for run in runs[count]]),
            "weights_differ": max(
                float((weights[count][name] - first[name]).abs().max() / first[name].abs().max())
                for name in first
            ),
        }
        for count in counts
    }
    head = [
        "processes x threads",
        "tokens/s: median (least to most)",
        "whole stage, s",
        f"weights differ from {counts[0]}'s",
    ]
    print(
        "\n"
        + table(
            head,
            [
                [
                    f"{count} x {row['threads_each']}",
                    shown(row["tokens_per_second"], 0),
                    shown(row["stage_seconds"], 1),
                    f"{row['weights_differ']:.0e}",
                ]
                for count, row in found.items()
            ],
        )
    )
    return found


def data(
    size_name: str, precision: str, books: Path | None, times: list[int], updates: int
) -> dict[str, Any]:
    """Seconds a million tokens and memory of each stage for each multiple of the books."""
    found: dict[str, Any] = {}
    overrides = [
        f"pretrain.updates={updates}",
        "pretrain.epochs=null",
        "pretrain.warmup_updates=5",
        f"pretrain.precision={precision}",
        f"pretrain.heldout_updates={updates}",
        "pretrain.heldout_windows=16",
        "bpe.source=learn",
        "bpe.merges=2000",
    ]
    with tempfile.TemporaryDirectory() as name:
        if books is None:
            write_books(Path(name) / "town", 0, TOWN_BOOKS, TOWN_PAGES)
        for many in times:
            work = Path(name) / f"times{many}"
            work.mkdir()
            bytes_ = prepare(work, books or Path(name) / "town", many, "small")
            profile, own, _ = PROFILES[size_name]
            small = [
                "bpe.alphabet_size=60",
                "bpe.max_word_types=100000",
                "shard.heldout_fraction=0.1",
            ]
            (work / "params.yaml").write_text(
                json.dumps(compose(profile, [*own, *overrides, *small]))
            )
            measured = {
                stage[0]: watch([sys.executable, "-m", "gpt1.stages", *stage], work)
                for stage in STAGES
            }
            tokens = sum(
                split["tokens"]
                for split in read_json(work / "data/shard/index.json")["splits"].values()
            )
            speed = read_json(work / "data/logs/pretrain/transformer-0-speed.json")[
                "tokens_per_second"
            ]
            found[str(many)] = {
                "bytes": bytes_,
                "tokens": tokens,
                "pretrain_tokens_per_second": speed,
                "stages": {
                    stage: {
                        "seconds": seconds,
                        "processor_seconds": used,
                        "all_processes_bytes": total * MILLION,
                        "largest_bytes": largest * MILLION,
                    }
                    for stage, (seconds, used, total, largest) in measured.items()
                },
            }
    stages = [stage[0] for stage in STAGES]
    print(
        "\n"
        + table(
            [
                "books",
                "tokens",
                *(f"{stage}: s a million tokens" for stage in stages[:-1]),
                "pretrain: tokens/s",
                *(f"{stage}: MB" for stage in stages),
            ],
            [
                [
                    f"x {many}, {row['bytes'] / MILLION:.1f} MB",
                    f"{row['tokens']:,}",
                    *(
                        f"{row['stages'][stage]['seconds'] / row['tokens'] * MILLION:.1f}"
                        for stage in stages[:-1]
                    ),
                    f"{row['pretrain_tokens_per_second']:,.0f}",
                    *(
                        f"{row['stages'][stage]['all_processes_bytes'] / MILLION:,.0f}"
                        for stage in stages
                    ),
                ]
                for many, row in found.items()
            ],
        )
    )
    return found


def main() -> None:
    options = parser(__doc__, 5)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options.add_argument("--size", choices=sorted(PROFILES), default="1m")
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    options.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    options.add_argument(
        "--updates", type=int, default=200, help="of each run of the stage (default 200)"
    )
    options.add_argument("--times", type=int, nargs="+", default=[1, 3, 10])
    options.add_argument("--books", type=Path, help="a folder of .txt files for the part `data`")
    arguments = options.parse_args()
    machine = launch.read_machine()
    machine = replace(machine, threads=arguments.threads or machine.threads, device="cpu")
    launch.prepare(machine)
    facts, found = machine_facts(), {}
    print(f"{heading(facts)}\n{arguments.size}, batch {arguments.batch}, {arguments.precision}")
    common = (arguments.size, arguments.batch, arguments.precision, machine, arguments.rounds)
    if "processes" in arguments.parts:
        found["processes"] = processes(*common, arguments.processes, arguments.updates)
    if "data" in arguments.parts:
        found["data"] = data(
            arguments.size, arguments.precision, arguments.books, arguments.times, arguments.updates
        )
    if "engine" in arguments.parts:  # last: DeepSpeed leaves its marks on this process
        found["engine"] = engine(*common)
    finish(
        arguments.json,
        facts,
        {
            "size": arguments.size,
            "batch": arguments.batch,
            "precision": arguments.precision,
            **found,
        },
    )


if __name__ == "__main__":
    main()
