"""`gpt1 status` for a person: counts, what runs now, what ended badly, what would run and why, and
what to do next.
"""

import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gpt1.base.files import RAW
from gpt1.base.terminal import ago, console, plain, print_json
from gpt1.pipeline.completion import WATCHED
from gpt1.pipeline.job import log_of
from gpt1.pipeline.reasons import Reason
from gpt1.pipeline.schedule import Stage, group
from gpt1.pipeline.status import EndedStage, Running, Status, as_json, read_status

MOST_REASONS = 4  # of a line; a person who wants all asks for JSON


def status_and_show(targets: Collection[str], json: bool) -> None:
    """Say where this checkout stands, as text or as JSON. Raises UserError."""
    status, profile = read_status(targets), profile_of_params()
    if json:
        print_json(as_json(status, profile))
        return
    screen = console()
    print_head(screen, status, profile)
    print_running(screen, status)
    print_ended(screen, status)
    print_would_run(screen, status)
    screen.print(Text("next: ", style="bold") + Text(next_step(status, targets)))


def profile_of_params() -> str:
    """The profile that params.yaml says it is of; '' where it says none."""
    params = Path(WATCHED[0])
    text = params.read_text(encoding="utf-8", errors="replace") if params.is_file() else ""
    found = re.search(r"^profile: *(\w+)", text, re.MULTILINE)
    return found[1] if found else ""


def print_head(screen: Console, status: Status, profile: str) -> None:
    """One line of counts."""
    counts = [f"{len(status.current)} current"]
    counts += [f"{len(status.running)} at work"] if status.running else []
    counts += [status.to_run()] if status.to_run() else []
    failed = sum(one.how != "interrupted" for one in status.ended.values())
    counts += [f"{failed} of these ended badly"] if failed else []
    screen.print(
        Text(
            f"profile {profile or '?'}, {len(status.stages)}"
            f" {'stage' if len(status.stages) == 1 else 'stages'}: ",
            style="bold",
        )
        + Text(", ".join(counts))
    )


def print_running(screen: Console, status: Status) -> None:
    """What runs now, each with a bar where it is known how far it is."""
    if not status.running and not status.at_work:
        return
    screen.print()
    screen.print(Text("at work: ", style="bold") + Text(status.at_work or "dvc repro"))
    if not status.running:
        screen.print(
            "  no stage of this folder at this moment: between two, or in a worktree (gpt1"
            " worktrees)"
        )
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, stage in status.running.items():
        table.add_row(f"  {name}", bar(stage), how_far(stage, status.seconds.get(name)))
    screen.print(table)


def bar(stage: Running) -> ProgressBar | str:
    """How far a training is, as a bar."""
    return ProgressBar(stage.updates, stage.update or 0, width=14) if stage.updates else ""


def how_far(stage: Running, last_seconds: float | None) -> Text:
    """How far a stage is, in words."""
    words = [f"since {ago(time.time() - stage.began).removesuffix(' ago')}"]
    if stage.update is not None:
        of = f" of {stage.updates:,}" if stage.updates else ""
        words.append(f"{f'{stage.part}, ' if '/' in stage.part else ''}update {stage.update:,}{of}")
    words += [f"{stage.left} left"] if stage.left else []
    if stage.update is None and last_seconds:
        words.append(f"took {last_seconds:.0f} s last time")
    words += [stage.says] if stage.says and stage.update is not None else []
    return Text(plain("; ".join([*words, *([stage.checkpoint] if stage.checkpoint else [])])))


def print_ended(screen: Console, status: Status) -> None:
    """What ended badly, with its last lines."""
    for name, ended in status.ended.items():
        screen.print()
        screen.print(
            Text(
                f"{name} {ended.how}", style="yellow" if ended.how == "interrupted" else "bold red"
            )
            + Text(f" {ago(time.time() - ended.when)}: {plain(ended.why)}"),
            soft_wrap=False,
        )
        for line in last_lines(ended):
            screen.print(Text(f"  | {plain(line)}", style="dim"), overflow="ellipsis", no_wrap=True)
        if ended.checkpoint:
            screen.print(f"  the next run goes on from: {ended.checkpoint}", markup=False)
        screen.print(f"  log: {log_of(name)}", markup=False)


