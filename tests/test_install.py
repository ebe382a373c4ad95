"""`make setup` and `make clean` as a person meets them: the real Makefile, set-up, venv and pip, in
a path with spaces; and that nothing goes which they did not make.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from made_checkout import BASE, Checkout

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def clone(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "my gpt ü", tmp_path / "aside")


def tree(folder: Path) -> dict[str, bytes | str]:
    """All that lies below a folder: files by content, links by where they lead."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else ""
        for path in folder.rglob("*")
    }


@pytest.mark.slow
def test_made_once_then_kept_up_to_date(clone: Checkout) -> None:
    status, lines = clone.make(TORCH_INDEX="http://127.0.0.1:9/cpu")
    assert (status, clone.installed()) == (0, "1.0"), lines
    os.utime(clone.folder / "pyproject.toml")
    began = time.monotonic()
    assert clone.make() == (0, [])
    assert time.monotonic() - began < 1
    (clone.venv / "lib/mine").touch()
    clone.pin("2.0")
    status, lines = clone.make()
    assert (status, clone.installed()) == (0, "2.0"), lines
    assert (clone.venv / "lib/mine").exists(), "an update made the environment anew"
    assert any("http://127.0.0.1:9/cpu" in line for line in lines), "the choice of torch is lost"
    assert clone.make() == (0, [])
    for link in (clone.venv / "bin").glob("python*"):
        link.unlink()
        link.symlink_to("/nowhere/python3")
    status, lines = clone.make()
    assert (status, clone.installed()) == (0, "2.0"), lines
    assert not (clone.venv / "lib/mine").exists(), "a broken environment was not made anew"


@pytest.mark.slow
def test_no_network(clone: Checkout) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, not listening: refused
        index = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        wrong = {"PIP_INDEX_URL": index, "PIP_RETRIES": "0", "PIP_NO_INDEX": "0"}
        status, lines = clone.make(**wrong, PIP_FIND_LINKS="")
    assert status == 2
    assert lines[-1].startswith("error: a package index does not answer")


@pytest.mark.slow
def test_uv_gets_pips_settings_and_pip_goes_on_where_it_fails(clone: Checkout) -> None:
    clone.tool("uv", '#!/bin/sh\necho "$@" >called\nexit 1\n')
    status, lines = clone.make()
    assert (status, clone.installed()) == (0, "1.0"), lines
    called = (clone.folder / "called").read_text().split()
    assert called[called.index("--find-links") + 1] == clone.wheels.as_uri()
    assert "--no-index" in called


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("uv"), reason="uv is not on PATH")
def test_uv(clone: Checkout) -> None:
    (clone.tools / "uv").symlink_to(shutil.which("uv") or "")
    clone.environment["PIP_NO_DEPS"] = "1"  # pip, in its place, would install no tiny
    status, lines = clone.make()
    assert (status, clone.installed()) == (0, "1.0"), lines


@pytest.mark.slow
def test_ended_halfway_it_is_never_taken_for_whole(clone: Checkout) -> None:
    for end in (signal.SIGINT, signal.SIGKILL):
        process = clone.start()
        while not list(clone.venv.glob("lib/python*/site-packages")):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, end)
        assert ("interrupted: " in process.communicate()[0]) == (end == signal.SIGINT)
        assert process.returncode
    both = [clone.start(), clone.start()]
    output = [one.communicate(timeout=120)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], output
    assert sum("set-up: done" in said for said in output) == 1, "of two at once one installs"
    assert clone.installed() == "1.0"


def link_to_anothers(clone: Checkout) -> None:
    anothers = clone.folder.parent / "another"
    subprocess.run([BASE, "-m", "venv", "--without-pip", anothers], check=True)
    (anothers / "setup.made").write_text(f"{anothers}\n\n")
    clone.venv.symlink_to(anothers)


def link_to_nothing(clone: Checkout) -> None:
    clone.venv.symlink_to("nowhere")


def own_environment(clone: Checkout) -> None:
    subprocess.run([BASE, "-m", "venv", "--without-pip", clone.venv], check=True)


def copied(clone: Checkout) -> None:
    own_environment(clone)
    (clone.venv / "setup.made").write_text("/elsewhere/.venv\n\n")


def thesis(clone: Checkout) -> None:
    clone.venv.mkdir()
    (clone.venv / "thesis.txt").write_text("all of it")


