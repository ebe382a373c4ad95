"""The files of a project folder: this checkout's own, which the wheel carries as gpt1/project
(setup.py), and what of them is another in a folder where no code lies.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
CARRIED = PACKAGE / "project"  # in the installed package; in a checkout its root has the files
PATTERNS = (
    ".dvc/.gitignore",
    ".dvc/config",
    ".dvc/plots/*.json",
    ".dvcignore",
    ".gitignore",
    "Makefile",
    "conf/*.yaml",
    "data/**/.gitkeep",
    "data/README.md",
    "dvc.yaml",
    "flows/*.py",
    "flows/service/*.py",
    "prefect.toml",
    "prefect.yaml",
)
OF_A_CHECKOUT = "setup|docs|test|test-all|test-fast"  # goals of the Makefile
STAGE = re.compile(r"^  (\w+):\n(?:(?:    .*|)\n)+", re.MULTILINE)
CODE = re.compile(r",?\s*gpt1/[\w/.]+")
HEAD = """# The only wiring of stages. No code lies here: a stage that rests on some has a key in
# code.lock, where each file or folder of the installed package gpt1 that it imports has a digest.
"""
MAKE_HEAD = """# make reproduce runs all and shows the tables; make help lists the rest.
"""


def files() -> dict[str, Path]:
    """Where each file of a project folder lies, by its name there."""
    root = CARRIED if CARRIED.is_dir() else PACKAGE.parent
    found = (path for pattern in PATTERNS for path in root.glob(pattern))
    return {path.relative_to(root).as_posix(): path for path in sorted(found)}


def texts() -> Iterator[tuple[str, str]]:
    """Each file of a project folder with its text."""
    for name, path in files().items():
        yield name, text_of(name, path)
    yield "README.md", (PACKAGE / "pipeline/folder.md").read_text(encoding="utf-8")


def sixteen_digits(data: bytes) -> str:
    """What stands for a file's content."""
    return hashlib.sha256(data).hexdigest()[:16]


def text_of(name: str, path: Path) -> str:
    """What a project folder has in a file of that name."""
    text = path.read_text(encoding="utf-8")
    if name == "dvc.yaml":
        return HEAD + STAGE.sub(without_code, re.sub(r"\A(#.*\n)+", "", text))
    if name == "data/README.md":
        return re.sub(r"\[([^]]*)\]\(\.\./docs/[^)]*\)", r"\1", text)
    if name == "Makefile":
        text = re.sub(rf"^({OF_A_CHECKOUT}):.*\n(\t.*\n)*\n?", "", text, flags=re.MULTILINE)
        text = re.sub(r"\A(#.*\n)+", MAKE_HEAD, text)
        return re.sub(
            r"(?<=:) setup\b| (setup|docs|test[a-z-]*)\b(?=.*clean$)", "", text, flags=re.MULTILINE
        )
    return text


def without_code(stage: "re.Match[str]") -> str:
    """A stage of dvc.yaml that depends on its key of code.lock in the place of code."""
    text, key = stage[0], f"{{code.lock: [{stage[1]}]}}"
    if not CODE.search(text):
        return text
    text = CODE.sub("", text)
    line, block = r"params: \[", r"params:\n( +)- "
    if re.search(line, text):
        return re.sub(line, f"params: [{key}, ", text, count=1)
    return re.sub(block, rf"params:\n\1- {key}\n\1- ", text, count=1)
