"""Official formats, from files made up here: what each gives, which rows are chosen, and counts of
real files where they are at hand.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_exports import as_arrow
from made_forms import MADE

from gpt1.base.errors import UserError
from gpt1.params.schema import TaskParams
from gpt1.sources.find import find_files, find_sources
from gpt1.tasks.formats import read_rows
from gpt1.tasks.readers import SplitRows, chosen_rows, read_split, splits_to_read
from gpt1.tasks.rows import Example, Unreadable
from gpt1.tasks.table import TASKS, scored_split

STORY_HEADER = (
    "InputStoryid,InputSentence1,InputSentence2,InputSentence3,InputSentence4,"
    "RandomFifthSentenceQuiz1,RandomFifthSentenceQuiz2,AnswerRightEnding\r\n"
)
SNLI_ROW = '{{"sentence1": "A.", "sentence2": "B.", "gold_label": "{}"}}\n'
VAL, TEST = TASKS["story_cloze"].source.layouts[0].required


def rows_wanted(train: int | None = None, evaluation: int | None = None) -> TaskParams:
    return TaskParams(group="glue", train_rows=train, eval_rows=evaluation, finetune={})


def read(
    task: str,
    folder: Path,
    files: dict[str, str],
    row: TaskParams | None = None,
    limit: float = 0.0,
) -> dict[str, SplitRows]:
    for name, content in files.items():
        (folder / name).write_bytes(content.encode())
    row = row or rows_wanted()
    return {
        split.name: read_split(TASKS[task], split, folder, row, limit)
        for split in splits_to_read(TASKS[task], folder, row)
    }


def examples(
    splits: dict[str, SplitRows], name: str
) -> list[tuple[tuple[str, ...], tuple[str, ...], float]]:
    return [(example.context, example.choices, example.label) for example in splits[name].examples]


def test_glue_tsv_with_and_without_labels(tmp_path: Path) -> None:
    labelled = (
        "index\tsentence1\tsentence2\tlabel\n0\tIt is \"so.\tIt's"
        ' so.\tentailment\n1\tNo.\tYes.\tnot_entailment\n2\t"A ""b""."\t"C."\tentailment\n'
    )
    found = read(
        "rte",
        tmp_path,
        {
            "train.tsv": labelled,
            "dev.tsv": labelled,
            "test.tsv": "index\tsentence1\tsentence2\n0\tA.\tB.\n",
        },
    )
    assert examples(found, "train") == [
        (('It is "so.', "It's so."), (), 0),
        (("No.", "Yes."), (), 1),
        (('"A ""b""."', '"C."'), (), 0),
    ], "a quote is text, as bare ones tell"
    assert examples(found, "test") == [(("A.", "B."), (), -1)]
    assert [found[name].labelled for name in ("train", "dev", "test")] == [True, True, False]
    assert list(read("rte", tmp_path, {}, rows_wanted(evaluation=1))) == [
        "train",
        "dev",
    ], "part of an unlabelled split is of no use"


def test_quotes_of_a_csv_writer_are_text_and_told_of(tmp_path: Path, capsys) -> None:
    """The official QQP has some: "How hard is it to ""pass""?", and GLUE's readers keep the quotes."""
    rows = "index\tsentence1\tsentence2\tlabel\n" + '0\t"He said ""no""."\tA dog.\tentailment\n'
    found = read("rte", tmp_path, dict.fromkeys(("train.tsv", "dev.tsv"), rows))
    assert examples(found, "train") == [(('"He said ""no""."', "A dog."), (), 0)]
    assert "train.tsv: 1 texts are quoted by the rule of CSV writers" in capsys.readouterr().err


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
def test_a_dash_is_no_gold_label_in_every_form(
    tmp_path: Path, task: str, name: str, head: str, row: str
) -> None:
    label = (TASKS[task].values or TASKS[task].labels)[1]
    (tmp_path / name).write_text(head + row.format("-") + row.format(label) * 2)
    splits = [split for layout in TASKS[task].layouts for split in layout]
    split = next(replace(split, share=None) for split in splits if name in split.files)
    found = read_split(TASKS[task], split, tmp_path, rows_wanted(), 0.0)
    assert (found.left_out, found.unreadable, found.rows_read) == ({"no gold label": 1}, {}, 3)
    assert {example.label for example in found.examples} == {1}


