"""What MkDocs cannot know by itself: notebooks, and links to files outside of docs/, which lead to
copies of them under repository/.
"""

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "docs" / "notebooks"
PAGES = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "data/README.md",
    "benchmarks/README.md",
    "tests/golden/README.md",
)
PARTS = re.compile(
    r"(^(?:```|~~~).*?^(?:```|~~~)$)", re.MULTILINE | re.DOTALL
)  # splits a page at its blocks of code
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add notebooks, and pages of the repository that lie outside of docs/."""
    for path in PAGES:
        page = File.generated(config, f"repository/{path}", abs_src_path=str(ROOT / path))
        files.append(page)
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        name = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, name, content=as_page(notebook)))
    return files


def as_page(path: Path) -> str:
    """Return a notebook, with its pictures, as markdown."""
    parts = list[str]()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            given = {key: "".join(value) for key, value in output.get("data", {}).items()}
            if picture := given.get("image/png"):
                address = f"data:image/png;base64,{picture.strip()}"
                parts.append(f"![What the cell above draws]({address})")
            elif text := "".join(output.get("text", ())) or given.get("text/plain"):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the repository to their copies."""
    uri = page.file.src_uri
    source = uri.removeprefix("repository/") if uri.startswith("repository/") else f"docs/{uri}"

    def led(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        return f"{match[1]}{posixpath.relpath(copied(target, config, files), posixpath.dirname(uri) or '.')}{match[3] or ''}{match[4]}"

    parts = PARTS.split(markdown)
    return "".join(
        part if part.startswith(("```", "~~~")) else LINK.sub(led, part) for part in parts
    )


def copied(target: str, config: MkDocsConfig, files: Files) -> str:
    """Return where a file of the repository lies in the documentation: a page, or a copy as text,
    so that browsers show it.
    """
    if target.startswith("docs/") and not target.endswith(".py"):
        return target.removeprefix("docs/").replace(".ipynb", ".md")
    uri = f"repository/{target}{'' if target.endswith(('.svg', '.png', '.md')) else '.txt'}"
    if (ROOT / target).is_file() and files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / target)))
    return uri
