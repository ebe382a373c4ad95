"""Tables 2 to 5 as the page shows them: a column of the paper a row, ours beside it with an interval, the difference marked."""

import math
from collections.abc import Collection, Sequence
from statistics import NormalDist

from gpt1.config import Params
from gpt1.page.cells import NONE, Cell, Record, Scale, Sheet, bounds, counted, plain, signed, value, whole
from gpt1.report.bootstrap import COVERAGE
from gpt1.report.notes import METRIC_WORDS
from gpt1.report.paper import TABLE5
from gpt1.report.tables import made_up
from gpt1.tasks.table import TASKS

ERRORS_WIDE = NormalDist().inv_cdf((1 + COVERAGE) / 2)  # 1.96 standard errors to each side
ABOVE, BELOW, WITHIN = ("good", "▲", "above"), ("bad", "▼", "below"), ("even", "≈", "interval holds it")
MADE_UP = Cell("§", "made up", "quiet", means="does not compare")
HEADER = ("column", "the paper", f"this run, {COVERAGE:.0%} interval", "difference", "over the majority", "0 to 100", "measured on")
FULL = "full"
HIGHEST = 100.0  # of a metric x 100
SIGNED_METRICS = ("matthews", "pearson", "spearman")


def invented_titles(params: Params) -> set[str]:
    """Titles of made-up tasks and of their columns."""
    titles = set(made_up(params, list(params.tasks)))
    return titles | {column.title for task in TASKS.values() if task.title in titles for column in task.columns}


def interval(mean: float, standard_error: float, deviation: float | None, seeds: int, metric: str) -> tuple[float, float]:
    """Where a mean over n seeds lies: 1.96 of sqrt(e^2 + s^2 / n) to each side, with one run's sampling error e and the seeds' spread s,
    as far as the metric x 100 goes."""
    half = ERRORS_WIDE * math.hypot(standard_error, (deviation or 0.0) / math.sqrt(seeds))
    return max(mean - half, -HIGHEST if metric in SIGNED_METRICS else 0.0), min(mean + half, HIGHEST)


def against(text: str, low: float | None, high: float | None, other: float, note: str = "") -> Cell:
    """A difference, marked by whether the interval of ours lies above the other number, below it, or holds it; unmarked without one."""
    if low is None or high is None:
        return Cell(text, note)
    tone, mark, means = ABOVE if low > other else BELOW if high < other else WITHIN
    return Cell(text, note, tone, mark, means)  # type: ignore[arg-type]  # a literal of the three above


def comparison(records: Sequence[Record], made_up: Collection[str], caption: str) -> Sheet:
    """Table 2, 3 or 4 from its CSV; `made_up` are the titles of tasks and columns whose scores compare with nothing of the paper."""
    published = {(one["column"], one["metric"]): value(one, "score") for one in records if one["row"] == "paper's model"}
    rows = [_mean_row(one, made_up) if one["metric"] == "mean" else _row(one, published, one["column"] in made_up)
            for one in records if one["row"] == "ours"]
    return Sheet(caption, HEADER, tuple(rows))


def _row(one: Record, published: dict[tuple[str, str], float | None], invented: bool) -> tuple[Cell, ...]:
    mean, compared = value(one, "score"), value(one, "compared_with")
    name = Cell(one["column"], METRIC_WORDS[one["metric"]])
    paper = Cell(plain(published.get((one["column"], one["metric"]), compared)))
    if mean is None:
        return name, paper, Cell(NONE, one["reason"], "quiet"), Cell(), Cell(), Cell(), Cell()
    seeds, error, majority = whole(one, "seeds"), value(one, "standard_error") or 0.0, value(one, "majority") or 0.0
    low, high = interval(mean, error, deviation := value(one, "sd"), seeds, one["metric"])
    difference = MADE_UP if invented else Cell() if compared is None else against(
        signed(mean - compared), low, high, compared, "" if compared == published.get((one["column"], one["metric"]), compared)
        else f"from {compared:.1f}: drawn anew")
    chance = (Cell(signed(mean - majority), "chance level", "bad", "†", "no better than chance") if one["at_chance"] == "1"
              else Cell(signed(mean - majority), "some seeds at chance", "even", "†", "seeds at chance") if one["flagged_seeds"]
              else Cell(signed(mean - majority), "", "good", "▲", "clear of chance"))
    return (name, paper, Cell(plain(mean) + (f" ± {deviation:.1f}" if deviation is not None else ""), bounds(low, high)),
            difference, chance,
            Cell("", scale=Scale(mean, low, high, majority, None if invented else compared)),
            Cell(one["split"].replace("_mismatched", ""), f"{counted(whole(one, 'examples'), 'example')}, {counted(seeds, 'seed')}; "
                                                         f"{one['weights']}"))


