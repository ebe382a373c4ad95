"""`gpt1 run`: what is out of date of DVC's graph, several stages side by side, each by a `dvc repro -s` of its own.

DVC stays the only judge of what is up to date and the only writer of dvc.lock; this module decides when a stage is tried, and where.
"""

import fcntl
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from dotenv import dotenv_values

from gpt1.errors import UserError
from gpt1.files import LOGS
from gpt1.process_group import end_group, process_group
from gpt1.schedule import Share, Stage, choose, concerned, path_lengths, shares, startable
from gpt1.text.parallel import cores
from gpt1.train.launch import read_machine

DVC = Path(".dvc")
LOCK_FILE = Path("dvc.lock")
NETWORK_ROOM = "gpt1/model"  # a stage that depends on it heeds GPT1_THREADS
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class News:
    """What whoever watches is told: a line to show ('' for none), stages done, of how many, which run now, whether the run is to end."""

    line: str
    done: int = 0
    total: int = 0
    running: tuple[str, ...] = ()
    ending: bool = False


Watch = Callable[[News], None]


def print_line(news: News) -> None:
    """The quiet way to watch: one line a finished stage, to stderr."""
    if news.line:
        print(news.line, file=sys.stderr, flush=True)


@dataclass
class Running:
    """A stage at work: its process, when it began (monotonic seconds), how many lanes it fills."""

    process: "subprocess.Popen[bytes]"
    began: float
    lanes: int


def log_of(name: str) -> Path:
    """Where a stage's own output goes."""
    return LOGS / "run" / f"{name}.log"


def read_graph(targets: Collection[str]) -> tuple[dict[str, Stage], list[str]]:
    """Every stage of DVC's graph, and the names of the targets and all that they need; of these it is known which are out of date.

    Raises UserError for an unknown target, where DVC cannot read its files, or while another DVC command is at work.
    """
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.repo import Repo

    logging.getLogger("dvc").setLevel(logging.ERROR)  # that a killed run left a lock is no news: DVC heals it
    try:
        with Repo(".") as repo, repo.lock:
            graph = {stage.addressing: stage for stage in repo.index.stages}
            stages = {}
            for name, stage in graph.items():
                reads = tuple(os.path.relpath(dep.fs_path) for dep in stage.deps)
                needs = frozenset(need.addressing for need in repo.index.graph.successors(stage))
                stages[name] = Stage(name, needs, reads, trains=NETWORK_ROOM in reads)
            chosen = choose(stages, targets)
            for name in chosen:
                stages[name] = replace(stages[name], stale=graph[name].changed())
    except LockError:
        raise UserError("another DVC command is at work here; run this again when it has ended") from None
    except DvcException as error:
        raise UserError(f"DVC cannot tell what is out of date: {error}") from error
    return stages, chosen


@contextmanager
def alone_here(watch: Watch) -> Iterator[int]:
    """The descriptor of a locked file, so that one run at a time is at work in a checkout; waits for another to end, and says so."""
    if not DVC.is_dir():
        raise UserError(f"no DVC repository in {Path.cwd()}: run this in the root of the checkout")
    (DVC / "tmp").mkdir(exist_ok=True)
    with (DVC / "tmp" / "gpt1-run.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            watch(News("another gpt1 run is at work here; waiting for it to end"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


@contextmanager
def signals_noted() -> Iterator[list[int]]:
    """The signals that asked for an end, as they come, instead of ending this process at once; in the main thread only."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    numbers = [signal.SIGINT, signal.SIGTERM]  # even where ignored (a shell's `&`): or else the stages would ignore them too
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, lambda number, _: noted.append(number)) for number in numbers}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class Plan:
    """What there is to do: every stage by name, the names of those that may have to run, lanes, what each stage has of the machine."""

    stages: dict[str, Stage]
    todo: set[str]
    lanes: int
    share: dict[str, Share]


def make_plan(stages: dict[str, Stage], todo: set[str], lanes: int | None) -> Plan:
    """Who runs where with how many threads. Raises UserError for GPT1_… settings that make no sense."""
    if not any(stages[name].trains for name in todo):  # then nothing asks for a GPU, which only torch could tell, after seconds
        return Plan(stages, todo, lanes or cores(), shares(stages, lanes or cores(), None))
    machine = read_machine()
    lanes = lanes or (1 if machine.device != "cpu" or machine.processes > 1 else cores())
    by_hand = {**dotenv_values(".env"), **os.environ}.get("GPT1_THREADS")
    return Plan(stages, todo, lanes, shares(stages, lanes, None if by_hand else machine.threads))


def start(name: str, threads: int | None, group: int) -> "subprocess.Popen[bytes]":
    """Start a stage in the process group, through this environment's DVC and with its python first on PATH."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    if threads is not None:
        environment["GPT1_THREADS"] = str(threads)
    log_of(name).parent.mkdir(parents=True, exist_ok=True)
    with log_of(name).open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item", name], env=environment,
                                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, process_group=group)


def recorded_outputs() -> dict[str, str]:
    """What dvc.lock says of each stage's outputs, as text; a stage that is absent there, or is being written now, is absent here."""
    text = LOCK_FILE.read_text(encoding="utf-8") if LOCK_FILE.exists() else ""
    return dict(re.findall(r"^  (\S+):\n(?:    .*\n)*?    outs:\n((?:    .*\n)+)", text, re.MULTILINE))


