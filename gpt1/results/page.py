"""The page of a run: all of data/report as one HTML file."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gpt1.base.files import read_json, stage_folder, writing
from gpt1.results import provenance
from gpt1.results.answer import answer
from gpt1.results.display import html
from gpt1.results.runs import NAMES, freshness
from gpt1.tracking.log import reading

INDEX = stage_folder("report", "index.html")
SAMPLES = stage_folder("generate", "samples.json")


def write_page(path: Path = INDEX) -> dict[str, Any]:
    """Write the page; return its path, size and missing reports. Raises UserError."""
    cure = "run dvc status to see which differs from what its stage wrote, and dvc repro -f it"
    with reading("a result under data/", cure):
        contents = gathered()
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    with writing(path) as file:
        file.write(environment.get_template("page.html.j2").render(contents))
    missing = [name for name, section in contents["parts"].items() if not section["tables"]]
    return {"path": path.as_posix(), "bytes": path.stat().st_size, "parts_missing": missing}


def gathered() -> dict[str, Any]:
    """Collect the contents of the page."""
    facts, state = provenance.facts(), freshness()
    shown = answer(state)._asdict()
    for name in ("tasks", "claims"):
        shown[name] = Markup(html(shown[name]) if len(shown[name]) else "")
    parts = {name: _part(stage_folder("report", name)) for name in NAMES}
    return shown | {
        "parts": parts,
        "notices": {name: state.line([name]) for name in NAMES if parts[name]["tables"]},
        "samples": read_json(SAMPLES)["prompts"]
        if SAMPLES.is_file() and "generate" not in state.outdated
        else [],
        "facts": facts,
        "commands": provenance.commands(facts["Commit"]),
        "sources": Markup(html(provenance.sources())),
        "params": provenance.PARAMS.read_text(encoding="utf-8"),
    }


def _part(folder: Path) -> dict[str, Any]:
    text = folder / f"{folder.name}.html"
    return {
        "tables": Markup(text.read_text(encoding="utf-8") if text.is_file() else ""),
        "pictures": [Markup(_inline(path)) for path in sorted(folder.glob("*.svg"))],
    }


def _inline(path: Path) -> str:
    """Return an SVG without its XML header; its ids become unlike others'."""
    picture = path.read_text(encoding="utf-8")
    picture = picture[picture.index("<svg") :]
    for sign in ('id="', 'href="#', "url(#"):
        picture = picture.replace(sign, f"{sign}{path.stem}-")
    return picture
