"""A step of datatrove's pipelines that works through one task's share of the pieces of a text, and
its runs by datatrove's own executors.

Where a task has ended, datatrove leaves its mark, and the results lie in one file; nothing is taken
from a task without its mark. datatrove's log is off: what a person is to know is in the bar and in
one line.
"""

import json
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from datatrove.executor import LocalPipelineExecutor, RayPipelineExecutor
from datatrove.executor.base import PipelineExecutor
from loguru import logger

from gpt1.base.cores import cores
from gpt1.base.errors import DISK_FULL, UserError
from gpt1.base.files import parse_json, read_array, write_json, writing
from gpt1.base.interrupts import interrupts_held
from gpt1.base.settings import setting

ARRAY = "an array"  # {ARRAY: 0} in a result stands for its first array; no word has a blank
LOOK_SECONDS = 0.2
RAY_BYTES = 1 << 30  # of memory that a task is given room for
RAY_RETRIES = 3
CONNECT_SECONDS = 5.0

logger.disable("datatrove")
_tools: dict[Path, Any] = {}  # what this process prepared once, for all of its tasks
_taken: Any = None  # in a worker process, the executor whose tasks it runs


def divided(sizes: Sequence[int], tasks: int) -> list[range]:
    """The items of each task: one after another, about as many bytes for each."""
    middles = np.cumsum(sizes) - np.asarray(sizes) / 2
    edges = np.searchsorted(middles, np.arange(1, tasks) * (sum(sizes) / tasks)).tolist()
    return [range(*edge) for edge in zip([0, *edges], [*edges, len(sizes)], strict=True)]


class TextStep:
    """The step: does the work of those items that are a task's."""

    def __init__(
        self,
        prepare: Callable[[], Any],
        work: Callable[[Any, Any], Any],
        items: Sequence[Any],
        shares: Sequence[range],
        sizes: Sequence[int],
        folder: Path,
    ) -> None:
        self.prepare, self.work, self.items = prepare, work, items
        self.shares, self.sizes, self.folder = shares, sizes, folder
        self.root = Path.cwd()  # a process of Ray's begins elsewhere

    def __deepcopy__(self, memo: dict[int, Any]) -> "TextStep":
        return self

    def __repr__(self) -> str:
        return f"{len(self.items):,} pieces of text"

    def __call__(self, _: Any, rank: int, tasks: int) -> None:
        """Work through the items of the task `rank`."""
        os.chdir(self.root)
        try:
            self._work_through(rank)
        except Exception as error:
            number = error.errno if isinstance(error, OSError) else None
            full = number in DISK_FULL
            write_json(
                self.folder / "errors" / f"{rank:05d}",
                {
                    "line": str(error) if isinstance(error, UserError) else None,
                    "full": [number, os.strerror(number), error.filename] if full else None,  # type: ignore[arg-type,attr-defined]
                    "traceback": traceback.format_exc(),
                },
            )
            raise

    def _work_through(self, rank: int) -> None:
        if self.folder not in _tools:
            _tools.clear()
            _tools[self.folder] = self.prepare()
        done, parent = 0, os.getppid()
        with (
            (self.folder / "progress" / f"{rank:05d}").open("wb") as progress,
            writing(_results(self.folder, rank), "wb", apart=True) as whole,
            ZipFile(whole, "w") as file,
        ):
            for number in self.shares[rank]:
                _write(file, number, self.work(_tools[self.folder], self.items[number]))
                done += self.sizes[number]
                progress.truncate(done)  # a file of that length, which takes no room
                if os.getppid() != parent:  # nobody is left to wait for it
                    os._exit(1)


def _results(folder: Path, rank: int) -> Path:
    return folder / "results" / f"{rank:05d}.zip"


def _write(file: ZipFile, number: int, value: Any) -> None:
    """One item's result: JSON, and its arrays as numpy saves them."""
    arrays: list[Any] = []

    def set_aside(array: Any) -> dict[str, int]:
        arrays.append(np.asarray(array))
        return {ARRAY: len(arrays) - 1}

    text = json.dumps(value, default=set_aside)
    for place, array in enumerate(arrays):
        with file.open(f"{number}-{place}.npy", "w", force_zip64=True) as stream:
            np.lib.format.write_array(stream, array, allow_pickle=False)
    file.writestr(f"{number}.json", text)


def results(folder: Path, tasks: int) -> Iterator[Any]:
    """The results of all items in order, one at a time."""
    for rank in range(tasks):
        with ZipFile(_results(folder, rank)) as file:
            for name in file.namelist():
                if name.endswith(".json"):
                    yield _read(file, name.removesuffix(".json"))


def _read(file: ZipFile, number: str) -> Any:
    def with_array(found: dict[str, Any]) -> Any:
        if found.keys() != {ARRAY}:
            return found
        member = file.getinfo(f"{number}-{found[ARRAY]}.npy")
        with file.open(member) as stream:
            return read_array(stream, member.file_size)

    return json.loads(file.read(f"{number}.json"), object_hook=with_array)


