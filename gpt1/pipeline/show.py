"""`gpt1 run` for a person: on a terminal a bar with the time and what runs now; elsewhere a line a
finished stage, and one a minute on what is at work.
"""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from gpt1.pipeline.alone import alone_here
from gpt1.pipeline.forecast import in_words
from gpt1.pipeline.job import log_of
from gpt1.pipeline.news import News, Watch
from gpt1.pipeline.progress import progress_in, tail
from gpt1.pipeline.run import carry_out, make_plan

QUIET_SECONDS = 60.0


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
