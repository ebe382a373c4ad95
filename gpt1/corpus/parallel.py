"""One function over many texts: few in this process, more as datatrove's tasks
(gpt1/corpus/steps.py), of which finished ones are kept.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpt1.base.files import CHECKPOINTS, fingerprint, stat_fingerprint
from gpt1.base.interrupts import interrupts_held
from gpt1.base.machine import settings, whole_number

PACKAGE = Path(__file__).parent.parent
LIBRARIES = ("ftfy", "numpy", "pyarrow", "spacy", "tokenizers")  # which have a say in results
LITTLE_BYTES = 24_000_000  # up to this a single process is as quick
TASK_BYTES = 8_000_000  # of the smallest tasks
MOST_TASKS = 512  # with more of them than this, tasks grow


def tasks_for(bytes_: int) -> int:
    """Return how many tasks `bytes_` of text make, or GPT1_TEXT_TASKS. No result depends on it.
    Raises UserError.
    """
    if tasks := whole_number(settings(), "GPT1_TEXT_TASKS"):
        return tasks
    return 1 if bytes_ < LITTLE_BYTES else min(bytes_ // TASK_BYTES, MOST_TASKS)


@contextmanager
def kept_tasks(name: str, reads: Iterable[Path], *facts: Any) -> Iterator[Path]:
    """Give a folder for finished tasks, the same for equal files, facts and code, so that a stopped
    stage goes on. Its end and the next stage of that name remove it; no two at once may share a
    name.
    """
    inputs = stat_fingerprint([*reads, Path("params.yaml"), PACKAGE])
    versions = [version(library) for library in LIBRARIES]
    mark = fingerprint([inputs, versions, *facts])
    folder = CHECKPOINTS / "text" / f"{name}-{mark}"
    if not CHECKPOINTS.is_symlink():  # behind a link another checkout may be at work
        for other in folder.parent.glob(f"{name}-{'?' * len(mark)}"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    yield folder.absolute()
    shutil.rmtree(folder)


def mapped(
    label: str,
    prepare: Callable[[], Any],
    work: Callable[[Any, Any], Any],
    items: Sequence[Any],
    bytes_: int,
    folder: Path,
) -> Iterator[Any]:
    """Yield work(prepare(), item) in order; `prepare` runs once a process, results pass through
    JSON. bytes_: of all items; folder: of kept_tasks. Raises UserError.
    """
    from tqdm import tqdm

    tasks = min(tasks_for(bytes_), len(items))
    if tasks > 1:
        with interrupts_held():  # libraries swallow Ctrl-C, or abort, at import
            from gpt1.corpus import steps
        step = steps.TextStep(prepare, work, items, folder / label / str(tasks))
        yield from steps.run(label, step, tasks)
        return
    with interrupts_held():  # as above
        tool = prepare() if items else None
    for item in tqdm(items, label, leave=False, disable=None):
        yield work(tool, item)
