"""GLUE's leaderboard files made of a run's results: the best seed's answers in GLUE's words and
order, and what the run lacks.
"""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from made_data import write_params
from made_submission import (
    BEST_SEED,
    CLASSES,
    ROWS,
    SPELLED,
    SPLITS,
    changed_split,
    classes_of,
    write_run,
)

from gpt1.base.errors import UserError
from gpt1.commands.submission import submission
from gpt1.exchange.submission import FILES, Predicted, make, places_of, predicted
from gpt1.tasks.table import TASKS

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


def official(task: str, **files: list[str]) -> None:
    folder = Path("data/acquire/tasks", task)
    folder.mkdir(parents=True)
    for name, lines in files.items():
        (folder / f"{name}.tsv").write_text("\n".join([*lines, ""]))


def made_answers(name: str) -> list[str]:
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


@pytest.mark.slow
def test_a_real_small_run_gives_a_submission(small_run, monkeypatch):
    """CoLA's files of GLUE's size, encoded and fine-tuned on; the answers are again those of the
    weights that were kept.
    """
    import torch

    from gpt1.corpus.bpe import Vocabulary
    from gpt1.stages import encode, finetune
    from gpt1.train.batches import evaluation_batches, pad, read_examples

    for name, value in {"GPT1_DEVICE": "cpu", "GPT1_THREADS": "1", "GPT1_MLFLOW": "off"}.items():
        monkeypatch.setenv(name, value)
    write_params(
        small_run, finetune__transfer="none", finetune__precision="fp32", finetune__epochs=1
    )
    Vocabulary("abcdefghijklmnopqrstuvwxyz.", []).save(Path("data/bpe"), {})
    labelled = [
        f"a\t{row % 2}\t\t{'cat' if row % 2 else 'dog'} {chr(97 + row % 26)}." for row in range(40)
    ]
    tests = [f"{row}\t{'cat' if row % 3 else 'dog'} {chr(97 + row % 25)}" for row in range(1063)]
    tests[600] = "600\t"
    official("cola", train=labelled, dev=labelled[:20], test=["index\tsentence", *tests])
    encode.main("cola")
    finetune.main("cola")
    made = make(Path("a.zip"), Path("data"), fill=True)
    assert "; 1 unreadable rows: constant 1" in made["CoLA.tsv"]
    seeds = {
        seed: json.loads(Path(f"data/finetune/glue/cola/seed-{seed}/summary.json").read_text())
        for seed in "01"
    }
    best = max(seeds, key=lambda seed: (seeds[seed]["best_dev_score"], seed == "0"))
    assert made["CoLA.tsv"].startswith(
        f"cola, seed {best} (matthews on dev {100 * seeds[best]['best_dev_score']:.1f})"
    )
    examples = read_examples(Path("data/encode/glue/cola/test.npz"), 1)
    classifier = kept_classifier(Path(f"data/finetune/glue/cola/seed-{best}/weights.safetensors"))
    expected = [0] * 1062
    for rows in evaluation_batches(examples, 0, 1, 2000):
        with torch.no_grad():
            for row, logits in zip(rows, classifier(pad(examples, rows).tokens_bkt), strict=True):
                expected[row] = int(logits.argmax())
    expected.insert(600, 1)
    assert made_answers("CoLA.tsv") == [str(answer) for answer in expected]


def kept_classifier(weights: Path):
    """tokens_bkt -> logits_bo by a fine-tuned classifier read from its file."""
    import torch
    from safetensors.torch import load_file

    from gpt1.model.heads import Classifier, Head
    from gpt1.model.networks import make_network
    from gpt1.params.schema import read_params

    params, generator = read_params(), torch.Generator()
    vocabulary_size = json.loads(Path("data/encode/glue/cola/task.json").read_text())[
        "vocabulary_size"
    ]
    network = make_network("transformer", params, vocabulary_size + 3, generator)
    classifier = Classifier(
        network, Head(params.model.width, 2, "single", params.model.weight_deviation, generator)
    )
    classifier.load_state_dict(load_file(weights))
    return lambda tokens_bkt: classifier(tokens_bkt).logits_bo
