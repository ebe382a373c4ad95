"""Every task in every form in which people have it, made up: the same dozen rows each time, written
by hand-made writers.

A form is a function that fills a folder. The first of a task is its original form.
"""

import csv
import json
import zipfile
from collections import namedtuple

from made_exports import (
    EXPORTS,
    HUB,
    ROWS,
    as_lines,
    as_parquet,
    columns_of,
    rows_of,
    write_lines,
)

# one task's forms by name; the tables of its export, and their classes
Made = namedtuple("Made", ("forms", "tables", "classes"))


def write_tsv(path, columns, header=True, end="\n", start=""):
    rows = [list(columns)] if header else []
    rows += [list(row) for row in zip(*columns.values(), strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((start + "".join("\t".join(map(str, row)) + end for row in rows)).encode())


def write_csv(path, columns):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])


def files(
    write,
    names,
    columns,
    words=(),
    **options,
):
    """A form of files that have the same columns."""

    def form(folder):
        for name, rows in names.items():
            write(folder / name, columns_of(rows, columns, words), **options)

    return form


def each(pattern, splits=ROWS):
    """A file of each split."""
    return {pattern.format(split): rows_of(split) for split in splits}


def all_of(*forms):
    def form(folder):
        for one in forms:
            one(folder)

    return form


def hub(columns, words, hidden=False):
    """The tables of an export; hidden labels of its test are -1."""
    tables = {HUB[split]: columns_of(rows_of(split), columns, words) for split in ROWS}
    if hidden:
        tables["test"]["label"] = [-1] * ROWS["test"]
    return tables


def made(forms, tables, *names):
    """The forms of a task, and every form of its export; `names` of its classes, where it has
    integers for labels.
    """
    classes = {"label": names} if names else {}
    exports = {
        name: lambda folder, write=write: write(folder, tables, classes)
        for name, write in EXPORTS.items()
    }
    return Made(forms | exports, tables, classes)


def glue_files(columns, label, words=()):
    """GLUE's .tsv with an index, and a test without labels."""
    train_and_dev = each("{}.tsv", ("train", "dev"))
    return all_of(
        files(write_tsv, train_and_dev, f"index=row, {columns}, {label}", words),
        files(write_tsv, each("{}.tsv", ["test"]), f"index=row, {columns}"),
    )


def glue(columns, label, words, *names):
    original = glue_files(columns, f"{label}=label", words)
    tables = hub(f"{columns}, label=label, idx=row", range(len(names)), hidden=True)
    return made({"original": original}, tables, *names)


NLI = ("entailment", "neutral", "contradiction")
PAIR = "premise=a, hypothesis=b, label=label"
SENTENCES = "sentence1=a, sentence2=b"
SNLI_LINES = f"gold_label=label, {SENTENCES}, annotator_labels=options"


def snli():
    """With a row of no gold label in train: "-", and -1 in exports."""
    tables = hub(PAIR, range(3))
    tables["train"]["label"][3] = -1

    def original(folder):
        files(write_lines, each("snli_1.0_{}.jsonl"), SNLI_LINES, NLI)(folder)
        path = folder / "snli_1.0_train.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()
        lines[3] = json.dumps(json.loads(lines[3]) | {"gold_label": "-"})
        path.write_text("\n".join(lines), encoding="utf-8")

    return made({"original": original}, tables, *NLI)


