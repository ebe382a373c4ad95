"""Every form in which people have the tasks: what `acquire` takes of it reads to the same examples
as the original form.
"""

import hashlib
import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_forms
import numpy as np
import pytest
from made_exports import EXPORTS, HUB, ROWS, as_arrow, as_lines, as_parquet, table_of
from pyarrow import parquet

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.corpus.bpe import Vocabulary
from gpt1.inference.prediction import read_file
from gpt1.params.schema import TaskParams
from gpt1.params.yaml import read_yaml
from gpt1.sources.acquire import copy, locate
from gpt1.sources.find import find_files, find_sources
from gpt1.stages import acquire, encode
from gpt1.tasks import tables
from gpt1.tasks.formats import read_rows
from gpt1.tasks.layouts import release_of
from gpt1.tasks.readers import SplitRows, read_task
from gpt1.tasks.rows import Example
from gpt1.tasks.table import TASKS

ALL = TaskParams(group="glue", train_rows=None, eval_rows=None, finetune={})
MADE = made_forms.MADE
FORMS = [(task, form) for task, made in MADE.items() for form in made.forms]


def taken(task: str, raw: Path, to: Path) -> Path:
    """The folder that `acquire` makes of a folder that a person brought."""
    source = TASKS[task].source
    for name, place in locate(source, raw, to / ".unpacked", 1_000_000).items():
        copy(source, name, place, to / name)
    shutil.rmtree(to / ".unpacked", ignore_errors=True)
    return to


def read(task: str, raw: Path, to: Path, row: TaskParams = ALL) -> tuple[dict[str, SplitRows], str]:
    return read_task(TASKS[task], taken(task, raw, to), row, 0.0)


def digest(examples: list[Example]) -> str:
    """Of texts and labels as stage encode writes them: scores have 32 bits."""
    examples = [replace(one, label=float(np.float32(one.label))) for one in examples]
    return hashlib.sha256("\n".join(map(repr, examples)).encode()).hexdigest()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, SplitRows]]:
    """Each task's original form, read."""
    found = {}
    for task, made in MADE.items():
        folder = tmp_path_factory.mktemp(task)
        (folder / "raw").mkdir()
        made.forms["original"](folder / "raw")
        found[task] = read(task, folder / "raw", folder / "taken")[0]
    return found


def test_the_original_forms_are_what_was_made(original: dict[str, dict[str, SplitRows]]) -> None:
    assert set(original) == set(TASKS)
    for task, splits in original.items():
        train = splits["train"].examples
        assert len(train) == {"snli": 9, "story_cloze": 8}.get(task, ROWS["train"]), task
        texts = made_forms.texts("train", "a")
        said = [example.context[0] for example in train]
        assert task == "story_cloze" or said == [
            text for number, text in enumerate(texts) if task != "snli" or number != 3
        ]
        assert TASKS[task].target == "score" or {example.label for example in train} == set(
            range(len(TASKS[task].labels))
        )
    assert [example.label for example in original["cola"]["dev"].examples] == made_forms.labels(
        "dev", 2
    )
    assert {split: rows.labelled for split, rows in original["mnli"].items()} == {
        "train": True,
        "dev": True,
        "dev_mismatched": True,
        "test_matched": False,
        "test_mismatched": False,
        "diagnostic": False,
    }


LACK = {
    ("cola", "raw"): {"test"},
    ("mnli", "NYU's JSON lines"): {"test_matched", "test_mismatched", "diagnostic"},
    **{
        ("mnli", form): {"diagnostic"}
        for form in ("parquet in parts", "converted parquet", "arrow", "jsonl")
    },
}
TOGETHER = {
    ("mrpc", "Microsoft's files"),
    ("mrpc", "out of the .msi"),
}  # GLUE's dev rows are not among Microsoft's files
NO_TEST_LABELS = {("story_cloze", "2018"), *(("stsb", form) for form in ("GLUE", *EXPORTS))}


