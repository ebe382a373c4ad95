"""Table 5 recomputed from labels and logits with scikit-learn and scipy alone; what it says where
something is absent or broken.
"""

import csv
import json
import math
import re
import statistics
from pathlib import Path

import made_results
import numpy as np
import pytest
from made_stages import with_rows
from scipy.special import softmax
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from gpt1.base.errors import UserError
from gpt1.params.schema import read_params
from gpt1.results import drawing
from gpt1.results.ablations import ablation
from gpt1.results.claims import ablation_claims
from gpt1.results.document import markdown
from gpt1.results.formats import as_csv, write_report
from gpt1.results.paper import TABLE5
from gpt1.results.rules import read_rules
from gpt1.results.score_pictures import draw_ablation
from gpt1.results.table5 import (
    CSV_COLUMNS,
    ablation_metrics,
    ablation_page,
    ablation_records,
    ablation_report,
)
from gpt1.stages.report import main

METRICS = {
    "cola": matthews_corrcoef,
    "sst2": accuracy_score,
    "mrpc": f1_score,
    "stsb": None,
    "qqp": f1_score,
    "mnli": accuracy_score,
    "qnli": accuracy_score,
    "rte": accuracy_score,
}
TITLES = {
    "cola": "CoLA",
    "sst2": "SST-2",
    "mrpc": "MRPC",
    "stsb": "STS-B",
    "qqp": "QQP",
    "mnli": "MNLI",
    "qnli": "QNLI",
    "rte": "RTE",
}
SKILLS = {"full": 1.8, "no_pretraining": 0.7, "no_aux_lm": 1.7, "lstm": 1.2}
PRINTED = {  # the paper's Table 5, copied once more
    "Transformer w/ aux LM (full)": (74.7, 45.4, 91.3, 82.3, 82.0, 70.3, 81.8, 88.1, 56.0),
    "Transformer w/o pre-training": (59.9, 18.9, 84.0, 79.4, 30.9, 65.5, 75.7, 71.2, 53.8),
    "Transformer w/o aux LM": (75.0, 47.9, 92.0, 84.9, 83.2, 69.8, 81.1, 86.9, 54.4),
    "LSTM w/ aux LM": (69.1, 30.3, 90.5, 83.2, 71.8, 68.1, 73.7, 81.1, 54.6),
}


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


def recomputed(system, task, seed):
    """A score x 100 from the files alone: dev at the last update; MNLI's two halves averaged; STS-B
    by its expected value.
    """
    base = (
        Path("data/finetune", made_results.group(task), task)
        if system == "full"
        else Path(f"data/ablate/{system}-{task}")
    )
    logits = np.load(base / f"seed-{seed}" / "logits.npz")
    scores = []
    for split in ("dev", "dev_mismatched") if task == "mnli" else ("dev",):
        labels = np.load(Path("data/encode", made_results.group(task), task, f"{split}.npz"))[
            "labels"
        ]
        given = logits[f"{split}/last"]
        if task == "stsb":
            scores.append(
                pearsonr(labels, softmax(given.astype(float), axis=1) @ np.arange(6)).statistic
            )
        else:
            scores.append(METRICS[task](labels, given.argmax(axis=1)))
    return 100 * statistics.fmean(scores)


def mean_beside_the_paper(scores):
    """Without QQP, whose F1 on dev and on the test server are not of the same rows' balance."""
    return statistics.fmean(score for task, score in scores.items() if task != "qqp")