def a_file(clone: Checkout) -> None:
    clone.venv.write_text("notes")


@pytest.mark.parametrize(
    "lay", [link_to_anothers, link_to_nothing, own_environment, copied, thesis, a_file]
)
def test_what_this_checkout_did_not_make_is_left_alone(
    clone: Checkout, lay: Callable[[Checkout], None]
) -> None:
    lay(clone)
    before = tree(clone.folder.parent)
    status, lines = clone.make()
    assert (status, len(lines)) == (2, 1)
    assert lines[0].startswith("error: .venv ")
    assert "VENV=" in lines[0]
    assert tree(clone.folder.parent) == before


def test_the_first_python_that_can_is_taken(clone: Checkout) -> None:
    old = clone.python_that("python3", "sys.version_info = (3, 9, 18)")
    status, lines = clone.make()
    assert (status, len(lines)) == (2, 1)
    assert "3.11 or later" in lines[0]
    assert f"{old} (3.9 " in lines[0]
    bare = clone.python_that("python3.13", "sys.modules['ensurepip'] = None")
    assert f"apt install python{THIS}-venv" in clone.make()[1][0]
    good = clone.tool(
        "python3.11", f'#!/bin/sh\n[ "$2 $3" = "-m venv" ] && exit 1\nexec "{BASE}" "$@"\n'
    )
    assert [str(good) in line for line in clone.make()[1]] == [True, True]
    assert f"{bare} ({THIS} " in clone.make(PYTHON=str(bare))[1][0]
    assert "python7 does not start" in clone.make(PYTHON="python7")[1][0]
    for path in (old, bare, good):
        path.unlink()
    assert "3.11 or later" in clone.make()[1][0]


def test_a_folder_that_cannot_be_written(clone: Checkout) -> None:
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and not setpriv:
        pytest.skip("root may write everywhere")
    powerless = [setpriv, "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    clone.folder.chmod(0o555)
    process = clone.start(*filter(None, powerless), "make", "setup")
    said = process.communicate()[0].splitlines()
    clone.folder.chmod(0o755)
    assert process.returncode == 2
    assert said[0].startswith(f"error: {clone.venv} cannot be written")
    assert "VENV=" in said[0]


def test_clean_takes_what_runs_made_and_nothing_behind_a_link(clone: Checkout) -> None:
    disk = clone.folder.parent / "disk"
    for name in ("check/a", "encode/glue/sst2/a", "acquire/corpus/books/a", "report/index.html"):
        (clone.folder / "data" / name).parent.mkdir(parents=True)
        (clone.folder / "data" / name).touch()
    (clone.folder / "data/encode/glue/.gitkeep").touch()
    (clone.folder / "data/raw").mkdir()
    for name in ("raw/books", "pretrain", "ablate", "acquire/tasks", "encode/glue/cola"):
        (disk / name / "small").mkdir(parents=True)
        (disk / name / "small" / "precious").write_text(name)
        (clone.folder / "data" / name).symlink_to(disk / name)
    (clone.folder / ".my_cache").mkdir()
    before = tree(disk)
    status, lines = clone.make("clean")
    assert status == 0
    assert sum("link" in line for line in lines) == 4
    assert tree(disk) == before
    left = {path for path in (clone.folder / "data").rglob("*") if not path.is_dir()}
    assert left == {clone.folder / "data/encode/glue/.gitkeep"}
    links = {path for path in (clone.folder / "data").rglob("*") if path.is_symlink()}
    assert len(links) == 5
    assert (clone.folder / ".my_cache").exists()


def test_clean_leaves_a_mounted_disk(clone: Checkout) -> None:
    unshare = [shutil.which("unshare") or "unshare", "--mount"]
    try:
        subprocess.run([*unshare, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount")
    disk, mounted = clone.folder.parent / "disk", clone.folder / "data/checkpoints/big"
    for folder in (disk, mounted, clone.folder / "data/check"):
        folder.mkdir(parents=True)
    (disk / "precious").touch()
    script = 'mount --bind "$0" "$1" && make clean'
    process = clone.start(*unshare, "bash", "-c", script, str(disk), str(mounted))
    assert "mounted disk" in process.communicate()[0]
    assert (disk / "precious").exists()
    assert not (clone.folder / "data/check").exists()
