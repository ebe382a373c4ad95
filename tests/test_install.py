"""`make setup` and `make clean` as a person meets them: the real Makefile, venv and pip, in a path with
spaces; and that nothing goes which they did not make.
"""

import os
import re
import shutil
import subprocess

import pytest
from made_data import put_files
from our_imports import ROOT


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "my gpt ü"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return folder


def make(folder, *words, before=()):
    """The exit status and what was said, without make's own words; no network, and no packages."""
    pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    done = subprocess.run(
        [*before, "make", *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), "LC_ALL": "C.UTF-8"} | pip,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = done.stdout.splitlines()
    return done.returncode, [line for line in lines if not line.startswith("make: ***")]


def tree(folder):
    """All that lies below a folder: files by content, links by where they lead."""

    def content(path):
        if path.is_symlink():
            return str(path.readlink())
        return path.read_bytes() if path.is_file() else ""

    return {str(path.relative_to(folder)): content(path) for path in folder.rglob("*")}


@pytest.mark.slow
def test_a_set_up_that_fails_says_why_and_is_never_taken_for_whole(clone):
    status, lines = make(clone, "setup")
    assert (status, lines[0].partition(",")[0]) == (2, "set-up: an empty environment")
    assert any("torch" in line for line in lines[:-1])
    assert lines[-1].startswith("error: not installed")
    assert not (clone / ".venv/setup.done").exists()


def link_to_anothers(clone):
    anothers = clone.parent / "another"
    put_files(anothers, {"setup.made": f"{anothers}\n\n"})
    (clone / ".venv").symlink_to(anothers)


def copied(clone):
    put_files(clone, {".venv/setup.made": "/elsewhere/.venv\n\n"})


def thesis(clone):
    put_files(clone, {".venv/thesis.txt": "all of it"})


@pytest.mark.parametrize("lay", [link_to_anothers, copied, thesis])
def test_what_this_checkout_did_not_make_is_left_alone(clone, lay):
    lay(clone)
    before = tree(clone.parent)
    status, [line] = make(clone, "setup")
    assert status == 2
    assert re.match("error: .*/.venv was not made .*VENV=", line)
    assert tree(clone.parent) == before


def test_clean_takes_what_runs_made_and_nothing_behind_a_link(clone):
    disk, data = clone.parent / "disk", clone / "data"
    kept = "encode/glue/.gitkeep"
    made = ("check/a", "encode/glue/sst2/a", "acquire/corpus/books/a", "report/index.html", kept)
    put_files(data, dict.fromkeys(made, ""))
    (data / "raw").mkdir()
    linked = ("raw/books", "pretrain", "ablation", "acquire/tasks", "encode/glue/cola")
    for name in linked:
        put_files(disk / name, {"small/precious": name})
        (data / name).symlink_to(disk / name)
    (clone / ".my_cache").mkdir()
    before = tree(disk)
    status, lines = make(clone, "clean")
    assert status == 0
    assert sum("link" in line for line in lines) == 4
    assert tree(disk) == before
    left = {path for path in data.rglob("*") if path.is_symlink() or not path.is_dir()}
    assert left == {data / name for name in (kept, *linked)}
    assert (clone / ".my_cache").exists()


def test_clean_leaves_a_mounted_disk(clone):
    unshare = [shutil.which("unshare") or "unshare", "--mount"]
    try:
        subprocess.run([*unshare, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root may mount")
    disk, mounted = clone.parent / "disk", clone / "data/checkpoints/big"
    for folder in (disk, mounted, clone / "data/check"):
        folder.mkdir(parents=True)
    (disk / "precious").touch()
    mount = 'mount --bind "$0" "$1" && shift && "$@"'
    _, said = make(clone, "clean", before=(*unshare, "bash", "-c", mount, disk, mounted))
    assert "mounted disk" in "".join(said)
    assert (disk / "precious").exists()
    assert not (clone / "data/check").exists()