@pytest.mark.slow
def test_every_number_and_the_average_from_the_logits():
    write(made_results.GLUE_TASKS, SKILLS, seeds=(0, 1, 2))
    text, numbers, rows = report()
    expected = {
        system: {
            task: statistics.fmean(recomputed(system, task, seed) for seed in (0, 1, 2))
            for task in TITLES
        }
        for system in SKILLS
    }
    assert set(numbers) == set(SKILLS)
    for system, row in expected.items():
        for task, value in row.items():
            assert numbers[system][task]["mean"] == pytest.approx(value, abs=6e-5), (system, task)
            assert numbers[system][task]["low"] <= value <= numbers[system][task]["high"]
            if system != "full":
                assert numbers[system][task]["full_less_this_score"] == pytest.approx(
                    expected["full"][task] - value, abs=6e-5
                )
        average = mean_beside_the_paper(row)
        assert numbers[system]["average"]["mean"] == pytest.approx(average, abs=6e-5)
        assert numbers[system]["average"]["tasks"] == 7
        if system != "full":
            loss = mean_beside_the_paper(expected["full"]) - average
            assert numbers[system]["average"]["full_less_this_score"] == pytest.approx(
                loss, abs=6e-5
            )
    ours = {
        (row["variant"], row["task"]): row
        for row in rows
        if row["row"] == "ours" and row["value"] == "score"
    }
    for system in SKILLS:
        row = ours[system, "stsb"]
        by_seed = [recomputed(system, "stsb", seed) for seed in (0, 1, 2)]
        assert [float(value) for value in row["scores"].split()] == pytest.approx(by_seed, abs=6e-5)
        assert float(row["sd"]) == pytest.approx(statistics.stdev(by_seed), abs=6e-5)
    cells = next(
        line
        for line in text.splitlines()
        if line.startswith("| **Transformer w/ aux LM (full): this run**")
    ).split("|")
    average = numbers["full"]["average"]
    assert (
        cells[2].strip(" *")
        == f"{mean_beside_the_paper(expected['full']):.1f} [{average['low']:.1f},"
        f" {average['high']:.1f}]"
    )
    assert cells[3].strip(" *").split(" ±")[0] == f"{expected['full']['cola']:.1f}"


def test_the_paper_s_rows_are_printed_as_they_stand():
    write(("rte", "cola"), {"full": 1.0}, seeds=(0,), rows=30)
    text, _, rows = report()
    for system, scores in PRINTED.items():
        assert [
            float(row["score"]) for row in rows if row["row"] == "paper" and row["system"] == system
        ] == [pytest.approx((scores[1] + scores[8]) / 2), *scores[1:]]
        cells = next(line for line in text.splitlines() if line.startswith(f"| {system} ")).split(
            "|"
        )
        assert [float(cell) for cell in cells[3:-1]] == list(scores[1:])
        assert float(cells[2]) == round(
            (scores[1] + scores[8]) / 2, 1
        )  # the average over the columns that are there


@pytest.mark.parametrize(
    "row", [TABLE5.full, *TABLE5.variants.values()], ids=lambda row: row.system
)
def test_the_paper_s_average_is_the_mean_of_its_row(row):
    assert statistics.fmean(row.scores) == pytest.approx(
        TABLE5.printed_means[row.system], abs=0.0626
    )  # 69.1625 is printed 69.1
    assert row.scores == PRINTED[row.system][1:]
    assert len(row.scores) == len(TABLE5.columns)


def test_the_paper_s_claims_follow_from_its_table():
    def mean(row):
        return TABLE5.printed_means[row.system]

    full, variants = TABLE5.full, TABLE5.variants
    assert round(mean(full) - mean(variants["no_pretraining"]), 1) == 14.8
    assert round(mean(full) - mean(variants["lstm"]), 1) == 5.6
    better = [
        title
        for title in TABLE5.columns
        if TABLE5.score(variants["lstm"], title) > TABLE5.score(full, title)
    ]
    assert better == ["MRPC"]
    helped = [
        title
        for title in TABLE5.columns
        if TABLE5.score(full, title) > TABLE5.score(variants["no_aux_lm"], title)
    ]
    assert helped == ["QQP", "MNLI", "QNLI", "RTE"]
    assert TABLE5.score(full, "MNLI") == pytest.approx((82.1 + 81.4) / 2, abs=0.051)


