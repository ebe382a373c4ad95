"""Tables 2 to 5 as the page shows them: a column of the paper a row, ours beside it with an
interval, the difference marked.
"""

from collections.abc import Collection, Sequence

from gpt1.params.schema import Params
from gpt1.results.bootstrap import COVERAGE
from gpt1.results.captions import made_up
from gpt1.results.document import counted, spread
from gpt1.results.notes import CHANCE, METRIC_WORDS, ONE_CLASS
from gpt1.results.page.cells import NONE, Cell, Scale, Sheet, interval, plain, signed
from gpt1.results.records import Record
from gpt1.tasks.table import TASKS

ABOVE, BELOW, WITHIN = (
    ("good", "▲", "above"),
    ("bad", "▼", "below"),
    ("even", "≈", "interval holds it"),
)
MADE_UP = Cell("§", "made up", "quiet", means="does not compare")
DIFFERENCE = "difference"
HEADER = (
    "column",
    "the paper",
    f"this run, {COVERAGE:.0%} interval",
    DIFFERENCE,
    "over the majority",
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


def against(text: str, low: float | None, high: float | None, other: float, note: str = "") -> Cell:
    """A difference, marked by whether the interval of ours lies above the other number, below it,
    or holds it; unmarked without one.
    """
    if low is None or high is None:
        return Cell(text, note)
    tone, mark, means = ABOVE if low > other else BELOW if high < other else WITHIN
    return Cell(text, note, tone, mark, means)  # type: ignore[arg-type]  # a literal of the three above


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
    rows = [
        (
            _mean_row(one, made_up)
            if one["metric"] == "mean"
            else _row(one, published, one["column"] in made_up)
        )
        for one in records
        if one["row"] == "ours"
    ]
    there = [
        one
        for one in records
        if one["row"] == "ours" and one["score"] is not None and one["metric"] != "mean"
    ]
    if there and all(one["column"] in made_up for one in there):
        place = HEADER.index(DIFFERENCE)
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]
        return Sheet(
            f"{caption}; {ALL_MADE_UP}", (*HEADER[:place], *HEADER[place + 1 :]), tuple(rows)
        )
    return Sheet(caption, HEADER, tuple(rows))


def _row(
    one: Record, published: dict[tuple[str, str], float | None], invented: bool
) -> tuple[Cell, ...]:
    mean, compared = one.get("score"), one.get("compared_with")
    name = Cell(one["column"], METRIC_WORDS[one["metric"]])
    paper = Cell(plain(published.get((one["column"], one["metric"]), compared)))
    if mean is None:
        return name, paper, Cell(NONE, one["reason"], "quiet"), Cell(), Cell(), Cell(), Cell()
    majority, low, high = one.get("majority") or 0.0, one.get("low"), one.get("high")
    difference = (
        MADE_UP
        if invented
        else (
            Cell()
            if compared is None
            else against(
                signed(mean - compared),
                low,
                high,
                compared,
                (
                    ""
                    if compared == published.get((one["column"], one["metric"]), compared)
                    else f"from {compared:.1f}: drawn anew"
                ),
            )
        )
    )
    chance = (
        Cell(signed(mean - majority), "chance level", "bad", "†", "no better than chance")
        if one["at_chance"]
        else (
            Cell(signed(mean - majority), "some seeds at chance", "even", "†", "seeds at chance")
            if one["flagged_seeds"]
            else Cell(signed(mean - majority), "", "good", "▲", "clear of chance")
        )
    )
    scale = (
        Cell("", scale=Scale(mean, low, high, majority, None if invented else compared))
        if low is not None and high is not None
        else Cell()
    )
    return (
        name,
        paper,
        Cell(spread(mean, one.get("sd")), interval(one)),
        difference,
        chance,
        scale,
        Cell(
            one["split"].replace("_mismatched", ""),
            f"{counted((one.get('examples') or 0), 'example')}, "
            f"{counted((one.get('seeds') or 0), 'seed')}; {one['weights']}",
        ),
    )


