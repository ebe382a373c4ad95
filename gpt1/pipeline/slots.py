"""How many stages this machine bears side by side: GPUs, or cores and memory; and the variables by
which a stage keeps to its share.
"""

import os
from pathlib import Path

from gpt1.base.cores import cores
from gpt1.base.errors import UserError
from gpt1.base.settings import setting
from gpt1.params.schema import PARAMS, Params, read_params
from gpt1.pipeline.schedule import Allocation, Slots
from gpt1.train.launch import MICRO_BATCH_TOKENS, read_machine

# Python with torch and its libraries, what an evaluation holds, and what glibc does not give back
PROCESS_BYTES = 2e9
LOGITS_A_BLOCK = 1024  # rows whose logits stand in memory together (gpt1/train/losses.py)
BYTES_A_PARAMETER = (
    100  # parameter, gradient, Adam's averages, bf16 copy, a checkpoint in the making
)
CONTROL_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def training_bytes(params: Params, micro_batch_tokens: int) -> float:
    """Roughly what one process needs that trains on a CPU: parameters and Adam's state, twice a
    micro-batch's activations, logits.
    """
    model, vocabulary = params.model, params.bpe.merges + params.bpe.alphabet_size
    layers = model.layers * (4 * model.width**2 + 2 * model.width * model.feed_forward)
    parameters = layers + (vocabulary + model.context) * model.width
    activations = model.layers * (
        40 * model.width + 8 * model.feed_forward + 4 * model.heads * model.context
    )
    return (
        PROCESS_BYTES
        + BYTES_A_PARAMETER * parameters
        + 2.0 * micro_batch_tokens * activations
        + LOGITS_A_BLOCK * 12.0 * vocabulary
    )


def memory_bytes() -> float:
    """Memory of this machine or container; not what is free now, for threads follow from it, and
    bits from threads.
    """
    import psutil

    total = float(psutil.virtual_memory().total)
    try:
        return min(total, float(CONTROL_GROUP_LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no limit says max
        return total


def lanes_of_cpu(params: Params | None = None) -> int:
    """As many trainings (of params.yaml where no others are given) as there are cores, and as
    memory bears; at least one.
    """
    if params is None and not PARAMS.is_file():
        return cores()
    one = training_bytes(params or read_params(), MICRO_BATCH_TOKENS["cpu"])
    return max(1, min(cores(), int(memory_bytes() // one)))


def find_slots(
    wanted: int | None, trains: bool, params: Params | None = None
) -> tuple[Slots, int | None]:
    """The slots of this machine, `wanted` of them if given, and the threads of one process that has
    it for itself, for params.yaml or for other parameters.

    No threads where the environment sets them. Without a stage that trains nothing asks for a GPU,
    which only torch could tell, after seconds. Raises UserError for GPT1_… settings that make no
    sense.
    """
    if not trains:
        return Slots(wanted or cores()), None
    machine, by_hand = read_machine(), setting("GPT1_THREADS")
    threads = None if by_hand else cores()
    if machine.device == "cpu" or wanted == 1:
        several = machine.processes > 1 or setting("GPT1_HOSTFILE")
        return Slots(wanted or (1 if several else lanes_of_cpu(params))), threads
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = tuple(visible.split(",")) if visible else tuple(map(str, range(machine.processes)))
    return Slots(cores(), devices[:wanted]), threads


def variables(share: Allocation, devices: tuple[str, ...]) -> dict[str, str]:
    """The environment that keeps a stage to its share of the machine."""
    kept = {} if share.threads is None else {"GPT1_THREADS": str(share.threads)}
    return kept | (
        {"CUDA_VISIBLE_DEVICES": ",".join(devices), "GPT1_PROCESSES": str(len(devices))}
        if devices
        else {}
    )


def smaller_micro_batch(attempt: int) -> dict[str, str]:
    """The environment for a further attempt of a stage that ran out of memory: half the rows at
    once for each attempt before it.
    """
    machine = read_machine()
    rows = machine.micro_batch_for(read_params().model.context) >> attempt
    if rows < 1:
        raise UserError(
            "one row at a time already takes more memory than there is; fewer stages side by side"
            " leave it more"
        )
    return {"GPT1_MICRO_BATCH": str(rows)}
