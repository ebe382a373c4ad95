"""`gpt1 evaluate`: a fine-tuned model on a file in its task's official format."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import Seed, Task, argument, option

EXAMPLES = """
Examples:

    gpt1 evaluate rte data/acquire/tasks/rte/dev.tsv

    gpt1 evaluate mnli multinli_1.0_dev_matched.jsonl --seed 1 --json

    gpt1 evaluate cola test.tsv --out predictions.tsv     a file without labels: predictions only
"""


def evaluate(
    task: Task,
    file: Annotated[
        Path,
        argument("A file in one of the task's official formats, with labels or without."),
    ],
    seed: Seed = None,
    out: Annotated[
        Path | None,
        option(
            "Write the predictions here. Default: nowhere, or, for a file without labels, "
            "FILE's name with .predictions.tsv in this folder."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The outcome as one JSON object.")
    ] = False,
) -> None:
    """Score a fine-tuned model on a file: the task's metrics, with one standard error and the best
    score that looks at no input.

    A file without labels is told of as such and gets predictions only. Rows that cannot be read are
    counted.
    """
    import json
    import sys

    from gpt1.base.files import stage_folder
    from gpt1.inference.evaluation import (
        answer_all,
        read_official,
        record,
        scores,
        write_predictions,
    )
    from gpt1.inference.finished import finished
    from gpt1.inference.saved import load_model
    from gpt1.params.schema import read_params

    done = finished(read_params(), task)
    weights = done.weights(seed)
    rows = read_official(file, done.task)
    answers = answer_all(load_model(weights, stage_folder("bpe")), rows)
    found = scores(done.task, rows, answers)
    target = out or (None if rows.labelled else Path(f"{file.stem}.predictions.tsv"))
    chosen = done.best() if seed is None else seed
    notes = [
        f"{count} rows left out: {reason}"
        for reason, count in (rows.unreadable | rows.left_out).items()
    ]
    if target:
        write_predictions(target, done.task, answers)
        notes.append(f"{len(answers)} predictions written to {target}")
    if as_json:
        print(
            json.dumps(
                record(done.task, chosen, rows, found)
                | {"predictions": None if target is None else str(target)}
            )
        )
    else:
        best = (
            f", the best of {len(done.dev_scores)} on the development split" if seed is None else ""
        )
        print(f"{done.task.title} on {file}: {len(answers)} examples, seed {chosen}{best}")
        for one in found:
            print(
                f"{one.metric} {one.value:.1f} ± {one.standard_error:.1f} (one standard error);"
                f" blind to the input {one.blind:.1f}"
            )
    if not rows.labelled:
        notes.insert(0, f"{file} has no labels, so there is no score")
    for note in notes:
        print(note, file=sys.stderr)