@pytest.mark.parametrize(("task", "form"), FORMS, ids=lambda value: value.replace(" ", "-"))
def test_a_form_reads_to_the_examples_of_the_original(
    tmp_path: Path, original: dict[str, dict[str, SplitRows]], task: str, form: str
) -> None:
    (tmp_path / "raw").mkdir()
    MADE[task].forms[form](tmp_path / "raw")
    found, _ = read(task, tmp_path / "raw", tmp_path / "taken")
    wanted = {
        split: rows.examples
        for split, rows in original[task].items()
        if split not in LACK.get((task, form), ())
    }
    if (task, form) in NO_TEST_LABELS:
        assert not found["test"].labelled
        wanted["test"] = [Example(one.context, one.choices) for one in wanted["test"]]
    given = {split: rows.examples for split, rows in found.items()}
    if (task, form) in TOGETHER:
        for one in (wanted, given):
            one["train"] = sorted([*one["train"], *one.pop("dev")], key=repr)
    assert {split: digest(rows) for split, rows in given.items()} == {
        split: digest(rows) for split, rows in wanted.items()
    }
    assert found["train"].left_out == ({"no gold label": 1} if task == "snli" else {})
    assert not any(rows.unreadable for rows in found.values())


@pytest.mark.parametrize("write", [as_parquet, as_arrow], ids=["parquet", "arrow"])
@pytest.mark.parametrize("task", [name for name, made in MADE.items() if made.classes])
def test_labels_numbered_otherwise_are_refused(tmp_path: Path, task: str, write: Any) -> None:
    (names,) = MADE[task].classes.values()
    write(tmp_path / "raw", MADE[task].tables, {"label": names[::-1]})
    with pytest.raises(UserError) as error:
        read(task, tmp_path / "raw", tmp_path / "taken")
    wrong, right = (
        ", ".join(f"{number} {name}" for number, name in enumerate(order))
        for order in (names[::-1], names)
    )
    assert (
        f"its label integers mean {wrong}; expected {right}; export it with that order, or with"
        " words" in str(error.value)
    )


def refusal(task: str, raw: Path, to: Path) -> str:
    with pytest.raises(UserError) as error:
        read(task, raw, to)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{to}/")


