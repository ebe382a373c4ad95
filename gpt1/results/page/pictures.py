"""The reports' pictures inside a page: SVG with names of its own, colours that follow the page, and
words for who cannot see it.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

from markupsafe import Markup

from gpt1.results import drawing

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
