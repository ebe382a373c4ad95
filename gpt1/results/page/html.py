"""A report as HTML: headings one level down, tables that scroll, pictures in the page itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from gpt1.results.document import Bullets, Document, Grid, Heading, Paragraph, Picture
from gpt1.results.page.pictures import figure

ON_WHITE = ("parameters.svg",)  # letters stand on its colours, so they stay as they are


def html(
    document: Document,
    folder: Path,
    pictures: Mapping[str, str],
    under: str,
    with_tables: bool = True,
) -> Markup:
    """A report without its title, for a section titled `under`; `pictures` are words for each
    picture of `folder` by its file's name.

    with_tables: False leaves tables out, where the page has its own. What the text holds of HTML is
    shown as it is. Raises OSError, ValueError where a picture cannot be read.
    """
    inline = MarkdownIt("commonmark", {"html": False}).renderInline
    out, heading, tables = list[str](), under, 0
    for block in document:
        match block:
            case Heading(1):
                pass
            case Heading(level, text):
                heading = text
                out.append(f"<h{level + 1}>{inline(text)}</h{level + 1}>")
            case Paragraph(text):
                out.append(f"<p>\n{inline(text)}</p>\n")
            case Bullets(lines):
                items = "".join(f"<li>\n{inline(line)}</li>\n" for line in lines)
                out.append(f"<ul>\n{items}</ul>\n")
            case Picture(file, _):
                shows = pictures.get(file, heading)
                out.append(figure(folder / file, shows, file not in ON_WHITE))
            case Grid(header, rows) if with_tables:
                tables += 1
                label = escape(f"{heading}, table {tables}")
                out.append(
                    f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>'
                    f'<caption class="unseen">{label}</caption><thead>\n<tr>'
                )
                out += [
                    f'<th scope="col">{inline(name)}</th>' if name else "<td></td>"
                    for name in header
                ]
                out.append("</tr>\n</thead>\n<tbody>\n")
                out += [_row([inline(cell) for cell in row]) for row in rows]
                out.append("</tbody>\n</table></div>")
    return Markup("".join(out))  # markdown-it escapes what is text


def _row(cells: Sequence[str]) -> str:
    head, *others = cells
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>\n'