def test_cola_in_both_layouts(tmp_path: Path) -> None:
    one, two = "gj04\t1\t\tThe cat sat.\n", "gj04\t0\t*\tSat cat the.\n"
    glue, raw = tmp_path / "glue", tmp_path / "raw"
    glue.mkdir()
    raw.mkdir()
    found = read(
        "cola",
        glue,
        {"train.tsv": one + two, "dev.tsv": two, "test.tsv": "index\tsentence\n0\tA dog.\n"},
    )
    assert examples(found, "train") == [(("The cat sat.",), (), 1), (("Sat cat the.",), (), 0)]
    assert examples(found, "test") == [(("A dog.",), (), -1)]
    found = read(
        "cola",
        raw,
        {"in_domain_train.tsv": one, "in_domain_dev.tsv": one, "out_of_domain_dev.tsv": two},
    )
    assert [label for _, _, label in examples(found, "dev")] == [
        1,
        0,
    ], "GLUE's dev is both files, in this order"


def test_sst2_qnli_qqp_columns(tmp_path: Path) -> None:
    for task, content, expected in [
        ("sst2", "sentence\tlabel\nfine film \t1\n", (("fine film ",), (), 1)),
        (
            "qnli",
            "index\tquestion\tsentence\tlabel\n7\tWho?\tHe did.\tentailment\n",
            (("Who?", "He did."), (), 0),
        ),
        (
            "qqp",
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tWho?\tWhich?\t1\n",
            (("Who?", "Which?"), (), 1),
        ),
    ]:
        (tmp_path / task).mkdir()
        assert examples(
            read(task, tmp_path / task, {"train.tsv": content, "dev.tsv": content}), "dev"
        ) == [expected]


def nli(label: str, number: int = 0) -> str:
    return (
        json.dumps(
            {
                "gold_label": label,
                "sentence1": f"A man {number}.",
                "sentence2": "A person.",
                "genre": "x",
            }
        )
        + "\n"
    )


def test_snli_rows_without_gold_label_are_dropped_and_counted(tmp_path: Path) -> None:
    content = nli("contradiction") + nli("-") + nli("entailment") + nli("neutral")
    found = read(
        "snli", tmp_path, {f"snli_1.0_{split}.jsonl": content for split in ("train", "dev", "test")}
    )
    assert [label for _, _, label in examples(found, "dev")] == [2, 0, 1]
    assert (found["dev"].left_out, found["dev"].unreadable, found["dev"].rows_read) == (
        {"no gold label": 1},
        {},
        4,
    )


def test_mnli_from_json_lines_and_from_glue(tmp_path: Path) -> None:
    names = {"train": "train", "dev": "dev_matched", "dev_mismatched": "dev_mismatched"}
    json_folder, glue = tmp_path / "json", tmp_path / "glue"
    json_folder.mkdir()
    glue.mkdir()
    found = read(
        "mnli",
        json_folder,
        {
            f"multinli_1.0_{name}.jsonl": nli("neutral", number)
            for number, name in enumerate(names.values())
        },
    )
    assert {name: rows.examples[0].context[0] for name, rows in found.items()} == {
        "train": "A man 0.",
        "dev": "A man 1.",
        "dev_mismatched": "A man 2.",
    }
    header = "\t".join(
        [
            "index",
            "promptID",
            "pairID",
            "genre",
            "sentence1_binary_parse",
            "sentence2_binary_parse",
            "sentence1_parse",
            "sentence2_parse",
            "sentence1",
            "sentence2",
        ]
    )
    labelled = (
        f"{header}\tlabel1\tgold_label\n0\t1\t1n\tx\t(\t)\t(\t)\tA man.\tHe.\tentailment\tneutral\n"
    )
    found = read(
        "mnli",
        glue,
        {f"{name}.tsv": labelled for name in names.values()}
        | {"test_matched.tsv": f"{header}\n0\t1\t1n\tx\t(\t)\t(\t)\tA man.\tHe.\n"},
    )
    assert list(found) == ["train", "dev", "dev_mismatched", "test_matched"]
    assert examples(found, "dev_mismatched") == [(("A man.", "He."), (), 1)]
    labelled_splits = {name: {"labelled": rows.labelled} for name, rows in found.items()}
    assert [scored_split(column, labelled_splits) for column in TASKS["mnli"].columns] == [
        "dev",
        "dev_mismatched",
    ]


