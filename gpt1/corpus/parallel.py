"""One function over many tasks on every core: results in order, bounded in flight, a progress bar,
a clean Ctrl-C.
"""

import multiprocessing
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from gpt1.base.cores import cores
from gpt1.base.errors import UserError

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


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while a process starts: it inherits the mask, so it never prints a traceback
    of its own.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Workers:
    """Processes that have each prepared their tool; with no pool, this very process does the
    work.
    """

    def __init__(
        self, pool: ProcessPoolExecutor | None, prepare: Callable[[], Any], processes: int
    ) -> None:
        self.pool, self.prepare, self.processes = pool, prepare, processes
        self.tool: Any = None

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
        sizes: deque[int] = deque()

        def noted() -> Iterator[Any]:
            for task, size in tasks:
                sizes.append(size)
                yield task

        results = self._results(work, noted()) if self.pool else self._own_results(work, noted())
        with _progress(label, total_bytes) as advance:
            for result in results:
                advance(sizes.popleft())
                yield result

    def _own_results(self, work: Callable[[Any, Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        if self.tool is None:
            self.tool = self.prepare()
        return (work(self.tool, task) for task in tasks)

    def _results(self, work: Callable[[Any, Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        assert self.pool is not None
        waiting: deque[Future[Any]] = deque()
        try:
            for task in tasks:
                if len(waiting) >= IN_FLIGHT * self.processes:
                    yield waiting.popleft().result()
                with _interrupts_held():
                    waiting.append(self.pool.submit(_run_in_worker, work, task))
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process was ended from outside (out of memory?); free memory and run the"
                " same command again, or give it fewer cores: taskset -c 0 COMMAND"
            ) from None


@contextmanager
def workers(prepare: Callable[[], Any], processes: int) -> Iterator[Workers]:
    """Start `processes` workers, each with a tool of its own made by `prepare`; on an error or
    Ctrl-C they end at once.
    """
    if processes == 1:
        yield Workers(None, prepare, 1)
        return
    with _pool(prepare, processes) as pool:
        yield Workers(pool, prepare, processes)


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments) in a process of its own: for a library's long call that would not hear
    Ctrl-C.
    """
    with _pool(dict, 1) as pool:
        return next(Workers(pool, dict, 1)._results(_call, [(function, arguments)]))


def _call(_: Any, task: tuple[Callable[..., Any], tuple[Any, ...]]) -> Any:
    function, arguments = task
    return function(*arguments)


@contextmanager
def _pool(prepare: Callable[[], Any], processes: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        processes,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(prepare,),
    )
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()


@contextmanager
def _progress(label: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """A bar with the time left on a terminal; elsewhere a line every half minute."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(total=total_bytes, desc=label, unit="B", unit_scale=True, leave=False) as bar:
            yield lambda size: (bar.update(size), None)[1]
        return
    done, last = 0, time.monotonic()

    def advance(size: int) -> None:
        nonlocal done, last
        done += size
        if time.monotonic() - last > QUIET_SECONDS:
            last = time.monotonic()
            print(
                f"{label}: {done / max(total_bytes, 1):.0%} of {total_bytes / 1e6:,.0f} MB",
                file=sys.stderr,
                flush=True,
            )

    yield advance
