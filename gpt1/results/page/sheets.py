"""The page's own tables: cells with a tone; Tables 2 to 5, a column of the paper a row, ours beside
it with an interval, the difference marked.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpt1.params.schema import Params
from gpt1.results.baselines import BASELINE, BY_POINT, LEAD, TITLES, is_shown
from gpt1.results.captions import made_up
from gpt1.results.document import NONE, bounds, counted, number, signed, spread
from gpt1.results.notes import CHANCE, METRIC_WORDS, ONE_CLASS
from gpt1.results.paper import GLUE
from gpt1.results.records import Record
from gpt1.results.statistics.estimates import COVERAGE, LEAST_SEEDS
from gpt1.tasks.table import TASKS

Tone = Literal["", "good", "bad", "even", "quiet"]


@dataclass(frozen=True)
class Scale:
    """A score with its interval on a line from 0 to 100, beside the majority class and the paper's
    number; all clipped to the line.
    """

    ours: float
    low: float | None  # None for both ends: too few seeds for an interval
    high: float | None
    majority: float | None
    paper: float | None  # None: there is none, or it does not compare


@dataclass(frozen=True)
class SheetCell:
    """A value as words, smaller words under it, and how it stands: `mark` is a sign and `means` its
    words, for whom colours say nothing.
    """

    text: str = NONE
    note: str = ""
    tone: Tone = ""
    mark: str = ""
    means: str = ""
    scale: Scale | None = None

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return self.text == NONE and not self.note and self.scale is None


@dataclass(frozen=True)
class Sheet:
    """A table of the page: its caption, a header, and rows as wide whose first cell names the
    row.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[SheetCell, ...], ...]


def points(value: float | None) -> str:
    """A difference in points."""
    return NONE if value is None else signed(value)


def score_text(value: float | None) -> str:
    """A score x 100."""
    return NONE if value is None else number(value)


def interval(record: Record, form: str = ".1f") -> str:
    """A record's interval as words, or that it has too few seeds; NONE for no score."""
    low, high, seeds = record.get("low"), record.get("high"), record.get("seeds") or 0
    if low is not None and high is not None:
        return bounds(low, high, form)
    return f"{counted(seeds, 'seed')}: no interval" if 0 < seeds < LEAST_SEEDS else NONE


ABOVE, BELOW, WITHIN = (
    ("good", "▲", "above"),
    ("bad", "▼", "below"),
    ("even", "≈", "interval holds it"),
)
MADE_UP = SheetCell("§", "made up", "quiet", means="does not compare")
DIFFERENCE, MAJORITY, BEST_BASELINE = "difference", "over the majority", "best baseline"
HEADER = (
    "column",
    "the paper",
    f"this run, {COVERAGE:.0%} interval",
    DIFFERENCE,
    MAJORITY,
    "0 to 100",
    "measured on",
)
FULL = "full"
ALL_MADE_UP = (
    "every task of it is made up, so no score compares with the paper's and no differences are"
    " given"
)


def invented_titles(params: Params) -> set[str]:
    """Titles of made-up tasks and of their columns."""
    titles = set(made_up(params, list(params.tasks)))
    return titles | {
        column.title for task in TASKS.values() if task.title in titles for column in task.columns
    }


def against(
    text: str, low: float | None, high: float | None, other: float, note: str = ""
) -> SheetCell:
    """A difference, marked by whether the interval of ours lies above the other number, below it,
    or holds it; unmarked without one.
    """
    if low is None or high is None:
        return SheetCell(text, note)
    tone, mark, means = ABOVE if low > other else BELOW if high < other else WITHIN
    return SheetCell(text, note, tone, mark, means)  # type: ignore[arg-type]  # a literal of the three above


def comparison(records: Sequence[Record], made_up: Collection[str], caption: str) -> Sheet:
    """Table 2, 3 or 4 from its records; `made_up` are the titles of tasks and columns whose scores
    compare with nothing of the paper.

    Where that is so of all that is measured, the caption says it and there is no column of
    differences.
    """
    published = {
        (one["column"], one["metric"]): one.get("score")
        for one in records
        if one["row"] == "paper's model"
    }
    ours = [one for one in records if one["row"] == "ours"]
    rows = [_row(one, published, made_up) for one in ours]
    header: tuple[str, ...] = HEADER
    if any(one["row"] == BASELINE for one in records):
        place = HEADER.index(MAJORITY) + 1
        header = (*HEADER[:place], BEST_BASELINE, *HEADER[place:])
        rows = [
            (*row[:place], _best_baseline(one, records), *row[place:])
            for one, row in zip(ours, rows, strict=True)
        ]
    there = [one for one in ours if one["score"] is not None and one["metric"] != "mean"]
    if there and all(one["column"] in made_up for one in there):
        place = header.index(DIFFERENCE)
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]
        return Sheet(
            f"{caption}; {ALL_MADE_UP}", (*header[:place], *header[place + 1 :]), tuple(rows)
        )
    return Sheet(caption, header, tuple(rows))


