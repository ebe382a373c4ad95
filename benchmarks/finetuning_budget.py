"""The budget of the paper's fine-tuning on one H100, by class of kernel: of an update on 32 rows of
64 tokens, counted without a GPU (fake_cuda.py); and the hours of all updates of the twelve tasks
with five seeds, operator by operator and by CUDA graphs (GPT1_COMPILE=graphs).

    python benchmarks/finetuning_budget.py [--csv benchmarks/finetuning_budget.csv]

In the root of the checkout. The hours are of gpt1/pipeline/plan/kernels.py, whose formulas are held
to the counts, over batches whose lengths are drawn as those of the tasks (task_lengths.py). A batch
takes as long as its kernels or as their launches, whichever is longer. Nothing here was measured.
"""

import argparse
import csv
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fake_cuda import counting
from kernel_classes import CLASSES, class_of
from launches import finetuning_of, last
from operators import Kernel
from side_by_side import table
from step_budget import LAUNCH, Row, fused, is_light, rows_of, shown
from task_lengths import lengths_of

from gpt1.model.layout import few
from gpt1.params.profile import compose
from gpt1.params.schema import Params, validate
from gpt1.pipeline.graph import expand
from gpt1.pipeline.plan import estimate, kernels
from gpt1.pipeline.plan.machines import NAMED
from gpt1.pipeline.plan.work import StageWork, work_of
from gpt1.train.batches import Examples, few_lengths
from gpt1.train.objectives import SHAPES_AN_OCTAVE

ROWS, LENGTH, VOCABULARY, DRAWN = 32, 64, 40_478, 500  # batches drawn of each task
WAYS = ("operators", "graphs")
H100 = NAMED[0]


def counted(params: Params, graphs: bool) -> dict[str, Row]:
    """Each class of an update of the real trainer, on tensors without numbers."""
    examples = Examples(
        np.zeros(2 * ROWS * LENGTH, np.uint16),
        np.arange(2 * ROWS + 1) * LENGTH,
        np.zeros(2 * ROWS, np.int64),
        1,
    )
    with tempfile.TemporaryDirectory() as folder, counting() as count:
        made = finetuning_of(examples, params, VOCABULARY, Path(folder), graphs)
        last(count, made.take_update, 3 if graphs else 2)
        found = rows_of(count.kernels, VOCABULARY)
        compiled = rows_of(fused(count.kernels, is_compiled), VOCABULARY) if graphs else found
    return {name: row._replace(launches=found[name].launches) for name, row in compiled.items()}


def is_compiled(kernel: Kernel) -> bool:
    """By graphs blocks and masks are compiled, but for the softmax, as it is in fine-tuning."""
    class_ = class_of(kernel.name, kernel.shape, VOCABULARY, bool(kernel.flops))
    return is_light(kernel) and class_ != "softmax"


def batches(work: StageWork, task: str, context: int, graphs: bool) -> Iterator[kernels.Step]:
    """Some of a stage's updates: so many real tokens, and the longest sequence; by graphs padded to
    one of few shapes.
    """
    assert work.network is not None
    drawn = lengths_of(task, DRAWN * work.rows, 0).reshape(DRAWN, -1)
    for tokens, longest in zip(drawn.sum(axis=1).tolist(), drawn.max(axis=1).tolist(), strict=True):
        if graphs:
            tokens, longest = few(tokens, SHAPES_AN_OCTAVE), few_lengths(longest, context)
        way = "graphs" if graphs else "rows"
        yield kernels.Step(work.network, tokens, longest, True, True, way)


def update_seconds(
    work: StageWork, task: str, context: int, graphs: bool
) -> tuple[Counter[str], float]:
    """Mean seconds that a stage's update keeps the GPU busy, by class, and that it takes."""
    busy, taken = Counter[str](), 0.0
    for step in batches(work, task, context, graphs):
        found = kernels.of_update(step)
        for name, seconds in kernels.seconds_by_class(found, H100.gpu).items():
            busy[name] += seconds / DRAWN
        taken += kernels.seconds(found, H100.gpu) / DRAWN
    return busy, taken


def hours(params: Params, graphs: bool) -> tuple[Counter[str], int, float, float]:
    """Hours of all fine-tunings of the profile's tasks: by class, with launches waited for as
    "waiting for launches"; updates; hours of evaluations, and of starts and ends.
    """
    found, updates, scored, starts = Counter[str](), 0, 0.0, 0.0
    stages, rates = expand(compose("paper", ())), dict[str, tuple[Counter[str], float]]()
    for name, row in params.stages.finetune.items():
        work = work_of(stages[f"finetune@{name}"], params, ())
        if row.task not in rates:
            rates[row.task] = update_seconds(work, row.task, params.model.context, graphs)
        busy, taken = rates[row.task]
        for class_, seconds in busy.items():
            found[class_] += work.updates * seconds / 3600
        found["waiting for launches"] += work.updates * (taken - busy.total()) / 3600
        updates += work.updates
        scoring = work.scored_flops * estimate.scoring_seconds(work, H100)
        scored += scoring / 3600
        start = estimate.OTHER_START_SECONDS + estimate.NETWORK_SECONDS * work.networks
        starts += (start + estimate.GPU_TUNING_SECONDS) / 3600
    return found, updates, scored, starts


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--csv", type=Path, metavar="FILE", help="write the tables there too")
    arguments = options.parse_args()
    params = validate(compose("paper", ()))
    rows = {way: counted(params, way == "graphs") for way in WAYS}
    head = ["class"] + [
        f"{what}, {way}" for way in WAYS for what in ("launches", "TFLOP", "GB", "ms")
    ]
    update = [
        [name, *(cell for way in WAYS for cell in shown(rows[way][name]))]
        for name in (*CLASSES, "step")
    ]
    print(table(head, update))
    for way in WAYS:
        step = rows[way]["step"]
        taken = max(step.milliseconds, 1e3 * LAUNCH * step.launches)
        print(f"\n{way}: an update takes {taken:.1f} ms")
    totals = {way: hours(params, way == "graphs") for way in WAYS}
    updates = totals[WAYS[0]][1]
    lines = [
        [f"hours, {name}", *(f"{totals[way][0][name]:.2f}" for way in WAYS)]
        for name in (*CLASSES, "waiting for launches")
    ]
    lines += [
        [f"hours, {updates} updates", *(f"{totals[way][0].total():.2f}" for way in WAYS)],
        ["hours, evaluations", *(f"{totals[way][2]:.2f}" for way in WAYS)],
        ["hours, starts and ends", *(f"{totals[way][3]:.2f}" for way in WAYS)],
        ["hours, all", *(f"{totals[way][0].total() + sum(totals[way][2:]):.2f}" for way in WAYS)],
    ]
    print(f"\n{table(['of all fine-tunings', *WAYS], lines)}")
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *update, *lines])


if __name__ == "__main__":
    main()
