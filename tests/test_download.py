"""Downloads from a hub on 127.0.0.1: the four roads to real data, and what is said where one fails."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from local_hub import COMMIT, serving
from made_corpora import write_parquet
from made_data import put_files
from made_forms import MADE
from made_models import authors_shapes, vocabulary, write_authors

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.corpus.bpe import AUTHORS_FILES
from gpt1.corpus.files import refuse_short
from gpt1.exchange import incoming as authors
from gpt1.params.data import compose_profile, download_sources
from gpt1.params.profile import requested
from gpt1.params.schema import read_params
from gpt1.sources.addresses import DOWNLOADS, book_files
from gpt1.sources.definitions import SOURCES
from gpt1.sources.find import find_files
from gpt1.stages import acquire
from gpt1.tasks.definitions import TASKS, all_sources

ROOT = Path(__file__).parents[1]
GLUE = DOWNLOADS["rte"].revision
BOOKS = "emozilla/pg19/data/train-{:05d}-of-00002-{}.parquet"
CODE = """
import sys
from pathlib import Path
from gpt1.cli import main
from gpt1.sources.addresses import DOWNLOADS
from gpt1.sources.download import checksum
where, root = sys.argv.pop(1), Path(sys.argv.pop(1))
for name, origin in DOWNLOADS.items():
    if isinstance(origin, dict):
        files = [root / "files" / Path(address).name for address in origin]
        DOWNLOADS[name] = {f"{where}/{file.name}": checksum(file, 40) for file in files if file.exists()}
DOWNLOADS["scitail"] = {f"{where}/SciTailV1.1.zip": "0" * 64}
main()
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    for name in ("rte", "cola", "mrpc", "mnli"):
        MADE[name].forms["parquet"](root / "nyu-mll/glue" / name)
    (root / "nyu-mll/glue/mnli/ax").rename(root / "nyu-mll/glue/ax")
    MADE["race"].forms["all and levels"](root / "ehovy/race")
    (root / BOOKS).parent.mkdir(parents=True)
    for part in range(2):
        write_parquet(root / BOOKS.format(part, "1a" * 8), [f"The book {part} is long. " * 90] * 3)
    MADE["stsb"].forms["original"](root / "files/stsb")
    shutil.make_archive(str(root / "files/Stsbenchmark"), "gztar", root / "files/stsb")
    put_files(root / "files", {"SciTailV1.1.zip": "a web page"})
    write_authors(root / "files", authors_shapes(8, 64, 1, 128, vocabulary().size), vocabulary())
    with serving(root, {GLUE, DOWNLOADS["race"].revision}) as server:
        yield server


