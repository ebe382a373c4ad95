"""A report and its files: markdown, data, LaTeX, long CSV, numbers for DVC's metrics, pictures."""

import csv
import io
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpt1.base.files import write_json
from gpt1.results.answers import Answers
from gpt1.results.document import (
    NONE,
    Block,
    Bullets,
    Document,
    Facts,
    Grid,
    Heading,
    facts_list,
    number,
    spread,
    write_document,
)
from gpt1.results.drawing import write_pictures
from gpt1.results.records import Record, write_predictions, write_scores
from gpt1.results.scores import Measured, score_range
from gpt1.results.statistics.estimates import CrossedEstimate

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.figure import Figure

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "§": r"$^\S$",
    "¶": r"$^\P$",
    "−": "$-$",
}


@dataclass(frozen=True)
class ReportContent:
    """What one report of the run says, before it is written. A part that it lacks has no file."""

    name: str
    document: Document
    metrics: Mapping[str, Any]  # nested, for `dvc metrics`
    csv: Mapping[str, tuple[str, Sequence[Record]]] = field(default_factory=dict)  # columns, rows
    pictures: "Mapping[str, Callable[[], Figure]]" = field(default_factory=dict)
    records: Sequence[Record] | None = None
    scored: Iterable[tuple[Answers, Iterable[str]]] | None = None  # answers and splits
    tex: str = ""
    for_print: bool = True  # whether pictures are there as PNG, too


def write_report(report: ReportContent, folder: Path) -> str:
    """Fill `folder`; returns the markdown. Raises UserError where answers are missing or broken."""
    text = write_document(folder, report.name, report.document)
    if report.tex:
        (folder / f"{report.name}.tex").write_text(report.tex, encoding="utf-8")
    if report.records is not None:
        write_scores(folder, report.records)
    if report.scored is not None:
        write_predictions(folder, report.scored)
    for name, (columns, rows) in report.csv.items():
        (folder / f"{name}.csv").write_text(as_csv(rows, columns.split()), encoding="utf-8")
    write_json(folder / "metrics.json", {report.name: report.metrics})
    for name, draw in report.pictures.items():
        write_pictures(folder, name, draw, report.for_print)
    return text


@dataclass(frozen=True)
class TablePage:
    """A table ready to print: facts for the caption, a header, rows (system first), a legend of
    their signs, further tables, notes.
    """

    name: str
    heading: str
    facts: Facts
    header: tuple[str, ...]
    paper_rows: tuple[tuple[str, ...], ...]
    our_rows: tuple[tuple[str, ...], ...]  # the first stands out
    legend: tuple[str, ...]
    more: tuple[Grid, ...]
    notes: tuple[str, ...]

    @property
    def document(self) -> list[Block]:
        """The page in the order in which it is read, our first row in bold."""
        first, *others = self.our_rows
        bold = tuple(f"**{value}**" if value != NONE else value for value in first)
        return [
            Heading(1, self.heading),
            facts_list(self.facts),
            Grid(self.header, (*self.paper_rows, bold, *others)),
            Bullets(self.legend),
            *self.more,
            Bullets(self.notes),
        ]

    @property
    def caption(self) -> str:
        """What a reader must know before reading a number, in one paragraph."""
        return caption(self.heading, self.facts)


def caption(heading: str, facts: Facts) -> str:
    """A report's heading and facts in one paragraph."""
    return f"{heading}. {'. '.join(f'{name}: {text}' for name, text in facts)}."


def latex(page: TablePage) -> str:
    r"""The page as one LaTeX table; it needs \usepackage{booktabs} and nothing else."""
    first, *others = ([escaped(cell) for cell in row] for row in page.our_rows)
    bold = [rf"\textbf{{{cell}}}" if cell else cell for cell in first]
    legend = [rf"{{\footnotesize {escaped(line)}\par}}" for line in page.legend]
    further = [
        line
        for more in page.more
        for line in ("", r"\medskip", *tabular(_right(more.header), more.header, more.rows))
    ]
    scores = tabular(_right(page.header), page.header, page.paper_rows)
    ours = [r"\midrule", *(" & ".join(row) + r" \\" for row in (bold, *others))]
    scores[-2:-2] = ours  # above the rule at the foot
    body = [*scores, *(["", r"\smallskip", *legend] if legend else []), *further]
    return floating(page.name, r"\small", page.caption, body, page.notes)


