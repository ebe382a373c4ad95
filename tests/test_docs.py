"""The documentation: it builds with no warning, needs no network, leads nowhere wrong, and what it
names is there.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args
from urllib.parse import unquote, urlsplit

import pytest
from pydantic import BaseModel

from gpt1.params.schema import Params
from gpt1.params.yaml import read_yaml

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
EVERYTHING = "\n".join(TEXTS.values())
OF_A_PROCESS = {
    "GPT1_HEARTBEAT",
    "GPT1_MARK",
    "GPT1_MLFLOW_URL",
    "GPT1_SERVICE",
}  # set by us for our own children
OBJECT = re.compile(r"`((?:gpt1|flows)(?:\.(?!(?:py|json|yaml|txt)`)\w+)+)`")  # no file's name
FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
}  # what a browser fetches by itself; <link> beside it
FETCHED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "manifest"}


def code_files() -> list[Path]:
    return [*(ROOT / "gpt1").rglob("*.py"), *(ROOT / "flows").rglob("*.py")]


def is_there(name: str) -> bool:
    """Whether a dotted name is a room, a module, or something that a module or a class in it
    defines.
    """
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:end])
        file = next(
            (path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()),
            None,
        )
        if file is not None:
            body: list[ast.stmt] = ast.parse(file.read_text(encoding="utf-8")).body
            for part in parts[end:]:
                found = [node for node in body if part in defined(node)]
                if not found:
                    return False
                body = getattr(found[0], "body", [])
            return True
    return False


def defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return {node.name}
    if isinstance(node, ast.AnnAssign):
        return {ast.unparse(node.target)}
    if isinstance(node, ast.ImportFrom):  # what a package passes on: import name as name
        return {alias.name for alias in node.names if alias.asname == alias.name}
    return (
        {ast.unparse(target) for target in node.targets} if isinstance(node, ast.Assign) else set()
    )


def test_every_object_that_is_named_is_there() -> None:
    names = {(page, name) for page, text in TEXTS.items() for name in OBJECT.findall(text)}
    assert len(names) > 80, "the pages no longer name functions"
    assert [f"{page}: {name}" for page, name in sorted(names) if not is_there(name)] == []


def test_every_section_of_the_paper_and_every_equation_has_its_function() -> None:
    page = TEXTS["docs/paper.md"]
    for part in (
        "## 3.1",
        "## 3.2",
        "## 3.3",
        "## 4.1",
        "## 4.2",
        "## 5",
        *(f"({number})" for number in (1, 3, 4, 5)),
        "equation 2",
    ):
        assert part in page, part
    rows = [
        line
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith(("| the paper", "|--"))
    ]
    assert [row for row in rows if "`" not in row] == [], (
        "a row of the paper without its function or parameter"
    )


def test_the_lines_of_an_equation_stand_in_the_function_that_is_named_with_them() -> None:
    page = TEXTS["docs/equations.md"]
    assert [number for number in range(1, 6) if f"\n## Equation {number}" not in page] == []
    found = re.findall(
        r"^`([\w.]+)` in \[(\S+)\]\(\.\./(\S+)\):\n\n```python\n(.*?)```",
        page,
        re.DOTALL | re.MULTILINE,
    )
    assert len(found) == page.count("```python"), "a block of code without its function"
    for name, shown, path, code in found:
        assert shown == path
        source = source_of(name, ROOT / path)
        missing = [line for line in code.splitlines() if line.strip() not in source]
        assert missing == [], f"docs/equations.md: {name} in {path} has no such line"


def source_of(name: str, path: Path) -> list[str]:
    """The lines of a function, or a method, without their indentation."""
    text = path.read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        node = next(one for one in ast.iter_child_nodes(node) if getattr(one, "name", "") == part)
    return [line.strip() for line in (ast.get_source_segment(text, node) or "").splitlines()]


def test_every_path_that_is_named_is_there() -> None:
    named = {
        (page, name)
        for page, text in TEXTS.items()
        for name in re.findall(r"`((?:gpt1|flows|tests|conf|benchmarks|docs)/[\w/.]+)`", text)
    }
    assert [f"{page}: {name}" for page, name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_setting_is_explained_and_every_explained_one_is_used() -> None:
    used = {
        name
        for file in code_files()
        for name in re.findall(r"\"(GPT1_[A-Z_]+)\"", file.read_text(encoding="utf-8"))
    } - OF_A_PROCESS
    explained = set(re.findall(r"\| `(GPT1_[A-Z_]+)` \|", TEXTS["docs/parameters.md"]))
    assert explained == used, "docs/parameters.md: the table of settings"


def test_every_parameter_that_is_named_is_one() -> None:
    known, sections = set(known_keys(Params)), "|".join(Params.model_fields)
    rows = {key for key in known if ".*." in key}
    for page, text in TEXTS.items():
        for name in re.findall(rf"`((?:{sections})(?:\.\w+)+)`", text):
            section, _, *rest = name.split(".")
            plain = name in known or name.endswith(
                (".md", ".py", ".csv", ".svg", ".json", ".safetensors", ".html", ".npz")
            )
            assert plain or (
                any(key.startswith(f"{section}.*.") for key in rows)
                and (not rest or f"{section}.*.{rest[0]}" in rows)
            ), f"{page} names {name}: no such parameter"


def test_every_command_and_option_that_is_shown_is_there() -> None:
    surface = TEXTS["docs/cli.md"]
    goals = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for page, text in TEXTS.items():
        shown = "\n".join(
            re.findall(r"```\w*\n(.*?)```", text, re.DOTALL) + re.findall(r"`([^`\n]+)`", text)
        )
        for command, words in re.findall(
            r"(?:^|&& |; |exec )gpt1 ([a-z]+)((?: [^\n#&|]*)?)", shown, re.MULTILINE
        ):
            assert f"gpt1 {command}" in surface, f"{page}: gpt1 {command} is no command"
            for option in re.findall(r"(?<!\w)--[a-z-]+", words):
                assert option in surface, f"{page}: gpt1 {command} has no {option}"
        for goal in re.findall(r"(?:^|`|&& )make ([a-z-]+)", text, re.MULTILINE):
            assert goal in goals, f"{page}: make {goal} is no goal of the Makefile"


def test_tables_in_the_pages_are_what_the_code_says_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import made_tables as made

    found = dict[str, str]()
    for name, text in TEXTS.items():
        there, now = made.tables(text), made.tables(made.renewed(text))
        assert text.count("<!-- made: ") == len(there), f"{name}: a marker without its end"
        found |= there
        for table in there:
            assert there[table] == now[table], (
                f"{name}: the table {table} is of other code; {made.RENEW} makes it anew"
            )
    assert found.keys() == made.MADE.keys(), "each table stands in one page"


def test_citation_and_changes_agree_with_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    citation, changes = (
        read_yaml(ROOT / "CITATION.cff"),
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    )
    assert (
        citation["cff-version"],
        citation["type"],
        citation["version"],
        citation["license"],
    ) == ("1.2.0", "software", version, "MIT")
    assert citation["authors"] == [{"name": "The gpt1 contributors"}]
    assert [author["family-names"] for author in citation["references"][0]["authors"]] == [
        "Radford",
        "Narasimhan",
        "Salimans",
        "Sutskever",
    ]
    headings = re.findall(r"^## \[(.+?)\](?: - (.+))?$", changes, re.MULTILINE)
    assert headings[0] == ("Unreleased", "")
    assert (version, str(citation["date-released"])) in headings


class Page(HTMLParser):
    """What a page of the built documentation leads to, fetches, and can be led to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids, self.links, self.fetched, self.untold, self.titles = (
            set[str](),
            set[str](),
            set[str](),
            set[str](),
            0,
        )
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        self.ids |= {of[name] for name in ("id", "name") if name in of}
        self.titles += tag == "h1"
        if tag == "a" and "href" in of:
            self.links.add(of["href"])
        if tag in FETCHED and FETCHED[tag] in of:
            self.fetched.add(of[FETCHED[tag]])
        if tag == "link" and FETCHED_LINKS & set(of.get("rel", "").split()):
            self.fetched.add(of["href"])
        if tag == "img" and not of.get("alt"):
            self.untold.add(of.get("src", ""))


