"""Seconds and bytes of a stage's work, at a pace that was measured here or that a machine's data
sheet gives; and the assumed numbers behind them, each with where it came from (those of a GPU's
kernels: kernels.py; of machines: machines.py).
"""

import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpt1.params.schema import Params
from gpt1.pipeline.plan import formulas, kernels
from gpt1.pipeline.plan.machines import Hardware
from gpt1.pipeline.plan.work import StageWork
from gpt1.pipeline.schedule import Allocation, group
from gpt1.pipeline.slots import PROCESS_BYTES
from gpt1.train.launch import COMPILING_PAYS_FLOP, FLOP_A_PARAMETER, MICRO_BATCH_TOKENS

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
    "bpe": 2.6,
    "shard": 2.2,
    "baselines": 3.0,
    "encode": 3.5,
    "prompt": 3.0,
    "generate": 11.0,
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
# Bytes of raw text a second and core. Those of books are what the stages of reference/small took:
# 70 MB on two cores in 44 s (clean), 7 (bpe), 6 (shard),
# other work beside them.
BYTES_A_SECOND = {
    "world": 0.8e6,
    "acquire": 100e6,
    "clean": 0.9e6,
    "bpe": 8e6,
    "shard": 9e6,
    "encode": 0.8e6,
    "baselines": 0.25e6,  # 4.6 MB of nine tasks in 21 s there
}
# of baselines of more text than there: 16 fits of MNLI's 393,000 rows
MANY_BASELINE_BYTES, MANY_BASELINE_BYTES_A_SECOND = 8e6, 0.04e6
SEVERAL_PROCESSES = (
    "clean",
    "bpe",
    "shard",
    "encode",
    "prompt",
)  # stages that go through text on every core
# bytes of text that one process goes through alone, and of each task where there is more, as in
# gpt1/corpus/parallel.py
LITTLE_BYTES, TASK_BYTES = 24e6, 8e6

REFERENCE_PYTHON_SECONDS = (
    0.06  # CPU seconds of python_seconds() on the machine of the figures above
)

# of gradients, between the GPUs of one machine; assumed of NCCL over NVLink, nothing of it hidden
EXCHANGED_BYTES_A_SECOND = 200e9
RECURRENT_SECONDS = 30e-6  # of one step in time of an LSTM, forward and backward (cuDNN)
GPU_TUNING_SECONDS = 20.0  # before the first update: CUDA, compilation

# Of the limit in bf16 on two cores (0.4 TFLOP/s), by what each kind of training took in
# reference/small (gpt1 report, time by stage), a core each: pre-training the Transformer, an LSTM;
# all fine-tunings, of few and short rows, and scoring.
CPU_SHARE = {"transformer": 0.52, "lstm": 0.65, "finetune": 0.36}
CPU_UPDATE_SECONDS = 0.02  # Python and small operations of an update
# What of the softmax's logits is stored at once: at least so many rows, and as many as make so many
# logits (gpt1/train/losses.py)
SOFTMAX_BLOCKS = {"cpu": (1024, 1 << 25), "cuda": (8192, 0)}


class Pace(NamedTuple):
    """How fast a kind of training of one network goes: seconds an update and an operation on top;
    and the seconds that the first update of a process takes more. `measured`: on this machine;
    `scored`: seconds of an operation of scoring (None: as one of an update).
    """

    update: float
    flop: float
    first: float
    measured: bool
    scored: float | None = None


def line(points: Mapping[float, float]) -> tuple[float, float]:
    """(seconds an update, seconds an operation) through {operations of an update: seconds}, least
    and most; neither below 0.
    """
    least, most = min(points), max(points)
    slope = (points[most] - points[least]) / (most - least) if most > least else 0.0
    fixed = max(0.0, points[most] - slope * most) if slope > 0 else 0.0
    return fixed, (points[most] - fixed) / most


def cpu_pace(work: StageWork, flops: float) -> Pace:
    """The pace of a stage on a CPU whose matrix products make so many operations a second."""
    lstm = work.network is not None and work.network.units > 0
    kind = "finetune" if work.kind != "pretrain" else "lstm" if lstm else "transformer"
    return Pace(CPU_UPDATE_SECONDS, 1.0 / (CPU_SHARE[kind] * flops), 0.0, False)


def data_sheet_pace(
    work: StageWork, hardware: Hardware, share: Allocation, micro_batch: int | None = None
) -> Pace:
    """The pace of a stage with its share of a machine, from the data sheet and what is assumed; a
    stage with but some of a CPU's lanes has that part of its cores. `micro_batch`: rows, where they
    are set.
    """
    network = work.network
    assert network is not None
    if not hardware.devices:
        return cpu_pace(work, hardware.flops * max(1, share.lanes) / hardware.cores)
    update, devices = 0.0, max(1, share.devices)
    if work.updates:
        step, micro_batches = step_of(work, devices, micro_batch)
        update = kernels.seconds(kernels.of_update(step, micro_batches), hardware.gpu)
        if network.units:
            update += micro_batches * RECURRENT_SECONDS * work.length
    gradients = formulas.WEIGHT_BYTES * formulas.parameters(network)
    exchange = 2.0 * (devices - 1) / devices * gradients / EXCHANGED_BYTES_A_SECOND
    return Pace(update + exchange, 0.0, GPU_TUNING_SECONDS, False, scoring_seconds(work, hardware))


