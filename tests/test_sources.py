"""Sources: found by the names people have them under, taken by `acquire`, refused in one line."""

import hashlib
import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
from made_data import json_lines, put_files, refused, write_paper_params

from gpt1.base.files import read_json
from gpt1.params.yaml import read_yaml
from gpt1.sources.definitions import SOURCES
from gpt1.sources.find import find_sources
from gpt1.stages import acquire
from gpt1.tasks.definitions import TASKS, all_sources

ROOT = Path(__file__).parents[1]
PASSAGE = {
    "article": "A cat sat.",
    "id": "high1.txt",
    "answers": ["A"],
    "questions": ["Who sat _ ?"],
    "options": [["cat", "dog", "hen", "cow"]],
}


@pytest.fixture
def checkout(elsewhere):
    """An empty folder with the paper's params.yaml."""
    write_paper_params(
        elsewhere, acquire={"max_unpacked_bytes": 100_000}, encode={"max_unreadable_fraction": 0.5}
    )
    return elsewhere


def put(name, content="x\n"):
    put_files("data/raw", {name: content})


def acquired(source):
    """What the stage makes: its folder, the names in it, its manifest."""
    acquire.main(source)
    folder = next(Path("data/acquire").glob(f"*/{source}"))
    return (
        folder,
        sorted(path.name for path in folder.iterdir()),
        read_json(folder / "manifest.json"),
    )


def refuses(source, line):
    assert re.match(line, refused(acquire.main, source))
    assert not [path for path in Path("data").glob("**/acquire/**/*") if path.is_file()]


def test_every_row_of_the_paper_profile_has_a_source_and_the_reverse():
    params = read_yaml(ROOT / "conf" / "paper.yaml")
    assert set(params["sources"]) == set(all_sources())
    assert set(params["tasks"]) == set(TASKS)


def test_find_sources_knows_the_names_people_have(tmp_path):
    names = {
        "books": "books",
        "snli": "SNLI",
        "cola": "glue_data/CoLA",
        "scitail": "SciTailV1.1",
        "stsb": "STS-B",
    }
    for name in names.values():
        put_files(tmp_path, {f"{name}/file": ""})
    (tmp_path / "RTE").mkdir()
    (tmp_path / "MRPC").touch()
    found = find_sources(tmp_path, all_sources().values())
    assert list(found) == [*all_sources()]
    assert {name: path for name, path in found.items() if path} == {
        source: tmp_path / name for source, name in names.items()
    }


def test_acquire_copies_the_official_files_and_describes_them(checkout):
    put("cola/train.tsv", "gj04\t1\t\tOne.\ngj04\t1\t\tTwo.")
    put("cola/dev.tsv", "gj04\t1\t\tOne.\n")
    put("cola/notes.txt")
    folder, names, manifest = acquired("cola")
    assert names == ["dev.tsv", "manifest.json", "train.tsv"]
    digest = hashlib.sha256(b"gj04\t1\t\tOne.\ngj04\t1\t\tTwo.").hexdigest()
    assert manifest["files"]["train.tsv"] == {"bytes": 25, "rows": 2, "sha256": digest}
    assert (manifest["source"], manifest["files"]["dev.tsv"]["rows"]) == ("cola", 1)
    assert manifest["licence"]
    assert str(checkout) not in (folder / "manifest.json").read_text()


def test_acquire_looks_into_archives(checkout):
    put("snli/README")
    row = '{"gold_label": "neutral", "sentence1": "A cat.", "sentence2": "It is."}\n'
    names = [f"snli_1.0_{split}.jsonl" for split in ("dev", "test", "train")]
    with zipfile.ZipFile("data/raw/snli/snli_1.0.zip", "w") as archive:
        archive.writestr("__MACOSX/snli_1.0/._snli_1.0_train.jsonl", "junk")
        archive.writestr("snli_1.0/Icon\r", "")
        for name in names:
            archive.writestr(f"snli_1.0/{name}", row)
    assert acquired("snli")[1] == ["manifest.json", *names]


@pytest.mark.parametrize("packed", [False, True])
def test_race_becomes_one_file_a_split_and_level(checkout, packed):
    for split in ("train", "dev", "test"):
        for level in ("middle", "high"):
            put(f"race/RACE/{split}/{level}/2.TXT", json.dumps(PASSAGE))
    put("race/RACE/test/high/10.txt", "{'article'")
    put("race/RACE/test/high/._10.txt", "as a Mac leaves it")
    if packed:
        with tarfile.open("data/raw/race/RACE.tar.gz", "w:gz") as archive:
            archive.add("data/raw/race/RACE", "RACE")
        shutil.rmtree("data/raw/race/RACE")
    folder, names, manifest = acquired("race")
    assert names == sorted([*TASKS["race"].combined_folders, "manifest.json"])
    assert json_lines(folder / "test_high.jsonl") == [
        {"file": "test/high/10.txt", "unreadable": "not JSON"},
        PASSAGE | {"file": "test/high/2.TXT"},
    ]
    assert manifest["files"]["test_high.jsonl"]["rows"] == 2


def test_books_are_taken_at_any_depth_with_their_names(checkout, capsys):
    hidden = (".ipynb_checkpoints/one.txt", ".Trash-1000/a/b.txt", "__MACOSX/._one.txt", "~$a.txt")
    books = {"austen/emma.TXT": "Emma\n", "one.txt.utf8": "One\n", "cover.jpg": "", "9-0": ""}
    put_files("mine", books | dict.fromkeys(hidden, "One\n"))
    Path("data/raw").mkdir(parents=True)
    Path("data/raw/books").symlink_to(checkout / "mine")
    folder, _, manifest = acquired("books")
    assert list(manifest["files"]) == ["austen/emma.TXT", "one.txt.utf8"]
    assert (folder / "austen/emma.TXT").read_text() == "Emma\n"
    assert "left out of data/raw/books: hidden 4, 9-0 1, .jpg 1\n" in capsys.readouterr().err
    shutil.make_archive("mine/all", "zip", "mine")
    Path("data/raw/books").unlink()
    put("books/all.zip", Path("mine/all.zip").read_bytes())
    found = acquired("books")[2]["files"]
    assert list(found) == ["all.zip/austen/emma.TXT", "all.zip/one.txt.utf8"]


def test_missing_files_are_named(checkout):
    put("cola/train.tsv")
    line = r"data/raw/cola: expected train.tsv, dev.tsv or .* found train.tsv; gpt1 profile PROFILE"
    refuses("cola", line)
    how = re.escape(SOURCES["books"].how_to_get)
    refuses("books", f"data/raw/books is not there; .*{how}")
    Path("data/raw/books").mkdir()
    refuses("books", f"data/raw/books: .* found nothing; {how}")
    put("books/book.pdf")
    refuses("books", f"data/raw/books: .* found book.pdf; {how}")


def test_a_linked_folder_and_an_unprintable_name_are_named(checkout):
    put("books/one.txt")
    Path("data/raw/books/again").symlink_to("/tmp")
    refuses("books", "data/raw/books/again is a link to a folder")
    Path("data/raw/books/again").unlink()
    put("books/a\nb.txt")
    refuses("books", r"data/raw/books holds 'a\\nb.txt'")
