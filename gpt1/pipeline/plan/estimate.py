"""Seconds and bytes of a stage's work, at a pace that was measured here or that a machine's data
sheet gives; and every assumed number behind them, each with where it came from.
"""

import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpt1.base.cores import cores, nvidia_smi
from gpt1.params.schema import Params
from gpt1.pipeline.plan import formulas
from gpt1.pipeline.plan.work import StageWork
from gpt1.pipeline.schedule import Allocation, Slots, Stage, group, shares
from gpt1.pipeline.slots import PROCESS_BYTES, memory_bytes
from gpt1.train.launch import MICRO_BATCH_TOKENS

# Seconds from `gpt1 run` starting a stage to its work, and from its work to its end: DVC (1.0 s),
# Python, imports, reading and writing.
# CPU seconds on two cores of an AMD EPYC (Zen 3); scaled by the speed of this machine's cores, see
# REFERENCE_PYTHON_SECONDS.
START_SECONDS = {
    "check": 1.5,
    "world": 1.5,
    "download": 2.5,
    "acquire": 1.5,
    "clean": 4.5,
    "contamination": 6.0,
    "bpe": 2.6,
    "shard": 2.2,
    "word_vectors": 3.0,
    "baselines": 3.0,
    "encode": 6.0,
    "prompt": 6.0,
    "dev_scores": 1.0,
    "table2": 4.0,
    "table3": 3.0,
    "table4": 4.0,
    "table5": 7.0,
    "figure2": 6.0,
    "claims": 12.0,
    "scores": 3.0,
}
OTHER_START_SECONDS = 5.0  # of a stage that is not named above
NETWORK_SECONDS = (
    1.0  # of each network of a stage: drawing it, loading weights, writing logits and weights
)
# Bytes of raw text a second and core. Books: 70 MB cleaned, learned and encoded in 39 s on two
# cores (README, small); counted and encoded 20 and 9 times as quick as cleaned (docs/corpora.md).
BYTES_A_SECOND = {
    "world": 0.8e6,
    "acquire": 100e6,
    "clean": 1.5e6,
    "contamination": 30e6,
    "bpe": 28e6,
    "shard": 12e6,
    "encode": 0.8e6,
    "word_vectors": 1.5e6,
    "baselines": 0.04e6,  # 36 fits of each task of the demo, or 16 of MNLI's 393,000 rows
}
SEVERAL_PROCESSES = (
    "clean",
    "contamination",
    "bpe",
    "shard",
    "word_vectors",
    "encode",
    "prompt",
)  # stages that go through text on every core
# bytes of text that one process goes through alone, and of each task where there is more, as in
# gpt1/corpus/parallel.py
LITTLE_BYTES, TASK_BYTES = 24e6, 8e6

REFERENCE_PYTHON_SECONDS = (
    0.06  # CPU seconds of python_seconds() on the machine of the figures above
)

# Share of the peak in bf16 that a network's products reach: predicted for a step of the paper's
# pre-training on an H100, whose blocks are compiled, and for the same step not compiled, as
# fine-tuning is (benchmarks/step_budget.csv). Well-tuned training of networks of this size is
# reported to reach 0.37 to 0.41. The LSTM's, whose cell is cuDNN's: assumed to be the former.
GPU_SHARE = {"compiled": 0.38, "not compiled": 0.22}
GPU_LAUNCH_SECONDS = 6e-6  # of a kernel, from Python, while the GPU does what was launched before
# forward and backward, not compiled; embeddings, softmax, clipping, Adam: as counted by
# benchmarks/launches.py, 1,401 an update of the paper's pre-training, 1,510 of fine-tuning
KERNELS_A_LAYER, KERNELS_AN_UPDATE = 110, 130
# of gradients, between the GPUs of one machine; assumed of NCCL over NVLink, nothing of it hidden
EXCHANGED_BYTES_A_SECOND = 200e9
RECURRENT_SECONDS = 30e-6  # of one step in time of an LSTM, forward and backward (cuDNN)
GPU_TUNING_SECONDS = 20.0  # before the first update: CUDA, compilation

# of the limit in bf16 on two cores: 26 MFLOP a token at 7,000 tokens/s against 0.42 TFLOP/s
# (README, small)
CPU_SHARE = 0.45
CPU_UPDATE_SECONDS = 0.02  # Python and small operations of an update
# of the GPUs' own power: host, network, cooling fans (NVIDIA DGX data sheets: 10.2 kW for 8 x 700 W
# is more)
WATTS_BESIDE_GPUS = 0.25

# of logits that are stored at once: the softmax goes in blocks (gpt1/train/losses.py)
SOFTMAX_ROWS = {"cpu": 1024.0, "cuda": 8192.0}


@dataclass(frozen=True)
class Hardware:
    """A machine as its data sheet has it, or several of them. devices 0: a CPU; flops: dense bf16
    operations a second of a device (or of the whole CPU); watts: of a device.
    """

    name: str
    devices: int
    cores: int
    flops: float
    memory_bytes: float
    watts: float
    machines: int = 1

    @property
    def slots(self) -> Slots:
        """As gpt1/pipeline/slots.py would find them, of all machines."""
        return Slots(
            self.machines * self.cores, tuple(map(str, range(self.machines * self.devices)))
        )

    def shares(self, stages: Mapping[str, Stage]) -> dict[str, Allocation]:
        """What each stage has: no more than one machine, for stages are what is spread."""
        found = shares(stages, self.slots, self.machines * self.cores)
        return {
            name: replace(share, devices=min(share.devices, self.devices))
            for name, share in found.items()
        }

    @property
    def full_watts(self) -> float:
        """Power at full load: of its devices and what stands beside them."""
        return self.machines * (self.devices * self.watts * (1.0 + WATTS_BESIDE_GPUS) or self.watts)