def test_what_is_absent_is_said_in_its_cell_and_in_the_average():
    tasks = ("cola", "sst2", "rte")
    write(tasks, {"full": 2.0, "no_aux_lm": 1.8, "lstm": 1.0}, seeds=(0,), rows=80)
    values = json.loads(Path("params.yaml").read_text())
    del values["variants"]["lstm"]["tasks"]["sst2"]
    Path("params.yaml").write_text(json.dumps(values))
    text, numbers, _ = report()
    for system in ("full", "no_aux_lm", "lstm"):
        assert numbers[system]["average"]["tasks"] == 2
        mean = (recomputed(system, "cola", 0) + recomputed(system, "rte", 0)) / 2
        assert numbers[system]["average"]["mean"] == pytest.approx(mean, abs=6e-5)
    assert "sst2" not in numbers["lstm"]
    assert (
        "no_pretraining" not in numbers
    )  # no row of it at all: the others' average does not wait for it
    cells = [
        cell.strip()
        for cell in next(
            line for line in text.splitlines() if line.startswith("| LSTM w/ aux LM: this run")
        ).split("|")
    ]
    assert [place for place, cell in enumerate(cells[2:-1]) if cell == "-"] == [
        2,
        3,
        4,
        5,
        6,
        7,
    ]  # of Avg, CoLA, SST-2, MRPC, …
    note = next(line for line in text.splitlines() if line.startswith("- Avg: "))
    assert "2 of eight columns (CoLA, RTE)" in note
    assert "without SST-2, MRPC, STS-B, MNLI, QNLI, which not every row" in note
    assert "SST-2 of LSTM w/ aux LM (sst2 is not in variants.lstm.tasks)" in text
    assert "MRPC (the task mrpc is not in params.yaml)" in text
    paper = [
        cell.strip()
        for cell in next(
            line for line in text.splitlines() if line.startswith("| LSTM w/ aux LM  ")
        ).split("|")
    ]
    assert paper[2] == f"{(30.3 + 54.6) / 2:.1f}"


def test_no_task_of_the_table_at_all():
    made_results.write_params(["snli"], [0])
    text, numbers, _ = report()
    assert "no column has a score in every row" in text
    assert numbers == {}
    write_report(ablation_report(read_params()), Path())
    assert "no task of Table 5" in Path("table5.svg").read_text()


def test_a_variant_that_the_paper_lacks_has_its_own_name_and_no_row_of_the_paper():
    write(
        ("rte",),
        {"full": 2.0, "no_dropout": 1.9},
        seeds=(0,),
        rows=50,
        variants={"no_dropout": {"network": "transformer", "finetune": {"dropout": 0.0}}},
    )
    text, _, _ = report()
    assert "| no_dropout: this run" in text
    assert "Not in the paper: embeddings_only, lstm_equal, no_dropout." in text
    assert "no_dropout: the paper" not in text
    assert "LSTM**: one layer" not in text  # no row needs it


def test_seeds_that_only_one_system_has_take_no_part_in_the_difference():
    write(("rte",), {"full": 2.0}, seeds=(0, 1, 2), rows=90)
    values = json.loads(Path("params.yaml").read_text())
    values["variants"]["no_aux_lm"]["finetune"]["seeds"] = [1]
    rows = made_results.ablate_rows(("no_aux_lm",), ("rte",))
    Path("params.yaml").write_text(json.dumps(with_rows(values, rows)))
    made_results.write_drawn(("rte",), {"full": 2.0, "no_aux_lm": 1.0}, (0, 1, 2), 90)
    numbers = report()[1]["no_aux_lm"]["rte"]
    assert numbers["mean"] == pytest.approx(recomputed("no_aux_lm", "rte", 1), abs=6e-5)
    assert numbers["full_less_this_score"] == pytest.approx(
        recomputed("full", "rte", 1) - recomputed("no_aux_lm", "rte", 1), abs=6e-5
    )


