"""`gpt1 table`: print one report, a comparison, or the answer of all."""

import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from gpt1.base.errors import UserError, plain
from gpt1.base.files import read_json, stage_folder
from gpt1.params.schema import read_params
from gpt1.results.runs import CLAIMS, NAMES, SCORES, missing, read_table
from gpt1.tracking.address import warn
from gpt1.tracking.log import reading

ENDINGS = {"terminal": "txt", "markdown": "md", "latex": "tex"}  # of others their own name
WIDTH = 80  # of the answer of all


def show_answer(run: str | None) -> None:
    """Print the answer on 24 lines, the most important last. Raises UserError where nothing has
    been made.
    """
    from gpt1.results.answer import answer
    from gpt1.results.page import INDEX
    from gpt1.results.runs import freshness

    state, option, tasks = freshness(), f" --run {run}" if run else "", read_params().tasks
    shown = answer(state)
    absent = " ".join(name for name in NAMES if not stage_folder("report", name).is_dir())
    with reading("a score in data/finetune", "run dvc status, and dvc repro -f what differs"):
        on_dev = ", ".join(
            f"{task} {score:.1f}"
            for path in sorted(stage_folder("finetune").glob("*/*.json"))
            if path.stem in tasks and f"finetune@{path.stem}" not in state.outdated
            for task, score in read_json(path).items()
        )
    if not (shown.notice or shown.sentence or on_dev):
        raise missing(stage_folder("report", "claims", CLAIMS))
    page = INDEX if INDEX.is_file() and not run else f"gpt1 report{option}"
    lines = [
        shown.tasks.to_string() if len(shown.tasks) else "",
        f"{shown.sentence} {shown.legend}".strip(),
        shown.agreement,
        shown.notice,
        f"Fine-tuned so far, best scores on dev: {on_dev}." * (not shown.sentence),
        f"Not there yet: {absent}." * bool(absent),
        f"Page: {page}. Tables: gpt1 table{option} table2 … claims.",
        "Verdicts need two pre-trainings or more: make reproduce PROFILE=town (35 to 95 min)."
        * shown.sentence.startswith("Profile demo:"),
    ]
    texts = [line if "\n" in line else fill(line, WIDTH) for line in lines if line]
    print(plain("\n".join(texts)))


def show_table(name: str, format_: str) -> None:
    """Print a report as its stage wrote it. Raises UserError."""
    path = stage_folder("report", name, f"{name}.{ENDINGS.get(format_, format_)}")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise missing(path) from None
    warn_of([name], Path())
    sys.stdout.write(plain(text))


def warn_of(names: Sequence[str], folder: Path) -> None:
    """Say on stderr which of these reports are out of date."""
    from gpt1.results.runs import freshness

    if line := freshness(folder).line(names):
        warn(line if folder == Path() else f"{folder}: {line}")


def show_against(name: str, other: Path, title: str, every: bool) -> None:
    """Print whether this run agrees with another, then the scores that differ by more than seeds
    do, or `every` score. Raises UserError.
    """
    from gpt1.results.agreement import agreement
    from gpt1.results.tables import TITLES

    if name in ("claims", "curves"):
        raise UserError(f"--against compares scores, expected table2 … table5 or figure2: {name}")
    pairs = set()
    for run in (Path(), other):
        warn_of(NAMES, run)
        scores = read_table(run / stage_folder("report", name, SCORES))
        pairs |= {*zip(scores["system"], scores["column"], strict=True)}
    found = agreement(other, title)
    print(plain(fill(found.sentence, WIDTH)))
    if found.agree is None:
        return
    rows = found.scores
    rows = rows[[pair in pairs for pair in zip(rows["system"], rows["column"], strict=True)]]
    both = rows.dropna(subset=["here", "there"]).sort_values(["column", "metric"], kind="stable")
    both["difference"] = both["here"] - both["there"]
    within = both["difference"].abs() <= both["allowed"]
    outside = both if every else both[~within]
    if len(outside):
        words = (
            outside["column"] + " " + outside["metric"] + ", " + outside["system"].replace(TITLES)
        )
        updates = outside["update"].map(lambda update: f" {update:.0f}", na_action="ignore")
        outside.index = words + updates.astype(object).fillna("")
        shown = outside[["here", "there", "difference", "spread"]]
        print(plain(f"\n{shown.to_string(float_format='{:.1f}'.format, na_rep='–')}"))
    alone = set(rows["system"]) - set(both["system"])
    counted = (
        f"{within.sum()} of {len(both)} scores lie within what seeds differ by"
        f"{'' if every else ' (--all shows them)'}"
        + f"; of one run alone: {', '.join(sorted(alone))}"
        * bool(alone)
    )
    print(f"\n{fill(counted, WIDTH)}")
