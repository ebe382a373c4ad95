"""Learning rates drawn, pre-training curves, parameters by component: corner points, smoothing and
tables by hand, equal bytes.
"""

import csv
import json
import math
from pathlib import Path

import made_curves
import numpy as np
import pytest
from made_stages import with_rows

from gpt1.base.errors import UserError
from gpt1.params.schema import read_params
from gpt1.results import curves
from gpt1.results.document import left_out
from gpt1.results.drawing import svg
from gpt1.results.formats import write_report
from gpt1.results.training import SMOOTHING, networks, read_training, smoothed, thinned
from gpt1.results.training_pictures import in_order, learning_rates, pretraining_curves

POINTS = [
    {"update": update, "loss": 8.0 - update / 10, "learning_rate": 1e-4, "gradient_norm": 2.0}
    for update in (10, 20, 30, 40)
] + [{"update": 20, "heldout_loss": 7.0}, {"update": 40, "heldout_loss": 5.0}]
DECODER = {
    "attention": 300,
    "feed_forward": 500,
    "layer_norms": 20,
    "position_embeddings": 30,
    "token_embeddings": 150,
}
POINTS_HIGH = 8.0  # letters
RECURRENT = {"projection": 100, "recurrent": 700, "token_embeddings": 150}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_curves.write_params(
        2,
        [0],
        made_up=False,
        pretrain={"updates": 40, "epochs": None, "warmup_updates": 4, "learning_rate": 0.01},
    )
    made_curves.write_pretraining("transformer", POINTS, 1024, DECODER)
    higher = [point | ({"loss": point["loss"] + 1} if "loss" in point else {}) for point in POINTS]
    for network in ("lstm", "lstm_equal"):
        made_curves.write_pretraining(network, higher, 1024, RECURRENT)


def written(name: str) -> Path:
    folder = Path(name)
    folder.mkdir()
    assert (
        write_report(curves.curves_report(read_params()), folder)
        == (folder / "curves.md").read_text()
    )
    return folder


def change(**rows) -> None:
    """Put these sections in place of those of params.yaml."""
    values = json.loads(Path("params.yaml").read_text())
    Path("params.yaml").write_text(json.dumps(with_rows(values | rows)))


def test_the_rates_that_are_drawn_by_hand():
    params = read_params()
    before = curves.pretraining_rates(params, 40)
    cosine = [0.01 * 0.5 * (1 + math.cos(math.pi * x)) for x in (0.5, 1.0)]
    assert before.at([1, 2, 4, 20, 40], 40) == pytest.approx([0.0025, 0.005, 0.01, *cosine])
    (after,) = curves.finetuning_rates(params)
    assert (after.name, after.peak, after.warmup) == ("warmup_linear", 6.25e-5, 0.002)
    assert after.at([10, 20, 5000, 10_000], 10_000) == pytest.approx(
        [6.25e-5 * f for f in (0.5 * 0.999, 0.998, 0.5, 0)]
    )


def test_a_task_with_a_rate_of_its_own_is_drawn_beside_the_others():
    values = json.loads(Path("params.yaml").read_text())
    values["tasks"]["race"]["finetune"] = {
        "learning_rate": 3e-5,
        "schedule": "warmup_constant",
        "epochs": 1,
    }
    values["tasks"]["cola"]["finetune"] = {"epochs": 9}  # the rate by share of updates is the same
    change(tasks=values["tasks"])
    usual, own = curves.finetuning_rates(read_params())
    assert (usual.label, own.label, own.peak, own.name) == (
        "fine-tuning",
        "RACE",
        3e-5,
        "warmup_constant",
    )
    picture = svg(
        lambda: learning_rates(curves.pretraining_rates(read_params(), 40), 40, [usual, own]),
        POINTS_HIGH,
    )
    assert "RACE: warmup_constant" in picture
    assert "fine-tuning: warmup_linear" in picture