FAULTS = {
    "no logits": (lambda path: path.unlink(), "logits.npz is not there"),
    "truncated": (lambda path: path.write_bytes(b"PK\3\4half"), "logits.npz cannot be read"),
    "too few rows": (
        lambda path: np.savez(path, **{"dev/last": np.zeros((2, 2)), "dev/best": np.zeros((2, 2))}),
        "expected 50 rows x 2 outputs",
    ),
    "no LSTM's summary": (
        lambda path: Path("data/pretrain/lstm/seed-0/summary.json").unlink(),
        "run dvc repro pretrain@lstm",
    ),
    "a broken LSTM's summary": (
        lambda path: Path("data/pretrain/lstm/seed-0/summary.json").write_text("{}"),
        "dvc repro -f pretrain@lstm",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_or_broken_result_is_one_line(fault):
    write(("rte",), {"full": 2.0, "lstm": 1.0}, seeds=(0,), rows=50)
    spoil, message = FAULTS[fault]
    spoil(Path("data/ablate/lstm-rte/seed-0/logits.npz"))
    with pytest.raises(UserError) as raised:
        main("table5")
    words = str(raised.value)
    assert message in words
    assert "pretrain@lstm" in words or "dvc repro -f lstm@rte" in words
    assert "\n" not in words
    assert not Path("data/report/table5").exists()


def test_no_common_seed_is_one_line():
    write(("rte",), {"full": 2.0}, seeds=(0,), rows=30)
    values = json.loads(Path("params.yaml").read_text())
    values["variants"]["lstm"]["finetune"]["seeds"] = [4]
    rows = made_results.ablate_rows(("lstm",), ("rte",))
    Path("params.yaml").write_text(json.dumps(with_rows(values, rows)))
    made_results.write_drawn(("rte",), {"lstm": 1.0}, (4,), 30)
    with pytest.raises(
        UserError,
        match=(
            r"lstm@rte: expected a seed of the ordinary fine-tuning \(0\) among its seeds,"
            r" found 4"
        ),
    ):
        report()


def test_made_up_tasks_are_said_and_the_paper_is_left_out_of_the_picture():
    write(("rte",), {"full": 2.0, "no_aux_lm": 1.8}, seeds=(0,), rows=60)
    table = ablation(read_params())
    assert "hollow: the paper" in drawing.svg(
        lambda: draw_ablation("made_up", table, comparable=True), 8
    )
    values = json.loads(Path("params.yaml").read_text())
    values["world"] = {"town": {"seed": 0, "books": 3, "pages": 3}}
    values["sources"] = {
        name: row | {"folder": "world/town"} for name, row in values["sources"].items()
    }
    Path("params.yaml").write_text(json.dumps(values))
    assert "**Tasks**: RTE: made up" in write_report(ablation_report(read_params()), Path())
    picture = Path("table5.svg").read_text()
    assert "hollow: the paper" not in picture
    assert "Transformer w/o aux LM" in picture


def test_equal_results_give_equal_bytes_and_whole_latex(monkeypatch, capsys):
    monkeypatch.setenv("GPT1_MLFLOW", "off")
    write(("rte", "cola"), {"full": 2.0, "no_pretraining": 0.0}, rows=60)
    main("table5")
    folder = Path("data/report/table5")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(before) == [
        "metrics.json",
        "page.json",
        "predictions.parquet",
        "scores.parquet",
        "table5.csv",
        "table5.md",
        "table5.png",
        "table5.svg",
        "table5.tex",
    ]
    assert capsys.readouterr().out.strip() == before["table5.md"].decode().strip()
    main("table5")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    tex = before["table5.tex"].decode()
    assert tex.count(r"\begin{") == tex.count(r"\end{") == 5
    rows = [line for line in tex.splitlines() if line.endswith(r"\\") and " & " in line]
    assert {line.count(" & ") for line in rows} == {9, 7}
    assert not re.search(r"[†‡±§¶−]|(?<!\\)[%#_](?!\\)", tex.replace("tab:table5", ""))
    legend, chance = [
        line
        for line in before["table5.md"].decode().splitlines()
        if line.startswith("- † chance level")
    ]
    assert "no better than an answer that looks at no input" in legend
    assert "Transformer w/o pre-training on RTE" in chance
    assert math.isfinite(
        json.loads(before["metrics.json"])["table5"]["no_pretraining"]["rte"]["mean"]
    )


def test_no_mean_beside_a_mean_of_the_paper_holds_the_f1_of_qqp_on_dev():
    skills = {"full": 2.0, "lstm": 1.0, "lstm_equal": 1.0}
    write(("rte", "qqp"), skills, seeds=(0, 1), rows=60)
    text, numbers, rows = report()
    assert numbers["full"]["average"]["mean"] == pytest.approx(numbers["full"]["rte"]["mean"])
    assert numbers["lstm"]["qqp"]["full_less_this_score"] == pytest.approx(
        numbers["full"]["qqp"]["mean"] - numbers["lstm"]["qqp"]["mean"], abs=2e-4
    ), "systems of this run compare with one another"
    paper = {one["score"] for one in rows if one["row"] == "paper" and one["column"] == "Avg"}
    assert paper == {f"{scores[8]:.4f}" for scores in PRINTED.values()}
    assert "88.5" in text, "what does compare"
    sizes = {
        claim.key: claim.published_value
        for claim in ablation_claims(read_rules(), read_params(), ablation(read_params()))
    }
    assert sizes["lstm_size"] == pytest.approx(56.0 - 54.6)
    assert sizes["lstm_below"] == pytest.approx((56.0 - 54.6 + 70.3 - 68.1) / 2)
