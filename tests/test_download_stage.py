"""The stage `download` and what comes before and after it: profile, acquire, full disk, Ctrl-C, the
import of the released weights.
"""

import hashlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from made_data import put_files
from made_models import authors_shapes, vocabulary, write_authors
from misbehaving_server import File, serving

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import AUTHORS_FILES
from gpt1.exchange import authors
from gpt1.params.data import compose_profile
from gpt1.params.profile import compose, on_data
from gpt1.params.schema import read_params
from gpt1.sources.addresses import DOWNLOADS, Remote
from gpt1.sources.download import import_weights
from gpt1.sources.find import find_files
from gpt1.sources.table import SOURCES
from gpt1.stages import acquire, download
from gpt1.tasks.table import TASKS

ROOT = Path(__file__).parents[1]
ROWS = "index\tsentence1\tsentence2\tlabel\n0\tA dog runs.\tA dog moves.\tentailment\n"


PACKED = io.BytesIO()
with zipfile.ZipFile(PACKED, "w") as archive:
    for name in ("train.tsv", "dev.tsv"):
        archive.writestr(f"RTE/{name}", ROWS)
    archive.writestr("RTE/padding.txt", bytes(200_000))  # not packed
ARCHIVE = PACKED.getvalue()
CHECKSUM = hashlib.sha256(ARCHIVE).hexdigest()
CACHED, PARTIAL = (Path("cache/downloads/rte", name) for name in ("RTE.zip", ".RTE.zip.partial"))


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder with books and the profiles, a cache of its own."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("GPT1_OFFLINE", raising=False)
    monkeypatch.setenv("GPT1_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    put_files("data/raw/books", {"one.txt": "A book.\n"})
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def profile(name, downloads):
    compose_profile(name, [], None, None, downloads.split(","))


SCRIPT = """
import sys
from gpt1.base.errors import run_stage
from gpt1.sources.addresses import DOWNLOADS, Remote
from gpt1.stages import download
DOWNLOADS["rte"] = (Remote(sys.argv[1], "sha256", sys.argv[2], "a page of theirs", None),)
run_stage(lambda: download.main("rte"))
"""


def start(server, before=None):
    """The stage in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, server.address("RTE.zip"), CHECKSUM],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def goes_on(server, place):
    """The same command again asks for the rest alone and ends well."""
    again = start(server)
    said = again.communicate()[1]
    assert again.returncode == 0, said
    assert server.ranges == [None, f"bytes={place}-"]
    assert Path("data/download/rte/RTE.zip").read_bytes() == ARCHIVE


def test_from_the_profile_to_the_official_files(checkout, monkeypatch, capsys):
    profile("small", "rte")
    capsys.readouterr()
    params = read_params()
    assert list(params.download) == list(params.tasks) == ["rte"]
    assert params.sources["rte"].folder == "download"
    with serving(replace(File(ARCHIVE), cut_after=1 << 16), File(ARCHIVE)) as server:
        remote = Remote(server.address("RTE.zip"), "sha256", CHECKSUM, "a page", len(ARCHIVE))
        monkeypatch.setitem(DOWNLOADS, "rte", (remote,))
        monkeypatch.setattr("gpt1.sources.download.FIRST_WAIT_SECONDS", 0.01)
        download.main("rte")
    licence, again, *_ = capsys.readouterr().err.splitlines()
    assert licence.startswith("rte: licence research; origin GLUE"), "before the first byte"
    assert "RTE.zip did not give the file" in again
    assert "65,536 bytes came); again" in again
    acquire.main("rte")
    folder = checkout / "data/acquire/tasks/rte"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert sorted(manifest["files"]) == ["dev.tsv", "train.tsv"]
    assert (manifest["licence"], manifest["origin"]) == ("research", TASKS["rte"].origin)
    assert manifest["downloaded"]["RTE.zip"]["checked"].startswith("sha256 ")
    assert (folder / "train.tsv").read_text() == ROWS
    monkeypatch.setenv("GPT1_OFFLINE", "1")
    about = Path("data/download/rte/download.json")
    first = about.read_bytes()
    download.main("rte")
    assert about.read_bytes() == first, "from the cache, without the network, the same"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("race", "no program may download it: ask for RACE.tar.gz at https://www.cs.cmu.edu/"),
        ("books", "given by its authors on request (https://"),
        ("snil", "--download snil: this run wants no such source"),
    ],
)
def test_what_may_not_be_downloaded_says_what_to_do(checkout, name, line):
    with pytest.raises(UserError) as error:
        on_data(compose("small", []), {"books"}, downloads=[name])
    assert line in str(error.value)


def test_all_is_what_is_allowed_and_not_there(checkout, capsys):
    put_files("data/raw/rte", {"train.tsv": ROWS, "dev.tsv": ROWS})
    profile("small", "all")
    params = read_params()
    assert params.sources["rte"].folder == "raw"
    allowed = {*TASKS, "dprd", "wnli"} - {"rte", "race", "story_cloze"}
    assert set(params.download) == allowed
    assert "fill in the form at" in capsys.readouterr().out
    profile("official", "official,rte")
    assert list(read_params().download) == ["official"]


def test_every_download_is_of_a_source_and_addresses_are_whole():
    assert set(DOWNLOADS) <= {*SOURCES, *TASKS}
    official = {authors.SHAPES, *authors.ARRAYS, *AUTHORS_FILES}
    assert {one.name for one in DOWNLOADS["official"]} == official
    for name, remotes in DOWNLOADS.items():
        assert len({one.name for one in remotes}) == len(remotes), name
        for one in remotes:
            assert Path(one.name).name == one.name
            assert one.address.startswith(("https://", "http://"))
            assert " " not in one.address
            assert len(one.checksum) == {"sha256": 64, "md5": 32, "git": 40}[one.kind]


@pytest.mark.slow
@pytest.mark.parametrize("signals", [signal.SIGINT, signal.SIGKILL])
def test_an_end_in_the_middle_is_gone_on_from(checkout, signals):
    profile("small", "rte")
    with serving(replace(File(ARCHIVE), cut_after=3 << 14, stalls=True), File(ARCHIVE)) as server:
        process = start(server)
        while not (PARTIAL.is_file() and PARTIAL.stat().st_size == 3 << 14):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signals)
        said = process.communicate()[1]
        if signals == signal.SIGINT:
            assert process.returncode == 130
            assert said.splitlines()[-1].startswith("interrupted: ")
        assert "Traceback" not in said
        assert not CACHED.exists()
        assert not Path("data/download").exists()
        goes_on(server, 3 << 14)


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_what_came_is_kept(checkout):
    profile("small", "rte")
    with serving(File(ARCHIVE)) as server:
        full = start(server, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
        said = full.communicate()[1]
        assert full.returncode == 2
        assert said.splitlines()[-1].startswith("error: an output cannot be written (File too larg")
        assert "Traceback" not in said
        assert PARTIAL.stat().st_size == 100_000
        goes_on(server, 100_000)


@pytest.mark.slow
def test_weights_are_imported_on_the_way(checkout, tmp_path, capfd):
    """A made model in the form of the authors' files: what `gpt1 import` makes of them is what
    acquire takes.
    """
    shapes = authors_shapes(8, 64, 1, 128, vocabulary().size)
    write_authors(tmp_path / "model", shapes, vocabulary())
    (tmp_path / "made").mkdir()
    import_weights(tmp_path / "model", tmp_path / "made")
    assert "1 layers of width 64" in capfd.readouterr().err
    assert find_files(SOURCES["official"], tmp_path / "made") is not None
