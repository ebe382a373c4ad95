"""One function over many pieces of text, results in the order of the pieces: little is worked
through at once, in this process; more is divided into datatrove's tasks (gpt1/corpus/steps.py), on
the cores of this machine or by Ray on many, and what a task has finished is kept.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import CHECKPOINTS, fingerprint, looks
from gpt1.base.interrupts import interrupts_held
from gpt1.base.settings import setting

PACKAGE = Path(__file__).parent.parent
LIBRARIES = ("ftfy", "numpy", "pyarrow", "spacy", "tokenizers")  # which have a say in results
LITTLE_BYTES = 24_000_000  # up to this a single process is as quick
TASK_BYTES = 8_000_000  # of the smallest tasks
SMALL_TASKS = 512  # with more of them than this, tasks grow
LARGE_TASK_BYTES = 128_000_000  # to this: a minute or two, which is what a kill may cost

Work = Callable[[Any, Any], Any]


def tasks_for(bytes_: int) -> int:
    """How many tasks `bytes_` of text are divided into; GPT1_TEXT_TASKS says otherwise. No result
    depends on it. Raises UserError.
    """
    if given := setting("GPT1_TEXT_TASKS"):
        if not given.isdecimal() or int(given) == 0:
            raise UserError(f"GPT1_TEXT_TASKS: expected a number of tasks, found {given!r}")
        return int(given)
    if bytes_ < LITTLE_BYTES:
        return 1
    return max(1, min(bytes_ // TASK_BYTES, SMALL_TASKS), bytes_ // LARGE_TASK_BYTES)


@contextmanager
def kept_tasks(name: str, reads: Iterable[Path], *facts: Any) -> Iterator[Path]:
    """A folder for what the tasks of a stage finish: the same one again for a stage of that name
    over the same files, facts and code, so that a stage that was ended goes on. It is removed when
    the block ends without error; an earlier one of that name, when the block begins. No two that
    run at once may have one name.
    """
    inputs = looks([*map(str, reads), "params.yaml", str(PACKAGE)])
    versions = [version(library) for library in LIBRARIES]
    mark = fingerprint([inputs, versions, *facts])
    folder = CHECKPOINTS / "text" / f"{name}-{mark}"
    if not CHECKPOINTS.is_symlink():  # flows/own_clone.sh: where another machine may be at work
        for other in folder.parent.glob(f"{name}-{'?' * len(mark)}"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    yield folder.absolute()
    shutil.rmtree(folder)


def mapped(
    label: str,
    prepare: Callable[[], Any],
    work: Work,
    items: Sequence[Any],
    sizes: Sequence[int],
    folder: Path,
    quick: int = 1,
) -> Iterator[Any]:
    """work(prepare(), item) for each item, in order, `prepare` once a process; results of numbers,
    text, lists, dicts by text, and arrays. Raises UserError.

    sizes: bytes of each item, by which the tasks are cut and progress is shown; folder: as
    kept_tasks gives it; quick: how many times as quick as cleaning the work is.
    """
    tasks = tasks_for(sum(sizes) // quick)
    if tasks == 1:
        done = 0
        with interrupts_held():  # libraries swallow Ctrl-C, or abort, at import
            tool = prepare() if items else None
        with progress(label, sum(sizes)) as reached:
            for item, size in zip(items, sizes, strict=True):
                yield work(tool, item)
                reached(done := done + size)
        return
    with interrupts_held():  # as above
        from gpt1.corpus import steps
    own = folder / fingerprint([label, tasks, list(sizes)])
    share = steps.TextStep(prepare, work, items, steps.divided(sizes, tasks), sizes, own)
    with progress(label, sum(sizes)) as reached:
        steps.run(share, reached)
    yield from steps.results(own, tasks)


@contextmanager
def progress(label: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time left, on a terminal; what it gives is told the bytes that are done."""
    from tqdm import tqdm

    with tqdm(
        total=total_bytes, desc=label, unit="B", unit_scale=True, leave=False, disable=None
    ) as bar:
        yield lambda done: bar.update(done - bar.n)