def why_it_failed(name: str, status: int) -> str:
    """One line on a failed stage: its last `error:`, else the signal that ended DVC, else the last line before DVC's own; and its log."""
    text = log_of(name).read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line.partition("error:")[2].strip() for line in lines if line.startswith("error:")]
    killed = [f"its DVC was ended by signal {-status} (out of memory?)"] if status < 0 else []
    own = [line for line in lines if not line.startswith("ERROR: failed to reproduce")]
    reason = (said[-1:] or killed or own[-1:] or lines[-1:] or ["it ended without a word"])[0]
    return f"{name}: {reason} (log: {log_of(name)})"


def bytes_read(stage: Stage) -> int:
    """Bytes of the data that a stage reads: of stages that are as urgent, the one with most is likely to take longest."""
    paths = [path for read in stage.reads if not read.startswith("gpt1") for path in [Path(read), *Path(read).rglob("*")]]
    return sum(path.stat().st_size for path in paths if path.is_file())


def how_it_ended(name: str) -> str:
    """What DVC did for a stage that ended well, by its own words: run, from DVC's cache, unchanged."""
    text = log_of(name).read_text(encoding="utf-8", errors="replace")
    return "run" if "Running stage '" in text else "from DVC's cache" if "is cached" in text else "unchanged"


def run_stages(targets: Collection[str] = (), lanes: int | None = None, watch: Watch = print_line) -> dict[str, float]:
    """Run what is out of date of the targets (none: of the whole graph) and of all that they need; returns seconds by stage.

    Runs `lanes` stages side by side (default: one a core, or one where a GPU or several processes a stage are in play). A stage that fails
    starts nothing new and lets the running ones end; then UserError says why. A signal that asks for an end is handed to the stages, a
    second one ends them at once; then KeyboardInterrupt is raised. A second run here waits for the first to end.
    Returns seconds, DVC's start included, by name of each stage that changed.
    """
    with alone_here(watch) as lock:
        stages, chosen = read_graph(targets)
        todo = concerned(stages, chosen)
        if not todo:
            return {}
        plan = make_plan(stages, todo, lanes)
        with signals_noted() as signals, process_group(lock) as group:
            return _run(plan, watch, signals, group)


def _run(plan: Plan, watch: Watch, signals: list[int], group: int) -> dict[str, float]:
    stages, waiting, free, urgency, size = plan.stages, set(plan.todo), plan.lanes, path_lengths(plan.stages), cache(bytes_read)
    running, seconds, failed, renewed = dict[str, Running](), dict[str, float](), dict[str, int](), set[str]()
    outputs, asked = recorded_outputs(), set[tuple[int, int]]()

    def tell(line: str = "") -> None:
        watch(News(line, len(plan.todo) - len(waiting) - len(running), len(plan.todo), tuple(running), bool(signals)))

    while True:
        if not failed and not signals:
            ready = [name for name in stages if name in waiting and not stages[name].needs & {*waiting, *running}]
            needless = {name for name in ready if not stages[name].stale and not stages[name].needs & renewed}
            waiting -= needless
            if needless:
                continue  # what comes after them may be ready now
            ready.sort(key=lambda name: (-urgency[name], -size(stages[name])))
            for name in startable(ready, plan.share, free):
                running[name] = Running(start(name, plan.share[name].threads, group), time.monotonic(), plan.share[name].lanes)
                waiting.discard(name)
                free -= plan.share[name].lanes
                tell()
        if not running:
            break
        time.sleep(POLL_SECONDS)
        if signals:
            tell()
            end_group(group, len(signals), asked)
        for name in [name for name, stage in running.items() if stage.process.poll() is not None]:
            ended = running.pop(name)
            free += ended.lanes
            if ended.process.returncode == 0:
                took, how = time.monotonic() - ended.began, how_it_ended(name)
                seconds |= {name: took} if how != "unchanged" else {}
                if (now := recorded_outputs().get(name)) is None or now != outputs.get(name):
                    renewed.add(name)
                tell(f"{name}: {f'{took:.0f} s' if how == 'run' else how}")
            elif not signals:
                failed[name] = ended.process.returncode
    if failed:
        raise UserError("; ".join(why_it_failed(name, status) for name, status in failed.items()))
    if signals:
        raise KeyboardInterrupt("interrupted: nothing finished was lost; run the same command again to go on")
    return seconds


def run_and_show(targets: Collection[str], lanes: int | None) -> None:
    """run_stages for a person: on a terminal a bar with the time and what runs now, elsewhere a line a finished stage."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console, began = Console(stderr=True, highlight=False), time.monotonic()
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, refresh_per_second=2, disable=not console.is_terminal) as bar:
        task = bar.add_task("what is out of date?", total=None)

        def watch(news: News) -> None:
            now = ", ".join(news.running)
            bar.update(task, completed=news.done, total=news.total or None,
                       description=f"ending after the update in progress, Ctrl-C again ends at once: {now}" if news.ending else now)
            if news.line:
                console.print(news.line, markup=False, soft_wrap=True)

        seconds = run_stages(targets, lanes, watch)
    print(f"{len(seconds)} {'stage' if len(seconds) == 1 else 'stages'} run in {time.monotonic() - began:.0f} s" if seconds
          else "everything is up to date")
