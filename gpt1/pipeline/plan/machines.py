"""The machine here, and machines by name, of which only data sheets are known."""

import re
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass

from gpt1.base.cores import cores
from gpt1.pipeline.schedule import Slots
from gpt1.pipeline.slots import memory_bytes


@dataclass(frozen=True)
class Hardware:
    """A machine as its data sheet has it. devices 0: a CPU; flops: dense bf16 operations a second
    of a device (or of the whole CPU).

    bytes_per_second: of a device's memory; link_bytes_per_second: out of a device to the others;
    watts: of a device.
    """

    name: str
    devices: int
    cores: int
    flops: float
    memory_bytes: float
    bytes_per_second: float
    link_bytes_per_second: float
    watts: float

    @property
    def slots(self) -> Slots:
        """As gpt1/pipeline/slots.py would find them."""
        return Slots(self.cores, tuple(map(str, range(self.devices))))


# NVIDIA's data sheets (H200 SXM, H100 SXM, A100 80GB SXM): bf16 dense, HBM, NVLink in one
# direction, power. Cores: what clouds put beside.
NAMED = (
    Hardware("1 x H200", 1, 16, 989e12, 141e9, 4.8e12, 450e9, 700.0),
    Hardware("8 x H100", 8, 96, 989e12, 80e9, 3.35e12, 450e9, 700.0),
    Hardware("8 x A100", 8, 96, 312e12, 80e9, 2.04e12, 300e9, 400.0),
    Hardware(
        "two cores", 0, 2, 0.4e12, 16e9, 40e9, 1e9, 30.0
    ),  # Zen 4 with AVX512-BF16: a 4096^3 product made 362-417 GFLOP/s
)


@dataclass(frozen=True)
class Room:
    """What this machine has: memory, memory of one GPU (0: none), free disk, all in bytes; cores;
    its processor or GPU.
    """

    memory: float
    device_memory: float
    disk: float
    cores: int


def room_here() -> Room:
    """The room here."""
    asked = nvidia_smi("memory.total")
    return Room(
        memory_bytes(),
        asked[0] * 2**20 if asked else 0.0,
        float(shutil.disk_usage(".").free),
        cores(),
    )


def nvidia_smi(field: str) -> list[float]:
    """A number of each GPU as nvidia-smi gives it (MiB, watts); empty where there is none."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        told = subprocess.run(
            ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"],
            capture_output=True,
            check=True,
            text=True,
            timeout=10,
        )
        return [float(line) for line in told.stdout.split("\n") if line.strip()]
    return []


def python_seconds() -> float:
    """CPU seconds of a fixed piece of plain Python, the best of three: how fast a core is at what
    stages without a network do.
    """

    def work() -> float:
        began, counts = time.process_time(), dict[str, int]()
        for number in range(250):
            for word in re.findall(
                r"\w+",
                f"the {number} brown foxes of {number % 7} towns jump over lazy dogs and run, "
                * 40,
            ):
                counts[word] = counts.get(word, 0) + len(word.lower())
        return time.process_time() - began

    return min(work() for _ in range(3))
