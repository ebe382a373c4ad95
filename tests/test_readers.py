"""Official formats, from files made up here: what each gives, which rows are chosen, and counts of
real files where they are at hand.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_data import put_files

from gpt1.params.schema import TaskParams
from gpt1.sources.find import find_files, find_sources
from gpt1.tasks.definitions import TASKS
from gpt1.tasks.readers import chosen_rows, read_split, splits_there

STORY_HEADER = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\r\n"
)
SNLI_ROW = '{{"sentence1": "A.", "sentence2": "B.", "gold_label": "{}"}}\n'
VAL, TEST = TASKS["story_cloze"].source.layouts[0].required


ALL = TaskParams(group="glue", train_rows=None, eval_rows=None, finetune={})


def read(task, folder, files):
    put_files(folder, files)
    return {
        split.name: read_split(TASKS[task], split, folder, ALL, 0.0)
        for split in splits_there(TASKS[task], folder)
    }


def examples(splits, name):
    return [(example.context, example.choices, example.label) for example in splits[name].examples]


def test_quotes_of_a_csv_writer_are_text(tmp_path):
    """The official QQP has some: "How hard is it to ""pass""?", and GLUE's readers keep the quotes."""
    rows = "index\tsentence1\tsentence2\tlabel\n" + '0\t"He said ""no""."\tA dog.\tentailment\n'
    found = read("rte", tmp_path, dict.fromkeys(("train.tsv", "dev.tsv"), rows))
    assert examples(found, "train") == [(('"He said ""no""."', "A dog."), (), 0)]


@pytest.mark.parametrize(
    ("task", "name", "head", "row"),
    [
        ("mnli", "train.tsv", "gold_label\tsentence1\tsentence2\n", "{}\tA.\tB b.\n"),
        ("rte", "train.tsv", "index\tsentence1\tsentence2\tlabel\n", "0\tA.\tB.\t{}\n"),
        ("scitail", "scitail_1.0_train.tsv", "", "A a.\tB b.\t{}\n"),
        ("snli", "snli_1.0_train.jsonl", "", SNLI_ROW),
        ("story_cloze", VAL, STORY_HEADER, "i,A.,B.,C.,D.,E.,F.,{}\n"),
    ],
)
def test_a_dash_is_no_gold_label_in_every_form(tmp_path, task, name, head, row):
    label = (TASKS[task].file_labels or TASKS[task].labels)[1]
    (tmp_path / name).write_text(head + row.format("-") + row.format(label) * 2)
    splits = [split for layout in TASKS[task].layouts for split in layout]
    split = next(replace(split, share=None) for split in splits if name in split.files)
    found = read_split(TASKS[task], split, tmp_path, ALL, 0.0)
    assert (found.left_out, found.unreadable, found.rows_read) == ({"no gold label": 1}, {}, 3)
    assert {example.label for example in found.examples} == {1}


def test_stsb_with_7_and_9_columns(tmp_path):
    content = (
        'main-captions\tMSRvid\t2012test\t0001\t5.000\tA "plane.\tAn air plane.\n'
        "main-news\theadlines\t2013\t12\t0.25\tOne.\tTwo.\tlicence\tsource\n"
    )
    names = [f"sts-{split}.csv" for split in ("train", "dev", "test")]
    found = read("stsb", tmp_path, dict.fromkeys(names, content))
    assert examples(found, "test") == [
        (('A "plane.', "An air plane."), (), 5.0),
        (("One.", "Two."), (), 0.25),
    ]


def story(number):
    return (
        f'id{number},"Karen, {number}, moved.",She ""laughed"".,Her room,was small.,"It was'
        f' ""fine"".",It flew.,{number % 2 + 1}\r\n'
    )


@pytest.mark.parametrize(("rows", "dev"), [(1871, 374), (20, 4)])
def test_story_cloze_splits_as_the_authors_do(tmp_path, rows, dev):
    whole = STORY_HEADER + "".join(map(story, range(rows)))
    found = read("story_cloze", tmp_path, {VAL: whole, TEST: whole})
    counts = {name: len(split.examples) for name, split in found.items()}
    assert counts == {"train": rows - dev, "dev": dev, "test": rows}
    first = (
        ('Karen, 0, moved. She ""laughed"". Her room was small.',),
        ('It was "fine".', "It flew."),
        0,
    )
    assert examples(found, "test")[0] == first
    if rows == 1871:  # scikit-learn's rule: the first of a permutation by this seed are held out
        heldout = np.sort(np.random.RandomState(3535999445).permutation(rows)[:dev])
        numbers = [int(example.context[0].split(", ")[1]) for example in found["dev"].examples]
        assert numbers == heldout.tolist()


def test_a_subset_is_seeded_ordered_and_nested():
    chosen = chosen_rows("sst2", "train", 1000, 100)
    assert len(set(chosen.tolist())) == 100
    assert (np.diff(chosen) > 0).all()
    assert np.array_equal(chosen, chosen_rows("sst2", "train", 1000, 100))
    assert set(chosen.tolist()) <= set(chosen_rows("sst2", "train", 1000, 101).tolist())
    assert not np.array_equal(chosen, chosen_rows("sst2", "dev", 1000, 100))
    assert np.array_equal(chosen_rows("sst2", "train", 5, None), np.arange(5))
    assert np.array_equal(chosen_rows("sst2", "train", 5, 9), np.arange(5))


# the official sizes of the splits that a folder of real files should hold whole; SNLI's dev file
# has 39 rows more, labelled "-"
REAL = {
    "snli": {"dev": 9842, "test": 9824},
    "mnli": {"dev": 9815},
    "qnli": {"dev": 5463, "test": 5463},
    "rte": {"train": 2490, "dev": 277, "test": 3000},
    "stsb": {"train": 5749, "dev": 1500, "test": 1379},
    "sst2": {"train": 67349, "dev": 872, "test": 1821},
    "cola": {"train": 8551, "dev": 1043, "test": 1063},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_files_give_the_official_numbers_of_rows(name):
    data = os.environ.get("GPT1_DATA")
    if not data:
        pytest.skip("$GPT1_DATA names no folder of official files")
    source = TASKS[name].source
    folder = find_sources(Path(data), [source])[name]
    if folder is None:
        pytest.skip(f"{data} holds none of {', '.join(source.folders)}")
    places = find_files(source, folder)
    assert places, f"{folder} lacks {source.expected}"
    for split in splits_there(TASKS[name], next(iter(places.values())).parent):
        if wanted := REAL[name].get(split.name):
            rows = read_split(TASKS[name], split, next(iter(places.values())).parent, ALL, 0.0)
            assert len(rows.examples) == wanted
            assert all((example.label >= 0) == rows.labelled for example in rows.examples)
