"""A document as one LaTeX file that pdflatex of a plain texlive compiles.

A table of a document takes the type in which it fits, or is divided; its cells wrap at blanks, but
for those within brackets. Widths are estimated from numbers of characters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gpt1.results.document import NONE, Block, Bullets, Document, Grid, Heading, Paragraph, Picture
from gpt1.results.formats import escaped

SIGNS = {  # beside those of formats
    "×": r"$\times$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "\N{NO-BREAK SPACE}": "~",
}
PREAMBLE = r"""\documentclass[10pt,a4paper]{article}
% made by gpt1 report --article; compile with pdflatex, twice
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{lmodern,textcomp,array,booktabs,longtable,graphicx}
\usepackage[margin=22mm]{geometry}
\usepackage[hidelinks]{hyperref}
\setlength{\parindent}{0pt}\setlength{\parskip}{5pt plus 1pt}
\newcommand{\room}[1]{\par\dimen0=\pagegoal\advance\dimen0-\pagetotal
  \ifdim\dimen0<#1\ifdim\dimen0>0pt\vfil\break\fi\fi}
\setlength{\LTpre}{4pt}\setlength{\LTpost}{4pt}\setlength{\emergencystretch}{4em}
"""
CLOSE = r"\setlength{\itemsep}{1pt}\setlength{\parskip}{0pt}"  # lines of a list
ROOM = "\\room{35mm}\n"  # else a new page
SECTIONS = {2: "section", 3: "subsection", 4: "subsubsection"}
ACROSS = 472.0  # points of the text of A4
SIZES = (("footnotesize", 4.4), ("scriptsize", 4.0))  # points of a character, on average
GAP = 8.0  # points between two columns
BOLD = 1.12  # width of bold letters beside the others'
MOST_LINES = 5  # that a cell is broken into
WORD = re.compile(r"[a-z]{4}")
HELD = re.compile(
    r"\[[^\]]*\]|[±<] [\d.]+|\(of \d+\)|(Table|Figure|section) \d"
)  # what no line is broken in
LONG_WORD = 24  # characters from which a word without a blank may be broken
KNOWN = re.compile(r"[\x20-\x7e\n\xa1-\u0125\u0128-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165]")
QUOTES = frozenset("\u2010\u2013\u2014\u2018\u2019\u201a\u201c\u201d\u201e\u2022\u2026\u20ac")


def latex(document: Document) -> str:
    """The document as one LaTeX file. Pictures are looked for as PNG beside it; of a letter that
    the type lacks its number is printed.
    """
    title = next(
        inline(block.text) for block in document if isinstance(block, Heading) and block.level == 1
    )
    body = "\n\n".join(
        ROOM * _introduces(block, after) + text
        for block, after in zip(document, (*document[1:], None), strict=True)
        if (text := _block(block))
    )
    lacking = sorted({one for one in title + body if not KNOWN.match(one) and one not in QUOTES})
    declared = (
        rf"\DeclareUnicodeCharacter{{{ord(one):04X}}}{{[U+{ord(one):04X}]}}" for one in lacking
    )
    return "\n".join(
        [
            PREAMBLE + "\n".join(declared),
            rf"\title{{{title}}}\author{{}}\date{{}}",
            r"\begin{document}",
            r"\maketitle",
            body,
            r"\end{document}",
            "",
        ]
    )


def _introduces(block: Block, after: Block | None) -> bool:
    """Whether a block is to stand on the page of what comes after it."""
    return isinstance(block, Heading) or isinstance(after, Grid)


def _block(block: Block) -> str:
    match block:
        case Heading(level, text):
            return rf"\{SECTIONS[level]}{{{inline(text)}}}" if level in SECTIONS else ""
        case Paragraph(text):
            return inline(text)
        case Bullets(lines):
            items = "\n".join(rf"\item {{}}{inline(line)}" for line in lines)
            return "\n".join([r"\begin{itemize}", CLOSE, items, r"\end{itemize}"]) if lines else ""
        case Picture(file, shows):
            return "\n".join(
                [
                    r"\begin{center}\begin{minipage}{\linewidth}\centering",
                    rf"\includegraphics[width=0.62\linewidth]{{{PurePath(file).with_suffix('.png')}}}",
                    "",
                    rf"{{\small {inline(shows)}}}",
                    r"\end{minipage}\end{center}",
                ]
            )
        case Grid():
            return "\n".join(_tables(block)) if block.rows else ""


def inline(text: str) -> str:
    """A text of a document, with its marks, as LaTeX."""
    clean = "".join(
        " " if unicodedata.category(one) in ("Cc", "Cf", "Cs") else one
        for one in unicodedata.normalize("NFC", text)
    )
    tokens = MarkdownIt("commonmark", {"html": False}).parseInline(clean)[0].children or []
    return "".join(map(_marked, tokens))


def _marked(token: Token) -> str:
    match token.type:
        case "strong_open":
            return r"\textbf{"
        case "em_open":
            return r"\emph{"
        case "link_open":
            return rf"\href{{{_address(str(token.attrGet('href')))}}}{{"
        case "strong_close" | "em_close" | "link_close":
            return "}"
        case "code_inline":
            return rf"\texttt{{{_breakable(token.content)}}}"
        case "softbreak" | "hardbreak":
            return " "
        case _:
            return _breakable(token.content)


def _address(address: str) -> str:
    return re.sub(r"[%#&_{}\\^~$]", lambda found: "\\" + found[0], address)


def _escaped(text: str) -> str:
    """As LaTeX; two hyphens stay two: of an option."""
    signs = "".join(SIGNS.get(one) or escaped(one) for one in text)
    return re.sub("-(?=-)", "-{}", signs)


def _breakable(text: str) -> str:
    """Escaped; long words may end a line after a sign, or anywhere where they have none."""
    words = []
    for word in text.split(" "):
        if len(word) > LONG_WORD:
            pieces = re.findall(r"[^/_.,=+:-]{0,12}[/_.,=+:-]?", word)
            words.append(r"\allowbreak{}".join(map(_escaped, filter(None, pieces))))
        else:
            words.append(_escaped(word))
    return " ".join(words)


class _Column(NamedTuple):
    """Characters that a column takes without a break, and at least; whether it holds words."""

    natural: float
    least: float
    wordy: bool


def _tables(grid: Grid) -> Iterator[str]:
    """A table as one of LaTeX that runs over pages; as two, each with the first column, where it
    fits in no type.
    """
    columns = [_column(cells) for cells in zip(grid.header, *grid.rows, strict=True)]
    for size, points in SIZES:
        room = (ACROSS - GAP * (len(columns) - 1)) / points
        if sum(column.least for column in columns) <= room or len(columns) < 3:
            yield from _longtable(grid, columns, _widths(columns, room), size, points)
            return
    middle = (len(columns) + 1) // 2
    for part in (range(1, middle), range(middle, len(columns))):
        yield from _tables(
            Grid(
                (grid.header[0], *(grid.header[place] for place in part)),
                tuple((row[0], *(row[place] for place in part)) for row in grid.rows),
            )
        )


def _column(cells: Sequence[str]) -> _Column:
    header, *others = map(_tied, cells)
    pieces = [
        min(len(word), LONG_WORD) * (BOLD if "**" in cell else 1.0)
        for cell in (header, *others)
        for word in re.split(" ", _bare(cell))
    ]
    natural = max(len(_bare(cell)) * (BOLD if "**" in cell else 1.0) for cell in (header, *others))
    least = max(*pieces, natural / MOST_LINES)
    said = [cell for cell in others if cell != NONE]
    wordy = sum(bool(WORD.search(cell)) for cell in said) > len(said) / 2
    return _Column(natural, least, wordy)


def _bare(cell: str) -> str:
    return cell.replace("**", "").replace("`", "")


def _tied(cell: str) -> str:
    """A cell whose brackets and deviations hold together."""
    return HELD.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), cell)


def _widths(columns: Sequence[_Column], room: float) -> list[float | None]:
    """Characters for each column, None for as many as it takes: of what is left over the least, the
    next one goes to the column whose longest cell is broken most often.
    """
    if sum(column.natural for column in columns) <= room:
        return [None] * len(columns)
    widths = [column.least for column in columns]
    for _ in range(int(room - sum(widths))):
        place = max(range(len(columns)), key=lambda one: columns[one].natural / widths[one])
        widths[place] += 1
    return [
        None if width >= column.natural else width
        for column, width in zip(columns, widths, strict=True)
    ]


def _longtable(
    grid: Grid,
    columns: Sequence[_Column],
    widths: Sequence[float | None],
    size: str,
    points: float,
) -> list[str]:
    spec = []
    for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
        left = not place or column.wordy
        if width is None:
            spec.append("l" if left else "r")
        else:
            ragged = "raggedright" if left else "raggedleft"
            spec.append(rf">{{\{ragged}\arraybackslash}}p{{{width * points:.0f}pt}}")
    apart = r" \\" if all(width is None for width in widths) else r" \\ \addlinespace[2pt]"
    header, *rows = (
        " & ".join("{}" + inline(_tied(cell)) for cell in row) for row in (grid.header, *grid.rows)
    )
    return [
        rf"{{\{size}\setlength{{\tabcolsep}}{{{GAP / 2:g}pt}}",
        rf"\begin{{longtable}}{{@{{}}{''.join(spec)}@{{}}}}",
        r"\toprule",
        header + r" \\",
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
        *(row + apart for row in rows[:-1]),
        rows[-1] + r" \\",
        r"\end{longtable}}",
    ]
