"""A step of datatrove's pipelines, and its executors."""

import json
import logging
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

from datatrove.executor import LocalPipelineExecutor, RayPipelineExecutor
from loguru import logger
from tqdm import tqdm

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.base.machine import choice, cores, setting, settings

CONNECT_SECONDS = 5.0

logger.disable("datatrove")
_prepared = lru_cache(maxsize=1)(lambda prepare: prepare())  # once a process, for all of its tasks
_taken: Any = None  # in a worker process, the executor whose tasks it runs


class TextStep:
    """The work of a task's items; each result is a line of JSON."""

    def __init__(
        self,
        prepare: Callable[[], Any],
        work: Callable[[Any, Any], Any],
        items: Sequence[Any],
        folder: Path,
    ) -> None:
        self.prepare, self.work, self.items, self.folder = prepare, work, items, folder
        self.root = Path.cwd()  # a process of Ray's begins elsewhere

    def __call__(self, _: Any, rank: int, tasks: int) -> None:
        """Do the items of the task `rank`."""
        os.chdir(self.root)
        first, last = (len(self.items) * edge // tasks for edge in (rank, rank + 1))
        try:
            tool = _prepared(self.prepare)
            with writing(self.results(rank), apart=True) as file:
                for item in self.items[first:last]:
                    file.write(json.dumps(self.work(tool, item)) + "\n")
        except UserError as error:
            (self.folder / "error").write_text(str(error), encoding="utf-8")
            raise

    def results(self, rank: int) -> Path:
        """Return the file of a task's results."""
        return self.folder / "results" / f"{rank:05d}.jsonl"


def run(label: str, step: TextStep, tasks: int) -> Iterator[Any]:
    """Run the unfinished tasks, here or on Ray (GPT1_TEXT_EXECUTOR); yield all results in order.
    Raises UserError, and what else ended a task.
    """
    on_ray = choice(settings(), "GPT1_TEXT_EXECUTOR", "local", "ray") == "ray"
    step.folder.mkdir(parents=True, exist_ok=True)
    (wrong := step.folder / "error").unlink(missing_ok=True)
    executor = (
        _ray(step, tasks)
        if on_ray
        else LocalTasks(
            [step], tasks=tasks, workers=min(cores(), tasks), logging_dir=str(step.folder)
        )
    )
    executor.run()
    if incomplete := executor.get_incomplete_ranks():  # of which datatrove's for Ray only logs
        raise UserError(
            wrong.read_text(encoding="utf-8")
            if wrong.exists()
            else f"{label}: {len(incomplete)} of {tasks} tasks failed, expected none; what happened"
            f" stands in {step.folder / 'logs'}: run the same command again to do what is left"
        )
    for rank in range(tasks):
        with step.results(rank).open(encoding="utf-8") as file:
            yield from map(json.loads, file)


class LocalTasks(LocalPipelineExecutor):  # type: ignore[misc]
    """datatrove's executor on Python's pool: its own hangs where a process is killed."""

    def run(self) -> None:
        """Run every unfinished task. Raises UserError, and what a task raises."""
        _start_fork_server()
        context = multiprocessing.get_context("forkserver")
        pool = ProcessPoolExecutor(self.workers, context, initializer=_take, initargs=(self,))
        try:
            waiting = [pool.submit(_run_rank, rank) for rank in self.get_incomplete_ranks()]
            for ended in tqdm(as_completed(waiting), "tasks", len(waiting), False, disable=None):
                ended.result()
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


def _start_fork_server() -> None:
    """Start the process whose forks the workers are; Ctrl-C never reaches them."""
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


def _ray(step: TextStep, tasks: int) -> RayPipelineExecutor:
    """Return the executor on Ray's cluster. Raises UserError where none runs."""
    import ray

    address = setting("RAY_ADDRESS") or "auto"
    host, _, port = address.rpartition(":")
    try:
        if host and port.isdecimal():  # Ray would look for it for minutes
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(
            address, ignore_reinit_error=True, log_to_driver=False, logging_level=logging.ERROR
        )
    except OSError:
        raise UserError(
            f"GPT1_TEXT_EXECUTOR=ray: expected a Ray cluster, found none at {address}; start one"
            " (ray start --head, and on each other machine ray start --address=HOST:6379), or say"
            " where it is by RAY_ADDRESS"
        ) from None
    return RayPipelineExecutor([step], tasks=tasks, logging_dir=str(step.folder), mem_per_cpu_gb=1)
