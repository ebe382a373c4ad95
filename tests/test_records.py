"""The results as two tables: what pandas reads is typed, whole, and gives the reports' own scores
again.
"""

import subprocess
import sys
from pathlib import Path

import made_results
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from gpt1 import results
from gpt1.base.errors import UserError
from gpt1.results import drawing
from gpt1.results.records import PREDICTION_KEY, PREDICTIONS, SCORES, read_records
from gpt1.stages import report

pytestmark = pytest.mark.slow

METRICS = {"accuracy": accuracy_score, "f1": f1_score, "matthews": matthews_corrcoef}
VARIANTS = ("no_pretraining", "lstm")
TASKS = ("cola", "mrpc", "mnli")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Tables 2, 4 and 5 of three tasks; MNLI has two splits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("run"))
        patch.setattr(drawing, "png", lambda draw, points: b"")  # seconds of drawing
        made_results.write_pretraining()
        made_results.write_lstms()
        made_results.write_params(
            list(TASKS), [0, 3], ablate=made_results.ablate_rows(VARIANTS, TASKS)
        )
        made_results.write_drawn(
            TASKS, {"full": 1.8, "no_pretraining": 0.7, "lstm": 1.2}, (0, 3), 60
        )
        for name in ("table2", "table4", "table5"):
            report.main(name)
        yield folder


def test_scores_come_out_of_the_predictions_again(run, monkeypatch):
    monkeypatch.chdir(run)
    scores, predictions = results.load()
    answered = predictions.assign(answer=predictions["logits"].map(np.argmax))
    ours = scores[(scores["row"] == "ours") & scores["score"].notna()]
    checked = 0
    for one in ours.itertuples():
        if one.table != "table5" and one.metric != "mean":
            rows = answered[
                (answered["task"] == one.task)
                & (answered["split"] == one.split)
                & (answered["system"] == "full")
            ]
        elif one.table == "table5" and one.value == "score" and one.task in ("cola", "mrpc"):
            rows = answered[(answered["task"] == one.task) & (answered["system"] == one.variant)]
        else:
            continue
        by_seed = [
            100 * METRICS[one.metric](part["label"], part["answer"])
            for _, part in rows.groupby("seed")
        ]
        assert by_seed == pytest.approx(list(one.scores))
        assert one.score == pytest.approx(np.mean(by_seed))
        assert np.isnan(one.low), "two seeds tell no interval"
        assert np.isnan(one.high)
        assert one.examples == len(rows) / one.seeds
        checked += 1
    assert checked == 2 + 3 + 2 * 3, "MNLI twice; CoLA, MRPC by F1 and accuracy; Table 5's rows"


def test_types_and_keys(run):
    scores, predictions = results.load(run / "data" / "report")
    assert scores["score"].dtype == scores["low"].dtype == float
    assert scores["seeds"].dtype == predictions["pretraining_seed"].dtype == pd.Int64Dtype()
    assert scores["at_chance"].dtype == pd.BooleanDtype()
    assert not predictions.duplicated(PREDICTION_KEY).any(), "Tables 4 and 5 share the whole model"
    assert len(predictions) == 2 * 60 * 4 * 3  # seeds, rows, splits, systems
    without = predictions["pretraining_seed"].isna()
    assert set(predictions["system"][without]) == {"no_pretraining"}
    assert set(predictions["pretraining_seed"][~without]) == {0}


def test_equal_runs_give_equal_files(run, tmp_path, monkeypatch):
    monkeypatch.chdir(run)
    files = [Path("data/report/table2", name) for name in (SCORES, PREDICTIONS)]
    before = [path.read_bytes() for path in files]
    report.main("table2")
    assert [path.read_bytes() for path in files] == before


def test_no_report_and_a_damaged_one_are_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="found none: gpt1 run"):
        results.load()
    assert read_records("table2") == []
    folder = Path("data/report/table2")
    folder.mkdir(parents=True)
    (folder / SCORES).write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match="have whoever packed this run do so again"):
        read_records("table2")
    Path("dvc.yaml").touch()
    with pytest.raises(UserError, match="dvc repro -f -s table2"):
        read_records("table2")


def test_pandas_waits_until_it_is_asked_for():
    program = (
        "import sys, gpt1.results, gpt1.stages.report;"
        " print({'pandas', 'pyarrow', 'torch'} & sys.modules.keys() or 'none')"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout == "none\n"
