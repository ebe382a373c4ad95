"""The notebooks of the documentation, run as they stand: where there is nothing else, for they bring
all that they need.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from copied_checkout import ROOT, Checkout

nbformat = pytest.importorskip("nbformat")
NOTEBOOKS = ROOT / "docs" / "notebooks"


@pytest.fixture
def executed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import made_notebooks

    return made_notebooks.executed


def said(notebook):
    """What the cells of a notebook gave, as text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output.get("text") or output["data"]["text/plain"] for output in outputs]


@pytest.mark.slow
def test_a_run_is_looked_at_in_an_empty_folder(executed, tmp_path):
    there = said(nbformat.read(NOTEBOOKS / "run.ipynb", 4))
    assert said(executed("run", tmp_path)) == there, (
        "what docs/notebooks/run.ipynb shows is of another reference run:"
        " python docs/made_notebooks.py run makes it anew"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_model_in_twenty_cells(executed, tmp_path):
    notebook = executed("model", tmp_path)
    assert sum(cell.cell_type == "code" for cell in notebook.cells) == 20
    assert "'the cat sat on the mat . '" in said(notebook), "it has learned its sentence"


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_task_from_a_csv_file(executed, tmp_path, monkeypatch):
    made = Checkout(tmp_path)
    made.run("git", "add", "--all")
    made.run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "as it is")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(made.folder))
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", programs)

    notebook = executed("task", tmp_path)
    scores = next(text for text in said(notebook) if "tfidf" in text)
    assert "majority" in scores
    answer = json.loads(said(notebook)[-1])
    assert answer["label"] in answer["probabilities"]
