"""GLUE's leaderboard files made of a run's results: the best seed's answers in GLUE's words and
order, and what the run lacks.
"""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from made_results import group, write_task

from gpt1.base.errors import UserError
from gpt1.commands.submission import submission
from gpt1.exchange.submission import FILES, Predicted, make, places_of, predicted
from gpt1.tasks.table import TASKS

ROWS = {
    "CoLA.tsv": 1063,
    "SST-2.tsv": 1821,
    "MRPC.tsv": 1725,
    "STS-B.tsv": 1379,
    "QQP.tsv": 390_965,
    "MNLI-m.tsv": 9796,
    "MNLI-mm.tsv": 9847,
    "QNLI.tsv": 5463,
    "RTE.tsv": 3000,
    "WNLI.tsv": 146,
    "AX.tsv": 1104,
}  # GLUE's test files
SPLITS = {
    "mnli": {"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv", "diagnostic": "AX.tsv"}
} | {
    task: {"test": name}
    for task, name in (
        ("cola", "CoLA.tsv"),
        ("sst2", "SST-2.tsv"),
        ("mrpc", "MRPC.tsv"),
        ("stsb", "STS-B.tsv"),
        ("qqp", "QQP.tsv"),
        ("qnli", "QNLI.tsv"),
        ("rte", "RTE.tsv"),
    )
}
SPELLED = {
    "MNLI-m.tsv": ["entailment", "neutral", "contradiction"],
    "QNLI.tsv": ["entailment", "not_entailment"],
}
SPELLED |= {
    "MNLI-mm.tsv": SPELLED["MNLI-m.tsv"],
    "AX.tsv": SPELLED["MNLI-m.tsv"],
    "RTE.tsv": SPELLED["QNLI.tsv"],
}
CLASSES = {"stsb": 6, "mnli": 3}
BEST_SEED = {"cola": 1, "stsb": 1}  # of the others both are equally good, and 0 comes first


