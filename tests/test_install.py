"""`make setup` and `make clean` as a person meets them: the real Makefile, set-up, venv and pip, in
a path with spaces; and that nothing goes which they did not make.
"""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from made_checkout import BASE, Checkout
from made_data import put_files


@pytest.fixture
def clone(tmp_path):
    return Checkout(tmp_path / "my gpt ü", tmp_path / "aside")


def tree(folder):
    """All that lies below a folder: files by content, links by where they lead."""

    def content(path):
        if path.is_symlink():
            return str(path.readlink())
        return path.read_bytes() if path.is_file() else ""

    return {str(path.relative_to(folder)): content(path) for path in folder.rglob("*")}


@pytest.mark.slow
def test_made_once_then_kept_up_to_date(clone):
    status, lines = clone.make(TORCH_INDEX="http://127.0.0.1:9/cpu")
    assert (status, clone.installed()) == (0, "1.0"), lines
    os.utime(clone.folder / "pyproject.toml")
    assert clone.make() == (0, [])
    (clone.venv / "lib/mine").touch()
    clone.pin("2.0")
    status, lines = clone.make()
    assert (status, clone.installed()) == (0, "2.0"), lines
    assert (clone.venv / "lib/mine").exists(), "an update made the environment anew"
    assert any("http://127.0.0.1:9/cpu" in line for line in lines), "the choice of torch is lost"
    for link in (clone.venv / "bin").glob("python*"):
        link.unlink()
        link.symlink_to("/nowhere/python3")
    status, lines = clone.make()
    assert (status, clone.installed()) == (0, "2.0"), lines
    assert not (clone.venv / "lib/mine").exists(), "a broken environment was not made anew"


@pytest.mark.slow
def test_nothing_to_install_from(clone):
    status, lines = clone.make(PIP_FIND_LINKS="")
    assert status == 2
    assert lines[-1].startswith("error: not installed")
    assert not (clone.venv / "setup.done").exists()


@pytest.mark.slow
def test_ended_halfway_it_is_never_taken_for_whole(clone):
    for end in (signal.SIGINT, signal.SIGKILL):
        process = clone.start()
        while not list(clone.venv.glob("lib/python*/site-packages")):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, end)
        process.communicate()
        assert process.returncode
    both = [clone.start(), clone.start()]
    output = [one.communicate(timeout=120)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0], output
    assert sum("set-up: done" in said for said in output) == 1, "of two at once one installs"
    assert clone.installed() == "1.0"


def link_to_anothers(clone):
    anothers = clone.folder.parent / "another"
    subprocess.run([BASE, "-m", "venv", "--without-pip", anothers], check=True)
    (anothers / "setup.made").write_text(f"{anothers}\n\n")
    clone.venv.symlink_to(anothers)


def own_environment(clone):
    subprocess.run([BASE, "-m", "venv", "--without-pip", clone.venv], check=True)


def copied(clone):
    own_environment(clone)
    (clone.venv / "setup.made").write_text("/elsewhere/.venv\n\n")


def thesis(clone):
    clone.venv.mkdir()
    (clone.venv / "thesis.txt").write_text("all of it")


@pytest.mark.parametrize("lay", [link_to_anothers, own_environment, copied, thesis])
def test_what_this_checkout_did_not_make_is_left_alone(clone, lay):
    lay(clone)
    before = tree(clone.folder.parent)
    status, [line] = clone.make()
    assert status == 2
    assert re.match("error: .*/.venv was not made .*VENV=", line)
    assert tree(clone.folder.parent) == before


def test_the_first_python_that_can_is_taken(clone):
    clone.tool("python3", "#!/bin/sh\nexit 1\n")
    status, [line] = clone.make()
    assert status == 2
    assert "3.11 or later" in line
    script = f'#!/bin/sh\n[ "$2 $3" = "-m venv" ] && exit 1\nexec "{BASE}" "$@"\n'
    clone.tool("python3.12", script)
    assert f"of {BASE}" in clone.make(PIP_FIND_LINKS="")[1][0]


def test_a_folder_that_cannot_be_written(clone):
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and not setpriv:
        pytest.skip("root may write everywhere")
    powerless = [setpriv, "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    clone.folder.chmod(0o555)
    process = clone.start(*powerless, "make", "setup")
    said = process.communicate()[0].splitlines()
    clone.folder.chmod(0o755)
    assert process.returncode == 2
    assert re.match(f"error: {re.escape(str(clone.venv))} cannot be written.*VENV=", said[0])


def test_clean_takes_what_runs_made_and_nothing_behind_a_link(clone):
    disk, data = clone.folder.parent / "disk", clone.folder / "data"
    kept = "encode/glue/.gitkeep"
    made = ("check/a", "encode/glue/sst2/a", "acquire/corpus/books/a", "report/index.html", kept)
    put_files(data, dict.fromkeys(made, ""))
    (data / "raw").mkdir()
    linked = ("raw/books", "pretrain", "ablation", "acquire/tasks", "encode/glue/cola")
    for name in linked:
        put_files(disk / name, {"small/precious": name})
        (data / name).symlink_to(disk / name)
    (clone.folder / ".my_cache").mkdir()
    before = tree(disk)
    status, lines = clone.make("clean")
    assert status == 0
    assert sum("link" in line for line in lines) == 4
    assert tree(disk) == before
    left = {path for path in data.rglob("*") if path.is_symlink() or not path.is_dir()}
    assert left == {data / name for name in (kept, *linked)}
    assert (clone.folder / ".my_cache").exists()


def test_clean_leaves_a_mounted_disk(clone):
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