def _mean_row(one: Record, made_up: Collection[str]) -> tuple[Cell, ...]:
    """GLUE's mean; it has a spread over seeds but no one sampling error, so no interval."""
    mean, deviation, compared = value(one, "score"), value(one, "sd"), value(one, "compared_with")
    tasks = one["task"].split()
    return (Cell("GLUE" if one["column"] == "GLUE" else f"{len(tasks)} of GLUE's 9", "mean"), Cell(plain(compared), "over the same"),
            Cell(plain(mean) + (f" ± {deviation:.1f}" if deviation is not None else "")),
            MADE_UP if set(tasks) & set(made_up) else Cell(signed(value(one, "difference"))), Cell(), Cell(), Cell(NONE, ", ".join(tasks)))


def systems(records: Sequence[Record]) -> dict[str, str]:
    """Our rows of Table 5 by variant, the whole model first, that have any score."""
    return {one["variant"]: one["system"] for one in records if one["row"] == "ours" and one["value"] == "score" and one["score"]}


def ablation_scores(records: Sequence[Record], made_up: Collection[str], caption: str) -> Sheet:
    """Table 5's scores from its CSV: a column of the paper a row, a system a column, the paper's number under ours."""
    rows, names, ours = [], systems(records), _by_place(records, "score")
    paper = {(one["system"], one["column"]): value(one, "score") for one in records if one["row"] == "paper"}
    for title, metric in _columns(records):
        cells = [Cell(title, METRIC_WORDS.get(metric, metric))]
        for variant, system in names.items():
            one, told = ours.get((variant, title)), paper.get((system, title))
            note = f"the paper {plain(told)}" if told is not None and _compares(one, title, made_up) else ""
            low, high = (value(one, "low"), value(one, "high")) if one else (None, None)
            told_ours = "\n".join(filter(None, (bounds(low, high) if low is not None else "", note)))
            cells.append(Cell(plain(value(one, "score")) if one else NONE, told_ours))
        rows.append(tuple(cells))
    return Sheet(caption, ("column", *names.values()), tuple(rows))


def ablation_losses(records: Sequence[Record], made_up: Collection[str], caption: str) -> Sheet | None:
    """What the whole model has over each variant, from Table 5's CSV, marked where the interval excludes 0; None without variants."""
    names, lost = {key: name for key, name in systems(records).items() if key != FULL}, _by_place(records, "full less variant")
    paper = {(one["system"], one["column"]): value(one, "score") for one in records if one["row"] == "paper"}
    full = next((one["system"] for one in records if one["row"] == "paper"), "")
    rows = []
    for title, metric in _columns(records):
        cells = [Cell(title, METRIC_WORDS.get(metric, metric))]
        for variant, system in names.items():
            one, mine, other = lost.get((variant, title)), paper.get((full, title)), paper.get((system, title))
            note = f"the paper {signed(mine - other)}" if mine is not None and other is not None and _compares(one, title, made_up) else ""
            low, high = (value(one, "low"), value(one, "high")) if one else (None, None)
            cells.append(against(signed(value(one, "score")), low, high, 0.0, "\n".join(filter(None, (bounds(low, high, "+.1f"), note))))
                         if one else Cell(NONE, note))
        rows.append(tuple(cells))
    return Sheet(caption, ("column", *names.values()), tuple(rows)) if names else None


def _compares(one: Record | None, title: str, made_up: Collection[str]) -> bool:
    """Whether the paper's number stands beside ours: not on made-up tasks, and an average only over as many tasks."""
    if one is None or one["metric"] != "mean":
        return title not in made_up
    return len(one["task"].split()) == len(TABLE5.columns) and not made_up


def _by_place(records: Sequence[Record], what: str) -> dict[tuple[str, str], Record]:
    return {(one["variant"], one["column"]): one for one in records if one["row"] == "ours" and one["value"] == what and one["score"]}


def _columns(records: Sequence[Record]) -> dict[tuple[str, str], None]:
    """Titles and metrics in the paper's order, the average first."""
    return dict.fromkeys((one["column"], one["metric"]) for one in records if one["row"] == "paper")