def classes_of(name: str, seed: int, classes: int) -> list[int]:
    """The made-up answers of a seed to the rows of a file."""
    rows = np.arange(ROWS[name])
    return ((rows * (3 if name == "MNLI-mm.tsv" else 1) + rows // 7 + seed) % classes).tolist()


def write_run(tasks=SPLITS) -> None:
    """A run's results in the current folder, of as many test rows as GLUE has."""
    for task in tasks:
        classes = CLASSES.get(task, 2)
        answers = {
            seed: {
                f"{split}/best": classes_of(name, seed, classes)
                for split, name in SPLITS[task].items()
            }
            for seed in (0, 1)
        }
        write_task(task, {"dev": [0, 1]}, answers)
        folder = Path("data/encode", group(task), task, "task.json")
        about = json.loads(folder.read_text())
        about["splits"] = {"dev": {"examples": 2, "labelled": True}} | {
            split: {
                "examples": ROWS[name],
                "available": ROWS[name],
                "rows_read": ROWS[name],
                "labelled": task in ("mrpc", "stsb"),
            }
            for split, name in SPLITS[task].items()
        }
        folder.write_text(json.dumps(about))
        seed = f"seed-{BEST_SEED.get(task, 0)}"
        path = Path("data/finetune", group(task), task, seed, "summary.json")
        summary = json.loads(path.read_text())
        summary["best_dev_score"] = 0.75 if task in BEST_SEED else 0.5
        path.write_text(json.dumps(summary))


def changed_split(task: str, split: str, **counts: int) -> None:
    path = Path("data/encode", group(task), task, "task.json")
    about = json.loads(path.read_text())
    about["splits"][split] |= counts
    path.write_text(json.dumps(about))


BY_NAME = {file.name: file for file in FILES}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A folder with a run of all eight tasks, and the zip made of it."""
    folder, before = tmp_path_factory.mktemp("run"), Path.cwd()
    os.chdir(folder)
    try:
        write_run()
        make(Path("glue.zip"), Path("data"), fill=False)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(scope="module")
def contents(whole_run):
    """The bytes of each file of the good zip."""
    with zipfile.ZipFile(whole_run / "glue.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def small_run(tmp_path, monkeypatch):
    """A folder to write a run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_board_has_the_splits_of_the_tasks():
    assert {file.name: file.rows for file in FILES} == ROWS
    for file in FILES:
        if file.task in TASKS:
            assert any(split.name == file.split for split in TASKS[file.task].layouts[0]), file.name


@pytest.mark.slow
def test_each_row_is_the_answer_of_the_best_seed_in_glue_s_words(contents):
    assert list(contents) == [file.name for file in FILES]
    for task, names in SPLITS.items():
        seed, classes = BEST_SEED.get(task, 0), CLASSES.get(task, 2)
        for name in names.values():
            words = SPELLED.get(name) or [str(number) for number in range(classes)]
            given = enumerate(classes_of(name, seed, classes))
            rows = [
                f"{row}\t{answer}.000" if task == "stsb" else f"{row}\t{words[answer]}"
                for row, answer in given
            ]
            assert contents[name].decode().split("\n") == ["index\tprediction", *rows, ""], name
    assert (
        contents["WNLI.tsv"]
        == "\n".join(["index\tprediction", *(f"{row}\t0" for row in range(146)), ""]).encode()
    )


@pytest.mark.slow
def test_equal_results_give_equal_bytes_(whole_run, monkeypatch, capsys):
    monkeypatch.chdir(whole_run)
    submission(Path("again.zip"), data=Path("data"))
    said = capsys.readouterr().out.splitlines()
    assert Path("again.zip").read_bytes() == Path("glue.zip").read_bytes()
    assert said[0] == "CoLA.tsv     cola, seed 1 (matthews on dev 75.0)"
    assert "WNLI.tsv     constant 0: wnli is not fine-tuned" in said


def test_scores_are_clipped_and_rounded_to_three_decimals(small_run):
    write_run(["stsb"])
    logits = np.full((1379, 6), -50.0, np.float32)
    logits[:, 5] = 50
    logits[1] = 0  # 2.5
    logits[2, 4], logits[2, 5] = 50, 50 + np.log(3)  # 4 + 3/4
    np.savez(Path("data/finetune/glue/stsb/seed-1/logits.npz"), **{"test/best": logits})
    assert made_answers("STS-B.tsv")[:4] == ["5.000", "2.500", "4.750", "5.000"]


def test_what_a_run_lacks_is_named_and_filled_only_when_asked(small_run, capsys):
    write_run(["rte", "cola", "mnli"])
    changed_split("rte", "test", examples=277, available=3000)
    changed_split("cola", "test", rows_read=1064)
    path = Path("data/encode/glue_nli/mnli/task.json")
    about = json.loads(path.read_text())
    del about["splits"]["diagnostic"]
    path.write_text(json.dumps(about))
    with pytest.raises(UserError) as refused:
        make(Path("a.zip"), Path("data"), fill=False)
    for part in (
        "found none to CoLA.tsv (cola has 1064 rows of test, not 1063)",
        "SST-2.tsv (sst2 is not fine-tuned)",
        "by --fill",
        "RTE.tsv (rte has 277 rows of test, not 3000)",
        "AX.tsv (mnli was run without diagnostic: its file was not there, or",
    ):
        assert part in str(refused.value)
    assert "WNLI" not in str(refused.value)
    assert not list(Path().glob("*.zip"))
    submission(Path("a.zip"), data=Path("data"), fill=True)
    said = capsys.readouterr().out
    assert "QNLI.tsv     constant not_entailment: qnli is not fine-tuned" in said
    assert said.count("constant") == 9


def test_a_run_without_any_of_glue_s_rows_is_refused_even_with_fill(small_run):
    with pytest.raises(
        UserError, match="expected a run with answers to GLUE's test files, found none"
    ):
        make(Path("a.zip"), Path("data"), fill=True)
    with pytest.raises(UserError, match=r"expected a file whose name ends with \.zip"):
        make(Path("data"), Path("data"), fill=True)


def official(task, **files):
    folder = Path("data/acquire/tasks", task)
    folder.mkdir(parents=True)
    for name, lines in files.items():
        (folder / f"{name}.tsv").write_text("\n".join([*lines, ""]))


def made_answers(name):
    found = predicted(BY_NAME[name], Path("data"))
    assert isinstance(found, Predicted)
    return found.answers


def test_rows_that_cannot_be_read_are_answered_too_and_none_moves(small_run, capsys):
    """Two of CoLA's test rows are no examples: the answers after them belong to later indices."""
    write_run(["cola"])
    rows = [f"{row}\tThe {row}th cat sat." for row in range(1063)]
    rows[5], rows[1000] = "5\t", "1000"
    labelled = ["a\t1\t\tThe cat sat."]
    official("cola", train=labelled, dev=labelled, test=["index\tsentence", *rows])
    examples = [0] * 5 + [1] + [0] * 1055  # rows 0-4, row 6, the rest
    changed_split("cola", "test", examples=1061, available=1061)
    table = np.zeros((1061, 2), np.float32)
    table[np.arange(1061), examples] = 1
    np.savez(Path("data/finetune/glue/cola/seed-1/logits.npz"), **{"test/best": table})
    submission(Path("a.zip"), data=Path("data"), fill=True)
    assert "; 2 unreadable rows: constant 1" in capsys.readouterr().out
    assert made_answers("CoLA.tsv") == ["0"] * 5 + ["1", "1"] + ["0"] * 993 + ["1"] + ["0"] * 62
    (small_run / "data/acquire/tasks/cola/test.tsv").unlink()
    with pytest.raises(
        UserError,
        match=r"expected the file of test with 1063 rows, 1061 of them.*run gpt1 run finetune@cola",
    ):
        make(Path("a.zip"), Path("data"), fill=True)


def test_the_original_file_of_mrpc_is_numbered_in_its_own_order(tmp_path):
    rows = [
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        *(f"{row % 2}\t{9000 - row}\t{row}\ta {row}\tb" for row in range(1725)),
    ]
    rows[301] = "1\t8700\t300\t\tb"
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"):
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    assert places_of(BY_NAME["MRPC.tsv"], tmp_path, 1724) == [*range(300), *range(301, 1725)]


def test_broken_results_are_one_line(small_run):
    write_run(["rte"])
    logits = Path("data/finetune/glue_nli/rte/seed-0/logits.npz")
    for content, line in (
        ({"test/best": np.zeros((3, 2))}, "expected 3000 rows of test.*3, 2"),
        ({"test/best": np.full((3000, 2), np.nan)}, "found others .*not finite"),
        ({"dev/best": np.zeros(1)}, "found others .*test/best"),
    ):
        np.savez(logits, **content)
        with pytest.raises(UserError, match=line):
            make(Path("a.zip"), Path("data"), fill=True)
    about, summary = (
        Path("data/encode/glue_nli/rte/task.json"),
        Path("data/finetune/glue_nli/rte/seed-0/summary.json"),
    )
    for path, text in (
        (logits, "no npz"),
        (about, '{"splits": 3}'),
        (summary, "[1, 2]"),
        (summary, "{}"),
    ):
        path.write_text(text)
        with pytest.raises(UserError, match="expected"):
            make(Path("a.zip"), Path("data"), fill=True)