def build(folder: Path, **variables: str) -> dict[Path, Page]:
    """Build the documentation into a folder, with every warning an error; its pages as a browser
    has them.
    """
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | variables
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING -" not in done.stderr
    return {
        path: Page(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
        if path.name != "404.html"
    }


def check(folder: Path, pages: dict[Path, Page]) -> None:
    """No page fetches anything from elsewhere, has a dead link, a picture without words, or not
    exactly one title.
    """
    for path, page in pages.items():
        name = path.relative_to(folder)
        assert page.titles == 1, f"{name} has {page.titles} titles"
        assert not page.untold, f"{name}: pictures without alternative text: {page.untold}"
        for address in page.links | page.fetched:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https", "mailto"):
                assert address not in page.fetched, (
                    f"{name} fetches {address}: it would be another page without a network"
                )
                continue
            assert not address.startswith("/"), f"{name}: {address} leads elsewhere from disk"
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{name} leads to {address}, which is not there"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, (
                    f"{name} leads to {address}: no such place on that page"
                )
    for sheet in folder.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?https?:", sheet.read_text(encoding="utf-8")), (
            f"{sheet.name} fetches from elsewhere"
        )


def text_of(path: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")))


def known_keys(model: type[BaseModel]) -> list[str]:
    """Every dotted name below a model; rows of a mapping stand as `*`."""
    names = []
    for name, field in model.model_fields.items():
        names.append(name)
        for inner in (field.annotation, *get_args(field.annotation)):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                prefix = name if inner is field.annotation else f"{name}.*"
                names.extend(f"{prefix}.{key}" for key in known_keys(inner))
    return names


@pytest.mark.slow
def test_pages_build_without_a_warning(tmp_path: Path) -> None:
    pages = build(tmp_path, DOCS_API="off")
    check(tmp_path, pages)
    shown, recipe = text_of(tmp_path / "parameters.html"), read_yaml(ROOT / "conf" / "paper.yaml")
    for section, values in recipe.items():
        for key in (
            values
            if isinstance(values, dict)
            and f"{section}.{next(iter(values), '')}" in known_keys(Params)
            else ()
        ):
            named = rf"{section}\.{key}[ .]"  # what is a section of rows stands with their keys
            assert re.search(named, shown), f"parameters.html: {section}.{key} is missing"
    assert re.search(r"finetune\.lambda_lm 0\.5 0\.5 0\.5 number, at least 0 \w", shown), (
        "values of all profiles, kind and meaning"
    )
    assert re.search(r"pretrain\.learning_rate 0\.00025 0\.003 0\.003 number, above 0 \w", shown)
    tasks = text_of(tmp_path / "tasks.html")
    assert re.search(r"RTE entailment accuracy 2 2,490 277 -", tasks)
    assert "train/middle/*.txt" in tasks, "RACE's files by the names that people know"
    assert "CC BY-SA 4.0" in tasks


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_whole_builds_without_a_warning_and_names_lead_to_their_objects(tmp_path: Path) -> None:
    pages = build(tmp_path, DOCS_SOURCE="false")
    check(tmp_path, pages)
    rooms = {path.parent.name for path in (ROOT / "gpt1").glob("*/__init__.py")} | {
        "flows",
        "ground",
    }
    assert {path.stem for path in (tmp_path / "reference").glob("*.html")} == rooms
    assert "reference/train.html#gpt1.train.losses.finetune" in pages[tmp_path / "paper.html"].links
    assert "data/<folder>/<its name>" in text_of(tmp_path / "reference" / "params.html").replace(
        "&lt;", "<"
    ).replace("&gt;", ">")
    index = (tmp_path / "search" / "search_index.js").read_text(encoding="utf-8")
    assert "reference/train.html#gpt1.train.schedules.warmup_linear" in index, (
        "the search knows functions"
    )
    assert "machines.html" in index


def test_pictures_are_of_the_runs_that_ship(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import scores_by_task

    for run, path in scores_by_task.PICTURES.items():
        assert path.read_text(encoding="utf-8") == scores_by_task.picture(run), (
            "python docs/scores_by_task.py draws it anew"
        )