# NVIDIA's data sheets (H100 SXM, A100 80GB SXM, RTX 4090): bf16 dense, summed in fp32; memory,
# power. Cores: what clouds put beside. Two cores: Zen 4 with AVX512-BF16, where a 4096^3 product
# made 362-417 GFLOP/s. Several machines: stages are spread over them, one stage in one machine.
NAMED = (
    Hardware("1 x H100", 1, 16, 989e12, 80e9, 700.0),
    Hardware("1 x A100", 1, 16, 312e12, 80e9, 400.0),
    Hardware("1 x RTX 4090", 1, 16, 165e12, 24e9, 450.0),
    Hardware("8 x H100", 8, 96, 989e12, 80e9, 700.0),
    Hardware("2 x 8 x H100", 8, 96, 989e12, 80e9, 700.0, 2),
    Hardware("8 x 8 x H100", 8, 96, 989e12, 80e9, 700.0, 8),
    Hardware("8 x A100", 8, 96, 312e12, 80e9, 400.0),
    Hardware("two cores", 0, 2, 0.4e12, 16e9, 30.0),
)


@dataclass(frozen=True)
class Room:
    """What this machine has: memory, memory of one GPU (0: none), free disk (bytes); cores."""

    memory: float
    device_memory: float
    disk: float
    cores: int


def room_here() -> Room:
    """The room here."""
    device_mebibytes = next(iter(nvidia_smi("memory.total")), 0.0)
    disk = float(shutil.disk_usage(".").free)
    return Room(memory_bytes(), device_mebibytes * 2**20, disk, cores())


class Pace(NamedTuple):
    """How fast a kind of training of one network goes: seconds an update and an operation on top;
    and the seconds that the first update of a process takes more. `measured`: on this machine.
    """

    update: float
    flop: float
    first: float
    measured: bool


def line(points: Mapping[float, float]) -> tuple[float, float]:
    """(seconds an update, seconds an operation) through {operations of an update: seconds}, least
    and most; neither below 0.
    """
    least, most = min(points), max(points)
    slope = (points[most] - points[least]) / (most - least) if most > least else 0.0
    fixed = max(0.0, points[most] - slope * most) if slope > 0 else 0.0
    return fixed, (points[most] - fixed) / most


def data_sheet_pace(work: StageWork, hardware: Hardware, share: Allocation) -> Pace:
    """The pace of a stage with its share of a machine, from the data sheet and what is assumed
    above; a stage with but some of a CPU's lanes has that part of its cores.
    """
    network = work.network
    assert network is not None
    if not hardware.devices:
        part = hardware.cores / max(1, share.lanes)
        return Pace(CPU_UPDATE_SECONDS, part / (CPU_SHARE * hardware.flops), 0.0, False)
    layers = 1 if network.units else network.sizes.layers
    launches = GPU_LAUNCH_SECONDS * (KERNELS_A_LAYER * layers + KERNELS_AN_UPDATE)
    recurrence = RECURRENT_SECONDS * work.length if network.units else 0.0
    compiled = work.kind == "pretrain" or bool(network.units)
    devices = max(1, share.devices)
    part = GPU_SHARE["compiled" if compiled else "not compiled"]
    flop = 1.0 / (part * devices * hardware.flops)
    unhidden = max(0.0, launches - flop * work.flops / max(1, work.updates))
    gradients = formulas.WEIGHT_BYTES * formulas.parameters(network)
    exchange = 2.0 * (devices - 1) / devices * gradients / EXCHANGED_BYTES_A_SECOND
    return Pace(unhidden + recurrence + exchange, flop, GPU_TUNING_SECONDS, False)


def seconds(work: StageWork, pace: Pace | None, slowness: float, cores: int) -> float:
    """How long a stage takes, start and end included. `slowness`: of a core at plain Python, 1 on
    the machine of the figures above.
    """
    verb = group(work.stage)
    start = START_SECONDS.get(verb, OTHER_START_SECONDS) + NETWORK_SECONDS * work.networks
    if pace is None:
        divided = verb in SEVERAL_PROCESSES and work.bytes_read >= LITTLE_BYTES
        several = min(cores, work.bytes_read // TASK_BYTES) if divided else 1
        reading = work.bytes_read / (BYTES_A_SECOND.get(verb, 1e9) * max(1, several))
        return slowness * (start + reading)
    trained = work.updates * pace.update + (work.flops + work.scored_flops) * pace.flop
    return slowness * start + pace.first + trained


def data_sheet_seconds(
    work: StageWork, hardware: Hardware, share: Allocation, slowness: float
) -> float:
    """How long a stage takes on a machine by name."""
    pace = data_sheet_pace(work, hardware, share) if work.network else None
    return seconds(work, pace, slowness, hardware.cores)


def process_bytes(
    work: StageWork, params: Params, device: str, micro_batch_tokens: int | None, processes: int
) -> float:
    """Memory that one process of a stage takes at the most, on a GPU that of the GPU alone; 0 for a
    stage without a network.
    """
    if work.network is None:
        return 0.0
    base = PROCESS_BYTES / 4 if device == "cpu" else 1e9  # torch and its libraries; CUDA's context
    if work.kind == "score":
        return base + formulas.WEIGHT_BYTES * formulas.parameters(work.network)
    recipe = params.pretrain if work.kind == "pretrain" else params.finetune
    tokens = min(work.update_tokens / processes, micro_batch_tokens or MICRO_BATCH_TOKENS[device])
    return base + formulas.training_bytes(
        work.network, tokens, work.length, recipe.precision, min(tokens, SOFTMAX_ROWS[device])
    )


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
