"""One function over many tasks on every core: results in order, bounded in flight, a progress bar,
a clean Ctrl-C.
"""

import multiprocessing
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from gpt1.base.cores import cores
from gpt1.base.errors import UserError
from gpt1.base.interrupts import interrupts_held

BYTES_PER_PROCESS = (
    8_000_000  # below this much text a further process costs more to start than it saves
)
IN_FLIGHT = 3  # tasks handed out per process: enough to keep it busy, few enough to bound memory
QUIET_SECONDS = 30.0

_worker: dict[str, Any] = {}  # what this worker process prepared once, for all of its tasks


def processes_for(bytes_: int) -> int:
    """How many processes `bytes_` of text are worth: at most one a core."""
    return max(1, min(cores(), bytes_ // BYTES_PER_PROCESS))


def _start_worker(prepare: Callable[[], Any]) -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group: the parent alone answers it
    _worker["tool"] = prepare()


def _run_in_worker(work: Callable[[Any, Any], Any], task: Any) -> Any:
    return work(_worker["tool"], task)


class Workers:
    """Processes that have each prepared their tool; with no pool, this very process does the
    work.
    """

    def __init__(
        self, pool: ProcessPoolExecutor | None, prepare: Callable[[], Any], processes: int
    ) -> None:
        self.pool, self.prepare, self.processes = pool, cache(prepare), processes

    def map(
        self,
        label: str,
        work: Callable[[Any, Any], Any],
        tasks: Sequence[Any],
        sizes: Sequence[int],
    ) -> Iterator[Any]:
        """Yield work(tool, task) for each task, in order; `sizes` (bytes of each task) drive the
        progress shown.
        """
        return self.stream(label, work, zip(tasks, sizes, strict=True), sum(sizes))

    def stream(
        self,
        label: str,
        work: Callable[[Any, Any], Any],
        tasks: Iterable[tuple[Any, int]],
        total_bytes: int,
    ) -> Iterator[Any]:
        """The same for tasks that are made only as they are handed out, each with its size."""
        most = IN_FLIGHT * self.processes if self.pool else 1
        waiting: deque[tuple[Callable[[], Any], int]] = deque()

        def first() -> Any:
            result, size = waiting.popleft()
            value = result()
            advance(size)
            return value

        with _progress(label, total_bytes) as advance:
            for task, size in tasks:
                waiting.append((self._begun(work, task), size))
                if len(waiting) == most:
                    yield first()
            while waiting:
                yield first()

    def _begun(self, work: Callable[[Any, Any], Any], task: Any) -> Callable[[], Any]:
        """What gives the result of a task that a worker begins, or that this process is to do."""
        if self.pool is None:
            return partial(work, self.prepare(), task)
        return _submit(self.pool, _run_in_worker, work, task)


def _submit(pool: ProcessPoolExecutor, *call: Any) -> Callable[[], Any]:
    """Hand out a call. Ctrl-C is held back while a process starts, so that none is begun and not
    known; the process inherits the mask, so it never prints a traceback of its own.
    """
    with interrupts_held():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(*call).result
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def workers(prepare: Callable[[], Any], processes: int) -> Iterator[Workers]:
    """Start `processes` workers, each with a tool of its own made by `prepare`; on an error or
    Ctrl-C they end at once. Raises UserError where one was killed.
    """
    if processes == 1:
        yield Workers(None, prepare, 1)
        return
    with _pool(prepare, processes) as pool:
        yield Workers(pool, prepare, processes)


def run_alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments) in a process of its own: for a library's long call that would not hear
    Ctrl-C.
    """
    with _pool(dict, 1) as pool:
        return _submit(pool, function, *arguments)()


@contextmanager
def _pool(prepare: Callable[[], Any], processes: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), _start_worker, (prepare,)
    )
    try:
        yield pool
        pool.shutdown()
    except BaseException as error:
        with interrupts_held():  # no process outlives what it shares with this one
            for process in multiprocessing.active_children():
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
        if isinstance(error, BrokenProcessPool):
            raise UserError(
                "a worker process was ended from outside (out of memory?); free memory and run the"
                " same command again, or give it fewer cores: taskset -c 0 COMMAND"
            ) from None
        raise


@contextmanager
def _progress(label: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time left on a terminal; elsewhere a line every half minute."""
    from tqdm import tqdm

    done, last = 0, time.monotonic()

    def advance(size: int) -> None:
        nonlocal done, last
        bar.update(size)
        done += size
        if bar.disable and time.monotonic() - last > QUIET_SECONDS:
            last = time.monotonic()
            print(
                f"{label}: {done / max(total_bytes, 1):.0%} of {total_bytes / 1e6:,.0f} MB",
                file=sys.stderr,
                flush=True,
            )

    with tqdm(
        total=total_bytes, desc=label, unit="B", unit_scale=True, leave=False, disable=None
    ) as bar:
        yield advance
