"""Sources: found by the names people have them under, taken through `acquire`'s own command line,
refused in one line.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from made_data import put_files, write_paper_params

from gpt1.base.files import read_json
from gpt1.params.yaml import read_yaml
from gpt1.sources.find import find_sources
from gpt1.sources.table import SOURCES
from gpt1.tasks.table import TASKS

ROOT = Path(__file__).parents[1]
PASSAGE = {
    "article": "A cat sat.",
    "id": "high1.txt",
    "answers": ["A"],
    "questions": ["Who sat _ ?"],
    "options": [["cat", "dog", "hen", "cow"]],
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty folder with the paper's params.yaml."""
    write_paper_params(
        tmp_path,
        acquire={"max_unpacked_bytes": 100_000},
        encode={"max_unreadable_fraction": 0.5},
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def acquire(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "gpt1.stages", "acquire", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def put(name, content="x\n"):
    put_files("data/raw", {name: content})
    return Path("data/raw", name)


def refused(*arguments):
    """The one line of a refusal; nothing is written."""
    done = acquire(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    left = [path for path in Path("data").rglob("*") if "acquire" in path.parts and path.is_file()]
    assert not left
    return done.stderr.removeprefix("error: ").rstrip("\n")


def test_every_row_of_the_paper_profile_has_a_source_and_the_reverse():
    params = read_yaml(ROOT / "conf" / "paper.yaml")
    assert set(params["sources"]) == set(SOURCES) | set(TASKS)
    assert set(params["tasks"]) == set(TASKS)


def test_find_sources_knows_the_names_people_have(tmp_path):
    for name in ("books", "SNLI", "glue_data/CoLA", "SciTailV1.1", "STS-B"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "RTE").mkdir()
    (tmp_path / "MRPC").touch()
    found = find_sources(tmp_path, [*SOURCES.values(), *(task.source for task in TASKS.values())])
    assert list(found) == [*SOURCES, *TASKS]
    assert {
        name: path.relative_to(tmp_path).as_posix() for name, path in found.items() if path
    } == {
        "books": "books",
        "snli": "SNLI",
        "cola": "glue_data/CoLA",
        "scitail": "SciTailV1.1",
        "stsb": "STS-B",
    }


def test_acquire_copies_the_official_files_and_describes_them(checkout):
    put("cola/train.tsv", "gj04\t1\t\tOne.\ngj04\t1\t\tTwo.")
    put("cola/dev.tsv", "gj04\t1\t\tOne.\n")
    put("cola/notes.txt")
    done = acquire("cola")
    assert done.returncode == 0, done.stderr
    folder = checkout / "data/acquire/tasks/cola"
    assert sorted(path.name for path in folder.iterdir()) == [
        "dev.tsv",
        "manifest.json",
        "train.tsv",
    ]
    manifest = read_json(folder / "manifest.json")
    digest = hashlib.sha256(b"gj04\t1\t\tOne.\ngj04\t1\t\tTwo.").hexdigest()
    assert manifest["files"]["train.tsv"] == {"bytes": 25, "rows": 2, "sha256": digest}
    assert (manifest["source"], manifest["files"]["dev.tsv"]["rows"]) == ("cola", 1)
    assert manifest["licence"]
    assert str(checkout) not in (folder / "manifest.json").read_text()


def test_acquire_looks_into_folders_and_archives(checkout):
    for split in ("train", "dev", "test"):
        put(f"scitail/SciTailV1.1/tsv_format/scitail_1.0_{split}.tsv", "A cat\tIt is\tneutral\n")
    put("snli/README")
    with zipfile.ZipFile("data/raw/snli/snli_1.0.zip", "w") as archive:
        archive.writestr("__MACOSX/snli_1.0/._snli_1.0_train.jsonl", "junk")
        archive.writestr("snli_1.0/Icon\r", "")
        for split in ("train", "dev", "test"):
            archive.writestr(
                f"snli_1.0/snli_1.0_{split}.jsonl",
                '{"gold_label": "neutral", "sentence1": "A cat.", "sentence2": "It is."}\n',
            )
    for source in ("scitail", "snli"):
        done = acquire(source)
        assert done.returncode == 0, done.stderr
    assert len(list(Path("data/acquire/tasks/scitail").iterdir())) == 4
    assert sorted(path.name for path in Path("data/acquire/tasks/snli").iterdir()) == [
        "manifest.json",
        "snli_1.0_dev.jsonl",
        "snli_1.0_test.jsonl",
        "snli_1.0_train.jsonl",
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_race_becomes_one_file_a_split_and_level(checkout, packed):
    for split in ("train", "dev", "test"):
        for level in ("middle", "high"):
            put(f"race/RACE/{split}/{level}/2.txt", json.dumps(PASSAGE))
    put("race/RACE/test/high/10.txt", "{'article'")
    put("race/RACE/test/high/._10.txt", "as a Mac leaves it")
    if packed:
        with tarfile.open("data/raw/race/RACE.tar.gz", "w:gz") as archive:
            archive.add("data/raw/race/RACE", "RACE")
        shutil.rmtree("data/raw/race/RACE")
    done = acquire("race")
    assert done.returncode == 0, done.stderr
    folder = checkout / "data/acquire/tasks/race"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*TASKS["race"].combined, "manifest.json"]
    )
    lines = [json.loads(line) for line in (folder / "test_high.jsonl").read_text().splitlines()]
    assert lines == [
        {"file": "test/high/10.txt", "unreadable": "not JSON"},
        PASSAGE | {"file": "test/high/2.txt"},
    ]
    assert read_json(folder / "manifest.json")["files"]["test_high.jsonl"]["rows"] == 2


def test_books_are_taken_at_any_depth_with_their_names(checkout):
    (checkout / "mine/austen").mkdir(parents=True)
    (checkout / "mine/austen/emma.txt").write_text("Emma\n")
    (checkout / "mine/one.txt").write_text("One\n")
    (checkout / "mine/cover.jpg").touch()
    hidden = (
        ".ipynb_checkpoints/one.txt",
        ".Trash-1000/a/b.txt",
        "__MACOSX/._one.txt",
        "~$one.txt",
    )
    for name in hidden:
        (checkout / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / "mine" / name).write_text("One\n")
    (checkout / "data/raw").mkdir(parents=True)
    (checkout / "data/raw/books").symlink_to(checkout / "mine")
    done = acquire("books")
    assert done.returncode == 0, done.stderr
    folder = checkout / "data/acquire/corpus/books"
    assert list(read_json(folder / "manifest.json")["files"]) == ["austen/emma.txt", "one.txt"]
    assert (folder / "austen/emma.txt").read_text() == "Emma\n"
    shutil.make_archive("mine/all", "zip", "mine")
    Path("data/raw/books").unlink()
    put("books/all.zip", Path("mine/all.zip").read_bytes())
    done = acquire("books")
    assert done.returncode == 0, done.stderr
    found = list(read_json(folder / "manifest.json")["files"])
    assert found == ["all.zip/austen/emma.txt", "all.zip/one.txt"]


def test_missing_files_are_named(checkout):
    put("cola/train.tsv")
    assert (
        refused("cola")
        == "data/raw/cola: expected train.tsv, dev.tsv or in_domain_train.tsv, in_domain_dev.tsv,"
        " out_of_domain_dev.tsv or a Hugging Face export (.parquet, .arrow or .jsonl); found"
        " train.tsv; put"
        " https://nyu-mll.github.io/CoLA/cola_public_1.1.zip or"
        " https://dl.fbaipublicfiles.com/glue/data/CoLA.zip into data/raw/cola (the zip, or what"
        " it holds)"
    )


@pytest.mark.slow
def test_a_missing_and_an_empty_corpus_stop(checkout):
    how = SOURCES["books"].how_to_get
    assert (
        refused("books")
        == "data/raw/books is not there; expected a folder, or a link to one, with *.txt files:"
        f" {how}"
    )
    Path("data/raw/books").mkdir(parents=True)
    assert refused("books") == f"data/raw/books: expected *.txt files; found nothing; {how}"
    put("books/book.pdf")
    assert refused("books") == f"data/raw/books: expected *.txt files; found book.pdf; {how}"


def test_a_linked_folder_and_an_unprintable_name_are_named(checkout):
    put("books/one.txt")
    Path("data/raw/books/again").symlink_to("/tmp")
    assert (
        refused("books")
        == "data/raw/books/again is a link to a folder; put that folder itself there, so that none"
        " counts twice"
    )
    Path("data/raw/books/again").unlink()
    put("books/a\nb.txt")
    assert refused("books").startswith(
        "data/raw/books holds 'a\\nb.txt', which is a link to nothing"
    )


@pytest.mark.slow
def test_bad_archives_and_bad_arguments_stop(checkout):
    archive = put("race/RACE.tar.gz", b"\x1f\x8b\x08\x00")
    assert refused("race").startswith("data/raw/race/RACE.tar.gz cannot be unpacked (")
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../x"))
    assert refused("race").startswith(
        "data/raw/race/RACE.tar.gz holds '../x', which would leave the folder"
    )
    assert not Path("data/raw/x").exists()
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(ROOT / "conf", "conf")
    assert refused("race").startswith(
        "data/raw/race: expected train/middle/*.txt, train/high/*.txt, dev/middle/*.txt"
    )
    assert refused("rase") == f"expected one source of {', '.join([*SOURCES, *TASKS])}; found rase"
    assert refused() == "expected acquire SOURCE; found acquire"
