"""A report as HTML: headings one level down, tables that scroll; pictures in the page itself, with
names of their own, colours that follow the page, and words for who cannot see them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from gpt1.results import drawing
from gpt1.results.document import Bullets, Document, Grid, Heading, Paragraph, Picture

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
    rendered = MarkdownIt("commonmark", {"html": False}).renderInline
    out, heading, tables = list[str](), under, 0
    for block in document:
        match block:
            case Heading(1):
                pass
            case Heading(level, text):
                heading = text
                out.append(f"<h{level + 1}>{rendered(text)}</h{level + 1}>")
            case Paragraph(text):
                out.append(f"<p>\n{rendered(text)}</p>\n")
            case Bullets(lines):
                items = "".join(f"<li>\n{rendered(line)}</li>\n" for line in lines)
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
                    f'<th scope="col">{rendered(name)}</th>' if name else "<td></td>"
                    for name in header
                ]
                out.append("</tr>\n</thead>\n<tbody>\n")
                out += [_row([rendered(cell) for cell in row]) for row in rows]
                out.append("</tbody>\n</table></div>")
    return Markup("".join(out))  # markdown-it escapes what is text


def _row(cells: Sequence[str]) -> str:
    head, *others = cells
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>\n'


REFERENCE = re.compile(r"url\(#([^)]+)\)")
COLOUR = re.compile(r"#[0-9a-f]{6}")
PAGE_COLOURS = {  # of a picture -> of the page, which has its own for light and dark
    "#000000": "--ink",
    "#ffffff": "--paper",
    drawing.LIGHT: "--line",
    drawing.GREY: "--muted",
    drawing.BLUE: "--blue",
    drawing.VERMILION: "--vermilion",
    drawing.GREEN: "--green",
    drawing.PURPLE: "--purple",
    drawing.ORANGE: "--orange",
    drawing.SKY: "--sky",
    drawing.YELLOW: "--yellow",
}
DROPPED = ("metadata", "style", "script", "foreignObject")


def figure(path: Path, words: str, recoloured: bool = True) -> Markup:
    """A picture with its words under it; a wide one scrolls by itself. Arguments and errors as of
    `inline`.
    """
    picture = inline(path, words, recoloured)
    on_white = Markup("") if recoloured else Markup(" on-white")
    scrolls = Markup(' role="region" tabindex="0" aria-label="{}"').format(f"Picture {path.stem}")
    return Markup(
        '<figure><div class="picture{}"{}>{}</div><figcaption>{}</figcaption></figure>'
    ).format(on_white, scrolls, picture, words)


def inline(path: Path, words: str, recoloured: bool = True) -> Markup:
    """An SVG file of a report for the inside of a page; `words` say what is seen. Raises OSError,
    ValueError where it cannot be read.

    recoloured: whether its colours follow the page's light and dark; else it keeps them, on white.
    """
    try:
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    except ElementTree.ParseError as error:
        raise ValueError(f"{path}: no SVG ({error})") from None
    prefix = f"{path.parent.name}-{path.stem}-"
    for parent in root.iter():
        for child in [child for child in parent if _local(child.tag) in DROPPED]:
            parent.remove(child)
    attributes = [
        text for one in root.iter() for name, text in one.attrib.items() if _local(name) != "id"
    ]
    used = {
        name
        for text in attributes
        for name in (*REFERENCE.findall(text), *([text[1:]] if text.startswith("#") else ()))
    }
    for one in root.iter():
        one.tag = _local(one.tag)
        one.text = one.text if one.tag in ("text", "tspan") else None
        one.tail = None
        one.attrib = {
            _local(name): _attribute(text, prefix, one.tag == "text" and recoloured, recoloured)
            for name, text in one.attrib.items()
            if _kept(_local(name), text, used)
        }
        if "id" in one.attrib:
            one.attrib["id"] = prefix + one.attrib["id"]
    width = root.attrib.pop("width", "")
    root.attrib.pop("height", None)
    root.attrib |= {
        "role": "img",
        "aria-label": words,
        "class": "wide" if _points(width) > WIDE_POINTS else "narrow",
    }
    return Markup(
        ElementTree.tostring(root, encoding="unicode")
    )  # written anew by the XML library, without scripts


WIDE_POINTS = 400.0  # from here on a telephone scrolls a picture instead of shrinking it


def _kept(name: str, text: str, used: set[str]) -> bool:
    return not name.startswith("on") and (text in used if name == "id" else True)


def _attribute(text: str, prefix: str, is_text: bool, recoloured: bool) -> str:
    text = REFERENCE.sub(rf"url(#{prefix}\1)", text)
    if text.startswith("#") and not COLOUR.fullmatch(text):
        return f"#{prefix}{text[1:]}"
    if not recoloured:
        return text
    return COLOUR.sub(lambda found: _page_colour(found[0], is_text), text)


def _page_colour(colour: str, is_text: bool) -> str:
    """Letters need more contrast than lines: each colour has a darker twin for them."""
    name = PAGE_COLOURS.get(colour)
    if name is None:
        return colour
    return f"var({name}-text, var({name}))" if is_text else f"var({name})"


def _points(width: str) -> float:
    return float(width.removesuffix("pt")) if width.endswith("pt") else 0.0


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]
