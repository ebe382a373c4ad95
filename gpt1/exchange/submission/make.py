"""A submission made of a run's results: eleven files in a zip, the same bytes from the same
results.
"""

import zipfile
from pathlib import Path
from typing import NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import parse_json, writing
from gpt1.exchange.submission.board import ALWAYS_CONSTANT, FILES, BoardFile
from gpt1.exchange.submission.predictions import Predicted, predicted
from gpt1.tasks.table import TASKS

FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
READABLE = 0o100644 << 16
UNIX = 3


class Made(NamedTuple):
    """A file that was made: how many rows, and where its answers are from."""

    file: BoardFile
    source: str
    constant: bool


def make(target: Path, data: Path, fill: bool) -> list[Made]:
    """Write the zip `target` from the run whose folder `data` is; `fill`: constant answers for
    files that the run has no answers to.

    Raises UserError where such files are and are not to be filled, where none has answers, or what
    the run left is broken.
    """
    if target.suffix != ".zip" or target.is_dir():
        raise UserError(
            f"{target}: expected a file whose name ends with .zip, found"
            f" {'a folder' if target.is_dir() else 'another'}; name one, such as glue.zip"
        )
    if busy := [
        task for task in dict.fromkeys(file.task for file in FILES) if is_being_made(data, task)
    ]:
        raise UserError(
            f"{', '.join(busy)}: being fine-tuned by a run at work:"
            " make the submission when it has ended; --fill is for tasks that a run"
            " leaves out"
        )
    found = {file: predicted(file, data) for file in FILES}
    lacking = {
        file: why
        for file, why in found.items()
        if isinstance(why, str) and file.name not in ALWAYS_CONSTANT
    }
    if not any(isinstance(one, Predicted) for one in found.values()):
        raise UserError(
            f"{data}: expected a run with answers to GLUE's test files, found none"
            f" ({'; '.join(dict.fromkeys(lacking.values()))}); run gpt1 profile paper --data FOLDER"
            " and gpt1 run, with eval_rows null; --fill cannot help: it completes a run that"
            " answers at least one file"
        )
    if lacking and not fill:
        raise UserError(
            f"expected answers to all {len(FILES)} files of the leaderboard, found none to"
            f" {'; '.join(f'{file.name} ({why})' for file, why in lacking.items())}; run those"
            " tasks, or give them constant answers by --fill"
        )
    contents, made = {}, []
    for file, one in found.items():
        contents[file.name] = file.written(
            one.answers if isinstance(one, Predicted) else [file.constant] * file.rows
        )
        made.append(Made(file, _source(file, one), isinstance(one, str)))
    with writing(target, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, FIXED_TIME)
            entry.create_system, entry.external_attr, entry.compress_type = (
                UNIX,
                READABLE,
                zipfile.ZIP_DEFLATED,
            )
            archive.writestr(entry, content)
    return made


CLAIMS = Path(".dvc/tmp/rwlock")  # which process of DVC reads and writes what


def is_being_made(data: Path, task: str) -> bool:
    """Whether a process of DVC at work is writing the fine-tuning of a task under the folder `data`
    of a run.
    """
    from psutil import pid_exists

    try:
        writes = parse_json((data.absolute().parent / CLAIMS).read_text(encoding="utf-8"))["write"]
        return any(
            Path(path).match(f"finetune/*/{task}") and pid_exists(int(claim["pid"]))
            for path, claim in writes.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _source(file: BoardFile, one: Predicted | str) -> str:
    """Where a file's answers are from, for a person."""
    if isinstance(one, str):
        always = "as is usual" if file.name in ALWAYS_CONSTANT else "NOT from the model"
        return f"constant {file.constant}, {always}: {one}"
    metric, many = TASKS[file.task].metric, len(one.unreadable)
    note = (
        ""
        if not many
        else (
            f"; {many} unreadable test row{'s' if many > 1 else ''} (index {one.unreadable[0]}"
            f"{', …' if many > 1 else ''}): constant {file.constant}"
        )
    )
    return f"{file.task}, seed {one.seed} ({metric} on dev {100 * one.dev_score:.1f}){note}"