def mnli():
    """Two dev sets, here of the same rows; GLUE's diagnostic set (the test rows) beside the files,
    in a folder AX, and in an export.
    """
    labelled = {"train": "train", "dev_matched": "dev", "dev_mismatched": "dev"}
    rows = {name: rows_of(split) for name, split in labelled.items()}

    def with_diagnostic(name):
        hidden = dict.fromkeys(("test_matched.tsv", "test_mismatched.tsv", name), rows_of("test"))
        glue_files = {f"{name}.tsv": found for name, found in rows.items()}
        columns = f"index=row, {SENTENCES}"
        return all_of(
            files(write_tsv, glue_files, f"{columns}, label1=row, gold_label=label", NLI),
            files(write_tsv, hidden, columns),
        )

    lines = {f"multinli_1.0_{name}.jsonl": found for name, found in rows.items()}
    matched = hub(f"{PAIR}, idx=row", range(3), hidden=True)
    tables = {"train": matched.pop("train")}
    for split, columns in matched.items():
        tables |= {f"{split}_matched": columns, f"{split}_mismatched": columns}
    found = made(
        {
            "original": with_diagnostic("diagnostic.tsv"),
            "with AX in its folder": with_diagnostic("AX/AX.tsv"),
            "NYU's JSON lines": files(write_lines, lines, SNLI_LINES, NLI),
        },
        tables,
        *NLI,
    )
    ax = {"test": matched["test"]}
    found.forms["parquet"] = all_of(
        found.forms["parquet"], lambda folder: as_parquet(folder / "ax", ax, found.classes)
    )
    return found


def scitail():
    """Exports have words for labels, and one of the hub's four is snli_format."""
    words, own = ("entailment", "neutral"), ("entails", "neutral")
    tables = hub(PAIR, own)

    tsv = each("SciTailV1.1/tsv_format/scitail_1.0_{}.tsv")
    forms = {
        "original": files(write_tsv, tsv, "p=a, h=b, l=label", own, header=False),
        "snli_format": files(
            write_lines, each("snli_format/scitail_1.0_{}.txt"), SNLI_LINES, words
        ),
    }
    return made(forms, tables)


def write_passage(path, columns):
    """One article, and lists of its questions, options, answers."""
    about = {name: found if name.endswith("s") else found[0] for name, found in columns.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about))


def race():
    """The rows of middle schools first; a passage a question."""
    columns = "example_id=level, article=a, question=b, options=options, answer=label"
    passage = "id=level, article=a, questions=b, options=options, answers=label"
    halves = {"middle": slice(None, 2), "high": slice(2, None)}
    levels = {
        level: {split: rows_of(split)[half] for split in ROWS} for level, half in halves.items()
    }
    passages = {
        f"RACE/{split}/{level}/{row[1]}.txt": [row]
        for level, splits in levels.items()
        for split, rows in splits.items()
        for row in rows
    }

    def apart(folder):
        for level, splits in levels.items():
            tables = {
                HUB[split]: columns_of(rows, columns, "ABCD") for split, rows in splits.items()
            }
            as_parquet(folder / level, tables, {})

    both = hub(columns, "ABCD")
    forms = {
        "original": files(write_passage, passages, passage, "ABCD"),
        "levels apart": apart,
        "all and levels": all_of(apart, lambda folder: as_parquet(folder / "all", both, {})),
    }
    return Made(forms, {}, {})


def story_cloze():
    """Train and dev are drawn of the validation stories; the 2018 set's test has no answers."""
    story = ", ".join(f"InputSentence{number}=sentence {number}" for number in range(1, 5))
    story = f"InputStoryid=row, {story}, RandomFifthSentenceQuiz1=a, RandomFifthSentenceQuiz2=b"
    answered = f"{story}, AnswerRightEnding=label"
    dev, test = rows_of("train"), rows_of("test")
    spring = {
        "cloze_test_val__spring2016 - cloze_test_ALL_val.csv": dev,
        "cloze_test_test__spring2016 - cloze_test_ALL_test.csv": test,
    }
    dev_2018 = {"cloze_test_val__winter2018-cloze_test_ALL_val - 1 - 1.csv": dev}
    test_2018 = {"cloze_test_test__winter2018-cloze_test_ALL_test - 1.csv": test}
    forms = {
        "original": files(write_csv, spring, answered, (1, 2)),
        "2018": all_of(
            files(write_csv, dev_2018, answered, (1, 2)), files(write_csv, test_2018, story)
        ),
    }
    names = ", ".join(f"input_sentence_{number}=sentence {number}" for number in range(1, 5))
    names += ", sentence_quiz1=a, sentence_quiz2=b, answer_right_ending=label"
    rows = {"validation": dev, "test": test}
    return made(forms, {split: columns_of(found, names, (1, 2)) for split, found in rows.items()})


