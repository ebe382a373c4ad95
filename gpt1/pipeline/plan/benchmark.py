"""The pace of this machine: short measurements in processes that have what `gpt1 run` would give a
stage, as many side by side.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.params.recipes import pretraining_stage
from gpt1.params.schema import Params
from gpt1.pipeline.plan.estimate import CPU_SHARE, CPU_UPDATE_SECONDS, Pace, line
from gpt1.pipeline.plan.work import StageWork, UpdateShape
from gpt1.pipeline.schedule import Allocation, Slots
from gpt1.pipeline.slots import variables

LONGEST_UPDATE_SECONDS = 8.0  # one that would take longer is measured on fewer tokens
Key = tuple[str, str]  # kind of training, network


class Benchmark(NamedTuple):
    """Paces by kind of training and network; memory in bytes where whole updates were seen; the
    limit of a matrix product in operations a second.
    """

    paces: dict[Key, Pace]
    peaks: dict[Key, float]
    matmul_flops: float


def benchmark(
    works: Sequence[StageWork],
    params: Params,
    share: Mapping[str, Allocation],
    slots: Slots,
    fits: bool,
) -> Benchmark:
    """The pace of each kind of training of each network; without `fits`, where memory would not
    bear it, from a matrix product. Raises UserError.
    """
    limit = {"limit": params.pretrain.precision}
    [answer] = in_processes(limit, 1, share[pretraining_stage(params, "transformer")], slots)
    flops = CPU_SHARE * answer["matmul_flops"]
    trained: dict[Key, list[StageWork]] = {}
    for work in works:
        if work.updates:
            trained.setdefault((work.kind, work.name), []).append(work)
    paces = dict.fromkeys(trained, Pace(CPU_UPDATE_SECONDS, 1.0 / flops, 0.0, False))
    peaks = dict[Key, float]()
    for key, own in trained.items() if fits else ():
        job, stage = job_of(own, params, LONGEST_UPDATE_SECONDS * flops), share[own[0].stage]
        beside = 1 if slots.devices else slots.lanes // max(1, stage.lanes)
        answers = in_processes(job, beside, stage, slots)
        paces[key] = measured_pace(job["shapes"], answers)
        if job["whole"]:
            peaks[key] = max(answer["peak_bytes"] for answer in answers)
    return Benchmark(paces, peaks, answer["matmul_flops"])


def in_processes(
    job: Mapping[str, Any], count: int, share: Allocation, slots: Slots
) -> list[dict[str, Any]]:
    """The answers of measure.py to a job, from so many processes side by side. Raises UserError
    where one fails.
    """
    environment = {**os.environ, **variables(share, slots.devices[:1])}

    def answer(_: int) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "gpt1.pipeline.plan.measure"],
            input=json.dumps(job),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise UserError(
                f"the measurement ended with status {done.returncode}: {last}; gpt1 plan"
                " --no-measure estimates instead"
            )
        return dict(json.loads(done.stdout))

    with ThreadPoolExecutor(count) as processes:
        return list(processes.map(answer, range(count)))


def job_of(works: Sequence[StageWork], params: Params, most_flops: float) -> dict[str, Any]:
    """What measure.py is to time for works of one kind and network: the least and the most of their
    updates, none above so many operations; `whole`: the most is as a run has it.
    """
    network, shapes = works[0].network, shapes_of(works, most_flops)
    assert network is not None
    return {
        "params": params.model_dump(),
        "network": works[0].name,
        "kind": works[0].kind,
        "rows": network.rows,
        "shapes": shapes,
        "whole": shapes[-1] == smaller(max(works, key=operations), 1.0),
        "tokens": works[0].tokens,
    }


def operations(work: StageWork) -> float:
    """Operations of one of a work's updates."""
    return work.flops / work.updates


def shapes_of(works: Sequence[StageWork], most_flops: float) -> list[UpdateShape]:
    """The least and the most update of some works of one network, none above so many operations."""
    least, most = min(works, key=operations), max(works, key=operations)
    ones = [least] if least is most else [least, most]
    parts = [min(1.0, most_flops / operations(work)) for work in ones]
    if least is most and parts[0] < 1:  # two sizes tell what an update takes beside its products
        ones, parts = [most, most], [0.5 * parts[0], parts[0]]
    return [smaller(work, part) for work, part in zip(ones, parts, strict=True)]


def smaller(work: StageWork, part: float) -> UpdateShape:
    """A work's update with but a part of its tokens: fewer rows, or else shorter sequences."""
    rows = work.rows * part
    length = max(8.0, work.length * min(1.0, rows)) if part < 1 else work.length
    whole_rows = max(1, round(rows))
    of_all = whole_rows * length / (work.rows * work.length)
    return UpdateShape(whole_rows, work.sequences, length, operations(work) * of_all)


def measured_pace(shapes: Sequence[UpdateShape], answers: Sequence[Mapping[str, Any]]) -> Pace:
    """The straight line through the mean of what equal processes saw of updates."""
    updates = zip(*(answer["updates"] for answer in answers), strict=True)
    points = {
        shape.flops: statistics.mean(seconds)
        for shape, seconds in zip(shapes, updates, strict=True)
    }
    return Pace(*line(points), max(answer["first"] for answer in answers), True)
