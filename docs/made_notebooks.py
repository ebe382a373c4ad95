"""The notebooks of docs/notebooks. `python docs/made_notebooks.py [NAME …]` runs them, each in an
empty folder, and writes down what their cells give.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parent / "notebooks"
SECONDS = 900  # of a cell; one of them runs a small pipeline


def executed(name: str, folder: Path) -> Any:
    """Run a notebook in a folder and return it. Raises CellExecutionError."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    return NotebookClient(
        notebook,
        timeout=SECONDS,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()


if __name__ == "__main__":
    for asked in sys.argv[1:] or sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as empty:
            nbformat.write(executed(asked, Path(empty)), NOTEBOOKS / f"{asked}.ipynb")
        print(f"docs/notebooks/{asked}.ipynb is new")