def mrpc():
    """The original: Microsoft's test, and GLUE's train and dev of Microsoft's train. The hub has
    test labels too.
    """
    columns = "Quality=label, #1 ID=row, #2 ID=row, #1 String=a, #2 String=b"
    both = [*rows_of("train"), *rows_of("dev")]

    def microsoft(train, test):
        names = {train: both, test: rows_of("test")}
        return files(write_tsv, names, columns, (0, 1), end="\r\n", start="\ufeff")

    theirs = microsoft("msr_paraphrase_train.txt", "msr_paraphrase_test.txt")
    of_glue = files(write_tsv, each("{}.tsv", ("train", "dev")), columns, (0, 1))
    extracted = "_2DEC3DBE877E4DB192D17C0256E90F1D", "_D7B391F9EAFF4B1B8BCE8F21B20B1B61"

    def odd_end(folder):
        with (folder / extracted[0]).open("ab") as file:
            file.write(b"\r\n\r\n")

    forms = {
        "original": all_of(
            theirs, of_glue, lambda folder: (folder / "msr_paraphrase_train.txt").unlink()
        ),
        "Microsoft's files": theirs,
        "out of the .msi": all_of(microsoft(*extracted), odd_end),
    }
    tables = hub(f"{SENTENCES}, label=label, idx=row", range(2))
    return made(forms, tables, "not_equivalent", "equivalent")


def stsb():
    """Scores with as many decimals as the real ones have; GLUE's and the hub's test has none."""
    columns = "genre=a, file=b, year=row, old=row, score=score, a=a, b=b"
    tables = hub(f"{SENTENCES}, label=score", ())
    tables["test"]["label"] = [-1.0] * ROWS["test"]
    public = hub(f"{SENTENCES}, score=score", ())
    forms = {
        "original": files(write_tsv, each("sts-{}.csv"), columns, header=False),
        "GLUE": glue_files(SENTENCES, "score=score"),
        "export with test scores": lambda folder: as_lines(folder, public, {}),
    }
    return made(forms, tables)


def cola():
    """GLUE's train and dev have no header; the raw release has dev in two files, and no test."""
    columns = "source=row, label=label, mark=row, sentence=a"
    train_and_dev = each("{}.tsv", ("train", "dev"))
    parts = {
        "in_domain_train": rows_of("train"),
        "in_domain_dev": rows_of("dev", 0, 4),
        "out_of_domain_dev": rows_of("dev", 4),
    }

    def raw(folder):
        with zipfile.ZipFile(folder / "cola_public_1.1.zip", "w") as archive:
            for name, rows in parts.items():
                files(write_tsv, {"spare": rows}, columns, (0, 1), header=False)(folder)
                archive.write(folder / "spare", f"cola_public/raw/{name}.tsv")
        (folder / "spare").unlink()

    original = all_of(
        files(write_tsv, train_and_dev, columns, (0, 1), header=False),
        files(write_tsv, each("{}.tsv", ["test"]), "index=row, sentence=a"),
    )
    tables = hub("sentence=a, label=label, idx=row", range(2), hidden=True)
    return made({"original": original, "raw": raw}, tables, "unacceptable", "acceptable")


ENTAILMENT = ("entailment", "not_entailment")
MADE = {
    "snli": snli(),
    "mnli": mnli(),
    "scitail": scitail(),
    "race": race(),
    "story_cloze": story_cloze(),
    "mrpc": mrpc(),
    "stsb": stsb(),
    "cola": cola(),
    "qnli": glue("question=a, sentence=b", "label", ENTAILMENT, *ENTAILMENT),
    "rte": glue(SENTENCES, "label", ENTAILMENT, *ENTAILMENT),
    "qqp": glue("question1=a, question2=b", "is_duplicate", (0, 1), "not_duplicate", "duplicate"),
    "sst2": glue("sentence=a", "label", (0, 1), "negative", "positive"),
}