def test_scitail_has_no_header(tmp_path: Path) -> None:
    content = (
        'Pluto rotates once.\tPluto rotates.\tentails\nPluto is "small.\tPluto is a dog.\tneutral\n'
    )
    found = read(
        "scitail",
        tmp_path,
        {f"scitail_1.0_{split}.tsv": content for split in ("train", "dev", "test")},
    )
    assert examples(found, "test") == [
        (("Pluto rotates once.", "Pluto rotates."), (), 0),
        (('Pluto is "small.', "Pluto is a dog."), (), 1),
    ]


MSR = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


def msr(rows: int) -> str:
    return MSR + "".join(
        f'{number % 2}\t{number}\t9\tHe said "{number}.\tSaid he, {number}.\r\n'
        for number in range(rows)
    )


def test_mrpc_with_mark_quotes_and_crlf_and_its_dev_rows(tmp_path: Path) -> None:
    found = read(
        "mrpc",
        tmp_path,
        {"msr_paraphrase_train.txt": msr(4076), "msr_paraphrase_test.txt": msr(1725)},
    )
    assert {name: len(rows.examples) for name, rows in found.items()} == {
        "train": 3668,
        "dev": 408,
        "test": 1725,
    }
    assert examples(found, "test")[1] == (('He said "1.', "Said he, 1."), (), 1)
    train, dev = (
        {example.context[0] for example in found[name].examples} for name in ("train", "dev")
    )
    assert not train & dev
    assert (
        scored_split(
            TASKS["mrpc"].columns[0],
            {name: {"labelled": rows.labelled} for name, rows in found.items()},
        )
        == "test"
    )
    glue = read("mrpc", tmp_path, {"train.tsv": msr(6), "dev.tsv": msr(3)})
    sizes = {name: len(rows.examples) for name, rows in glue.items()}
    assert sizes == {"train": 6, "dev": 3, "test": 1725}, "GLUE's own dev rows go before ours"


def test_stsb_with_7_and_9_columns(tmp_path: Path) -> None:
    content = (
        'main-captions\tMSRvid\t2012test\t0001\t5.000\tA "plane.\tAn air plane.\n'
        "main-news\theadlines\t2013\t12\t0.25\tOne.\tTwo.\tlicence\tsource\n"
    )
    found = read(
        "stsb", tmp_path, {f"sts-{split}.csv": content for split in ("train", "dev", "test")}
    )
    assert examples(found, "test") == [
        (('A "plane.', "An air plane."), (), 5.0),
        (("One.", "Two."), (), 0.25),
    ]
    (tmp_path / "glue").mkdir()
    header = (
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    )
    content = header + "0\tg\tf\t2012\t1\tn\tn\tA.\tB.\t3.8\n"
    found = read("stsb", tmp_path / "glue", {"train.tsv": content, "dev.tsv": content})
    assert examples(found, "dev") == [(("A.", "B."), (), 3.8)]
    assert (
        scored_split(TASKS["stsb"].columns[0], {name: {"labelled": True} for name in found})
        == "dev"
    )


def story(number: int) -> str:
    return (
        f'id{number},"Karen, {number}, moved.",She ""laughed"".,Her room,was small.,"It was'
        f' ""fine"".",It flew.,{number % 2 + 1}\r\n'
    )


