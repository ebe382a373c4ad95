"""Every task in every form in which people have it, made up: the same dozen rows each time, written
by hand-made writers.

A form is a function that fills a folder. The first of a task is its original form.
"""

import csv
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from made_exports import (
    HUB,
    ROWS,
    Columns,
    Made,
    Write,
    as_lines,
    as_parquet,
    exports,
    labels,
    texts,
    write_lines,
)

NLI = ("entailment", "neutral", "contradiction")
ENTAILMENT = ("entailment", "not_entailment")


def _tsv(
    path: Path,
    columns: Mapping[str, Sequence[object]],
    *,
    header: bool = True,
    end: str = "\n",
    start: str = "",
) -> None:
    rows = [list(columns)] if header else []
    rows += [list(row) for row in zip(*columns.values(), strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((start + "".join("\t".join(map(str, row)) + end for row in rows)).encode())


def _hub(
    first: str,
    second: str | None,
    words: Sequence[str],
    *,
    hidden: bool,
    splits: Mapping[str, str] = HUB,
) -> dict[str, Columns]:
    tables = {}
    for split, there in splits.items():
        found = [-1] * ROWS[split] if hidden and split == "test" else labels(split, len(words))
        tables[there] = (
            {first: texts(split, "a")}
            | ({second: texts(split, "b")} if second else {})
            | {"label": found, "idx": list(range(ROWS[split]))}
        )
    return tables


def _glue(
    folder: Path, first: str, second: str | None, label: str, words: Sequence[object]
) -> None:
    for split, rows in ROWS.items():
        columns: dict[str, Sequence[object]] = {"index": range(rows), first: texts(split, "a")}
        columns |= {second: texts(split, "b")} if second else {}
        columns |= (
            {}
            if split == "test"
            else {label: [words[number] for number in labels(split, len(words))]}
        )
        _tsv(folder / f"{split}.tsv", columns)


def _glue_task(
    first: str, second: str | None, label: str, words: Sequence[object], names: Sequence[str]
) -> Made:
    tables = _hub(first, second, names, hidden=True)
    return Made(
        {
            "original": lambda folder: _glue(folder, first, second, label, words),
            **exports(tables, {"label": names}),
        },
        tables,
        {"label": names},
    )


def snli() -> Made:
    """With a row of no gold label in train: "-", and -1 in exports."""
    tables = _hub("premise", "hypothesis", NLI, hidden=False)
    tables["train"]["label"][3] = -1

    def original(folder: Path) -> None:
        for split in ROWS:
            words = [NLI[number] for number in labels(split, 3)]
            if split == "train":
                words[3] = "-"
            write_lines(
                folder / f"snli_1.0_{split}.jsonl",
                {
                    "gold_label": words,
                    "sentence1": texts(split, "a"),
                    "sentence2": texts(split, "b"),
                },
            )

    return Made({"original": original, **exports(tables, {"label": NLI})}, tables, {"label": NLI})


def mnli() -> Made:
    """Two dev sets, here of the same rows; GLUE's diagnostic set (the test rows) beside the files,
    in a folder AX, and in an export.
    """
    words = {split: [NLI[number] for number in labels(split, 3)] for split in ROWS}
    splits = {"train": "train", "dev": "validation_matched", "test": "test_matched"}
    tables = _hub("premise", "hypothesis", NLI, hidden=True, splits=splits)
    tables |= {
        "validation_mismatched": tables["validation_matched"],
        "test_mismatched": tables["test_matched"],
    }
    unlabelled: dict[str, Sequence[object]] = {
        "index": range(ROWS["test"]),
        "sentence1": texts("test", "a"),
        "sentence2": texts("test", "b"),
    }

    def glue(folder: Path, diagnostic: str) -> None:
        for split, name in (("train", "train"), ("dev", "dev_matched"), ("dev", "dev_mismatched")):
            _tsv(
                folder / f"{name}.tsv",
                {
                    "index": range(ROWS[split]),
                    "sentence1": texts(split, "a"),
                    "sentence2": texts(split, "b"),
                    "label1": words[split],
                    "gold_label": words[split],
                },
            )
        for name in ("test_matched.tsv", "test_mismatched.tsv", diagnostic):
            _tsv(folder / name, unlabelled)

    def lines(folder: Path) -> None:
        for split, name in (("train", "train"), ("dev", "dev_matched"), ("dev", "dev_mismatched")):
            write_lines(
                folder / f"multinli_1.0_{name}.jsonl",
                {
                    "gold_label": words[split],
                    "sentence1": texts(split, "a"),
                    "sentence2": texts(split, "b"),
                },
            )

    def with_ax(write: Write) -> Write:
        def both(folder: Path) -> None:
            write(folder)
            if (folder / "train-00000-of-00001.parquet").exists():
                as_parquet(folder / "ax", {"test": tables["test_matched"]}, {"label": NLI})

        return both

    hub = {name: with_ax(write) for name, write in exports(tables, {"label": NLI}).items()}
    return Made(
        {
            "original": lambda folder: glue(folder, "diagnostic.tsv"),
            "with AX in its folder": lambda folder: glue(folder, "AX/AX.tsv"),
            "NYU's JSON lines": lines,
            **hub,
        },
        tables,
        {"label": NLI},
    )


def scitail() -> Made:
    """Exports have words for labels, and one of the hub's four is snli_format."""
    right = {split: labels(split, 2) for split in ROWS}

    def pair(
        split: str, first: str, second: str, label: str, words: Sequence[str]
    ) -> dict[str, Sequence[object]]:
        return {
            first: texts(split, "a"),
            second: texts(split, "b"),
            label: [words[number] for number in right[split]],
        }

    nli, own = ("entailment", "neutral"), ("entails", "neutral")

    def tsv(folder: Path) -> None:
        for split in ROWS:
            _tsv(
                folder / f"SciTailV1.1/tsv_format/scitail_1.0_{split}.tsv",
                pair(split, "p", "h", "l", own),
                header=False,
            )

    def snli_lines(folder: Path) -> None:
        for split in ROWS:
            write_lines(
                folder / f"snli_format/scitail_1.0_{split}.txt",
                pair(split, "sentence1", "sentence2", "gold_label", nli)
                | {"annotator_labels": [["entails"]] * ROWS[split]},
            )

    tables = {
        there: pair(split, "premise", "hypothesis", "label", own) for split, there in HUB.items()
    }
    lists = {
        split: {name: list(values) for name, values in columns.items()}
        for split, columns in tables.items()
    }
    formed = {
        there: {
            name: list(values)
            for name, values in pair(split, "sentence1", "sentence2", "gold_label", nli).items()
        }
        for split, there in HUB.items()
    }

    def clone(folder: Path) -> None:
        as_parquet(folder / "snli_format", formed, {})
        damaged = {
            name: {key: values[:2] for key, values in columns.items()}
            for name, columns in lists.items()
        }
        as_parquet(folder / "dgem_format", damaged, {})

    return Made(
        {
            "original": tsv,
            "snli_format": snli_lines,
            "clone of all formats": clone,
            **exports(lists, {}),
        },
        lists,
        {},
    )


def race() -> Made:
    """The rows of middle schools first; a passage a question. Forms with one level alone are in
    test_forms.py.
    """

    def questions(split: str, level: str) -> list[dict[str, Any]]:
        shares = {
            "middle": range(0, ROWS[split] // 2),
            "high": range(ROWS[split] // 2, ROWS[split]),
        }
        return [
            {
                "example_id": f"{level}{number}.txt",
                "article": texts(split, "a")[number],
                "question": texts(split, "b")[number],
                "options": [f"{number} {letter}é" for letter in "abcd"],
                "answer": "ABCD"[number % 4],
            }
            for number in shares[level]
        ]

    def columns_of(rows: list[dict[str, Any]]) -> Columns:
        return {name: [row[name] for row in rows] for name in rows[0]}

    def original(folder: Path) -> None:
        for split in ROWS:
            for level in ("middle", "high"):
                for number, row in enumerate(questions(split, level)):
                    path = folder / "RACE" / split / level / f"{number}.txt"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(
                        json.dumps(
                            {
                                "article": row["article"],
                                "id": row["example_id"],
                                "questions": [row["question"]],
                                "options": [row["options"]],
                                "answers": [row["answer"]],
                            }
                        )
                    )

    levels = {
        level: {there: columns_of(questions(split, level)) for split, there in HUB.items()}
        for level in ("middle", "high")
    }
    both = {
        there: columns_of([*questions(split, "middle"), *questions(split, "high")])
        for split, there in HUB.items()
    }

    def apart(folder: Path) -> None:
        for level, tables in levels.items():
            as_parquet(folder / level, tables, {})

    def whole(folder: Path) -> None:
        apart(folder)
        as_parquet(folder / "all", both, {})

    return Made(
        {
            "original": original,
            "levels apart": apart,
            "all and levels": whole,
            **exports(both, {}),
        },
        both,
        {},
    )


STORY = tuple(f"InputSentence{number}" for number in range(1, 5))


def story_cloze() -> Made:
    """Train and dev are drawn of the validation stories; the 2018 set's test has no answers."""
    files = {
        "2016": (
            "cloze_test_val__spring2016 - cloze_test_ALL_val.csv",
            "cloze_test_test__spring2016 - cloze_test_ALL_test.csv",
        ),
        "2018": (
            "cloze_test_val__winter2018-cloze_test_ALL_val - 1 - 1.csv",
            "cloze_test_test__winter2018-cloze_test_ALL_test - 1.csv",
        ),
    }

    def stories(split: str) -> Columns:
        columns: Columns = {name: texts(split, name) for name in (*STORY, "Quiz1", "Quiz2")}
        return columns | {"answer": [number + 1 for number in labels(split, 2)]}

    def original(which: str) -> Write:
        def write(folder: Path) -> None:
            for split, name in zip(("train", "test"), files[which], strict=True):
                columns = stories(split)
                header = [
                    "InputStoryid",
                    *STORY,
                    "RandomFifthSentenceQuiz1",
                    "RandomFifthSentenceQuiz2",
                    "AnswerRightEnding",
                ]
                rows = [["id", *row] for row in zip(*columns.values(), strict=True)]
                if which == "2018" and split == "test":
                    header, rows = header[:-1], [row[:-1] for row in rows]
                with (folder / name).open("w", encoding="utf-8", newline="") as file:
                    csv.writer(file).writerows([header, *rows])

        return write

    names = [f"input_sentence_{number}" for number in range(1, 5)] + [
        "sentence_quiz1",
        "sentence_quiz2",
        "answer_right_ending",
    ]
    tables = {
        there: dict(zip(names, stories(split).values(), strict=True))
        for split, there in (("train", "validation"), ("test", "test"))
    }
    forms = {
        "original": original("2016"),
        "2018": original("2018"),
    }
    return Made(forms | exports(tables, {}), tables, {})


def mrpc() -> Made:
    """The original: Microsoft's test, and GLUE's train and dev of Microsoft's train. The hub has
    test labels too.
    """

    def msr(split: str) -> dict[str, Sequence[object]]:
        return {
            "Quality": labels(split, 2),
            "#1 ID": range(ROWS[split]),
            "#2 ID": range(ROWS[split]),
            "#1 String": texts(split, "a"),
            "#2 String": texts(split, "b"),
        }

    def together() -> dict[str, Sequence[object]]:
        return {name: [*values, *msr("dev")[name]] for name, values in msr("train").items()}

    def original(folder: Path) -> None:
        for split in ("train", "dev"):
            _tsv(folder / f"{split}.tsv", msr(split))
        _tsv(folder / "msr_paraphrase_test.txt", msr("test"), end="\r\n", start="\ufeff")

    def microsoft(folder: Path) -> None:
        for name, columns in (("train", together()), ("test", msr("test"))):
            _tsv(folder / f"msr_paraphrase_{name}.txt", columns, end="\r\n", start="\ufeff")

    def extracted(folder: Path) -> None:
        _tsv(folder / "_2DEC3DBE877E4DB192D17C0256E90F1D", together(), end="\r\n", start="\ufeff")
        _tsv(folder / "_D7B391F9EAFF4B1B8BCE8F21B20B1B61", msr("test"), end="\r\n", start="\ufeff")
        with (folder / "_2DEC3DBE877E4DB192D17C0256E90F1D").open("ab") as file:
            file.write(b"\r\n\r\n")  # an odd end

    tables = _hub("sentence1", "sentence2", ("0", "1"), hidden=False)
    names = ("not_equivalent", "equivalent")
    return Made(
        {
            "original": original,
            "Microsoft's files": microsoft,
            "out of the .msi": extracted,
            **exports(tables, {"label": names}),
        },
        tables,
        {"label": names},
    )


def stsb() -> Made:
    """Scores with as many decimals as the real ones have; GLUE's and the hub's test has none."""
    scores = {
        split: [round(number * 0.267 % 5, 3) for number in range(rows)]
        for split, rows in ROWS.items()
    }

    def original(folder: Path) -> None:
        for split, rows in ROWS.items():
            _tsv(
                folder / f"sts-{split}.csv",
                {
                    "genre": ["g"] * rows,
                    "file": ["f"] * rows,
                    "year": ["2012"] * rows,
                    "old": range(rows),
                    "score": scores[split],
                    "a": texts(split, "a"),
                    "b": texts(split, "b"),
                },
                header=False,
            )

    def glue(folder: Path) -> None:
        for split, rows in ROWS.items():
            columns: dict[str, Sequence[object]] = {
                "index": range(rows),
                "sentence1": texts(split, "a"),
                "sentence2": texts(split, "b"),
            }
            _tsv(
                folder / f"{split}.tsv",
                columns | ({} if split == "test" else {"score": scores[split]}),
            )

    def tables_of(label: str, test: list[float]) -> dict[str, Columns]:
        return {
            there: {
                "sentence1": texts(split, "a"),
                "sentence2": texts(split, "b"),
                label: test if split == "test" else scores[split],
            }
            for split, there in HUB.items()
        }

    hidden, public = tables_of("label", [-1.0] * ROWS["test"]), tables_of("score", scores["test"])
    return Made(
        {
            "original": original,
            "GLUE": glue,
            "export with test scores": lambda folder: as_lines(folder, public, {}),
            **exports(hidden, {}),
        },
        hidden,
        {},
    )


def cola() -> Made:
    """GLUE's train and dev have no header; the raw release has dev in two files, and no test."""

    def columns(split: str, rows: slice = slice(None)) -> dict[str, Sequence[object]]:
        right = labels(split, 2)[rows]
        return {
            "source": ["gj04"] * len(right),
            "label": right,
            "mark": ["*" if label == 0 else "" for label in right],
            "sentence": texts(split, "a")[rows],
        }

    def original(folder: Path) -> None:
        for split in ("train", "dev"):
            _tsv(folder / f"{split}.tsv", columns(split), header=False)
        _tsv(folder / "test.tsv", {"index": range(ROWS["test"]), "sentence": texts("test", "a")})

    def raw(folder: Path) -> None:
        with zipfile.ZipFile(folder / "cola_public_1.1.zip", "w") as archive:
            for name, part in (
                ("in_domain_train", columns("train")),
                ("in_domain_dev", columns("dev", slice(0, 4))),
                ("out_of_domain_dev", columns("dev", slice(4, None))),
            ):
                _tsv(folder / "spare", part, header=False)
                archive.write(folder / "spare", f"cola_public/raw/{name}.tsv")
        (folder / "spare").unlink()

    tables = _hub("sentence", None, ("0", "1"), hidden=True)
    names = ("unacceptable", "acceptable")
    return Made(
        {"original": original, "raw": raw, **exports(tables, {"label": names})},
        tables,
        {"label": names},
    )


MADE: dict[str, Made] = {
    "snli": snli(),
    "mnli": mnli(),
    "scitail": scitail(),
    "race": race(),
    "story_cloze": story_cloze(),
    "mrpc": mrpc(),
    "stsb": stsb(),
    "cola": cola(),
    "qnli": _glue_task("question", "sentence", "label", ENTAILMENT, ENTAILMENT),
    "rte": _glue_task("sentence1", "sentence2", "label", ENTAILMENT, ENTAILMENT),
    "qqp": _glue_task(
        "question1", "question2", "is_duplicate", (0, 1), ("not_duplicate", "duplicate")
    ),
    "sst2": _glue_task("sentence", None, "label", (0, 1), ("negative", "positive")),
}
