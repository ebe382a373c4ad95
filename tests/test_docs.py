"""The documentation: it builds with no warning, needs no network, leads nowhere wrong, and what it
names is there.
"""

import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpt1.params.yaml import read_yaml

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
OF_A_PROCESS = {
    "GPT1_HEARTBEAT",
    "GPT1_MARK",
    "GPT1_MLFLOW_URL",
    "GPT1_SERVICE",
}  # set by us for our own children


SUFFIXES = [".md", ".py", ".csv", ".svg", ".json", ".safetensors", ".html", ".npz"]


def code_files():
    return [*(ROOT / "gpt1").rglob("*.py"), *(ROOT / "flows").rglob("*.py")]


def test_the_lines_of_an_equation_stand_in_the_function_that_is_named_with_them():
    page = TEXTS["docs/paper.md"]
    assert [number for number in range(1, 6) if f"\n### Equation {number}" not in page] == []
    found = re.findall(
        r"^`([\w.]+)` in \[(\S+)\]\(\.\./(\S+)\):\n\n```python\n(.*?)```",
        page,
        re.DOTALL | re.MULTILINE,
    )
    assert len(found) == page.count("```python"), "a block of code without its function"
    for name, shown, path, code in found:
        assert shown == path
        module = path.removesuffix(".py").replace("/", ".")
        source = inspect.getsource(pkgutil.resolve_name(f"{module}:{name}"))
        missing = [line for line in code.splitlines() if line.strip() not in source]
        assert missing == [], f"docs/paper.md: {name} in {path} has no such line"


def test_every_setting_is_explained_and_every_explained_one_is_used():
    used = {
        name
        for file in code_files()
        for name in re.findall(r"\"(GPT1_[A-Z_]+)\"", file.read_text(encoding="utf-8"))
    } - OF_A_PROCESS
    explained = set(re.findall(r"\| `(GPT1_[A-Z_]+)` \|", TEXTS["docs/parameters.md"]))
    assert explained == used, "docs/parameters.md: the table of settings"


def test_every_parameter_that_is_named_is_one():
    params = read_yaml(ROOT / "params.yaml")
    for page, text in TEXTS.items():
        for name in re.findall(rf"`((?:{'|'.join(params)})(?:\.\w+)+)`", text):
            inside = params
            for key in name.split(".") if f".{name.rpartition('.')[2]}" not in SUFFIXES else ():
                rows = [row for row in inside.values() if isinstance(row, dict)]
                assert key in inside or rows, f"{page} names {name}: no such parameter"
                inside = inside[key] if key in inside else rows[0]


def test_every_command_and_option_that_is_shown_is_there():
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


def test_tables_in_the_pages_are_what_the_code_says_now(monkeypatch):
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


def test_every_link_and_path_leads_to_a_file():
    for page, text in TEXTS.items():
        for path in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]+)", text):
            assert (ROOT / page).parent.joinpath(path).exists(), f"{page} leads to {path}"
        for path in re.findall(r"`((?:gpt1|tests|conf|benchmarks)/[a-z\d_/.]+)`", text):
            assert (ROOT / path).exists(), f"{page} names {path}, which is not there"


def test_every_object_that_is_named_is_there():
    for page, text in TEXTS.items():
        for name in re.findall(r"`((?:gpt1|flows)(?:\.(?!(?:py|json|yaml|txt)`)\w+)+)`", text):
            assert pkgutil.resolve_name(name), f"{page} names {name}"


@pytest.mark.long
def test_the_pages_build_without_a_warning_and_fetch_nothing_from_elsewhere(tmp_path):
    """With --strict a dead link and a missing anchor are errors."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fetched = re.compile(
        r"<(?:script|img|iframe|source|link)[^>]*? (?:src|href)=\"?(https?:[^\" >]+)"
    )
    for path in tmp_path.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert page.count("<h1") == 1, f"{path.name} has not one title"
        assert not re.findall(r"<img(?![^>]* alt=\"[^\"])[^>]*>", page), "a picture without words"
        assert not fetched.findall(page), f"{path.name} would be another page without a network"
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(r"url\(\s*[\"']?https?:", sheet.read_text(encoding="utf-8"))