def test_story_cloze_splits_as_the_authors_do(tmp_path: Path) -> None:
    whole = STORY_HEADER + "".join(map(story, range(1871)))
    found = read("story_cloze", tmp_path, {VAL: whole, TEST: whole})
    assert {name: len(rows.examples) for name, rows in found.items()} == {
        "train": 1497,
        "dev": 374,
        "test": 1871,
    }
    first = (
        ('Karen, 0, moved. She ""laughed"". Her room was small.',),
        ('It was "fine".', "It flew."),
        0,
    )
    assert examples(found, "test")[0] == first
    # scikit-learn's rule, written out: the first 374 of a permutation by this seed are held out
    heldout = np.sort(np.random.RandomState(3535999445).permutation(1871)[:374])
    assert [example.context[0].split(", ")[1] for example in found["dev"].examples] == [
        str(number) for number in heldout
    ]
    few = STORY_HEADER + "".join(map(story, range(20)))
    found = read("story_cloze", tmp_path, {VAL: few, TEST: few})
    assert {name: len(rows.examples) for name, rows in found.items()} == {
        "train": 16,
        "dev": 4,
        "test": 20,
    }


def test_race_questions_are_examples_and_levels_subsets(tmp_path: Path) -> None:
    options = ("a", "b", "c", "d")
    passage = {
        "article": "A long day.",
        "questions": ["Who _ ?", "Why?"],
        "options": [options] * 2,
        "answers": ["B", "D"],
        "file": "f",
    }
    files = {name: json.dumps(passage) + "\n" for name in TASKS["race"].combined}
    found = read("race", tmp_path, files)
    assert examples(found, "test")[:2] == [
        (("A long day.", "Who _ ?"), options, 1),
        (("A long day.", "Why?"), options, 3),
    ]
    assert [example.subset for example in found["test"].examples] == [0, 0, 1, 1]
    assert len(read("race", tmp_path, {}, rows_wanted(3, 1))["train"].examples) == 3, (
        "a subset counts questions"
    )


def test_a_subset_is_seeded_ordered_and_nested() -> None:
    chosen = chosen_rows("sst2", "train", 1000, 100)
    assert len(set(chosen.tolist())) == 100
    assert (np.diff(chosen) > 0).all()
    assert np.array_equal(chosen, chosen_rows("sst2", "train", 1000, 100))
    assert set(chosen.tolist()) <= set(chosen_rows("sst2", "train", 1000, 101).tolist())
    assert not np.array_equal(chosen, chosen_rows("sst2", "dev", 1000, 100))
    assert np.array_equal(chosen_rows("sst2", "train", 5, None), np.arange(5))
    assert np.array_equal(chosen_rows("sst2", "train", 5, 9), np.arange(5))


def test_broken_arrow_is_refused_and_ends_no_process(tmp_path: Path) -> None:
    as_arrow(tmp_path, MADE["race"].tables, {})
    path = tmp_path / "train/data-00000-of-00002.arrow"
    sound, refused = path.read_bytes(), 0
    for place in range(0, len(sound) - 4, 28):
        path.write_bytes(sound[:place] + b"\xff\xff\xff\x7f" + sound[place + 4 :])
        try:
            assert all(
                isinstance(row, Example | Unreadable)
                for row in read_rows(path, TASKS["race"].layouts[2][0].format, TASKS["race"])
            )
        except UserError as error:
            refused += str(error).startswith(str(path))
    assert refused > 10


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
def test_real_files_give_the_official_numbers_of_rows(name: str) -> None:
    data = os.environ.get("GPT1_DATA")
    if not data:
        pytest.skip("$GPT1_DATA names no folder of official files")
    source = TASKS[name].source
    folder = find_sources(Path(data), [source])[name]
    if folder is None:
        pytest.skip(f"{data} holds none of {', '.join(source.folders)}")
    places = find_files(source, folder)
    assert places, f"{folder} lacks {source.expected}"
    row = rows_wanted()
    for split in splits_to_read(TASKS[name], next(iter(places.values())).parent, row):
        if split.name in REAL[name]:
            rows = read_split(TASKS[name], split, next(iter(places.values())).parent, row, 0.0)
            assert len(rows.examples) == REAL[name][split.name]
            assert all(
                isinstance(example, Example) and (example.label >= 0) == rows.labelled
                for example in rows.examples
            )
