"""Seconds and bytes of a stage's work at a pace: measured here, or estimated from a data sheet."""

from collections.abc import Mapping
from typing import NamedTuple

from gpt1.params.schema import Params
from gpt1.pipeline.plan import formulas, knobs
from gpt1.pipeline.plan.machines import Hardware
from gpt1.pipeline.plan.work import Work
from gpt1.pipeline.schedule import Share, group
from gpt1.pipeline.slots import PROCESS_BYTES
from gpt1.train.launch import MICRO_BATCH_TOKENS

SOFTMAX_ROWS = (
    1024.0  # of logits that are stored at once: the softmax goes in blocks (gpt1/train/losses.py)
)


class Pace(NamedTuple):
    """How fast a kind of training of one network goes: seconds an update and an operation on top,
    in training and in scoring; and the seconds that the first update of a process takes more.
    `measured`: on this machine.
    """

    update: float
    flop: float
    scored_flop: float
    first: float
    measured: bool

    def shared(self, devices: int, network: formulas.Network) -> "Pace":
        """The pace of one device made that of several that share each update."""
        bytes_ = formulas.WEIGHT_BYTES * formulas.parameters(network)
        exchanged = formulas.all_reduce_seconds(bytes_, devices, knobs.LINK_BYTES_A_SECOND)
        return self._replace(
            update=self.update + exchanged,
            flop=self.flop / devices,
            scored_flop=self.scored_flop / devices,
            measured=False,
        )


def line(points: Mapping[float, float]) -> tuple[float, float]:
    """(seconds an update, seconds an operation) through {operations of an update: seconds}, least
    and most; neither below 0.
    """
    least, most = min(points), max(points)
    slope = (points[most] - points[least]) / (most - least) if most > least else 0.0
    fixed = max(0.0, points[most] - slope * most) if slope > 0 else 0.0
    return fixed, (points[most] - fixed) / most


def data_sheet_pace(hardware: Hardware, work: Work, devices: int) -> Pace:
    """The pace of a stage with so many of a machine's devices, from its data sheet and the assumed
    shares in knobs.py.
    """
    assert work.network is not None
    if not hardware.devices:
        flop = 1.0 / (knobs.CPU_SHARE * hardware.flops)
        return Pace(knobs.CPU_UPDATE_SECONDS, flop, flop, 0.0, False)
    count, layers = (
        formulas.parameters(work.network),
        1 if work.network.units else work.network.sizes.layers,
    )
    launches = knobs.GPU_LAUNCH_SECONDS * (knobs.KERNELS_A_LAYER * layers + knobs.KERNELS_AN_UPDATE)
    recurrence = knobs.RECURRENT_SECONDS * work.length if work.network.units else 0.0
    adam = knobs.ADAM_TRAFFIC_BYTES * count / hardware.bytes_per_second
    exchanged = formulas.all_reduce_seconds(
        formulas.WEIGHT_BYTES * count, devices, hardware.link_bytes_per_second
    )
    peak = devices * hardware.flops
    return Pace(
        launches + recurrence + adam + exchanged,
        1.0 / (knobs.GPU_SHARE * peak),
        1.0 / (knobs.GPU_SCORED_SHARE * peak),
        knobs.GPU_TUNING_SECONDS,
        False,
    )


def seconds(work: Work, pace: Pace | None, slowness: float, cores: int) -> float:
    """How long a stage takes, start and end included. `slowness`: of a core at plain Python, 1 on
    the machine of knobs.py's figures.
    """
    verb = group(work.stage)
    fixed = (
        knobs.START_SECONDS.get(verb, knobs.OTHER_START_SECONDS)
        + knobs.NETWORK_SECONDS * work.networks
    ) * slowness
    if pace is None:
        processes = (
            max(1.0, min(float(cores), work.bytes_read // knobs.PARALLEL_BYTES))
            if verb in knobs.SEVERAL_PROCESSES
            else 1.0
        )
        return fixed + slowness * work.bytes_read / (
            knobs.BYTES_A_SECOND.get(verb, 1e9) * processes
        )
    trained = work.updates * pace.update + work.flops * pace.flop
    return fixed + pace.first + trained + work.scored_flops * pace.scored_flop


def process_bytes(
    work: Work, params: Params, device: str, micro_batch_tokens: int | None, processes: int
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
        work.network, tokens, work.length, recipe.precision, min(tokens, SOFTMAX_ROWS)
    )


def data_sheet_seconds(work: Work, hardware: Hardware, share: Share, slowness: float) -> float:
    """How long a stage takes on a machine by name."""
    pace = None if work.network is None else data_sheet_pace(hardware, work, max(1, share.devices))
    if (
        pace and not hardware.devices
    ):  # a stage that has but some of the lanes has that share of the cores
        part = hardware.slots.lanes / max(1, share.lanes)
        pace = pace._replace(flop=pace.flop * part, scored_flop=pace.scored_flop * part)
    return seconds(work, pace, slowness, hardware.cores)
