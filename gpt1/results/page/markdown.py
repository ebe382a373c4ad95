"""The reports' own markdown as HTML: headings one level down, tables that scroll, pictures in the
page itself.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from gpt1.results.page.pictures import figure

ON_WHITE = ("parameters.svg",)  # letters stand on its colours, so they stay as they are


def html(path: Path, pictures: Mapping[str, str], under: str, with_tables: bool = True) -> Markup:
    """A report's page without its title, for a section titled `under`; `pictures` are words for
    each picture by its file's name.

    with_tables: False leaves tables out, where the page has its own. What the text holds of HTML is
    shown as it is. Raises OSError, ValueError where the page or a picture cannot be read.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(path.read_text(encoding="utf-8"))
    if not with_tables:
        tokens = _without_tables(tokens)
    out, heading, row, tables = list[str](), under, 0, 0
    place = _after_title(tokens)
    while place < len(tokens):
        token = tokens[place]
        if token.type in ("heading_open", "heading_close"):
            tag = f"h{int(token.tag[1:]) + 1}"
            out.append(f"<{tag}>" if token.nesting > 0 else f"</{tag}>")
            if token.nesting > 0:
                heading = tokens[place + 1].content
        elif token.type == "table_open":
            tables += 1
            label = escape(f"{heading}, table {tables}")
            out.append(
                f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>'
                f'<caption class="unseen">{label}</caption>'
            )
        elif token.type == "table_close":
            out.append("</table></div>")
        elif token.type == "tr_open":
            row = 0
            out.append("<tr>")
        elif token.type in ("th_open", "td_open"):
            row += 1
            head = token.type == "th_open"
            out.append(
                '<th scope="col">'
                if head and tokens[place + 1].content
                else "<td>"
                if head
                else '<th scope="row">'
                if row == 1
                else "<td>"
            )
        elif token.type in ("th_close", "td_close"):
            empty_head = token.type == "th_close" and not tokens[place - 1].content
            out.append("</td>" if empty_head or (token.type == "td_close" and row > 1) else "</th>")
        elif (picture := _picture(token)) and token.type == "inline":
            out[-1] = ""  # the paragraph around it
            out.append(
                figure(
                    path.parent / picture, pictures.get(picture, heading), picture not in ON_WHITE
                )
            )
            place += 1
        else:
            out.append(parser.renderer.render([token], parser.options, {}))
        place += 1
    return Markup("".join(out))  # markdown-it escapes what is text


def _after_title(tokens: Sequence[Token]) -> int:
    """The place after the first heading, if that is the page's title."""
    return 3 if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1" else 0


def _without_tables(tokens: Sequence[Token]) -> list[Token]:
    kept, inside = [], False
    for token in tokens:
        inside = inside or token.type == "table_open"
        if not inside:
            kept.append(token)
        inside = inside and token.type != "table_close"
    return kept


def _picture(token: Token) -> str:
    """The file of a paragraph's only picture; '' for anything else. A name with a folder in it is
    none of a report's.
    """
    children = token.children or []
    alone = len(children) == 1 and children[0].type == "image"
    name = str(children[0].attrs["src"]) if alone else ""
    return "" if "/" in name or not name.endswith(".svg") else name