@pytest.mark.slow
def test_numbers_pictures_and_equal_bytes():
    folder = written("out")
    with (folder / "parameters.csv").open(newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert rows == [
        ("transformer", "token_embeddings", "150", "0.150000"),
        ("transformer", "position_embeddings", "30", "0.030000"),
        ("transformer", "attention", "300", "0.300000"),
        ("transformer", "feed_forward", "500", "0.500000"),
        ("transformer", "layer_norms", "20", "0.020000"),
        ("transformer", "total", "1000", "1.000000"),
        *(
            (network, *row)
            for network in ("lstm", "lstm_equal")
            for row in (
                ("token_embeddings", "150", "0.157895"),
                ("recurrent", "700", "0.736842"),
                ("projection", "100", "0.105263"),
                ("total", "950", "1.000000"),
            )
        ),
    ]
    numbers = json.loads((folder / "metrics.json").read_text())["curves"]
    assert numbers["transformer"] == {
        "updates": 40,
        "tokens": 40_960,
        "training_loss": 4.0,
        "heldout_loss": 5.0,
        "heldout_perplexity": round(math.exp(5), 4),
        "heldout_word_perplexity": round(math.exp(6.5), 4),
        "parameters": DECODER | {"total": 1000},
    }
    assert numbers["lstm"]["training_loss"] == 5.0
    text = (folder / "curves.md").read_text()
    for fact in (
        "warmup_cosine, 40 updates, warm-up 4 (10 %), 0.01 at update 4",
        "fewer than 500 updates",
        "40,960",
        "148.41",
    ):
        assert fact in text
    assert "| feed forward | 500 | 50.0 % | - | - |" in " ".join(text.split())
    assert "perplexity a token" in (folder / "pretraining.svg").read_text()
    assert "LSTM, held out" in (folder / "pretraining.svg").read_text()
    assert "recurrent" in (folder / "parameters.svg").read_text()
    assert "pre-training: warmup_cosine" in (folder / "learning-rate.svg").read_text()

    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(before) == [
        "curves.md",
        "learning-rate.png",
        "learning-rate.svg",
        "metrics.json",
        "page.json",
        "parameters.csv",
        "parameters.png",
        "parameters.svg",
        "pretraining.png",
        "pretraining.svg",
    ]
    assert {path.name: path.read_bytes() for path in written("again").iterdir()} == before


def test_without_a_variant_of_that_kind_only_the_transformer_is_drawn():
    Path("data/pretrain/lstm/seed-0/curve.jsonl").unlink()
    change(variants={})
    params = read_params()
    trained = [read_training(params, network) for network in networks(params)]
    assert "LSTM" not in svg(lambda: pretraining_curves(trained, 1.0), POINTS_HIGH)
    text = curves.curves_document(
        params, trained, curves.pretraining_rates(params, 40), curves.finetuning_rates(params)
    )
    assert any("LSTM" in what for what in left_out(text))


def test_components_stand_from_input_to_output_and_unknown_ones_last():
    assert in_order({"adapter": 1, "attention": 2, "token_embeddings": 3, "total": 6}) == [
        ("token_embeddings", 3),
        ("attention", 2),
        ("adapter", 1),
    ]


def test_smoothing_is_the_mean_within_a_factor():
    generator = np.random.default_rng(0)
    at = np.cumsum(generator.integers(1, 9, size=200)).astype(np.float64)
    values = generator.normal(size=200)
    expected = [
        np.mean(
            [
                value
                for update, value in zip(at, values, strict=True)
                if here / SMOOTHING <= update <= here * SMOOTHING
            ]
        )
        for here in at
    ]
    np.testing.assert_allclose(smoothed(at, values, at), expected, atol=1e-12)


def test_thinning_keeps_both_ends_and_spreads_the_rest_over_the_logarithm():
    at = np.arange(10.0, 100_001, 10)
    kept = at[thinned(at, 50)]
    assert (kept[0], kept[-1]) == (10, 100_000)
    assert len(kept) <= 50
    steps = np.diff(np.log(kept[kept > 2000]))
    assert steps.max() < 1.2 * math.log(10_000) / 49
    assert thinned(at[:50], 50).tolist() == list(range(50))


def lines(points: list[object]) -> None:
    Path("data/pretrain/lstm/seed-0/curve.jsonl").write_text(
        "".join(json.dumps(point) + "\n" for point in points)
    )


def summary(**changed: object) -> None:
    path = Path("data/pretrain/lstm/seed-0/summary.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


FAULTS = {
    "no curve": (
        lambda: Path("data/pretrain/lstm/seed-0/curve.jsonl").unlink(),
        "curve.jsonl is not there; run dvc repro pretrain@lstm",
    ),
    "no summary": (
        lambda: Path("data/pretrain/lstm/seed-0/summary.json").unlink(),
        "summary.json is not there; run dvc repro pretrain@lstm",
    ),
    "half a line": (
        lambda: Path("data/pretrain/lstm/seed-0/curve.jsonl").write_text('{"update": 1'),
        "curve.jsonl cannot be read",
    ),
    "no object": (lambda: lines([7]), "line 1: expected an object, found int"),
    "no held-out loss": (lambda: lines(POINTS[:4]), "no point of the held-out loss"),
    "no norm": (lambda: lines([{"update": 1, "loss": 2.0}, *POINTS]), "found no 'gradient_norm'"),
    "not a number": (
        lambda: lines([*POINTS[:3], POINTS[3] | {"loss": math.nan}, *POINTS[4:]]),
        "not finite",
    ),
    "a list for a summary": (
        lambda: Path("data/pretrain/lstm/seed-0/summary.json").write_text("[]"),
        "expected an object, found list",
    ),
    "no parameters": (lambda: summary(parameters={}), "found no 'total'"),
    "another total": (
        lambda: summary(parameters={"recurrent": 3, "total": 4}),
        "sum is not their total",
    ),
    "no perplexity": (lambda: summary(heldout_perplexity=None), "pretrain@lstm"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_results_are_one_line(fault):
    spoil, message = FAULTS[fault]
    spoil()
    with pytest.raises(UserError) as caught:
        read_training(read_params(), "lstm")
    assert message in str(caught.value)
    assert "dvc repro" in str(caught.value)
