"""Text as tasks of datatrove: any number of them and either executor write the same bytes, what was
finished before a kill is kept, and Ctrl-C ends all.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from test_stages_text import (
    ROOT,
    STAGES,
    outputs_of,
    run_here,
    sentence,
    stage,
    write_books,
    write_params,
)

from gpt1.base.errors import UserError
from gpt1.corpus.parallel import kept_tasks, mapped

ON_RAY = {"GPT1_TEXT_TASKS": "4", "GPT1_TEXT_EXECUTOR": "ray"}
KEPT = Path("data/checkpoints/text")


@contextmanager
def ray_cluster():
    """The address of a Ray cluster of two cores on this machine alone."""
    ray = str(Path(sys.executable).with_name("ray"))
    port = str(20000 + os.getpid() % 9000)
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # names of sockets are short
        words = f"start --block --head --port={port} --include-dashboard=false --num-cpus=2"
        words += " --node-ip-address=127.0.0.1 --object-store-memory=100000000"
        head = subprocess.Popen(
            [ray, *words.split(), f"--temp-dir={folder}"],
            env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(8)
        yield f"127.0.0.1:{port}"
        head.terminate()
        head.wait(30)


@pytest.mark.slow
def test_ray_gives_the_files_of_the_local_executor(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    write_books(tmp_path, 40)
    write_params(tmp_path)
    for name in STAGES:
        run_here(name, tmp_path, monkeypatch)
    alone = outputs_of(tmp_path)
    with ray_cluster() as address:
        for name in STAGES:
            done = stage(name, tmp_path, **ON_RAY, RAY_ADDRESS=address)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert outputs_of(tmp_path) == alone


def kill_once(marks, task):
    """Ends its process, as a lack of memory does, at the fifth task and the first time."""
    with (marks / str(task)).open("a") as file:
        file.write("x")
    if task == 5 and (marks / "5").stat().st_size == 1:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def test_a_killed_task_alone_is_repeated(tmp_path, monkeypatch):
    monkeypatch.setenv("GPT1_TEXT_TASKS", "8")
    marks, kept = tmp_path / "marks", tmp_path / "kept"
    marks.mkdir()
    arguments = ("testing", partial(Path, marks), kill_once, range(8), 8, kept)
    with pytest.raises(UserError, match="a worker process was ended from outside"):
        list(mapped(*arguments))
    before = {path.name for path in kept.rglob("completions/*")}
    assert 0 < len(before) < 8
    assert list(mapped(*arguments)) == list(range(8))
    often = {path.name: path.stat().st_size for path in marks.iterdir()}
    assert often["5"] == 2
    assert all(often[str(int(name))] == 1 for name in before)


def wrong(_, task):
    if task == 3:
        raise UserError("the third is wrong")
    if task == 4:
        raise ZeroDivisionError("a fault of ours")
    return task


@pytest.mark.parametrize("tasks", ["1", "5"])
def test_what_is_wrong_with_a_text_is_told(tmp_path, monkeypatch, tasks):
    monkeypatch.setenv("GPT1_TEXT_TASKS", tasks)
    with pytest.raises(UserError, match=r"^the third is wrong$"):
        list(mapped("testing", dict, wrong, [1, 2, 3], 3, tmp_path / "user"))
    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        list(mapped("testing", dict, wrong, [1, 2, 4], 3, tmp_path / "ours"))


def test_what_is_kept_is_of_the_same_files_alone(elsewhere):
    Path("input").write_text("a")

    def kept(*facts):
        with suppress(ZeroDivisionError), kept_tasks("some", [Path("input")], *facts) as found:
            (found / "made").touch()
            raise ZeroDivisionError
        return found

    first = kept()
    assert kept() == first
    assert kept(1) != first
    assert not first.exists()
    second = kept()
    Path("input").write_text("ab")
    assert kept() != second
    assert [path.name for path in KEPT.glob("*/*")] == ["made"]
    with kept_tasks("some", [Path("input")]) as found:
        assert (found / "made").exists()
    assert not [*KEPT.iterdir()]


def group_is_gone(group, seconds):
    """Whether no process of the group is left before so many seconds have passed."""
    for _ in range(int(seconds * 10)):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def clean_until(folder, ended_tasks):
    """The stage in a process of its own, so far that it has begun and so many tasks have ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gpt1.stages", "clean"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "GPT1_TEXT_TASKS": "8"},
    )
    own = folder / KEPT
    while not [*own.rglob("logs/*")] or len([*own.rglob("completions/*")]) < ended_tasks:
        assert process.poll() is None, "the stage ended before"
        time.sleep(0.01)
    return process


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of a parent's death")
def test_no_process_outlives_a_killed_stage(tmp_path):
    write_books(tmp_path, 20)
    write_params(tmp_path)
    process = clean_until(tmp_path, 0)
    process.kill()
    process.communicate()
    assert group_is_gone(process.pid, 10.0)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_with_one_line_and_the_rest_goes_on(tmp_path):
    source = write_books(tmp_path, 2)
    generator = random.Random(0)
    for number in range(1, 9):  # of other lengths, so that they do not end at once
        text = "".join(f"{sentence(generator)}\n" for _ in range(200))
        (source / f"long{number}.txt").write_text(text * 8 * number, encoding="utf-8")
    write_params(tmp_path)
    for ended_tasks in (0, 1):
        process = clean_until(tmp_path, ended_tasks)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to every process of the group
        _, told = process.communicate(timeout=20)
        assert (process.returncode, told.count("\n")) == (130, 1), told
        assert told.startswith("interrupted")
        assert not (tmp_path / "data" / "clean").exists()
        assert group_is_gone(process.pid, 10.0)
    ended = {path: path.stat().st_mtime_ns for path in (tmp_path / KEPT).rglob("completions/*")}
    assert ended
    process = clean_until(tmp_path, 1)
    made = {}
    while process.poll() is None:
        made |= {path: path.stat().st_mtime_ns for path in ended if path.exists()}
        time.sleep(0.05)
    assert process.returncode == 0
    process.communicate()
    assert made == ended
    counts = json.loads((tmp_path / "data/clean/counts.json").read_text())
    assert len(counts["books"]) == 10
