"""Every form in which people have the tasks: what `acquire` takes of it reads to the same examples
as the original form.
"""

import itertools
import shutil
from dataclasses import replace

import numpy as np
import pytest
from made_data import refused
from made_exports import EXPORTS, HUB, ROWS, as_lines, as_parquet, cell, rows_of
from made_forms import MADE

from gpt1.base.errors import UserError
from gpt1.params.schema import TaskParams
from gpt1.sources.acquire import copy, locate
from gpt1.sources.find import find_files
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.layouts import release_of
from gpt1.tasks.readers import read_task
from gpt1.tasks.rows import Example

ALL = TaskParams(group="glue", train_rows=None, eval_rows=None, finetune={})
FORMS = [(task, form) for task, made in MADE.items() for form in made.forms]


def taken(task, raw, to):
    """The folder that `acquire` makes of a folder that a person brought."""
    source = TASKS[task].source
    for name, place in locate(source, raw, to / ".unpacked", 1_000_000).items():
        copy(source, name, place, to / name)
    shutil.rmtree(to / ".unpacked", ignore_errors=True)
    return to


def read(task, folder):
    """What the stages read of the files in its folder `raw`."""
    return read_task(TASKS[task], taken(task, folder / "raw", folder / "taken"), ALL, 0.0)


def stored(examples):
    """Texts and labels as stage encode writes them: scores have 32 bits."""
    return [replace(one, label=float(np.float32(one.label))) for one in examples]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Each task's original form, read."""
    found = {}
    for task, made in MADE.items():
        folder = tmp_path_factory.mktemp(task)
        (folder / "raw").mkdir()
        made.forms["original"](folder / "raw")
        found[task] = read(task, folder)[0]
    return found


def test_the_original_forms_are_what_was_made(original):
    """Texts and labels of every task but Story Cloze, which test_readers.py reads by hand."""
    assert set(original) == set(TASKS)
    for task, split in itertools.product(original.keys() - {"story_cloze"}, ("train", "dev")):
        rows = [row for row in rows_of(split) if (task, *row) != ("snli", "train", 3)]
        parts = "a" if task in ("cola", "sst2") else "ab"
        label = "score" if task == "stsb" else "label"
        found = [(one.context, one.label) for one in original[task][split].examples]
        numbers = range(TASKS[task].outputs)
        wanted = [
            (tuple(cell(row, part) for part in parts), cell(row, label, numbers)) for row in rows
        ]
        assert found == wanted, task
    labelled = {split: rows.labelled for split, rows in original["mnli"].items()}
    hidden = dict.fromkeys(("test_matched", "test_mismatched", "diagnostic"), False)
    assert labelled == {"train": True, "dev": True, "dev_mismatched": True} | hidden


LACK = {
    ("cola", "raw"): {"test"},
    ("mnli", "NYU's JSON lines"): {"test_matched", "test_mismatched", "diagnostic"},
    **{("mnli", form): {"diagnostic"} for form in ("parquet in parts", "jsonl")},
}
TOGETHER = {
    ("mrpc", "Microsoft's files"),
    ("mrpc", "out of the .msi"),
}  # GLUE's dev rows are not among Microsoft's files
NO_TEST_LABELS = {("story_cloze", "2018"), *(("stsb", form) for form in ("GLUE", *EXPORTS))}


@pytest.mark.parametrize(("task", "form"), FORMS, ids=lambda value: value.replace(" ", "-"))
def test_a_form_reads_to_the_examples_of_the_original(tmp_path, original, task, form):
    (tmp_path / "raw").mkdir()
    MADE[task].forms[form](tmp_path / "raw")
    found, _ = read(task, tmp_path)
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
    assert {split: stored(rows) for split, rows in given.items()} == {
        split: stored(rows) for split, rows in wanted.items()
    }
    assert found["train"].left_out == ({"no gold label": 1} if task == "snli" else {})
    assert not any(rows.unreadable for rows in found.values())


@pytest.mark.parametrize("task", [name for name, made in MADE.items() if made.classes])
def test_labels_numbered_otherwise_are_refused(tmp_path, task):
    (names,) = MADE[task].classes.values()
    as_parquet(tmp_path / "raw", MADE[task].tables, {"label": names[::-1]})
    line = refused(read, task, tmp_path)
    wrong = ", ".join(f"{number} {name}" for number, name in enumerate(names[::-1]))
    assert f"its label integers mean {wrong}; expected 0 {names[0]}, " in line


def without(column, write):
    def form(raw):
        tables = {
            split: {name: values for name, values in columns.items() if name != column}
            for split, columns in MADE["rte"].tables.items()
        }
        write(raw, tables, {})

    return form


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (without("sentence2", as_parquet), "columns sentence2; found 'sentence1', 'label', 'idx'"),
        (without("label", as_lines), "columns label; found"),  # only a test split may lack them
    ],
)
def test_what_is_wrong_with_an_export_is_one_line(tmp_path, form, line):
    form(tmp_path / "raw")
    assert line in refused(read, "rte", tmp_path)


def test_a_missing_part_of_an_export_is_told(tmp_path):
    as_parquet(tmp_path, MADE["rte"].tables, MADE["rte"].classes, parts=3)
    (tmp_path / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(UserError, match=r"expected 3 parts of train, .* found 2 files"):
        find_files(TASKS["rte"].source, tmp_path)


def test_of_mixed_forms_the_best_is_taken(tmp_path):
    raw, snli = tmp_path / "raw", MADE["snli"]
    raw.mkdir()

    def found(pattern):
        names = [pattern.format(split) for split in HUB.values()]
        return sorted(find_files(TASKS["snli"].source, raw) or ()) == sorted(names)

    for form in ("jsonl", "parquet in parts", "original"):
        snli.forms[form](raw)
    own = [f"snli_1.0_{split}.jsonl" for split in ROWS]
    assert set(find_files(TASKS["snli"].source, raw) or ()) == set(own)
    (raw / own[0]).unlink()
    assert found("{}-00000-of-00001.jsonl"), "a folder's own files come before those below it"
    as_parquet(raw, snli.tables, snli.classes)
    assert found("{}-00000-of-00001.parquet")


@pytest.mark.parametrize(
    ("task", "rows", "files", "name"),
    [
        ("qnli", {"train": 108_436, "dev": 5_732}, (), "v1"),
        ("qnli", {"train": 20_000, "dev": 5_463}, (), "v2"),  # some training rows, all of dev
        ("qnli", {"train": 20_000, "dev": 1_000}, (), None),
        ("qnli", {"train": 108_436, "dev": 5_463}, (), None),  # rows of both
        ("story_cloze", {"train": 1_571, "dev": 1_571}, (), "2018"),
        ("story_cloze", {"train": 9}, ("cloze_test_val__spring2016.csv",), "2016"),
    ],
)
def test_releases_are_told_by_their_rows_or_their_names(task, rows, files, name):
    found = release_of(TASKS[task].releases, rows, files)
    assert (found.name if found else None) == name
