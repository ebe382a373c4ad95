"""The stages clean, bpe, shard as commands on small made books: what they write, what they
refuse.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from made_data import outputs, refused, write_paper_params

from gpt1.base.files import read_json, sha256_file
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.shards import Shards

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
STAGES = ("clean", "bpe", "shard")
SYLLABLES = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "za")


def sentence(generator):
    words = [
        "".join(generator.choices(SYLLABLES, k=generator.randint(1, 3)))
        for _ in range(generator.randint(4, 9))
    ]
    return " ".join(words).capitalize() + generator.choice([".", "!", " -- no…", ", Mr. Vo said."])


def write_params(folder, **changes):
    bpe = {"source": "learn", "merges": 60, "alphabet_size": 40, "max_word_types": 500}
    changes["bpe"] = bpe | changes.get("bpe", {})
    write_paper_params(folder, shard={"heldout_fraction": 0.3}, **changes)


def write_books(folder, count=8):
    generator = random.Random(0)
    books = folder / "data" / "acquire" / "corpus" / "books"
    books.mkdir(parents=True)
    for number in range(count):
        text = "\n".join(sentence(generator) for _ in range(30)) + "\n"
        (books / f"book{number}.{'long' * 55}.txt").write_text(text, encoding="utf-8")
    return books


def stage(name, folder, **environment):
    return subprocess.run(
        [sys.executable, "-m", "gpt1.stages", name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )


def run_here(name, folder, monkeypatch):
    """The stage's main in this process: quicker where its one line and status are not what is
    tested.
    """
    monkeypatch.chdir(folder)
    __import__(f"gpt1.stages.{name}", fromlist=["main"]).main()


def refused_by_stage(name, folder, monkeypatch):
    """The one line with which a stage ends; it leaves nothing behind."""
    line = refused(run_here, name, folder, monkeypatch)
    assert not (folder / "data" / name).exists()
    assert not list((folder / "data").glob(".*partial"))
    return line


def outputs_of(folder):
    return [outputs(folder / "data" / name) for name in STAGES]


def test_the_three_stages(tmp_path, monkeypatch, capsys):
    books = write_books(tmp_path)
    (books / "empty.txt").write_bytes(b"")
    codecs = {"crlf.txt": "utf-8-sig", "old.txt": "cp1252", "wide.txt": "utf-16"}
    for name, codec in codecs.items():
        (books / name).write_bytes("Ba\r\n\r\n  “ké”.".encode(codec))
    (books / "plain.txt").write_bytes(b'Ba\n\n  "ke".')  # Project Gutenberg's edition in ASCII
    write_params(tmp_path)
    for name in STAGES:
        run_here(name, tmp_path, monkeypatch)
    said = capsys.readouterr()
    assert said.err == (
        "clean: books or documents: 1 without words, 3 equal to an earlier one"
        " (data/clean/counts.json)\n"
    )

    data = tmp_path / "data"
    counts = read_json(data / "clean" / "counts.json")
    assert sorted(counts["books"]) == sorted(
        [*(f"book{number}.{'long' * 55}.txt" for number in range(8)), "crlf.txt"]
    )
    assert counts["equal"] == dict.fromkeys(("old.txt", "plain.txt", "wide.txt"), "crlf.txt")
    crlf = {"bytes": (books / "crlf.txt").stat().st_size, "words": 5, "encoding": "utf-8-sig"}
    assert (counts["books"]["crlf.txt"], counts["empty"]) == (crlf, ["empty.txt"])
    cleaned = (data / "clean" / "books" / "crlf.txt").read_text(encoding="utf-8")
    assert cleaned == 'ba \n " ké " .'

    vocabulary, shards = Vocabulary.load(data / "bpe"), Shards.open(data / "shard")
    assert vocabulary.size == 1 + 2 * read_json(data / "bpe" / "meta.json")["characters"] + 60 + 1
    assert shards.index["vocabulary_fingerprint"] == vocabulary.fingerprint
    splits = shards.index["splits"]
    names = [book["name"] for split in splits.values() for book in split["books"]]
    assert sorted(names) == sorted(counts["books"])
    for split, facts in splits.items():
        tokens = np.fromfile(data / "shard" / f"{split}.bin", dtype="<u2")
        assert facts["sha256"] == sha256_file(data / "shard" / f"{split}.bin")
        for book in facts["books"]:
            text = (books / book["name"]).read_bytes().decode("utf-8-sig")
            ids = tokens[book["offset"] : book["offset"] + book["tokens"]].tolist()
            assert ids == vocabulary.encode(text)
            assert book["words"] == counts["books"][book["name"]]["words"]


def test_a_book_of_one_long_line_takes_little_memory(tmp_path):
    books = write_books(tmp_path, 2)
    (books / "line.txt").write_text("Ba ke, “li” mo. " * 100_000, encoding="utf-8")
    write_params(tmp_path)
    limited = (
        "import resource; from gpt1.stages.clean import main;"
        " resource.setrlimit(resource.RLIMIT_DATA, (900_000_000,) * 2); main()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", limited], cwd=tmp_path, check=True, env=environment)
    cleaned = (tmp_path / "data" / "clean" / "books" / "line.txt").read_text(encoding="utf-8")
    assert cleaned == ('ba ke , " li " mo . ' * 100_000).rstrip()


def test_a_book_without_a_blank(tmp_path, monkeypatch):
    (write_books(tmp_path, 2) / "runon.txt").write_text("x" * 20_000, encoding="utf-8")
    write_params(tmp_path)
    line = refused_by_stage("clean", tmp_path, monkeypatch)
    assert "runon.txt has more than 2,000 characters without a blank" in line


def test_one_book_and_too_large_a_vocabulary(tmp_path, monkeypatch):
    books = write_books(tmp_path, 1)
    write_params(tmp_path)
    run_here("clean", tmp_path, monkeypatch)
    assert "expected two books or more" in refused_by_stage("bpe", tmp_path, monkeypatch)
    for number in range(5):
        (books / f"more{number}.txt").write_text(f"word{number} of this book", encoding="utf-8")
    write_params(tmp_path, bpe={"merges": 40_000})
    run_here("clean", tmp_path, monkeypatch)
    assert "bpe.merges asks for 40,000 merges" in refused_by_stage("bpe", tmp_path, monkeypatch)