def last_lines(ended: EndedStage) -> Sequence[str]:
    """Last lines that say more than the reason does."""
    told = [
        line
        for line in ended.lines
        if ended.why not in line and not line.startswith(("Running stage '", "> "))
    ]
    return told if ended.how != "interrupted" else []


def print_would_run(screen: Console, status: Status) -> None:
    """What would run and why, stages of one group and with the same reasons on one line."""
    if not status.would_run.keys() - status.running.keys():
        return
    screen.print()
    table = Table(
        "to run", "why", box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold"
    )
    for who, why in lines(status):
        table.add_row(Padding(Text(", ".join(who)), (0, 0, 0, 2)), Text(plain(why)))
    screen.print(table)


def lines(status: Status) -> Iterator[tuple[list[str], str]]:
    """(stages, why) for all that would run, in the graph's order; what has the same reasons stands
    on one line.
    """
    alike: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for name, reasons in status.would_run.items():
        if name not in status.running:
            before = ", ".join(dict.fromkeys(map(group, status.waits_for(name))))
            why = tuple(in_words(reason, status.stages[name]) for reason in reasons) or (
                f"after {before}",
            )
            alike.setdefault(tuple(generic(text, name) for text in why), {}).setdefault(
                group(name), []
            ).append(name)
    sizes = Counter(map(group, status.stages))
    for why, groups in alike.items():
        names = [name for ones in groups.values() for name in ones]
        more = [f"{len(why) - MOST_REASONS} more"] if len(why) > MOST_REASONS + 1 else []
        told = [
            text.replace("*", name_of(names[0])) if len(names) == 1 else text
            for text in why[: MOST_REASONS if more else None]
        ]
        yield (
            [in_short(verb, ones, sizes[verb]) for verb, ones in groups.items()],
            "; ".join([*told, *more]),
        )


def in_words(reason: Reason, stage: Stage) -> str:
    """A reason in the words that it has in common with those of other stages."""
    words = {
        "missing": "its results are missing",
        "changed": "its results were changed",
        "not in cache": "its results are not in DVC's cache",
    }
    return words.get(reason.kind, str(reason)) if reason.what in stage.writes else str(reason)


def in_short(verb: str, names: Sequence[str], size: int) -> str:
    """Some stages of a group in a few characters: the name of one, or how many of how many."""
    return (
        names[0]
        if len(names) == 1
        else f"{verb} ({len(names) if len(names) == size else f'{len(names)} of {size}'})"
    )


def generic(text: str, name: str) -> str:
    """A reason with the stage's own name left out, so that equal reasons of a group are one."""
    return re.sub(rf"\b{re.escape(name_of(name))}\b", "*", text) if "@" in name else text


def name_of(name: str) -> str:
    """`cola` for `finetune@cola`."""
    return name.partition("@")[2] or name


def next_step(status: Status, targets: Collection[str]) -> str:
    """The one command that goes on from here."""
    run = " ".join(["gpt1 run", *targets])
    absent = [
        reason for reasons in status.would_run.values() for reason in reasons if is_brought(reason)
    ]
    if absent and not status.running:
        return (
            f"docs/tasks.md says how to get what is missing in {RAW}; gpt1 profile leaves out tasks"
            " without data"
        )
    if status.running or status.at_work:
        return "wait, or Ctrl-C where it was started; gpt1 status again"
    if any(one.how == "failed" for one in status.ended.values()):
        return f"mend what failed, then {run}"
    return (
        f"{run}; gpt1 plan says how long that takes"
        if status.would_run
        else "gpt1 table table2, gpt1 report"
    )


def is_brought(reason: Reason) -> bool:
    """Whether something is missing that a person has to bring."""
    return reason.kind == "missing" and reason.what.startswith(f"{RAW}/")
