"""Every report as tables, and as text in the formats of pandas."""

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd

from gpt1.results.cautions import CLAIMS, CURVES, FIGURE2, cautions
from gpt1.results.figures import NETWORK_TITLES, relative
from gpt1.results.paper import HEADINGS
from gpt1.results.runs import CLAIMS as CLAIMS_FILE
from gpt1.results.runs import SCORES, read_table
from gpt1.results.tables import FULL, table_of

NONE = "–"
WIDEST = 80
SYMBOLS = {"±": r"$\pm$", NONE: "--", "−": "$-$"}
Titled = dict[str, pd.DataFrame]  # a heading, and the table below it


def displayed(name: str, folder: Path) -> tuple[Titled, list[str]]:
    """Return the tables of a report's folder by heading, and its notes. Raises UserError."""
    if name == "claims":
        return {"Claims of the paper": claims_table(read_table(folder / CLAIMS_FILE))}, list(CLAIMS)
    if name == "curves":
        facts = read_table(folder / "training.csv").set_index("network")
        if facts.empty:
            return {}, ["No curves: the weights were trained elsewhere."]
        parts = read_table(folder / "parameters.csv")
        parts = parts.pivot_table("parameters", "component", "network", sort=False)
        parts = parts.sort_index(key=lambda names: names == "total", kind="stable").astype("Int64")
        return {"Pre-training": named(facts), "Parameters by component": named(parts)}, list(CURVES)
    scores = read_table(folder / SCORES)
    if name == "figure2":
        sides = zip(FIGURE2, (layers_table(scores), zero_shot_table(scores)), strict=True)
        tables = {title: table for title, table in sides if len(table)}
        return tables, [FIGURE2[title] for title in tables]
    return {HEADINGS[name]: table_of(scores, name)}, cautions(scores, name)


def layers_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score by number of layers transferred."""
    layer_scores = scores[scores["update"].isna()]
    means = layer_scores.pivot_table(index="system", columns="column", values="score", sort=False)
    order = sorted(
        means.index, key=lambda name: (name == FULL, len(name), name)
    )  # layers-10 after 9
    return named(means.loc[order].rename(lambda name: name.removeprefix("layers-"))).rename(
        {FULL: "all"}
    )


def zero_shot_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each network's relative performance by update and set."""
    relative_scores = relative(scores)
    title = relative_scores["system"].map(NETWORK_TITLES) + " " + relative_scores["column"]
    return named(
        relative_scores.pivot_table(index="update", columns=title, values="relative", sort=False)
        .sort_index()
        .round(2)
    )


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Name a pivot's rows and columns for readers."""

    def title(name: Any) -> Any:
        return NETWORK_TITLES.get(name, name.replace("_", " ")) if isinstance(name, str) else name

    return table.rename(index=title, columns=title).rename_axis(index=None, columns=None)


def claims_table(claims: pd.DataFrame) -> pd.DataFrame:
    """Return one row per comparison. Differences are of the rounded numbers shown."""
    rows = []
    for claim in claims.itertuples():
        ours, theirs = (round(float(mean), 1) for mean in (claim.ours, claim.theirs))
        minus = f"{number(ours)} − {number(theirs)} = {number(ours - theirs, '+.1f')}"
        measured = not pd.isna(claim.ours)
        rows.append(
            {
                "verdict": claim.verdict or ("" if measured else "not run"),
                "this run": minus if measured else NONE,
                "95 % interval": NONE
                if pd.isna(claim.low)
                else f"[{number(claim.low)}, {number(claim.high)}]",
                "the paper": number(claim.published, "+.1f"),
                "tasks": str(len(claim.columns.split(", "))) if measured else NONE,
                "p": number(claim.p, ".3f"),
            }
        )
    return pd.DataFrame(rows, list(claims["statement"]))


def number(value: float, form: str = ".1f") -> str:
    """Format a number for a reader."""
    return NONE if pd.isna(value) else f"{value:{form}}".replace("-", "−")


def as_words(table: pd.DataFrame) -> pd.DataFrame:
    """Format every cell: numbers from 1,000 whole, others with one or two decimals."""

    def cell(value: Any) -> str:
        if isinstance(value, str):
            return value
        if pd.isna(value):
            return NONE
        return f"{value:,.0f}" if float(value) >= 1000 else number(value, form)

    form = ".2f" if table.index.dtype.kind == "i" else ".1f"  # relative performance, by update
    return table.astype(object).map(cell)


def markdown(table: pd.DataFrame) -> str:
    """Format a table as Markdown."""
    words = as_words(table)
    columns = ("left", *["right"] * words.shape[1])
    return str(words.to_markdown(colalign=columns, disable_numparse=True))


def latex(table: pd.DataFrame, caption: str) -> str:
    r"""Format a table as LaTeX, which needs \usepackage{booktabs} and nothing else."""
    words = as_words(table)
    shown = words.style.format(escape="latex").format_index(escape="latex", axis=0)
    shown = shown.format_index(escape="latex", axis=1)
    text = str(
        shown.to_latex(hrules=True, caption=caption, column_format="l" + "r" * words.shape[1])
    )
    for sign, command in SYMBOLS.items():
        text = text.replace(sign, command)
    return text


def html(table: pd.DataFrame) -> str:
    """Format a table as HTML, with every cell escaped."""
    text = as_words(table).to_html(border=0).replace("<th>this run", '<th class="ours">this run')
    return f'<div class="scroll" tabindex="0">{text}</div>'


def _terminal(tables: Titled, notes: list[str]) -> str:
    """Format tables and notes for a terminal of WIDEST columns."""
    parts = [
        f"{title}\n\n{as_words(table).to_string(line_width=WIDEST)}"
        for title, table in tables.items()
    ]
    lines = [
        fill(f"- {note}", WIDEST, subsequent_indent="  ", break_on_hyphens=False) for note in notes
    ]
    return "\n\n".join(
        [*parts, "\n".join(lines), "In other forms: --format markdown (csv, latex, html, json)\n"]
    )


def _markdown(tables: Titled, notes: list[str]) -> str:
    parts = [f"### {title}\n\n{markdown(table)}\n" for title, table in tables.items()]
    return "\n".join([*parts, "".join(f"- {note}\n" for note in notes)])


def _html(tables: Titled, notes: list[str]) -> str:
    parts = [f"<h3>{escape(title)}</h3>\n{html(table)}" for title, table in tables.items()]
    lines = "".join(f"<li>{escape(note)}</li>\n" for note in notes)
    return "\n".join([*parts, f'<ul class="notes">\n{lines}</ul>\n'])


def _json(tables: Titled, notes: list[str]) -> str:
    rows = {title: json.loads(table.to_json(orient="split")) for title, table in tables.items()}
    return json.dumps({"tables": rows, "notes": notes}, ensure_ascii=False)


FORMATS: dict[str, Callable[[Titled, list[str]], str]] = {  # by the endings of files
    "txt": _terminal,
    "md": _markdown,
    "csv": lambda tables, _: "\n".join(
        table.to_csv(float_format="%.4f") for table in tables.values()
    ),
    "tex": lambda tables, _: "\n".join(latex(table, title) for title, table in tables.items()),
    "html": _html,
    "json": _json,
}
