"""The page of a run: all of data/report as one HTML file that needs nothing beside it."""

from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder, writing
from gpt1.results import provenance
from gpt1.results.answer import primary_table, sentence, tasks_table
from gpt1.results.display import NAMES, html
from gpt1.results.paper import TABLE5, TABLES
from gpt1.results.runs import CLAIMS, SCORES, read_table

INDEX = stage_folder("report", "index.html")
SAMPLES = stage_folder("generate", "samples.json")
TITLES = {name: name.replace("table", "Table ") for name in NAMES}
TITLES |= {"figure2": "Figure 2", "claims": "Claims", "curves": "Training"}
PICTURES = {  # what is drawn in place of words
    "table5": ("table5.svg",),
    "figure2": ("figure2-left.svg", "figure2-right.svg"),
    "curves": ("pretraining.svg",),
}


def write_page(path: Path = INDEX) -> dict[str, Any]:
    """Write the page of what is there; says where, how large, and which reports are missing.
    Raises UserError where a result cannot be read.
    """
    try:
        told = gathered()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"a result under data/ cannot be read ({type(error).__name__}: {error}); run dvc status"
            " to see which differs from what its stage wrote, and dvc repro -f that stage"
        ) from None
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    with writing(path) as file:
        file.write(environment.get_template("page.html.j2").render(told))
    missing = [name for name, part in told["parts"].items() if not part["tables"]]
    return {"path": path.as_posix(), "bytes": path.stat().st_size, "parts_missing": missing}


def gathered() -> dict[str, Any]:
    """Everything on the page, from the files of the current folder."""
    claims = stage_folder("report", "claims", CLAIMS)
    paths = [stage_folder("report", name, SCORES) for name in (*TABLES, TABLE5.name)]
    scores = [read_table(path) for path in paths if path.is_file()]
    known = read_table(claims) if claims.is_file() else None
    facts = provenance.facts()
    return {
        "sentence": "" if known is None else sentence(known, provenance.duration_in_words()),
        "answer": Markup(html(tasks_table(pd.concat(scores)))) if scores else "",
        "claims": "" if known is None else Markup(html(primary_table(known))),
        "titles": TITLES,
        "parts": {name: _part(name) for name in NAMES},
        "samples": read_json(SAMPLES)["prompts"] if SAMPLES.is_file() else [],
        "facts": facts,
        "commands": provenance.commands(facts["Commit"]),
        "sources": Markup(html(provenance.sources())),
        "params": provenance.PARAMS.read_text(encoding="utf-8"),
    }


def _part(name: str) -> dict[str, Any]:
    """A report's tables and cautions as its stage wrote them, and its pictures; empty where it has
    not been made.
    """
    folder = stage_folder("report", name)
    paths = [folder / one for one in PICTURES.get(name, ())]
    text = folder / f"{name}.html"
    return {
        "tables": Markup(text.read_text(encoding="utf-8")) if text.is_file() else "",
        "pictures": [Markup(_inline(path)) for path in paths if path.is_file()],
    }


def _inline(path: Path) -> str:
    """A picture of ours without what only a file of its own needs, its ids apart from others'."""
    picture = path.read_text(encoding="utf-8")
    picture = picture[picture.index("<svg") :]
    for sign in ('id="', 'href="#', "url(#"):
        picture = picture.replace(sign, f"{sign}{path.stem}-")
    return picture