def test_what_is_wrong_with_an_export_is_one_line(tmp_path: Path) -> None:
    rte, names = MADE["rte"].tables, {"label": ("entailment", "not_entailment")}

    def bad(name: str, tables: dict[str, dict[str, list[object]]], write: Any = as_lines) -> str:
        write(tmp_path / name, tables, {})
        return refusal("rte", tmp_path / name, tmp_path / f"{name}-taken")

    without = {
        split: {key: value for key, value in columns.items() if key != "sentence2"}
        for split, columns in rte.items()
    }
    for write in (as_lines, as_parquet):
        assert (
            "expected the columns sentence2; found 'sentence1', 'label', 'idx'; put the official"
            " file" in bad(f"column-{write.__name__}", without, write)
        )
    unlabelled = {
        split: {key: value for key, value in columns.items() if key != "label"}
        for split, columns in rte.items()
    }
    assert "expected the columns label; found" in bad("no-label", unlabelled), (
        "only a test split may lack its labels"
    )
    high = rte | {"train": rte["train"] | {"label": [2] * ROWS["train"]}}
    line = bad("high", high)
    assert "10 of 10 rows cannot be read (unknown label 10)" in line
    assert "unknown label ('2' instead of 0 entailment, 1 not_entailment)" in line
    none = rte | {"train": rte["train"] | {"label": [-1] * ROWS["train"]}}
    assert "expected labels, found none in 10 rows of train; put a file with labels there" in bad(
        "none", none, as_arrow
    )
    broken = tmp_path / "broken"
    as_parquet(broken, rte, names)
    (broken / "train-00000-of-00001.parquet").write_bytes(
        (broken / "train-00000-of-00001.parquet").read_bytes()[:-20]
    )
    assert "train-00000-of-00001.parquet cannot be read (" in refusal(
        "rte", broken, tmp_path / "broken-taken"
    )
    parts = tmp_path / "parts"
    as_parquet(parts, rte, names, parts=3)
    (parts / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(
        UserError,
        match=(
            r"expected 3 parts of train, from train-00000-of-00003.parquet on, found 2 files; bring"
            r" all parts"
        ),
    ):
        find_files(TASKS["rte"].source, parts)


def test_train_rows_without_a_gold_label_are_dropped_and_counted(tmp_path: Path) -> None:
    tables = {split: dict(columns) for split, columns in MADE["cola"].tables.items()}
    tables["train"]["label"] = [-1, *tables["train"]["label"][1:8], None, -1]
    as_parquet(tmp_path / "raw", tables, MADE["cola"].classes)
    found, _ = read("cola", tmp_path / "raw", tmp_path / "taken")
    assert (len(found["train"].examples), found["train"].left_out, found["train"].rows_read) == (
        7,
        {"no gold label": 3},
        10,
    )
    assert "test" in found
    few = TaskParams(group="glue", train_rows=2, eval_rows=2, finetune={})
    assert set(read_task(TASKS["cola"], tmp_path / "taken", few, 0.0)[0]) == {
        "train",
        "dev",
    }, "part of an unlabelled split is of no use"


def test_scores_from_0_to_1_are_refused(tmp_path: Path) -> None:
    tables = {
        split: {
            "sentence1": ["A."] * 100,
            "sentence2": ["B."] * 100,
            "score": [number / 100 for number in range(100)],
        }
        for split in HUB.values()
    }
    as_parquet(tmp_path / "raw", tables, {})
    assert "expected scores from 0 to 5, found none above 1 in 100 rows" in refusal(
        "stsb", tmp_path / "raw", tmp_path / "taken"
    )


def test_of_mixed_forms_the_best_is_taken(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for form in ("jsonl", "parquet in parts", "original"):
        MADE["snli"].forms[form](raw)
    assert sorted(find_files(TASKS["snli"].source, raw) or ()) == [
        f"snli_1.0_{split}.jsonl" for split in ("dev", "test", "train")
    ]
    (raw / "snli_1.0_dev.jsonl").unlink()
    assert sorted(find_files(TASKS["snli"].source, raw) or ()) == sorted(
        f"{split}-00000-of-00001.jsonl" for split in HUB.values()
    ), "a folder's own files come before those below it"
    as_parquet(raw, MADE["snli"].tables, MADE["snli"].classes)
    assert sorted(find_files(TASKS["snli"].source, raw) or ()) == sorted(
        f"{split}-00000-of-00001.parquet" for split in HUB.values()
    )


def test_a_whole_clone_of_glue_gives_each_task_its_own_folder(tmp_path: Path) -> None:
    for task in ("cola", "rte", "mnli", "stsb"):
        as_parquet(tmp_path / "glue" / task, MADE[task].tables, MADE[task].classes)
    as_parquet(tmp_path / "nyu-mll/multi_nli/data", MADE["mnli"].tables, MADE["mnli"].classes)
    found = find_sources(tmp_path, [task.source for task in TASKS.values()])
    assert {
        name: path.relative_to(tmp_path).as_posix() for name, path in found.items() if path
    } == {task: f"glue/{task}" for task in ("cola", "rte", "mnli", "stsb")}
    files = find_files(TASKS["rte"].source, tmp_path / "glue") or {}
    assert {path.parent for path in files.values()} == {tmp_path / "glue/rte"}


@pytest.mark.parametrize("level", ["middle", "high"])
@pytest.mark.parametrize("form", ["original", "packed", "parquet"])
def test_race_with_one_level_alone(
    tmp_path: Path, original: dict[str, dict[str, SplitRows]], level: str, form: str
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    if form == "parquet":
        MADE["race"].forms["levels apart"](raw)
        shutil.rmtree(raw / ("high" if level == "middle" else "middle"))
    else:
        MADE["race"].forms["original"](raw)
        for split in ROWS:
            shutil.rmtree(raw / "RACE" / split / ("high" if level == "middle" else "middle"))
        if form == "packed":
            with tarfile.open(raw / "RACE.tar.gz", "w:gz") as archive:
                archive.add(raw / "RACE", "RACE")
            shutil.rmtree(raw / "RACE")
    number = ("middle", "high").index(level)
    for split, rows in read("race", raw, tmp_path / "taken")[0].items():
        assert digest(rows.examples) == digest(
            [example for example in original["race"][split].examples if example.subset == number]
        )


def test_releases_are_told_by_their_rows_or_their_names(tmp_path: Path) -> None:
    qnli, stories = TASKS["qnli"].releases, TASKS["story_cloze"].releases

    def named(
        releases: tuple[Any, ...], rows: dict[str, int], files: tuple[str, ...] = ()
    ) -> str | None:
        found = release_of(releases, rows, files)
        return found.name if found else None

    assert named(qnli, {"train": 108_436, "dev": 5_732}) == "v1"
    assert named(qnli, {"train": 20_000, "dev": 5_463}) == "v2", (
        "a part of the training rows, all of dev"
    )
    assert named(qnli, {"train": 20_000, "dev": 1_000}) is None
    assert named(qnli, {"train": 108_436, "dev": 5_463}) is None, "rows of both"
    assert named(stories, {"train": 1_571, "dev": 1_571}) == "2018"
    assert named(stories, {"train": 9}, ("cloze_test_val__spring2016.csv",)) == "2016"
    for form, release in (("original", "2016"), ("2018", "2018"), ("parquet", "not recognised")):
        (tmp_path / form).mkdir()
        MADE["story_cloze"].forms[form](tmp_path / form)
        assert read("story_cloze", tmp_path / form, tmp_path / f"{form}-taken")[1] == release
    (tmp_path / "rte").mkdir()
    MADE["rte"].forms["original"](tmp_path / "rte")
    assert read("rte", tmp_path / "rte", tmp_path / "rte-taken")[1] == "", "there is but one"


def test_an_export_is_an_official_file_too(tmp_path: Path) -> None:
    as_parquet(tmp_path, MADE["rte"].tables, MADE["rte"].classes)
    train = read_file(tmp_path / "train-00000-of-00001.parquet", TASKS["rte"])
    assert (train.labelled, len(train.examples)) == (True, ROWS["train"])
    assert not read_file(tmp_path / "test-00000-of-00001.parquet", TASKS["rte"]).labelled


def test_a_parquet_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_TABLE_BYTES", 1000)
    parquet.write_table(
        table_of({"sentence": [f"Row {row}." for row in range(500)], "label": [1] * 500}, {}),
        tmp_path / "a.parquet",
    )
    with pytest.raises(UserError, match=r"a\.parquet cannot be read \(it unpacks to [\d,]+ bytes"):
        list(read_rows(tmp_path / "a.parquet", TASKS["cola"].layouts[-1][0].format, TASKS["cola"]))


def test_labels_may_be_words_or_floats(tmp_path: Path) -> None:
    for name, right in (
        ("words", ["not_equivalent", "equivalent"]),
        ("floats", [0.0, 1.0]),
        ("as words", ["0", "1"]),
    ):
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(
                json.dumps({"sentence1": "A.", "sentence2": "B.", "label": label}) + "\n"
                for label in right
            )
        )
        found = read_rows(
            tmp_path / f"{name}.jsonl", TASKS["mrpc"].layouts[-1][0].format, TASKS["mrpc"]
        )
        assert [row.label for row in found if isinstance(row, Example)] == [0, 1]
    scores = [3.8, 2.11111111111111]
    (tmp_path / "scores.jsonl").write_text(
        "".join(
            json.dumps({"sentence1": "A.", "sentence2": "B.", "label": score}) + "\n"
            for score in scores
        )
    )
    found = read_rows(tmp_path / "scores.jsonl", TASKS["stsb"].layouts[-1][0].format, TASKS["stsb"])
    assert [row.label for row in found if isinstance(row, Example)] == scores


@pytest.mark.slow
def test_an_export_goes_through_the_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = read_yaml(Path(__file__).parents[1] / "conf/paper.yaml")
    (tmp_path / "params.yaml").write_text(json.dumps(params))
    monkeypatch.chdir(tmp_path)
    Vocabulary("abcdefghijklmnopqrstuvwxyz.,?0123456789", []).save(Path("data/bpe"), {})
    MADE["qnli"].forms["arrow"](Path("data/raw/qnli"))
    MADE["race"].forms["levels apart"](Path("data/raw/race"))
    shutil.rmtree("data/raw/race/middle")
    about = {}
    for task, group in (("qnli", "glue_nli"), ("race", "qa")):
        acquire.main(task)
        encode.main(task)
        about[task] = read_json(Path("data/encode", group, task, "task.json"))
    manifest = read_json(Path("data/acquire/tasks/qnli/manifest.json"))
    assert sorted(manifest["files"]) == sorted(
        [
            "dataset_info.json",
            *(
                f"{split}-{number:05d}-of-00002.arrow"
                for split in HUB.values()
                for number in (0, 1)
            ),
        ]
    ), "the manifest says which form"
    assert (about["qnli"]["release"], about["race"]["release"]) == ("not recognised", "")
    assert {split: rows["labelled"] for split, rows in about["qnli"]["splits"].items()} == {
        "train": True,
        "dev": True,
        "test": False,
    }
    assert about["race"]["splits"]["test"]["subsets"] == {"middle": 0, "high": 2}
    assert (
        np.load("data/encode/glue_nli/qnli/dev.npz")["labels"] == made_forms.labels("dev", 2)
    ).all()
    assert (np.load("data/encode/qa/race/dev.npz")["subset"] == 1).all()
