"""The pace of this machine: short measurements in processes that have what `gpt1 run` would give a
stage, as many side by side.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from gpt1.base.errors import UserError
from gpt1.params.recipes import pretraining_stage
from gpt1.params.schema import Params
from gpt1.pipeline.plan.estimate import CPU_SHARE, Pace, cpu_pace, line
from gpt1.pipeline.plan.work import StageWork, UpdateShape
from gpt1.pipeline.schedule import Allocation, Slots
from gpt1.pipeline.slots import variables

MEASURE_SECONDS = 15.0  # of all kinds of training together, once torch is imported
LEAST_SECONDS = 0.5  # of one kind
LONGEST_UPDATE = 1 / 6  # of the seconds of its kind: a longer one is measured on fewer tokens
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
    tell: Callable[[str], None] = lambda line: None,
) -> Benchmark:
    """The pace of each kind of training of each network; without `fits`, where memory would not
    bear it, from a matrix product. Each has its part of what is left of MEASURE_SECONDS; `tell` is
    told what is measured. Raises UserError.
    """
    trained: dict[Key, list[StageWork]] = {}
    for work in works:
        if work.updates:
            trained.setdefault((work.kind, work.name), []).append(work)
    beside = {
        key: 1 if slots.devices else slots.lanes // max(1, share[own[0].stage].lanes)
        for key, own in trained.items()
    }
    peaks = dict[Key, float]()
    with Processes(max(beside.values(), default=1) if fits else 1, slots) as processes:
        limit = {"limit": params.pretrain.precision}
        transformers = share[pretraining_stage(params, "transformer")]
        [answer] = processes.answers(limit, 1, transformers)
        paces = {key: cpu_pace(own[0], answer["matmul_flops"]) for key, own in trained.items()}
        flops = CPU_SHARE["finetune"] * answer["matmul_flops"]
        ends = time.monotonic() + MEASURE_SECONDS
        for number, (key, own) in enumerate(trained.items() if fits else ()):
            seconds = max((ends - time.monotonic()) / (len(trained) - number), LEAST_SECONDS)
            tell(f"{' '.join(key)} ({number + 1} of {len(trained)})")
            job = job_of(own, params, LONGEST_UPDATE * seconds * flops) | {"seconds": seconds}
            answers = processes.answers(job, beside[key], share[own[0].stage])
            paces[key] = measured_pace(job["shapes"], answers)
            if job["whole"]:
                peaks[key] = max(one["peak_bytes"] for one in answers)
    return Benchmark(paces, peaks, answer["matmul_flops"])


class Processes:
    """Processes of measure.py, side by side, until the end of the block."""

    def __init__(self, count: int, slots: Slots) -> None:
        self.slots = slots
        self.said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        command = [sys.executable, "-m", "gpt1.pipeline.plan.measure"]
        self.all = [
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.said,
                text=True,
            )
            for _ in range(count)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.all:
            process.kill()
            process.communicate()
        self.said.close()

    def answers(
        self, job: Mapping[str, Any], count: int, share: Allocation
    ) -> list[dict[str, Any]]:
        """The answers of so many of them to a job, each with this share of the machine. Raises
        UserError where one fails.
        """
        asked = {**job, "environment": variables(share, self.slots.devices[:1])}
        for process in self.all[:count]:
            with suppress(BrokenPipeError):  # one that has ended gives no answer
                print(json.dumps(asked), file=process.stdin, flush=True)
        found = []
        for process in self.all[:count]:
            assert process.stdout is not None
            if not (line := process.stdout.readline()):
                self.said.seek(0)
                last = (self.said.read().strip().splitlines() or ["it said nothing"])[-1]
                raise UserError(
                    f"the measurement ended with status {process.wait()}: {last}; gpt1 plan"
                    " --no-measure estimates instead"
                )
            found.append(dict(json.loads(line)))
        return found


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
