"""A page of the report on a terminal: its grids fitted to the width, bold and colour where they
mean something.
"""

import re
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpt1.results.document import Bullets, Document, Grid, Heading, Paragraph, Picture

LABEL, LABEL_LEAST = (
    30,
    20,
)  # characters of the first column: where there are many others, and at least
WORDS = 14  # of a column of words, from which on it is wrapped
WORD_AND_WORD = re.compile(r"[A-Za-z]{2,},? [A-Za-z]")
GAP = 2
BOLD = re.compile(r"\*\*(.+?)\*\*")
DIFFERENCE = re.compile(r"[+−-]\d")
STYLES = {"confirmed": "green", "refuted": "red", "undecided": "yellow"}
KEPT = {
    "claims": ("claim", "the paper", "this run", "95% interval", "verdict"),
    "table5": ("the full model less the row", "Avg"),
}  # what is left of a grid of a page that is wider than the terminal


def print_page(screen: Console, name: str, document: Document) -> None:
    """A report as a person reads it on a terminal: headings, facts, tables, notes; no pictures."""
    for number, block in enumerate(one for one in document if not isinstance(one, Picture)):
        if number:
            screen.print()
        match block:
            case Grid():
                shown = kept(block, KEPT.get(name, ()), screen.width)
                print_grid(screen, shown)
                if left_out := len(block.header) - len(shown.header):
                    more = f"({left_out} more columns: gpt1 table {name} --format markdown)"
                    screen.print(Text(more, style="dim"))
            case Heading(_, text):
                screen.print(Text(text, style="bold"))
            case Paragraph(text):
                screen.print(marked(text))
            case Bullets(lines):
                for line in lines:
                    bullet = Table.grid(padding=(0, 1, 0, 0))
                    bullet.add_row("-", marked(line))
                    screen.print(bullet)


def kept(grid: Grid, names: Sequence[str], whole: int) -> Grid:
    """The columns of these names, where the grid has them all and does not fit into so many
    characters.
    """
    needs = [needed(grid, column) for column in range(len(grid.header))]
    if not names or not set(names) <= set(grid.header) or len(parts(needs, whole)) == 1:
        return grid
    places = [grid.header.index(name) for name in names]
    return Grid(tuple(names), tuple(tuple(row[place] for place in places) for row in grid.rows))


def marked(text: str) -> Text:
    """Text with **bold** parts bold."""
    out, end = Text(), 0
    for found in BOLD.finditer(text):
        out.append(text[end : found.start()])
        out.append(found[1], style="bold")
        end = found.end()
    return out.append(text[end:])


def cell(text: str, head: str = "") -> Text:
    """A cell; a verdict, and a difference in a row or column that is one, in the colour of what it
    says.
    """
    styled = marked(text)
    if text in STYLES:
        styled.stylize(STYLES[text])
    elif DIFFERENCE.match(text) and ("less" in head or "difference" in head):
        styled.stylize("red" if text.startswith(("-", "−")) else "green")
    return styled


def print_grid(screen: Console, grid: Grid) -> None:
    """A grid as wide as the terminal; what does not fit beside one another stands below, each part
    with the first column again.
    """
    needs = [needed(grid, column) for column in range(len(grid.header))]
    for number, columns in enumerate(parts(needs, screen.width)):
        if number:
            screen.print()
        room = max(LABEL_LEAST, screen.width - sum(needs[column] + GAP for column in columns))
        table = Table(
            box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_edge=False
        )
        table.add_column(Text(grid.header[0]), width=min(room, width(grid, 0)))
        for column in columns:
            table.add_column(
                Text(grid.header[column]),
                width=needs[column],
                justify="left" if is_wordy(grid, column) else "right",
            )
        for row in grid.rows:
            table.add_row(
                marked(row[0]),
                *(cell(row[column], f"{row[0]} {grid.header[column]}") for column in columns),
            )
        screen.print(table)


def parts(needs: Sequence[int], whole: int) -> list[list[int]]:
    """Columns, less the first, in as few parts as fit into so many characters beside the first; a
    column is never cut.
    """
    if min(needs[0], LABEL_LEAST) + sum(need + GAP for need in needs[1:]) <= whole:
        return [list(range(1, len(needs)))]
    label = min(LABEL, needs[0])
    divided: list[list[int]] = [[]]
    used = label
    for column in range(1, len(needs)):
        if divided[-1] and used + needs[column] + GAP > whole:
            divided.append([])
            used = label
        divided[-1].append(column)
        used += needs[column] + GAP
    return divided


def needed(grid: Grid, column: int) -> int:
    """Characters that a column takes: as many as its widest cell, but words can be wrapped."""
    return (
        min(width(grid, column), WORDS)
        if is_wordy(grid, column) and column
        else width(grid, column)
    )


def is_wordy(grid: Grid, column: int) -> bool:
    """Whether a column holds words that can stand one below the other, not numbers."""
    return width(grid, column) > WORDS and any(
        WORD_AND_WORD.search(row[column]) for row in grid.rows
    )


def width(grid: Grid, column: int) -> int:
    """Characters of the widest cell of a column."""
    return max(len(BOLD.sub(r"\1", row[column])) for row in (grid.header, *grid.rows))
