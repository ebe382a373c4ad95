"""What the benchmarks share: ways measured in turn in one process, their table, the machine's
facts, memory, JSON.
"""

import argparse
import gc
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import torch

from gpt1.base.cores import cpu_name
from gpt1.base.files import write_json

RENDEZVOUS = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)  # DeepSpeed leaves them behind


def parser(document: str, rounds: int) -> argparse.ArgumentParser:
    """A parser with what all have: --rounds, --threads, --json; `document` is the module's
    docstring.
    """
    made = argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--rounds",
        type=int,
        default=rounds,
        help=f"measured rounds, each way once in each (default {rounds})",
    )
    made.add_argument(
        "--threads", type=int, help="threads of torch (default: as the pipeline would take)"
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return made


def in_turn(
    ways: Mapping[str, Callable[[], object]], warm_up: int, rounds: int
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Seconds of the `warm_up` first calls together, then of each measured call, of every way.

    Every other round goes backwards, so that what grows or shrinks with time falls on all alike.
    """
    warm, seconds = dict.fromkeys(ways, 0.0), {name: list[float]() for name in ways}
    for number in range(warm_up + rounds):
        for name in list(ways) if number % 2 == 0 else reversed(ways):
            gc.collect()
            started = time.perf_counter()
            ways[name]()
            passed = time.perf_counter() - started
            if number < warm_up:
                warm[name] += passed
            else:
                seconds[name].append(passed)
    return warm, seconds


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def rates(seconds: Sequence[float], work: float) -> dict[str, float]:
    """Median, least and most of `work` a second."""
    return spread([work / each for each in seconds])


def times_faster(ours: Sequence[float], others: Sequence[float]) -> dict[str, float]:
    """How many times faster ours is, pair by pair of a round: median, least and most."""
    return spread([other / own for own, other in zip(ours, others, strict=True)])


def shown(found: Mapping[str, float], digits: int) -> str:
    """A spread in words: `median (least to most)`."""
    return (
        f"{found['median']:,.{digits}f} ({found['least']:,.{digits}f} to"
        f" {found['most']:,.{digits}f})"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def machine_facts() -> dict[str, Any]:
    """What stands beside every figure: processor, its bf16, memory, load, torch, threads, date."""
    has = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").is_file() else ""
    )
    bf16 = "AMX" if "amx_bf16" in has else "AVX512" if "avx512_bf16" in has else "none"
    return {
        "cpu": cpu_name(),
        "cpu_bf16": bf16,
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "memory_bytes": psutil.virtual_memory().total,
        "load": round(psutil.getloadavg()[0], 2),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%d"),
    }


def heading(facts: Mapping[str, Any]) -> str:
    """The facts in a line."""
    return (
        f"{facts['cpu']} (bf16: {facts['cpu_bf16']}){', ' + facts['gpu'] if facts['gpu'] else ''},"
        f" {facts['threads']} threads, torch {facts['torch']}, load {facts['load']} at the start,"
        f" {facts['date']}"
    )


def finish(path: Path | None, facts: Mapping[str, Any], figures: Mapping[str, Any]) -> None:
    """Write facts, command line and figures as JSON where a file is asked for."""
    if path is not None:
        write_json(path, {"machine": dict(facts), "command": " ".join(sys.argv), **figures})
        print(f"\nfigures: {path}")


def resident_bytes() -> int:
    """Memory of this process now."""
    return int(psutil.Process().memory_info().rss)


def peak_bytes() -> int:
    """The most memory that this process ever had. (Linux hands ru_maxrss on from parent to child,
    hence the look into /proc.)
    """
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.is_file() else []
    kibibytes = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)
    return (kibibytes or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024


def output_of(arguments: Sequence[str], seconds: float | None) -> str:
    """What `python arguments` prints. Raises RuntimeError where it fails, or takes longer than
    `seconds`; then its children end too.
    """
    ours = {name: value for name, value in os.environ.items() if name not in RENDEZVOUS}
    paths = os.pathsep.join(
        filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")])
    )
    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ours | {"PYTHONPATH": paths},
        start_new_session=seconds is not None,
    )
    try:
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise RuntimeError(
            f"python {' '.join(arguments)}: not done after {seconds:.0f} s"
        ) from None
    if child.returncode:
        tail = "\n".join(errors.splitlines()[-15:])
        raise RuntimeError(
            f"python {' '.join(arguments)} ended with status {child.returncode}:\n{tail}"
        )
    return output


def in_own_process(arguments: Sequence[str], seconds: float | None) -> Any:
    """The JSON of the last line that `python arguments` prints; as output_of."""
    return json.loads(output_of(arguments, seconds).splitlines()[-1])


class Product(NamedTuple):
    """The product of two square matrices, so many times one after another."""

    side: int
    repeats: int

    def flops(self) -> float:
        """Operations of all of it."""
        return 2.0 * self.side**3 * self.repeats

    def way(self, dtype: torch.dtype, device: torch.device) -> Callable[[], object]:
        """Doing it, as a way; it waits for a GPU."""
        draw = torch.Generator().manual_seed(0)
        left, right = (
            torch.randn(self.side, self.side, generator=draw).to(device, dtype) for _ in range(2)
        )
        out = torch.empty_like(left)

        def multiply() -> float:
            for _ in range(self.repeats):
                torch.mm(left, right, out=out)
            return out[0, 0].item()

        return multiply


def largest_product(dtype: torch.dtype, device: torch.device, seconds: float) -> Product:
    """Of side 8192, fifty times, on a GPU; on a CPU once, of side 4096 or the power of two below it
    that takes at most `seconds`.
    """
    if device.type == "cuda":
        return Product(8192, 50)
    side, small = 4096, Product(256, 1)
    _, found = in_turn({"small": small.way(dtype, device)}, 1, 3)
    while side > small.side and min(found["small"]) * (side / small.side) ** 3 > seconds:
        side //= 2
    return Product(side, 1)