def step_of(work: StageWork, devices: int, micro_batch: int | None) -> tuple[kernels.Step, int]:
    """A micro-batch of a stage's updates, each shared by so many devices, and how many there are of
    an update.
    """
    assert work.network is not None
    rows, row_tokens = work.rows / devices, work.sequences * work.length
    at_once = micro_batch or max(1.0, MICRO_BATCH_TOKENS["cuda"] // row_tokens)
    micro_batches = math.ceil(rows / at_once)
    tokens = rows / micro_batches * row_tokens
    parameters = formulas.parameters(work.network)
    flop = FLOP_A_PARAMETER * parameters * work.tokens / work.networks
    pays = flop > COMPILING_PAYS_FLOP["cuda"] * devices and not work.network.units
    way = kernels.way_of(work.kind, pays)
    softmax, dropout = work.with_softmax, work.with_dropout
    return kernels.Step(work.network, tokens, work.length, softmax, dropout, way), micro_batches


def scoring_seconds(work: StageWork, hardware: Hardware) -> float:
    """Seconds of an operation of scoring on a GPU, in batches of many tokens."""
    network, tuned = work.network, work.kind == "finetune"
    assert network is not None
    length, tokens = work.length or network.sizes.context / 2, float(MICRO_BATCH_TOKENS["cuda"])
    step = kernels.Step(network, tokens, length, not tuned, False, "rows")
    flops = formulas.hidden_flops(network, length)
    flops += 0.0 if tuned else formulas.softmax_flops(network)
    return kernels.seconds(kernels.of_scoring(step), hardware.gpu) / (tokens * flops)


def seconds(work: StageWork, pace: Pace | None, slowness: float, cores: int) -> float:
    """How long a stage takes, start and end included. `slowness`: of a core at plain Python, 1 on
    the machine of the figures above.
    """
    verb = group(work.stage)
    start = START_SECONDS.get(verb, OTHER_START_SECONDS) + NETWORK_SECONDS * work.networks
    if pace is None:
        divided = verb in SEVERAL_PROCESSES and work.bytes_read >= LITTLE_BYTES
        several = min(cores, work.bytes_read // TASK_BYTES) if divided else 1
        rate = BYTES_A_SECOND.get(verb, 1e9)
        if verb == "baselines" and work.bytes_read > MANY_BASELINE_BYTES:
            rate = MANY_BASELINE_BYTES_A_SECOND
        return slowness * (start + work.bytes_read / (rate * max(1, several)))
    scored = work.scored_flops * (pace.flop if pace.scored is None else pace.scored)
    trained = work.updates * pace.update + work.flops * pace.flop + scored
    return slowness * start + pace.first + trained


def data_sheet_seconds(
    work: StageWork,
    hardware: Hardware,
    share: Allocation,
    slowness: float,
    micro_batch: int | None = None,
) -> float:
    """How long a stage takes on a machine by name."""
    pace = data_sheet_pace(work, hardware, share, micro_batch) if work.network else None
    return seconds(work, pace, slowness, hardware.cores)


def process_bytes(
    work: StageWork, params: Params, device: str, micro_batch: int | None, processes: int
) -> float:
    """Memory that one process of a stage takes at the most, on a GPU that of the GPU alone; 0 for a
    stage without a network. `micro_batch`: rows, where they are set.
    """
    if work.network is None:
        return 0.0
    base = PROCESS_BYTES / 4 if device == "cpu" else 1e9  # torch and its libraries; CUDA's context
    if work.kind == "score":
        return base + formulas.WEIGHT_BYTES * formulas.parameters(work.network)
    recipe = params.pretrain if work.kind == "pretrain" else params.finetune
    at_once = micro_batch and micro_batch * work.sequences * work.length
    tokens = min(work.update_tokens / processes, at_once or MICRO_BATCH_TOKENS[device])
    least, logits = SOFTMAX_BLOCKS[device]
    together = min(tokens, float(max(least, logits // work.network.rows)))
    return base + formulas.training_bytes(
        work.network, tokens, work.length, recipe.precision, together
    )


def fitting_micro_batch(
    works: Iterable[StageWork], params: Params, hardware: Hardware
) -> int | None:
    """Rows that go through the network at once where a device's memory is too small for as many as
    go by default (None: it is not), so that each stage fits; a power of two.
    """

    def most(micro_batch: int | None) -> float:
        return max(process_bytes(work, params, "cuda", micro_batch, 1) for work in works)

    works = list(works)
    if not hardware.devices or most(None) <= hardware.memory_bytes:
        return None
    rows = max(work.rows for work in works)
    halved = (2**power for power in range(rows.bit_length() - 1, -1, -1))
    return next((one for one in halved if most(one) <= hardware.memory_bytes), 1)


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
