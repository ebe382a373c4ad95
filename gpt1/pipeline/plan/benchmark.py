"""The pace of this machine: short measurements in processes that have what `gpt1 run` would give a
stage, as many side by side.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.params.schema import Params
from gpt1.pipeline.plan import formulas, knobs
from gpt1.pipeline.plan.estimate import Pace, line
from gpt1.pipeline.plan.machines import nvidia_smi
from gpt1.pipeline.plan.work import Work
from gpt1.pipeline.schedule import Share, Slots
from gpt1.pipeline.slots import variables

LONGEST_UPDATE_SECONDS = 8.0  # one that would take longer is measured on fewer tokens
POLL_SECONDS = 0.5
Key = tuple[str, str]  # kind of training, network


class Measured(NamedTuple):
    """Paces by kind of training and network; memory in bytes where whole updates were seen; the
    limit of a matrix product in operations a second; the GPUs' power in watts, None without.
    """

    paces: dict[Key, Pace]
    peaks: dict[Key, float]
    matmul_flops: float
    watts: float | None


def measure(
    works: Sequence[Work], params: Params, share: Mapping[str, Share], slots: Slots, fits: bool
) -> Measured:
    """The pace of each kind of training of each network; without `fits`, where memory would not
    bear it, and for the rest, from a matrix product. Raises UserError.
    """
    limit = {"limit": params.pretrain.precision}
    [answer], _ = in_processes([limit], share["pretrain@transformer"], slots)
    flops = knobs.CPU_SHARE * answer["matmul_flops"]
    guess = Pace(knobs.CPU_UPDATE_SECONDS, 1.0 / flops, 1.0 / flops, 0.0, False)
    trained: dict[Key, list[Work]] = {}
    for work in works:
        if work.updates:
            trained.setdefault((work.kind, work.name), []).append(work)
    paces, peaks, watts = dict.fromkeys(trained, guess), dict[Key, float](), list[float]()
    for kind in dict.fromkeys(kind for kind, _ in trained) if fits else ():
        own = {name: ones for (other, name), ones in trained.items() if other == kind}
        stage = share[next(iter(own.values()))[0].stage]
        jobs = [job_of(ones, params, LONGEST_UPDATE_SECONDS * flops) for ones in own.values()]
        lanes = 1 if slots.devices else slots.lanes // max(1, stage.lanes)
        together = lanes >= len(jobs)  # on a CPU as many as a run would have side by side
        rounds = (
            [[jobs[at % len(jobs)] for at in range(lanes)]] if together else [[j] for j in jobs]
        )
        for several in rounds:
            answers, drawn = in_processes(several, stage, slots)
            watts += [drawn] if drawn else []
            for name in {job["network"]: None for job in several}:
                pairs = zip(several, answers, strict=True)
                mine = [(job, answer) for job, answer in pairs if job["network"] == name]
                paces[kind, name] = pace(mine[0][0], [answer for _, answer in mine], params)
                most = max(own[name], key=lambda one: one.flops / one.updates)
                if tuple(mine[0][0]["shapes"][-1]) == (most.rows, most.sequences, most.length):
                    peaks[kind, name] = max(answer["peak_bytes"] for _, answer in mine)
    return Measured(paces, peaks, answer["matmul_flops"], max(watts, default=None))


def in_processes(
    jobs: Sequence[Mapping[str, Any]], share: Share, slots: Slots
) -> tuple[list[dict[str, Any]], float | None]:
    """The answers of measure.py to jobs that run side by side, and the power that GPUs took
    meanwhile in watts. Raises UserError where one fails.
    """
    command, pipe = [sys.executable, "-m", "gpt1.pipeline.plan.measure"], subprocess.PIPE
    environment = {**os.environ, **variables(share, slots.devices[:1])}
    children = [
        subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in jobs
    ]
    drawn = list[float]()
    try:
        for child, job in zip(children, jobs, strict=True):
            assert child.stdin is not None
            child.stdin.write(json.dumps(job))
            child.stdin.close()
            child.stdin = None  # or communicate would flush it
        while any(child.poll() is None for child in children):
            drawn.append(sum(nvidia_smi("power.draw")))
            time.sleep(POLL_SECONDS)
        outputs = [child.communicate() for child in children]
    finally:
        for child in children:
            child.kill()
    for child, (_, said) in zip(children, outputs, strict=True):
        if child.returncode:
            last = (said.strip().splitlines() or ["it said nothing"])[-1]
            raise UserError(
                f"the measurement ended with status {child.returncode}: {last}; gpt1 plan"
                " --no-measure estimates instead"
            )
    under_load = sorted(drawn)[len(drawn) // 2 :]
    watts = statistics.median(under_load) if any(under_load) else None
    return [json.loads(answer) for answer, _ in outputs], watts


def job_of(works: Sequence[Work], params: Params, most_flops: float) -> dict[str, Any]:
    """What measure.py is to time for works of one kind and network: the least and the most of their
    updates, none above so many operations.
    """
    network = works[0].network
    assert network is not None
    return {
        "params": params.model_dump(),
        "network": works[0].name,
        "kind": works[0].kind,
        "rows": network.rows,
        "shapes": shapes_of(works, most_flops),
        "tokens": works[0].tokens,
    }


def shapes_of(works: Sequence[Work], most_flops: float) -> list[tuple[int, int, float]]:
    """(rows, sequences, length) of the least and the most update of some works of one network, none
    above so many operations.
    """
    least, most = (pick(works, key=lambda work: work.flops / work.updates) for pick in (min, max))
    ones = [least] if least is most else [least, most]
    parts = [min(1.0, most_flops * work.updates / work.flops) for work in ones]
    if least is most and parts[0] < 1:  # two sizes tell what an update takes beside its products
        ones, parts = [most, most], [0.5 * parts[0], parts[0]]
    return [smaller(work, part) for work, part in zip(ones, parts, strict=True)]


def smaller(work: Work, part: float) -> tuple[int, int, float]:
    """The shape of a work's update with but a part of its tokens: fewer rows, or else shorter
    sequences.
    """
    rows = work.rows * part
    length = max(8.0, work.length * min(1.0, rows)) if part < 1 else work.length
    return max(1, round(rows)), work.sequences, length


def pace(job: Mapping[str, Any], answers: Sequence[Mapping[str, Any]], params: Params) -> Pace:
    """The straight line through the mean of what equal jobs saw of updates; of scoring, what the
    largest shape took.
    """
    pretrains = job["kind"] == "pretrain"
    units = params.lstm.units if job["network"] == "lstm" else 0
    network = formulas.Network(params.model, units, job["rows"])
    softmax = network if pretrains else network.with_positions
    updates, scored_flop = dict[float, float](), 0.0
    for timed, (rows, sequences, length) in zip(
        zip(*(answer["timed"] for answer in answers), strict=True), job["shapes"], strict=True
    ):
        trained = formulas.training_flops(
            softmax, length, pretrains or params.finetune.lambda_lm > 0
        )
        updates[rows * sequences * length * trained] = statistics.mean(
            one["update"] for one in timed
        )
        scored = formulas.hidden_flops(network, length) + (
            formulas.softmax_flops(network) if pretrains else 0.0
        )
        scored_flop = statistics.mean(one["evaluation"] for one in timed) / (
            timed[0]["evaluated"] * sequences * length * scored
        )
    update, flop = line(updates)
    first = max(answer["timed"][0]["first"] for answer in answers)
    return Pace(update, flop, scored_flop, first, True)
