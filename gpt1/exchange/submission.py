"""The files of GLUE's leaderboard (https://gluebenchmark.com) in a zip. Equal results give equal
bytes.
"""

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import DATA, read_arrays, read_json, stage_folder, writing
from gpt1.inference.finetuned import finetuned_folders, finetuned_task
from gpt1.params.schema import read_params
from gpt1.tasks.metrics import answers_of


class BoardFile(NamedTuple):
    """A file of the leaderboard; constant: the commonest label of GLUE's dev split."""

    name: str
    rows: int
    task: str
    split: str
    constant: str


FILES = (
    BoardFile("CoLA.tsv", 1063, "cola", "test", "1"),
    BoardFile("SST-2.tsv", 1821, "sst2", "test", "1"),
    BoardFile("MRPC.tsv", 1725, "mrpc", "test", "1"),
    BoardFile("STS-B.tsv", 1379, "stsb", "test", "2.500"),
    BoardFile("QQP.tsv", 390_965, "qqp", "test", "0"),
    BoardFile("MNLI-m.tsv", 9796, "mnli", "test_matched", "entailment"),
    BoardFile("MNLI-mm.tsv", 9847, "mnli", "test_mismatched", "entailment"),
    BoardFile("QNLI.tsv", 5463, "qnli", "test", "not_entailment"),  # the second version
    BoardFile("RTE.tsv", 3000, "rte", "test", "entailment"),
    BoardFile("WNLI.tsv", 146, "wnli", "test", "0"),
    BoardFile("AX.tsv", 1104, "mnli", "diagnostic", "entailment"),
)
WITHOUT = "WNLI.tsv"  # constant in every run: its dev set misleads who learns from train


class Predicted(NamedTuple):
    """A file's answers in order, and their origin."""

    answers: list[str]
    source: str


def make(target: Path, fill: bool) -> dict[str, str]:
    """Write the zip from this run; return each file's origin. `fill`: give constants where
    answers lack. Raises UserError for missing or damaged answers.
    """
    if target.suffix != ".zip":
        raise UserError(f"{target}: expected a file whose name ends with .zip; name one")
    by_file = {file: predicted(file) for file in FILES}
    reasons = {file.name: why for file, why in by_file.items() if isinstance(why, str)}
    if len(reasons) == len(FILES):
        raise UserError(
            f"{DATA}: expected a run with answers to GLUE's test files, found none"
            f" ({'; '.join(dict.fromkeys(reasons.values()))}); run gpt1 profile paper --data FOLDER"
            " and gpt1 run, with eval_rows null"
        )
    missing = [f"{name} ({why})" for name, why in reasons.items() if name != WITHOUT]
    if missing and not fill:
        raise UserError(
            f"expected answers to all {len(FILES)} files of the leaderboard, found none to"
            f" {'; '.join(missing)}; run those tasks, or give them constant answers by --fill"
        )
    sources = {}
    with writing(target, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for file, prediction in by_file.items():
            if isinstance(prediction, str):
                prediction = Predicted(
                    [file.constant] * file.rows, f"constant {file.constant}: {prediction}"
                )
            lines = [f"{index}\t{answer}\n" for index, answer in enumerate(prediction.answers)]
            content = "".join(["index\tprediction\n", *lines])
            archive.writestr(zipfile.ZipInfo(file.name), content, zipfile.ZIP_DEFLATED)
            sources[file.name] = prediction.source
    return sources


def predicted(file: BoardFile) -> Predicted | str:
    """Return a file's answers by the seed and weights best on dev, or why there are none. Raises
    UserError.
    """
    if file.task not in finetuned_folders().keys() & read_params().tasks:
        return f"{file.task} is not fine-tuned"
    done, name = finetuned_task(file.task), f"{file.split}/best"
    task, best = done.task, done.best()
    path = stage_folder("encode", done.folder.parent.name, file.task, "task.json")
    try:
        split = read_json(path)["splits"].get(file.split)
        if split is None:
            return f"{file.task} was run without {file.split}: its file was not there, or eval_rows"
        examples, available, read = (
            int(split[count]) for count in ("examples", "available", "rows_read")
        )
        if examples != available or read != file.rows:
            rows = examples if examples != available else read
            return f"{file.task} has {rows} rows of {file.split}, not {file.rows}"
        if examples != read:
            raise ValueError(f"{read - examples} of its rows cannot be read: get the file anew")
        path = done.weights(best).with_name("logits.npz")
        logits = read_arrays(path, [name])[name]
        if logits.shape != (examples, task.outputs) or not np.isfinite(logits).all():
            raise ValueError(f"{name} in shape {list(logits.shape)}, or not finite")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected {file.rows} rows of {file.split}, found others ({error}); run gpt1"
            f" run finetune@{file.task}"
        ) from None
    classes = answers_of(logits, task.target)
    if task.target == "score":
        answers = [f"{score:.3f}" for score in np.clip(classes, 0, 5)]
    else:
        answers = [(task.file_labels or task.labels)[answer] for answer in classes.tolist()]
    dev_score = 100 * done.dev_scores[best]
    return Predicted(answers, f"{file.task}, seed {best} ({task.metric} on dev {dev_score:.1f})")