@pytest.fixture
def checkout(tmp_path, monkeypatch, hub):
    """A folder with the profiles, and an empty home."""
    for name in ("conf", "dvc.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    hub.cut = None
    return tmp_path


def profile(hub, *words, status=0, **settings):
    """What `gpt1 profile` says, and its status."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith("HF_") and "proxy" not in k.lower()
    }
    own = {"HF_HOME": str(Path.cwd() / "home"), "HF_ENDPOINT": hub.address, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, hub.address, hub.root, "profile", *words],
        env=kept | own | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    return done.stdout + done.stderr


SMALL = ("small", "--tasks", "rte,mnli,mrpc,stsb", "--download", "all")


@pytest.mark.slow
def test_from_an_empty_home_to_official_files(checkout, hub):
    said = profile(hub, *SMALL)
    assert "to download: stsb, 0.00 MB, from 127.0.0.1:" in said
    assert "licence: CC BY-SA 4.0" in said
    assert "next: gpt1 run\n" in said
    assert "Fetching" not in said
    params = read_params()
    assert set(params.tasks) == {"rte", "mnli", "mrpc", "stsb"}
    assert params.clean.corpus_name == "1 of 23 files of PG-19"
    assert [path.name for path in Path("data/raw/books/data").iterdir()] == [
        Path(BOOKS.format(0, "1a" * 8)).name
    ]
    for name in ("rte", "mnli", "mrpc", "stsb", "books"):
        acquire.main(name)
    folder = Path("data/acquire/tasks/mnli")
    assert (folder / "ax/test-00000-of-00001.parquet").is_file()
    assert read_json(folder / "manifest.json")["downloaded"]["commit"] == GLUE
    link = next(Path("data/raw/rte/rte").glob("train*"))
    assert link.resolve().is_relative_to(checkout / "home/hub")
    assert link.samefile(Path("data/acquire/tasks/rte") / link.name), "nothing lies twice"

    # offline, from the cache, in another clone; then a damaged file there
    shutil.rmtree("data/raw")
    assert "rte: from the Hub's cache" in profile(
        hub, "small", "--download", "rte,books", HF_HUB_OFFLINE="1"
    )
    blob = link.resolve()
    blob.write_bytes(bytes(len(whole := blob.read_bytes())))
    assert "kept: data/raw/rte" in profile(hub, "small", "--download", "rte")
    shutil.rmtree("data/raw/rte")
    said = profile(hub, "small", "--download", "rte", status=75)
    assert "was damaged in the Hub's cache, and is removed there" in said
    profile(hub, "small", "--download", "rte")
    assert link.read_bytes() == whole, "it came anew"


@pytest.mark.slow
def test_terms_are_shown_and_accepted_by_name(checkout, hub):
    words = ("small", "--tasks", "race", "--download", "race", "--books", f"pg19@{COMMIT}")
    said = profile(hub, *words, status=2)
    assert "race: RACE may be used for non-commercial research only" in said
    assert "left out: race; to accept its terms: --accept race\n" in said
    assert "--tasks names it: gpt1 profile PROFILE --download race --accept race" in said
    assert "--accept rcae: expected race" in profile(hub, *words, "--accept", "rcae", status=2)
    profile(hub, *words, "--accept", "race")
    assert "race" in read_params().tasks
    acquire.main("race")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "cut", "lines"),
    [
        (
            f"--download qnli,snli,scitail --books pg19@{'f' * 40}",
            None,
            [
                "qnli: download failed (FileNotFoundError: datasets/nyu-mll/glue@",
                "/plain_text/* (repository not found)); by hand: hf download stanfordnlp/snli",
                "(revision not found)); by hand: hf download emozilla/",
                "scitail: download failed (OSError: expected the checksum",
            ],
        ),
        pytest.param(
            "--download cola",
            900,
            ["cola: download failed (RemoteProtocolError: peer closed"],
            marks=pytest.mark.long,  # the client tries again, for 20 seconds
        ),
        ("--download stsb", 90, ["stsb: download failed (RemoteProtocolError"]),
    ],
)
def test_a_download_in_vain_is_one_line(checkout, hub, words, cut, lines):
    hub.cut = cut
    said = profile(hub, "small", *words.split(), status=75)
    for line in lines:
        assert line in said
    assert said.splitlines()[-1].startswith("error: download failed: ")
    assert not Path("params.yaml").exists()
    assert not [*Path("data/raw").glob("*/")]


@pytest.mark.slow
def test_without_a_network_each_source_has_a_line_within_ten_seconds(checkout, hub):
    said = profile(hub, *SMALL, status=75, HF_ENDPOINT="http://127.0.0.1:9")
    assert "Retrying" not in said, "which takes half a minute"
    found = re.findall(r"^(\w+): download failed \(ConnectError", said, re.M)
    assert sorted(found) == ["books", "mnli", "mrpc", "rte"]
    assert "error: download failed: mnli, rte, mrpc, books; run the same command again" in said


@pytest.mark.slow
def test_official_needs_no_books_and_imports_what_came(checkout, hub):
    sizes = "model.context=8 model.width=64 model.heads=1 model.layers=1 model.feed_forward=128"
    words = f"official {sizes} transfer.mnli.layers=null --tasks rte --download all"
    said = profile(hub, *words.split())
    assert Path(re.search("authors' files are in (.*) now", said)[1], "params_0.npy").is_file()
    assert "left out: the perplexity of the weights" in said
    assert find_files(SOURCES["official"], Path("data/raw/official")) is not None
    params = read_params()
    assert (params.sources["books"].folder, params.clean.corpus_name) == ("none", "no books")


def test_as_many_books_as_are_read_once():
    counts = [len(book_files("pg19", "main", tokens).patterns) for tokens in (0, 1.8e7, 6.6e8)]
    assert counts == [1, 1, 7], "of 23 files of some 104 million tokens"
    assert book_files("pg19", "main", float("inf")).patterns == ("data/train-*",)


@pytest.mark.parametrize(
    ("names", "books", "line"),
    [
        (["snil"], None, "--download snil: expected all, or some of "),
        (["story_cloze"], None, "--download story_cloze: expected all, or some of "),
        ([], "gutenberg", "--books gutenberg: expected one of pg19, bookcorpusopen"),
    ],
)
def test_what_cannot_be_downloaded_is_named(checkout, names, books, line):
    with pytest.raises(UserError, match=line):
        download_sources(requested("small", []), names, books, [])


def test_what_is_there_is_never_taken_for_a_download(checkout, monkeypatch):
    put_files("data/raw", {"PG-19/one.txt": "A book.\n", "rte/train.tsv": ""})
    Path("data/raw/books").symlink_to("PG-19")
    compose_profile("small", ["clean.corpus_name=my books"], ["rte"])
    assert read_params().clean.corpus_name == "my books"
    compose_profile("small", [], ["rte"])
    assert read_params().clean.corpus_name == "own books"
    compose_profile("demo", [], None)
    assert read_params().clean.corpus_name == "books of a made-up town"


def test_sentences_are_no_corpus(tmp_path):
    write_parquet(tmp_path / "train.parquet", ["usually , he would be tearing around ."] * 50)
    with pytest.raises(
        UserError, match=r"as long as model\.context, 64 tokens, found a median of 8"
    ):
        refuse_short(tmp_path, "text", 64)
    refuse_short(tmp_path, "text", 8)
    (tmp_path / "train.parquet").rename(tmp_path / ".train.parquet")
    refuse_short(tmp_path, "text", 64)


def test_every_origin_is_of_a_source_and_whole():
    assert set(DOWNLOADS) <= {*all_sources()}
    assert {"story_cloze"} == {*TASKS} - {*DOWNLOADS}
    official = {authors.SHAPES, *authors.ARRAYS, *AUTHORS_FILES}
    assert {Path(address).name for address in DOWNLOADS["official"]} == official
