"""What MkDocs cannot know by itself: notebooks, and links to files outside of docs/, which lead to
copies of them under repository/.
"""

import json
import posixpath
import re
from base64 import b64decode
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
        files.append(
            File.generated(
                config, f"repository/{path}", content=(ROOT / path).read_text(encoding="utf-8")
            )
        )
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        text, pictures = as_page(notebook)
        for name, content in {f"{notebook.stem}.md": text, **pictures}.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def as_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as markdown, and its pictures by file name."""
    parts, pictures = list[str](), dict[str, bytes]()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            given = {key: "".join(value) for key, value in output.get("data", {}).items()}
            if picture := given.get("image/png"):
                pictures[name := f"{path.stem}-{len(pictures)}.png"] = b64decode(picture)
                parts.append(f"![What the cell above draws]({name})")
            elif text := "".join(output.get("text", ())) or given.get("text/plain"):
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts), pictures


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
