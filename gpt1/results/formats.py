"""A page as LaTeX; cells as a long CSV and as nested numbers for DVC's metrics."""

import csv
import io
import statistics
from collections.abc import Sequence
from typing import Any

from gpt1.params.schema import Params
from gpt1.results.bootstrap import Estimate
from gpt1.results.paper import Table
from gpt1.results.scores import Cell, GlueMean
from gpt1.results.tables import Page

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
CSV_COLUMNS = (
    "table",
    "row",
    "system",
    "source",
    "column",
    "task",
    "metric",
    "score",
    "low",
    "high",
    "sd",
    "best",
    "median",
    "seeds",
    "scores",
    "difference",
    "compared_with",
    "split",
    "weights",
    "examples",
    "standard_error",
    "majority",
    "at_chance",
    "flagged_seeds",
    "one_class_seeds",
    "best_evaluation",
    "reason",
    "profile",
    "corpus",
    "caption",
)


def latex(page: Page) -> str:
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
    return floating(page.name, r"\small", caption(page), body, page.notes)


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


def caption(page: Page) -> str:
    """What a reader must know before reading a number, in one paragraph."""
    return f"{page.heading}. {'. '.join(f'{name}: {text}' for name, text in page.facts)}."


def rows(
    params: Params, table: Table, cells: Sequence[Cell], glue: GlueMean | None, text: str
) -> list[dict[str, Any]]:
    """Every cell of the paper's rows and of ours (these with the caption `text`) as one flat
    record; what does not apply is left out.
    """
    records: list[dict[str, Any]] = []
    metric = {cell.title: cell.metric for cell in cells if cell.first} | {"GLUE": "mean"}
    for row in (*table.others, table.model):
        kind = "paper's model" if row is table.model else "paper"
        records += [
            {
                "row": kind,
                "system": row.system,
                "source": row.source,
                "column": title,
                "metric": metric[title],
                "score": value,
            }
            for title, value in zip(table.columns, row.scores, strict=True)
            if value is not None
        ]
    ours = {
        "row": "ours",
        "system": "this run",
        "profile": params.profile,
        "corpus": params.clean.corpus_name,
        "caption": text,
    }
    for cell in cells:
        record = ours | {
            "column": cell.title,
            "task": cell.task,
            "metric": cell.metric,
            "compared_with": cell.compared,
        }
        records.append(record | (facts_of(cell) if cell.measured else {"reason": "left out"}))
    if glue:
        name = "GLUE" if glue.complete else f"mean over the {len(glue.tasks)} tasks that are there"
        records.append(
            ours
            | {
                "column": name,
                "task": " ".join(glue.tasks),
                "metric": "mean",
                "score": glue.mean,
                "sd": glue.deviation,
                "seeds": glue.estimate.seeds if glue.estimate else None,
                "difference": glue.difference,
                "compared_with": glue.published if glue.compares else None,
            }
            | bounds_of(glue.estimate)
        )
    return [{"table": table.name} | record for record in records]


def facts_of(cell: Cell) -> dict[str, Any]:
    """Every fact of a scored cell by name."""
    measured = cell.measured
    if measured is None:
        return {}
    return {
        "score": measured.mean,
        **bounds_of(cell.estimate),
        "sd": measured.deviation,
        "best": measured.best,
        "median": measured.median,
        "seeds": len(measured.scores),
        "scores": list(measured.scores.values()),
        "difference": cell.difference,
        "split": measured.split,
        "weights": measured.chosen,
        "examples": measured.examples,
        "standard_error": measured.standard_error,
        "majority": measured.majority,
        "at_chance": measured.at_chance,
        "flagged_seeds": list(measured.flagged),
        "one_class_seeds": list(measured.one_class),
        "best_evaluation": statistics.fmean(measured.selected.values())
        if measured.selected
        else None,
    }


def bounds_of(estimate: Estimate | None) -> dict[str, float]:
    """An interval's ends by name."""
    return dict(zip(("low", "high"), estimate.interval, strict=True)) if estimate else {}


def as_csv(records: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """The records under these columns; fractions with four decimals, lists as words, empty where
    there is none.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in record.items()} for record in records)
    return text.getvalue()


def metrics(table: Table, cells: Sequence[Cell], glue: GlueMean | None) -> dict[str, Any]:
    """Our numbers for `dvc metrics`: {"table2": {"snli": {"mean": …}}}; nothing that is not a
    number.
    """
    columns: dict[str, dict[str, float]] = {}
    for cell in cells:
        facts = {"mean" if key == "score" else key: value for key, value in facts_of(cell).items()}
        if facts:
            columns[cell.key] = {
                key: round(value, 4)
                for key, value in facts.items()
                if isinstance(value, int | float)
            }
    if glue:
        columns["glue" if glue.complete else "glue_tasks_there"] = {
            "mean": round(glue.mean, 4),
            "tasks": len(glue.tasks),
            **({} if glue.difference is None else {"difference": round(glue.difference, 4)}),
            **{name: round(value, 4) for name, value in bounds_of(glue.estimate).items()},
        }
    return {table.name: columns}


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