def _mean_row(one: Record, made_up: Collection[str]) -> tuple[Cell, ...]:
    """GLUE's mean."""
    mean, compared, low, high = (
        one.get(name) for name in ("score", "compared_with", "low", "high")
    )
    tasks = one["task"].split()
    difference = (
        MADE_UP
        if set(tasks) & set(made_up)
        else (
            Cell(signed(one.get("difference")))
            if compared is None
            else against(signed(one.get("difference")), low, high, compared)
        )
    )
    scale = (
        Cell(
            "",
            scale=Scale(
                mean or 0.0, low, high, None, None if set(tasks) & set(made_up) else compared
            ),
        )
        if low is not None and high is not None
        else Cell()
    )
    return (
        Cell("GLUE" if one["column"] == "GLUE" else f"{len(tasks)} of GLUE's 9", "mean"),
        Cell(plain(compared), "" if one["column"] == "GLUE" else "over the same"),
        Cell(spread(mean or 0.0, one.get("sd")), interval(one)),
        difference,
        Cell(),
        scale,
        Cell("", ", ".join(tasks)),
    )


def systems(records: Sequence[Record]) -> dict[str, str]:
    """Our rows of Table 5 by variant, the whole model first, that have any score."""
    return {
        one["variant"]: one["system"]
        for one in records
        if one["row"] == "ours" and one["value"] == "score" and one["score"] is not None
    }


def ablation_scores(records: Sequence[Record], made_up: Collection[str], caption: str) -> Sheet:
    """Table 5's scores: a column of the paper a row, a system a column, the paper's number under
    ours.
    """
    rows, names, ours = [], systems(records), _by_place(records, "score")
    paper = {
        (one["system"], one["column"]): one.get("score") for one in records if one["row"] == "paper"
    }
    for title, metric in _columns(records):
        cells = [Cell(title, METRIC_WORDS.get(metric, metric))]
        for variant, system in names.items():
            one, told = ours.get((variant, title)), paper.get((system, title))
            note = (
                f"the paper {plain(told)}"
                if told is not None and _compares(one, title, made_up)
                else ""
            )
            told_ours = "\n".join(
                filter(None, (interval(one) if one and one["low"] is not None else "", note))
            )
            cells.append(Cell(plain(one.get("score")) + _signs(one) if one else NONE, told_ours))
        rows.append(tuple(cells))
    return Sheet(caption, ("column", *names.values()), tuple(rows))


def _signs(one: Record) -> str:
    """The signs behind a score of Table 5, as its own page has them."""
    return (CHANCE if one.get("at_chance") or one.get("flagged_seeds") else "") + (
        ONE_CLASS if one.get("one_class_seeds") else ""
    )


def ablation_losses(
    records: Sequence[Record], made_up: Collection[str], caption: str
) -> Sheet | None:
    """What the whole model has over each variant, from Table 5's CSV, marked where the interval
    excludes 0; None without variants.
    """
    names, lost = (
        {key: name for key, name in systems(records).items() if key != FULL},
        _by_place(records, "full less variant"),
    )
    paper = {
        (one["system"], one["column"]): one.get("score") for one in records if one["row"] == "paper"
    }
    full = next((one["system"] for one in records if one["row"] == "paper"), "")
    rows = []
    for title, metric in _columns(records):
        cells = [Cell(title, METRIC_WORDS.get(metric, metric))]
        for variant, system in names.items():
            one, mine, other = (
                lost.get((variant, title)),
                paper.get((full, title)),
                paper.get((system, title)),
            )
            note = (
                f"the paper {signed(mine - other)}"
                if mine is not None and other is not None and _compares(one, title, made_up)
                else ""
            )
            low, high = (one.get("low"), one.get("high")) if one else (None, None)
            cells.append(
                against(
                    signed(one.get("score")),
                    low,
                    high,
                    0.0,
                    "\n".join(filter(None, (interval(one, "+.1f"), note))),
                )
                if one
                else Cell(NONE, note)
            )
        rows.append(tuple(cells))
    return Sheet(caption, ("column", *names.values()), tuple(rows)) if names else None


def _compares(one: Record | None, title: str, made_up: Collection[str]) -> bool:
    """Whether the paper's number stands beside ours: not on made-up tasks, one or all."""
    return not made_up if one and one["metric"] == "mean" else title not in made_up


def _by_place(records: Sequence[Record], what: str) -> dict[tuple[str, str], Record]:
    return {
        (one["variant"], one["column"]): one
        for one in records
        if one["row"] == "ours" and one["value"] == what and one["score"] is not None
    }


def _columns(records: Sequence[Record]) -> dict[tuple[str, str], None]:
    """Titles and metrics in the paper's order, the average first."""
    return dict.fromkeys((one["column"], one["metric"]) for one in records if one["row"] == "paper")
