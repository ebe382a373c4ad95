"""The pace of this machine: short measurements in processes that have what `gpt1 run` would give a
stage, as many side by side.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.params.schema import Params
from gpt1.pipeline.plan import formulas, knobs
from gpt1.pipeline.plan.estimate import Pace, line
from gpt1.pipeline.plan.machines import joules, nvidia_smi
from gpt1.pipeline.plan.work import Work
from gpt1.pipeline.schedule import Share, Slots
from gpt1.pipeline.slots import variables

LONGEST_UPDATE_SECONDS = 8.0  # one that would take longer is measured on fewer tokens
POLL_SECONDS = 0.5


class Measured(NamedTuple):
    """What equal jobs found: seconds of an update by its operations, of an operation in scoring, by
    which the first update was longer; peak memory in bytes, and whether of a whole update.
    """

    updates: dict[float, float]
    scored_flop: float
    first: float
    peak_bytes: float
    whole: bool


def in_processes(
    jobs: Sequence[Mapping[str, Any]], share: Share, slots: Slots, seen: Callable[[], None]
) -> list[dict[str, Any]]:
    """The answers of measure.py to jobs that run side by side; `seen` is called now and then.
    Raises UserError where one fails.
    """
    command, pipe = [sys.executable, "-m", "gpt1.pipeline.plan.measure"], subprocess.PIPE
    environment = {**os.environ, **variables(share, slots.devices[:1])}
    children = [
        subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in jobs
    ]
    try:
        for child, job in zip(children, jobs, strict=True):
            assert child.stdin is not None
            child.stdin.write(json.dumps(job))
            child.stdin.close()
            child.stdin = None  # or communicate would flush it
        while any(child.poll() is None for child in children):
            seen()
            time.sleep(POLL_SECONDS)
        told = [child.communicate() for child in children]
    finally:
        for child in children:
            child.kill()
    for child, (_, said) in zip(children, told, strict=True):
        if child.returncode:
            last = (said.strip().splitlines() or ["it said nothing"])[-1]
            raise UserError(
                f"the measurement ended with status {child.returncode}: {last}; gpt1 plan"
                " --no-measure estimates instead"
            )
    return [json.loads(answer) for answer, _ in told]


def watched(measure: Callable[[Callable[[], None]], Any]) -> tuple[Any, float | None]:
    """What `measure` gives, and the power that processors or GPUs took meanwhile in watts: None
    where neither can be read.
    """
    drawn, began, before = list[float](), time.monotonic(), joules()
    found = measure(lambda: drawn.append(sum(nvidia_smi("power.draw"))))
    after = joules()
    if any(drawn):
        return found, statistics.median(sorted(drawn)[len(drawn) // 2 :])
    if before is None or after is None or after <= before:
        return found, None
    return found, (after - before) / (time.monotonic() - began)


def shapes_of(works: Sequence[Work], most_flops: float) -> list[tuple[int, int, float]]:
    """(rows, sequences, length) of the least and the most update of some works of one network, none
    above so many operations.
    """

    def flops(work: Work) -> float:
        return work.flops / work.updates

    trained = [work for work in works if work.updates]
    least, most = min(trained, key=flops), max(trained, key=flops)
    shapes = [
        smaller(work, min(1.0, most_flops / flops(work)))
        for work in ((most,) if least is most else (least, most))
    ]
    return (
        shapes
        if len(shapes) > 1 or shapes[0] == smaller(most, 1.0)
        else [smaller(most, 0.5 * most_flops / flops(most)), *shapes]
    )


def smaller(work: Work, part: float) -> tuple[int, int, float]:
    """The shape of a work's update with but a part of its tokens: fewer rows, or else shorter
    sequences.
    """
    rows = work.rows * part
    return (
        max(1, round(rows)),
        work.sequences,
        max(8.0, work.length * min(1.0, rows)) if part < 1 else work.length,
    )


def jobs_of(
    kind: str, works: Sequence[Work], params: Params, most_flops: float
) -> list[dict[str, Any]]:
    """A job for each network of a kind of training."""
    jobs = []
    for name in dict.fromkeys(work.name for work in works):
        own = [work for work in works if work.name == name and work.updates]
        if own and own[0].network:
            jobs.append(
                {
                    "params": params.model_dump(),
                    "network": name,
                    "kind": kind,
                    "rows": own[0].network.rows,
                    "shapes": shapes_of(own, most_flops),
                    "tokens": own[0].tokens,
                }
            )
    return jobs


def measured(
    job: Mapping[str, Any], answers: Sequence[Mapping[str, Any]], work: Work, params: Params
) -> Measured:
    """What the answers of equal jobs say of a pace, their mean; `work` is any work of that
    network.
    """
    assert work.network is not None
    network, updates = work.network, dict[float, float]()
    with_positions = params.model.context if job["kind"] == "finetune" else 0
    softmax = network._replace(rows=network.rows + with_positions)
    scored = list[float]()
    for number, (rows, sequences, length) in enumerate(job["shapes"]):
        timed = [answer["timed"][number] for answer in answers]
        with_softmax = job["kind"] == "pretrain" or params.finetune.lambda_lm > 0
        flops = rows * sequences * length * formulas.training_flops(softmax, length, with_softmax)
        updates[flops] = statistics.mean(one["update"] for one in timed)
        forward = formulas.hidden_flops(network, length) + (
            formulas.softmax_flops(network) if job["kind"] == "pretrain" else 0.0
        )
        scored.append(
            statistics.mean(one["evaluation"] for one in timed)
            / (timed[0]["evaluated"] * sequences * length * forward)
        )
    first = max(answer["timed"][0]["first"] for answer in answers)
    whole = list(job["shapes"][-1]) == [work.rows, work.sequences, work.length]
    return Measured(
        updates, scored[-1], first, max(answer["peak_bytes"] for answer in answers), whole
    )


def pace_of(found: Measured) -> Pace:
    """The straight line through what was measured."""
    update, flop = line(found.updates)
    return Pace(update, flop, found.scored_flop, found.first, True)


def limit_pace(matmul_flops: float) -> Pace:
    """The pace where nothing but a matrix product was measured."""
    flop = 1.0 / (knobs.CPU_SHARE * matmul_flops)
    return Pace(knobs.CPU_UPDATE_SECONDS, flop, flop, 0.0, False)
