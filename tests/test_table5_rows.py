"""Rows of Table 5 that the paper does not have, baselines and embeddings alone, and rows of one to
five seeds.
"""

import csv
import json
import re
from pathlib import Path

import made_results
import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from gpt1.params.schema import read_params
from gpt1.results import drawing
from gpt1.results.ablations import ablation
from gpt1.results.document import markdown
from gpt1.results.formats import as_csv
from gpt1.results.page import findings
from gpt1.results.score_pictures import draw_ablation
from gpt1.results.table5 import (
    CSV_COLUMNS,
    ablation_metrics,
    ablation_page,
    ablation_records,
    ablation_report,
)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()
    made_results.write_lstms()


def write(tasks, skills, seeds=(0, 1), rows=120, **sections):
    variants = tuple(name for name in skills if name != "full")
    made_results.write_params(
        list(tasks), list(seeds), ablate=made_results.ablate_rows(variants, tasks), **sections
    )
    made_results.write_drawn(tasks, skills, seeds, rows)


def report():
    """The page, the numbers for DVC and the rows of the CSV: what needs no picture."""
    params = read_params()
    table = ablation(params)
    rows = list(
        csv.DictReader(
            as_csv(ablation_records(params, table, "caption"), CSV_COLUMNS.split()).splitlines()
        )
    )
    return markdown(ablation_page(params, table).document), ablation_metrics(table), rows


def accuracy(system, task):
    """Scores x 100 of seeds 0 to 2 from the files alone."""
    group = made_results.group(task)
    folder = Path("data/finetune", group, task)
    if system != "full":
        folder = Path(f"data/ablate/{system}-{task}")
    labels = np.load(Path("data/encode", group, task, "dev.npz"))["labels"]
    given = [np.load(folder / f"seed-{seed}" / "logits.npz")["dev/last"] for seed in range(3)]
    return np.array([100 * accuracy_score(labels, one.argmax(1)) for one in given])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
def test_an_interval_takes_three_seeds_and_fewer_say_so_once(seeds):
    numbers_of = tuple(range(5))
    write(("rte", "cola"), {"full": 2.0, "lstm": 1.0}, seeds=numbers_of, rows=60)
    values = json.loads(Path("params.yaml").read_text())
    values["variants"]["lstm"]["finetune"]["seeds"] = list(range(seeds))
    Path("params.yaml").write_text(json.dumps(values))
    text, numbers, rows = report()
    losses = [one for one in rows if one["value"] == "full less variant"]
    assert {one["seeds"] for one in losses} == {str(seeds)}
    (line,) = re.findall(r"\| LSTM.*this run +\|.*[+−]\d.*", text)
    picture = drawing.svg(
        lambda: draw_ablation("made_up", ablation(read_params()), comparable=False), 8
    )
    if seeds < 3:
        few = "1 seed" if seeds == 1 else "2 seeds"
        assert text.count(f"{few}: no interval") == 1
        assert "[" not in line
        assert line.count("±") == (3 if seeds == 2 else 0), "the average, and two columns"
        assert {one["low"] + one["high"] for one in losses} == {""}
        assert "full_less_this_low" not in numbers["lstm"]["average"]
        assert f"LSTM w/ aux LM, {few}" in picture
    else:
        assert "no interval" not in text
        assert line.count("[") == 3
        for one in losses:
            assert float(one["low"]) < float(one["score"]) < float(one["high"])
        assert "LSTM w/ aux LM," not in picture
    assert numbers["full"]["rte"]["low"] < numbers["full"]["rte"]["mean"]


def test_a_row_of_embeddings_alone_has_its_losses_and_no_row_of_the_paper():
    variant = {"network": "transformer", "finetune": {"transfer": 0}}
    write(
        ("rte", "cola"),
        {"full": 2.0, "embeddings_only": 1.0},
        seeds=(0, 1, 2),
        variants={"embeddings_only": variant},
    )
    text, numbers, _ = report()
    title = "Transformer, embeddings only (0 layers transferred)"
    rows = [line for line in text.splitlines() if line.startswith(f"| {title}")]
    assert [line.split("|")[1].strip() for line in rows] == [f"{title}: this run"] * 2
    means = [accuracy(system, "rte").mean() for system in ("full", "embeddings_only")]
    loss = numbers["embeddings_only"]["rte"]["full_less_this_score"]
    assert loss == pytest.approx(means[0] - means[1], abs=6e-5)
    params = read_params()
    picture = drawing.svg(lambda: draw_ablation("made_up", ablation(params), comparable=True), 8)
    assert title in picture
    found = findings.ablation_sentences(ablation_report(params).records, made_up=False)
    assert [one for one in found if one.startswith("The layers above the embeddings are worth +")]


def test_baselines_stand_in_table_5_and_say_which_systems_they_beat():
    tasks = ("rte", "cola")
    write(tasks, {"full": 2.0, "lstm": 0.1}, seeds=(0, 1, 2), rows=120)
    for task in tasks:
        labels = np.load(Path("data/encode", made_results.group(task), task, "dev.npz"))["labels"]
        words = [int(one) if row % 5 else 1 - int(one) for row, one in enumerate(labels)]
        made_results.write_baseline(
            task, "majority", {"dev/last": [0] * 120, "dev/best": [0] * 120}
        )
        made_results.write_baseline(task, "tfidf", {"dev/last": words, "dev/best": words})
    found = ablation_report(read_params())
    text = markdown(found.document)
    row = next(line for line in text.splitlines() if line.startswith("| TF-IDF"))
    logits = np.load("data/baselines/rte/tfidf/seed-0/logits.npz")["dev/last"].argmax(1)
    truth = np.load("data/encode/glue_nli/rte/dev.npz")["labels"]
    assert f" {100 * accuracy_score(truth, logits):.1f} |" in row
    leads = {
        (one["system"], one["variant"], one["column"]): one
        for one in found.records
        if one["row"] == "ours less baseline"
    }
    for variant in ("full", "lstm"):
        lead = leads["tfidf", variant, "RTE"]
        expected = accuracy(variant, "rte").mean() - 100 * accuracy_score(truth, logits)
        assert lead["score"] == pytest.approx(expected)
        assert lead["low"] < lead["score"] < lead["high"]
    assert leads["tfidf", "lstm", "Avg"]["high"] < 0
    assert leads["tfidf", "full", "Avg"]["low"] > 0
    (told,) = [one for one in text.splitlines() if "TF-IDF scores" in one]
    assert told.endswith("on average over 2 columns of Table 5, higher than LSTM w/ aux LM.")
    assert "A constant answer" not in text