def floating(name: str, size: str, text: str, body: Sequence[str], notes: Sequence[str]) -> str:
    """Lines of LaTeX as a table that floats, with its caption and notes."""
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            size,
            rf"\caption{{{escaped(text)}}}",
            rf"\label{{tab:{name}}}",
            *body,
            r"\begin{flushleft}\footnotesize",
            *(f"{escaped(note)}\\\\" for note in notes),
            r"\end{flushleft}",
            r"\end{table}",
            "",
        ]
    )


def tabular(columns: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a LaTeX table of texts."""
    first, *others = (" & ".join(map(escaped, row)) + r" \\" for row in (header, *rows))
    return [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        first,
        r"\midrule",
        *others,
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _right(header: Sequence[str]) -> str:
    return "l" + "r" * (len(header) - 1)


def escaped(text: str) -> str:
    """Text in which LaTeX sees no command; the sign for less becomes its own."""
    return "".join(LATEX.get(character, character) for character in text)


def ends(
    estimate: CrossedEstimate | None, metric: str = "", examples_alone: bool = False
) -> tuple[float, float] | None:
    """An estimate's interval, of a score by `metric` within what that can be; over examples alone
    for what has no seeds. None where there is none, as for examples of one cluster.
    """
    if estimate is None:
        return None
    within = score_range(metric) if metric else (-math.inf, math.inf)
    interval = estimate.example_interval if examples_alone else estimate.interval
    found = interval(within=within)
    return (float(found[0]), float(found[1])) if found and not math.isnan(found[0]) else None


def estimate_record(
    estimate: CrossedEstimate | None, metric: str = "", examples_alone: bool = False
) -> Record:
    """A number with its interval, where there is one, and its seeds and their deviation; nothing
    for None.
    """
    if estimate is None:
        return {}
    low, high = ends(estimate, metric, examples_alone) or (None, None)
    deviation = estimate.deviation
    return {
        "score": float(estimate.value),
        "low": low,
        "high": high,
        "sd": None if deviation is None else float(deviation),
        "seeds": estimate.seeds,
    }


def bracketed(interval: tuple[float, float] | None, form: str = ".1f") -> str:
    """An interval in the tables' form: [4.0, 5.5]."""
    return NONE if interval is None else f"[{', '.join(number(end, form) for end in interval)}]"


def with_interval(estimate: CrossedEstimate | None, metric: str = "", form: str = ".1f") -> str:
    """A number with its interval, +14.2 [+10.1, +18.0], or under too few seeds with its deviation
    over those that there are: +14.2 ± 3.0.
    """
    if estimate is None:
        return NONE
    value, interval = float(estimate.value), ends(estimate, metric)
    if interval is None:
        return spread(value, estimate.deviation, form)
    return f"{number(value, form)} {bracketed(interval, form)}"


def score_record(
    parts: Sequence[Measured], scores: Mapping[int, float], interval: Record
) -> Record:
    """Every fact of a score by name: of the mean of `parts` with rows apart, `scores` by seed,
    its `interval` as estimate_record gives it.
    """

    def seeds(of: Iterable[Sequence[int]]) -> list[int]:
        return list(dict.fromkeys(seed for several in of for seed in several))

    return {
        "score": statistics.fmean(scores.values()),
        "sd": statistics.stdev(scores.values()) if len(scores) > 1 else None,
        "seeds": len(scores),
        "scores": list(scores.values()),
        "split": " ".join(part.split for part in parts),
        "weights": parts[0].chosen,
        "examples": sum(part.examples for part in parts),
        "standard_error": math.sqrt(sum(part.standard_error**2 for part in parts)) / len(parts),
        "majority": sum(part.majority for part in parts) / len(parts),
        "at_chance": all(part.at_chance for part in parts),
        "flagged_seeds": seeds(part.flagged for part in parts),
        "one_class_seeds": seeds(part.one_class for part in parts),
    } | interval


def rounded(record: Record, before: str = "", **names: str) -> dict[str, float]:
    """What is a number of a record, for DVC's metrics: under new names, or with `before` theirs."""
    return {
        before + names.get(name, name): round(value, 4)
        for name, value in record.items()
        if isinstance(value, int | float)
    }


def as_csv(records: Sequence[Record], columns: Sequence[str]) -> str:
    """The records under these columns; fractions with four decimals, lists as words, empty where
    there is none.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in record.items()} for record in records)
    return text.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(str(_plain(one)) for one in value)
    return (
        f"{value:.4f}"
        if isinstance(value, float)
        else int(value)
        if isinstance(value, bool)
        else value
    )