def _best_baseline(one: Record, records: Sequence[Record]) -> SheetCell:
    """The highest baseline in our record's column, over the interval of each; marked where it is
    higher than ours.
    """
    beside = [
        other
        for other in records
        if other["row"] == BASELINE
        and (other["column"], other["metric"]) == (one["column"], one["metric"])
    ]
    if not beside:
        return SheetCell()
    best = max(beside, key=lambda other: other["score"])
    lead = next(
        (
            other
            for other in records
            if (other["row"], other["system"]) == (LEAD, best["system"])
            and (other["column"], other["metric"]) == (one["column"], one["metric"])
        ),
        None,
    )
    note = "\n".join(
        f"{TITLES[other['system']]} {number(other['score'])}, {bounds(other['low'], other['high'])}"
        for other in beside
    )
    text = number(best["score"])
    if one["score"] is None or best["score"] <= one["score"]:
        return SheetCell(text, note)
    if lead is not None and is_shown(lead):
        return SheetCell(text, note, "bad", "▲", "higher than this run")
    return SheetCell(text, note, "even", "▲", f"higher than this run {BY_POINT}")


def _row(
    one: Record, published: Mapping[tuple[str, str], float | None], made_up: Collection[str]
) -> tuple[SheetCell, ...]:
    """A score, or GLUE's mean, which is of several tasks and no metric."""
    column, metric, tasks = one["column"], one["metric"], (one["task"] or "").split()
    mean, compared, low, high = (one.get(key) for key in ("score", "compared_with", "low", "high"))
    theirs = published.get((column, metric), compared)
    of_tasks = metric == "mean"
    if of_tasks:
        whole = column == GLUE
        invented, majority = bool(set(tasks) & set(made_up)), None
        name = SheetCell(GLUE if whole else f"{len(tasks)} of GLUE's 9", "mean")
        paper = SheetCell(score_text(compared), "" if whole else "over the same")
        basis = SheetCell("", ", ".join(tasks))
    else:
        invented, majority = column in made_up, one.get("majority") or 0.0
        name, paper = SheetCell(column, METRIC_WORDS[metric]), SheetCell(score_text(theirs))
        if mean is None:
            return name, paper, SheetCell(NONE, one["reason"], "quiet"), *[SheetCell()] * 4
        rows, seeds = one.get("examples") or 0, one.get("seeds") or 0
        amount = f"{counted(rows, 'example')}, {counted(seeds, 'seed')}; {one['weights']}"
        basis = SheetCell(one["split"].replace("_mismatched", ""), amount)
    mean = mean or 0.0
    difference = MADE_UP if invented else SheetCell()
    if not invented and compared is not None:
        anew = not of_tasks and compared != theirs
        note = f"from {compared:.1f}: drawn anew" if anew else ""
        difference = against(points(mean - compared), low, high, compared, note)
    scale = SheetCell("", scale=Scale(mean, low, high, majority, None if invented else compared))
    chance = SheetCell() if majority is None else _over_chance(one, points(mean - majority))
    ours = SheetCell(spread(mean, one.get("sd")), interval(one))
    return name, paper, ours, difference, chance, scale, basis


def _over_chance(one: Record, text: str) -> SheetCell:
    if one["at_chance"]:
        return SheetCell(text, "chance level", "bad", "†", "no better than chance")
    if one["flagged_seeds"]:
        return SheetCell(text, "some seeds at chance", "even", "†", "seeds at chance")
    return SheetCell(text, "", "good", "▲", "clear of chance")


def ablation_sheet(
    records: Sequence[Record], made_up: Collection[str], caption: str, losses: bool
) -> Sheet:
    """Table 5, a column of the paper a row, a system a column, the paper's number under ours: the
    scores, or the `losses`, what the whole model has over each variant, marked where the interval
    excludes 0.
    """
    value, form = ("full less variant", "+.1f") if losses else ("score", ".1f")
    paper = {
        (one["system"], one["column"]): one.get("score") for one in records if one["row"] == "paper"
    }
    ours = [one for one in records if one["row"] == "ours" and one["score"] is not None]
    names = {one["variant"]: one["system"] for one in ours if one["value"] == "score"}
    whole = names.pop(FULL, "") if losses else ""
    there = {(one["variant"], one["column"]): one for one in ours if one["value"] == value}

    def cell(variant: str, title: str) -> SheetCell:
        one, theirs = there.get((variant, title)), paper.get((names[variant], title))
        if losses:
            full = paper.get((whole, title))
            theirs = None if full is None or theirs is None else full - theirs
        compares = not made_up if one and one["metric"] == "mean" else title not in made_up
        told = f"the paper {number(theirs, form)}" if theirs is not None and compares else ""
        if one is None:
            return SheetCell(NONE, told)
        within = interval(one, form)
        if one["low"] is None and one["sd"] is not None:
            within = f"± {number(one['sd'])}, {within}"
        text, note = number(one["score"], form), "\n".join(filter(None, (within, told)))
        if losses:
            return against(text, one.get("low"), one.get("high"), 0.0, note)
        chance = CHANCE if one.get("at_chance") or one.get("flagged_seeds") else ""
        return SheetCell(text + chance + (ONE_CLASS if one.get("one_class_seeds") else ""), note)

    if not losses:
        beside = [one for one in records if one["row"] == BASELINE]
        names |= {one["system"]: TITLES[one["system"]] for one in beside}
        there |= {(one["system"], one["column"]): one for one in beside}
    columns = {one["column"]: one["metric"] for one in records if one["row"] == "paper"}
    rows = tuple(
        (SheetCell(title, METRIC_WORDS.get(metric, metric)), *(cell(name, title) for name in names))
        for title, metric in columns.items()
    )
    return Sheet(caption, ("column", *names.values()), rows)
