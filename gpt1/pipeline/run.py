"""A run: what is out of date of DVC's graph, several stages side by side, each by a `dvc repro -s`
of its own.

DVC stays the only judge of what is up to date and the only writer of dvc.lock. `supervise` is also
what a flow's main thread does, while Prefect starts its stages. For a person it is on a terminal a
bar with the time and what runs now; elsewhere a line a finished stage, and one a minute on what is
at work.
"""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from gpt1.pipeline.forecast import in_words, last_seconds
from gpt1.pipeline.graph import read_graph, remember_all
from gpt1.pipeline.job import StageProcess, log_of
from gpt1.pipeline.leases import alone_here
from gpt1.pipeline.process_group import end_group, process_group, signals_noted
from gpt1.pipeline.progress import News, Watch, progress_in, tail
from gpt1.pipeline.run_state import Plan, RunState
from gpt1.pipeline.schedule import Slots, concerned, shares, urgencies
from gpt1.pipeline.slots import find_slots

POLL_SECONDS = 0.05
NEWS_SECONDS = 15.0  # so that the time left is not that of a stage's start


def make_plan(targets: Collection[str], lanes: int | None) -> Plan:
    """Who runs where with how many threads. Raises UserError for unknown targets and GPT1_…
    settings that make no sense.
    """
    stages, chosen = read_graph(targets)
    todo = concerned(stages, chosen)
    slots, threads = (
        find_slots(lanes, any(stages[name].trains for name in todo)) if todo else (Slots(1), None)
    )
    share, urgency = shares(stages, slots, threads), urgencies(stages, last_seconds())
    return Plan(stages, chosen, todo, slots, share, urgency)


def carry_out(plan: Plan, watch: Watch, lock: int) -> dict[str, float]:
    """Run the stages of a plan as processes here; what is left of them, should this process die,
    holds `lock` until it has ended. Returns seconds, DVC's start included, by name of each stage
    that changed. Raises as `supervise` does.
    """
    if not plan.todo:
        return {}
    state, processes = RunState(plan), dict[str, StageProcess]()
    with signals_noted() as signals, process_group(lock) as group:

        def at_work() -> bool:
            for name, process in list(processes.items()):
                if ended := process.ended(state.ending):
                    del processes[name]
                    state.end(name, ended)
            if not signals:
                for name, given in state.begin().items():
                    processes[name] = StageProcess(plan.stages[name], given, group)
            return bool(processes)

        return supervise(state, at_work, watch, signals, group)


def supervise(
    state: RunState, at_work: Callable[[], bool], watch: Watch, signals: list[int], group: int
) -> dict[str, float]:
    """Tell of a run, and hand signals to its stages, until nothing is at work; returns seconds.

    Where a stage fails, all that does not need it goes on, and in the end UserError says what
    failed; where the machine fails, nothing more is started. A signal that asks for an end is
    handed to the stages, a second one ends them at once; then KeyboardInterrupt is raised.
    """
    asked, told = set[tuple[int, int]](), time.monotonic()
    while True:
        working = at_work()
        while state.unread:
            watch(state.unread.popleft())
        if not working:
            break
        time.sleep(POLL_SECONDS)
        if time.monotonic() - told > NEWS_SECONDS:
            told = time.monotonic()
            watch(state.news())
        if signals:
            state.stop()
            end_group(group, len(signals), asked)
    for ended in state.failed.values():
        watch(News(f"error: {ended.why}"))
    seconds = state.conclude()
    if seconds and len(state.plan.chosen) == len(state.plan.stages):
        remember_all()
    return seconds


QUIET_SECONDS = 60.0
NEXT = (
    "next: gpt1 table --brief (the scores), gpt1 report (all of it on one page), gpt1 sync (to"
    " MLflow)"
)


def run_and_show(targets: Collection[str], lanes: int | None) -> None:
    """Run what is out of date of the targets (none: of the whole graph) and of all that they need,
    in `lanes` slots (None: one a GPU, or as many as cores and memory bear).

    Waits where another run is at work here. Raises UserError for unknown targets and GPT1_…
    settings that make no sense, and as carry_out does.
    """
    console, began = Console(stderr=True, highlight=False), time.monotonic()
    with (
        bar(console) if console.is_terminal else lines(console) as watch,
        alone_here("gpt1 run", watch) as lock,
    ):
        seconds = carry_out(make_plan(targets, lanes), watch, lock)
    print(
        f"{len(seconds)} {'stage' if len(seconds) == 1 else 'stages'} run in"
        f" {time.monotonic() - began:.0f} s"
        if seconds
        else "everything is up to date"
    )
    print(NEXT)


@contextmanager
def bar(console: Console) -> Iterator[Watch]:
    """A bar under the lines."""
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn(
            "{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
    )
    with Progress(
        *columns, console=console, expand=True, transient=True, refresh_per_second=2
    ) as shown:
        task = shown.add_task("what is out of date?", total=None)

        def watch(news: News) -> None:
            left = f"{in_words(news.left)} left" if news.left else ""
            words = ["ending" if news.ending else left, ", ".join(news.running)]
            description = "; ".join(filter(None, words))
            shown.update(
                task, completed=news.done, total=news.total or None, description=description
            )
            if news.line:
                console.print(news.line, markup=False, soft_wrap=True)

        yield watch


@contextmanager
def lines(console: Console) -> Iterator[Watch]:
    """Lines alone."""
    spoken = time.monotonic()

    def watch(news: News) -> None:
        nonlocal spoken
        if not news.line and news.running and time.monotonic() - spoken >= QUIET_SECONDS:
            news = replace(news, line=f"at work: {', '.join(map(how_far, news.running))}")
        if news.line:
            spoken = time.monotonic()
            console.print(news.in_words(), markup=False, soft_wrap=True)

    yield watch


def how_far(name: str) -> str:
    """A stage with its updates, where its log tells of some."""
    log = log_of(name)
    told = progress_in(tail(log)) if log.is_file() else None
    return f"{name} (update {told.update:,} of {told.updates:,})" if told else name