def run(share: TextStep, reached: Callable[[int], None]) -> None:
    """Run the tasks that have not ended yet by the executor that GPT1_TEXT_EXECUTOR names;
    `reached` is told the bytes done. Raises UserError, and RuntimeError for a fault of ours.
    """
    name, folder = setting("GPT1_TEXT_EXECUTOR") or "local", share.folder
    if name not in EXECUTORS:
        raise UserError(f"GPT1_TEXT_EXECUTOR: expected local or ray, found {name!r}")
    shutil.rmtree(folder / "errors", ignore_errors=True)
    for kind in ("progress", "results"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    with interrupts_held() as asked:

        def look() -> None:
            reached(sum(path.stat().st_size for path in (folder / "progress").iterdir()))
            if asked:
                raise KeyboardInterrupt

        executor = EXECUTORS[name](share)
        for rank in executor.get_incomplete_ranks():
            (folder / "progress" / f"{rank:05d}").unlink(missing_ok=True)
        try:
            executor.run(look)
        except Exception:
            _raise_error(folder)
            raise


def _raise_error(folder: Path) -> None:
    """Raise what ended the first task that failed, as far as that could be written down."""
    for path in sorted((folder / "errors").glob("*")):
        found = parse_json(path.read_bytes())
        if found["line"]:
            raise UserError(found["line"])
        if found["full"]:
            raise OSError(*found["full"])
        raise RuntimeError(f"a task failed:\n{found['traceback']}")


class LocalTasks(LocalPipelineExecutor):  # type: ignore[misc]
    """datatrove's executor for the cores of this machine, with a run of its own: theirs waits for
    ever where a process is killed, and neither it nor Python's pool ends its processes when this
    one is killed.
    """

    def run(self, look: Callable[[], None]) -> None:
        """Run every task that has not ended, calling look() meanwhile. Raises UserError, what a
        task raises, and what look() does.
        """
        _start_fork_server()
        context = multiprocessing.get_context("forkserver")
        pool = ProcessPoolExecutor(self.workers, context, initializer=_take, initargs=(self,))
        try:
            _wait([pool.submit(_run_rank, rank) for rank in self.get_incomplete_ranks()], look)
        except BrokenProcessPool:
            raise UserError(
                "a worker process was ended from outside (out of memory?); free memory and run the"
                " same command again, which does what is left, or give it fewer cores: taskset -c 0"
                " COMMAND"
            ) from None
        finally:
            for process in multiprocessing.active_children():  # the idle ones, if all went well
                process.terminate()
            pool.shutdown(cancel_futures=True)


def _wait(waiting: Collection[Future[None]], look: Callable[[], None]) -> None:
    while waiting:
        ended, waiting = wait(waiting, LOOK_SECONDS, FIRST_EXCEPTION)
        for one in ended:
            one.result()
        look()


def _start_fork_server() -> None:
    """The process whose forks the workers are. They never see Ctrl-C: this one answers it."""
    multiprocessing.set_forkserver_preload(["gpt1.base.ended_with_parent", __name__])
    resource_tracker.ensure_running()  # first, for it unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()  # what it starts inherits the mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take(executor: LocalTasks) -> None:
    global _taken
    _taken = executor


def _run_rank(rank: int) -> None:
    _taken._run_for_rank(rank)


def _local(share: TextStep) -> LocalTasks:
    tasks = len(share.shares)
    return LocalTasks(
        [share], tasks=tasks, workers=min(cores(), tasks), logging_dir=str(share.folder)
    )


class RayTasks(RayPipelineExecutor):  # type: ignore[misc]
    """datatrove's executor for Ray, whose marks are kept, with a run of its own: theirs begins an
    actor and a pool for each task, which takes seconds, and waits for ever where the pool's
    process is killed. Ray's own tasks begin at once and are repeated where a process, or a machine,
    is lost.
    """

    _run_for_rank = PipelineExecutor._run_for_rank  # with logs beside the marks

    def run(self, look: Callable[[], None]) -> None:
        """Run every task that has not ended, calling look() meanwhile. Raises what a task does, and
        what look() does.
        """
        import ray

        whole = ray.put(self)
        once = ray.remote(_run_rank_of).options(
            num_cpus=1, memory=RAY_BYTES, max_retries=RAY_RETRIES, scheduling_strategy="SPREAD"
        )
        waiting = [once.remote(whole, rank) for rank in self.get_incomplete_ranks()]
        try:
            while waiting:
                ended, waiting = ray.wait(waiting, timeout=LOOK_SECONDS)
                ray.get(ended)
                look()
        finally:
            for one in waiting:
                ray.cancel(one, force=True)


def _run_rank_of(executor: RayTasks, rank: int) -> None:
    executor._run_for_rank(rank)


def _ray(share: TextStep) -> RayTasks:
    """Tasks on the machines of the Ray cluster that is running. Raises UserError where none is."""
    import ray

    address = setting("RAY_ADDRESS") or "auto"
    host, _, port = address.rpartition(":")
    try:
        if host and port.isdecimal():
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        if not ray.is_initialized():
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except OSError:
        raise UserError(
            f"GPT1_TEXT_EXECUTOR=ray: expected a Ray cluster, found none at {address}; start one"
            " (ray start --head, and on each other machine ray start --address=HOST:6379), or say"
            " where it is by RAY_ADDRESS"
        ) from None
    return RayTasks([share], tasks=len(share.shares), logging_dir=str(share.folder))


EXECUTORS: dict[str, Callable[[TextStep], Any]] = {"local": _local, "ray": _ray}
