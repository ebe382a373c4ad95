"""Figure 2: its scale and bands by hand, its numbers from made-up answers, equal bytes, and what is
missing in one line.
"""

import csv
import itertools
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

import made_curves
import made_results
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_stages import with_rows

from gpt1.base.errors import UserError
from gpt1.params.schema import read_params
from gpt1.results.ablations import by_layers
from gpt1.results.drawing import apart
from gpt1.results.figure2 import figure2_report
from gpt1.results.formats import write_report
from gpt1.results.paper import ZERO_SHOT
from gpt1.results.zero_shot import behaviours, normalised, normalised_error

MNLI = {
    0: {0: 150, 1: 180},
    1: {0: 180, 1: 186},
    2: {0: 210, 1: 240},
}  # right of 300, by layers and seed
RACE = {0: {0: 100, 1: 104}, 1: {0: 120, 1: 120}, 2: {0: 200, 1: 220}}  # right of 400
SETS = {
    "sst2": {1: 100, 10: 150, 100: 172},
    "dprd": {1: 100, 10: 110, 100: 120},
    "cola": {1: 100, 10: 120, 100: 140},
    "race": {1: 50, 10: 60, 100: 80},
}  # right of 200, by update
LSTM = {
    name: {update: right - 8 for update, right in by_update.items()}
    for name, by_update in SETS.items()
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_inputs(made_up: bool) -> None:
    made_curves.write_params(2, [0, 1], made_up)
    made_curves.write_transfer("mnli", "dev", 300, MNLI, 2)
    made_curves.write_transfer("race", "test", 400, RACE, 2)
    made_curves.write_zero_shot("transformer", 200, SETS)
    made_curves.write_zero_shot("lstm", 200, LSTM)


def change(**rows) -> None:
    """Put these sections in place of those of params.yaml."""
    values = json.loads(Path("params.yaml").read_text())
    Path("params.yaml").write_text(json.dumps(with_rows(values | rows)))


def written(name: str) -> Path:
    folder = Path(name)
    folder.mkdir()
    assert (
        write_report(figure2_report(read_params()), folder) == (folder / "figure2.md").read_text()
    )
    return folder


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_papers_scale():
    assert normalised(50.0, ZERO_SHOT["sst2"]) == 0
    assert normalised(93.2, ZERO_SHOT["sst2"]) == 1
    assert normalised(17.5, ZERO_SHOT["cola"]) == 0.5
    assert normalised(25.0 - 2.54, ZERO_SHOT["race"]) == pytest.approx(-0.1)
    assert normalised_error(2.64, ZERO_SHOT["dprd"]) == pytest.approx(0.1)


@pytest.mark.slow
def test_numbers_of_real_tasks_beside_the_papers():
    write_inputs(made_up=False)
    folder = written("out")
    rows = table(folder / "figure2.csv")
    left = {
        (row["task"], row["x"], row["seed"]): row
        for row in rows
        if row["panel"] == "left" and row["source"] == "ours"
    }
    assert len(left) == 2 * 3 * 3
    assert left["mnli", "0", "0"]["score"] == "50.0000"
    assert left["mnli", "2", "1"]["score"] == "80.0000"
    mean = left["mnli", "0", "mean"]
    assert float(mean["score"]) == statistics.fmean([100 * 150 / 300, 100 * 180 / 300]) == 55
    assert (mean["low"], mean["high"]) == ("", ""), "two seeds tell no interval"
    assert float(mean["sd"]) == pytest.approx(statistics.stdev([50, 60]), abs=1e-4)
    assert (mean["split"], mean["examples"], mean["title"]) == ("dev", "300", "MNLI-m")
    assert (left["race", "2", "mean"]["score"], left["race", "2", "mean"]["split"]) == (
        "52.5000",
        "test",
    )
    assert [
        (row["task"], row["x"], row["score"])
        for row in rows
        if row["panel"] == "left" and row["source"] != "ours"
    ] == [
        ("mnli", "0", "72.0000"),
        ("mnli", "12", "82.0000"),
        ("race", "0", "40.0000"),
        ("race", "12", "60.0000"),
    ]

    right = {
        (row["network"], row["task"], row["x"]): row
        for row in rows
        if row["panel"] == "right" and row["source"] == "ours"
    }
    assert len(right) == 2 * 4 * 3
    last = right["transformer", "sst2", "100"]
    assert float(last["score"]) == 86
    assert float(last["standard_error"]) == pytest.approx(
        100 * math.sqrt(0.86 * 0.14 / 200), abs=1e-4
    )
    assert float(last["normalised"]) == pytest.approx((86 - 50) / (93.2 - 50), abs=1e-4)
    assert float(right["lstm", "race", "10"]["normalised"]) == pytest.approx(
        (26 - 25) / (50.4 - 25), abs=1e-4
    )
    labels = np.arange(200) % 2
    correlation = 100 * made_curves.matthews(labels, made_curves.answers(labels, 140, 2, 100))
    assert float(right["transformer", "cola", "100"]["score"]) == pytest.approx(
        correlation, abs=1e-4
    )
    assert [
        row["normalised"] for row in rows if row["panel"] == "right" and row["source"] != "ours"
    ] == ["0.4300", "0.6800", "0.2500", "0.5500"]

    assert table(folder / "left.csv") == [
        {"layers": "0", "mnli": "55.0000", "race": "25.5000"},
        {"layers": "1", "mnli": "61.0000", "race": "30.0000"},
        {"layers": "2", "mnli": "75.0000", "race": "52.5000"},
    ]
    plotted = table(folder / "right.csv")
    assert [row["update"] for row in plotted] == ["1", "10", "100"]
    assert plotted[2]["transformer_sst2"] == last["normalised"]
    assert plotted[1]["lstm_race"] == right["lstm", "race", "10"]["normalised"]
    numbers = json.loads((folder / "metrics.json").read_text())["figure2"]
    assert numbers["layers"]["mnli"]["rise"] == 20
    assert numbers["layers"]["race"]["1"]["score"] == 30
    assert numbers["zero_shot"]["transformer"]["sst2"]["last"] == 86
    text = (folder / "figure2.md").read_text()
    for fact in (
        "72 to 82",
        "read off by eye",
        "75.0 ± ",
        "0.83 (86.0)",
        "positive is 2 pieces here",
        "+20.0",
        "Peng et al. 2015",
    ):
        assert fact in text
    assert "read off by eye" in (folder / "figure2-left.svg").read_text()
    assert "the paper's, of 12" in (folder / "figure2-left.svg").read_text()
    for behaviour in (
        "sentiment",
        "winograd",
        "acceptability",
        "answering",
        "LSTM",
        "read off by eye",
    ):
        assert behaviour in (folder / "figure2-right.svg").read_text()
    assert (folder / "figure2-left.png").read_bytes().startswith(b"\x89PNG")

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(before) == [
        "figure2-left.png",
        "figure2-left.svg",
        "figure2-right.png",
        "figure2-right.svg",
        "figure2.csv",
        "figure2.md",
        "left.csv",
        "metrics.json",
        "page.json",
        "predictions.parquet",
        "right.csv",
        "scores.parquet",
    ]
    assert {path.name: path.read_bytes() for path in written("again").iterdir()} == before


def test_made_up_tasks_stand_alone():
    write_inputs(made_up=True)
    folder = written("out")
    assert {row["source"] for row in table(folder / "figure2.csv")} == {"ours"}
    for name in ("figure2-left.svg", "figure2-right.svg"):
        assert "paper" not in (folder / name).read_text()
    text = (folder / "figure2.md").read_text()
    assert "MNLI-m, RACE: made up" in text
    assert "1 is no goal" in text


def test_absent_rows_are_left_out_and_said():
    write_inputs(made_up=False)
    change(transfer={}, zero_shot={})
    folder = written("out")
    assert "transfer is empty" in (folder / "figure2-left.svg").read_text()
    assert "zero_shot is empty" in (folder / "figure2-right.svg").read_text()
    assert "Left out: MNLI and RACE" in (folder / "figure2.md").read_text()
    assert table(folder / "figure2.csv") == []
    assert table(folder / "left.csv") == [{"layers": "0", "mnli": "", "race": ""}]
    assert len(table(folder / "right.csv")) == 1


@pytest.mark.parametrize("seeds", [3, 5])
def test_an_interval_by_layers_takes_three_seeds(seeds):
    made_curves.write_params(2, list(range(seeds)), made_up=False)
    right = {count: {seed: 150 + 20 * count + seed for seed in range(seeds)} for count in range(3)}
    made_curves.write_transfer("mnli", "dev", 300, right, 2)
    made_curves.write_transfer("race", "test", 300, right, 2)
    change(zero_shot={})
    folder = written("out")
    point = by_layers(read_params(), "mnli")[1]
    mean = next(
        row
        for row in table(folder / "figure2.csv")
        if (row["task"], row["x"], row["seed"]) == ("mnli", "1", "mean")
    )
    low, high = point.estimate.interval()
    found = [float(mean[key]) for key in ("low", "score", "high")]
    middle = statistics.fmean(right[1].values()) / 3
    assert found == pytest.approx([low, middle, high], abs=1e-4)
    assert low < middle < high
    text = (folder / "figure2.md").read_text()
    assert f" {middle:.1f} [{low:.1f}, {high:.1f}] |" in text
    assert "no interval" not in text
    assert "95% interval" in (folder / "figure2-left.svg").read_text()


def test_without_a_variant_of_that_kind_no_lstm_is_asked_for():
    write_inputs(made_up=False)
    change(variants={})
    Path("data/zero_shot/lstm/seed-0/scores.json").unlink()
    assert {one.network for one in behaviours(read_params())} == {"transformer"}


def spoil_scores(**changed) -> None:
    path = Path("data/zero_shot/lstm/seed-0/scores.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def disagree() -> None:
    right = {name: dict(by_update) for name, by_update in LSTM.items()}
    right["sst2"][10] -= 30
    scores = Path("data/zero_shot/lstm/seed-0/scores.json").read_text()
    made_curves.write_zero_shot("lstm", 200, right)
    Path("data/zero_shot/lstm/seed-0/scores.json").write_text(scores)


FAULTS = {
    "no transfer": (
        lambda: Path("data/transfer/mnli/layers-1/seed-1/logits.npz").unlink(),
        "layers-1/seed-1/logits.npz is not there",
        "transfer@mnli",
    ),
    "no fine-tuning": (
        lambda: Path("data/finetune/qa/race/seed-0/logits.npz").unlink(),
        "logits.npz is not there",
        "finetune@race",
    ),
    "other rows": (
        lambda: np.savez(
            "data/transfer/race/layers-0/seed-0/logits.npz",
            **{"test/best": made_results.logits([0, 1], 4)},
        ),
        "expected 400 rows x 4 outputs",
        "transfer@race",
    ),
    "no scores": (
        lambda: Path("data/zero_shot/lstm/seed-0/scores.json").unlink(),
        "scores.json is not there",
        "zero_shot@lstm",
    ),
    "no answers": (
        lambda: Path("data/zero_shot/transformer/seed-0/answers.npz").unlink(),
        "answers.npz is not there",
        "zero_shot@transformer",
    ),
    "half of answers": (
        lambda: Path("data/zero_shot/lstm/seed-0/answers.npz").write_bytes(b"PK\3\4half"),
        "cannot be read",
        "zero_shot@lstm",
    ),
    "no JSON": (
        lambda: Path("data/zero_shot/lstm/seed-0/scores.json").write_text("{"),
        "cannot be read",
        "zero_shot@lstm",
    ),
    "a set too few": (
        lambda: spoil_scores(sets={}),
        "found no cola, sst2, race, dprd",
        "zero_shot@lstm",
    ),
    "no snapshots": (lambda: spoil_scores(snapshots=[]), "no snapshots", "zero_shot@lstm"),
    "another snapshot": (
        lambda: spoil_scores(snapshots=[{"update": 3, "scores": {}}]),
        "found no 'cola/3",
        "zero_shot@lstm",
    ),
    "answers of another run": (
        disagree,
        "sst2 at update 10: 0.71 in scores.json, 0.5600 by the answers",
        "zero_shot@lstm",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_results_are_one_line(fault):
    write_inputs(made_up=False)
    spoil, message, stage = FAULTS[fault]
    spoil()
    with pytest.raises(UserError) as caught:
        write_report(figure2_report(read_params()), Path())
    assert message in str(caught.value)
    assert "dvc repro" in str(caught.value)
    assert stage in str(caught.value)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 8))
def test_labels_stand_apart_in_order_and_no_further_than_need_be(positions, gap):
    moved = apart(positions, gap)
    places = sorted(range(len(positions)), key=lambda place: positions[place])
    assert all(
        moved[above] - moved[below] >= gap - 1e-9 for below, above in itertools.pairwise(places)
    )
    assert statistics.fmean(moved) == pytest.approx(
        statistics.fmean(positions)
    )  # least squares keeps the mean of every pool
    if all(
        positions[above] - positions[below] >= gap for below, above in itertools.pairwise(places)
    ):
        assert moved == positions


def test_labels_by_hand():
    assert apart([10, 0, 10], 2) == [9, 0, 11]
    assert apart([1, 0, 3], 2) == [
        pytest.approx(4 / 3),
        pytest.approx(-2 / 3),
        pytest.approx(10 / 3),
    ]


def test_reading_and_no_more_needs_neither_torch_nor_matplotlib():
    program = (
        "import sys, gpt1.results.figure2, gpt1.results.curves; print([name for name in ('torch',"
        " 'matplotlib', 'scipy', 'sklearn', 'pandas') if name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
