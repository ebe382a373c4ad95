"""Nothing half-written is ever taken for whole, of two processes one holds a file, Ctrl-C comes after
a block that must not be cut in two; one mistake is one line and one exit status.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from gpt1.base.errors import UserError, run_stage
from gpt1.base.files import (
    fingerprint,
    read_json,
    refuse_links,
    write_json,
    writing,
    writing_folder,
)
from gpt1.base.interrupts import interrupts_held
from gpt1.base.locks import locked

ROOT = Path(__file__).parents[1]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "deep" / "result.txt"
    with writing(path) as file:
        file.write("first")

    def fail():
        with writing(path) as file:
            file.write("half of the sec")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "first"
    assert [entry.name for entry in path.parent.iterdir()] == ["result.txt"]


def test_a_failed_folder_leaves_what_was_there(tmp_path):
    folder = tmp_path / "stage"
    with writing_folder(folder) as temporary:
        (temporary / "a").write_text("1")

    def fail():
        with writing_folder(folder) as temporary:
            (temporary / "b").write_text("2")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [entry.name for entry in folder.iterdir()] == ["a"]
    with writing_folder(folder) as temporary:
        (temporary / "b").write_text("2")
    assert [entry.name for entry in folder.iterdir()] == ["b"], (
        "a new result replaces the whole folder"
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["stage"]


def test_a_link_is_never_replaced_nor_what_it_leads_to(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "precious").touch()
    (tmp_path / "stage").symlink_to(tmp_path / "disk")
    with pytest.raises(UserError, match="is a link"), writing_folder(tmp_path / "stage"):
        raise AssertionError("the work was begun")
    assert (tmp_path / "stage" / "precious").exists()
    assert (tmp_path / "stage").is_symlink()
    with writing_folder(tmp_path / "stage" / "part") as folder:  # below a link is as good a place
        (folder / "result").touch()
    assert {path.name for path in (tmp_path / "disk").iterdir()} == {"precious", "part"}


def test_outputs_behind_a_link_are_refused_before_a_stage_of_dvc_begins(tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    (here := tmp_path / "clone").mkdir()
    monkeypatch.chdir(here)
    for inside in ("data/raw", "data/pretrain/lstm", "data/kept"):
        Path(inside).mkdir(parents=True)
    for free in ("data/raw/books", "data/checkpoints", "data/logs"):
        Path(free).symlink_to(tmp_path / "disk")
    Path("data/report").symlink_to("kept")
    refuse_links()
    (link := Path("data/pretrain/transformer")).symlink_to(tmp_path / "disk")
    with pytest.raises(UserError, match=f"^{link} is a link out of this checkout"):
        refuse_links()
    link.unlink()
    Path("data/finetune").symlink_to(tmp_path / "disk")
    command = [sys.executable, "-m", "gpt1.stages", "check"]
    environment = {"PYTHONPATH": str(ROOT), "DVC_STAGE": "check"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "error: data/finetune is a link out of this checkout" in done.stderr


def test_equal_values_are_written_as_equal_bytes_and_have_one_fingerprint(tmp_path):
    write_json(tmp_path / "a.json", value := {"b": 0.1, "a": [1e-05, "é", 2**80]})
    assert (tmp_path / "a.json").read_text() == (
        f'{{\n "a": [\n  1e-05,\n  "é",\n  {2**80}\n ],\n "b": 0.1\n}}\n'
    )
    assert read_json(tmp_path / "a.json") == value
    assert fingerprint({"b": [0.1, "é"], "a": None}) == "26a3da23e47a2a37"


def test_what_is_no_number_in_json_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "a.json", float("nan"))
    assert not (tmp_path / "a.json").exists()


def raising(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize(
    ("main", "status", "line"),
    [
        (raising(UserError("expected a,\n  found b")), 2, "error: expected a, found b\n"),
        (raising(KeyboardInterrupt()), 130, "interrupted: .*\n"),
        (lambda: torch.empty(2**60), 2, "error: too little memory .*allocate.*-j 1\n"),
    ],
)
def test_a_stage_ends_with_one_line(main, status, line, capsys):
    with pytest.raises(SystemExit) as ended:
        run_stage(main)
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (status, "")
    assert re.fullmatch(line, said.err)


HOLD = """
import sys, time
from pathlib import Path
from gpt1.base.locks import locked
with locked(Path("a.lock")) as file:
    file.write("the other")
    file.flush()
    print("held", flush=True)
    time.sleep(float(sys.argv[1]))
"""


def is_locked(path):
    try:
        with locked(path, wait=False):
            return False
    except BlockingIOError:
        return True


def held_for(seconds):
    command = [sys.executable, "-c", HOLD, str(seconds)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, env=None)
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    return other


def test_who_waits_has_the_file_after(elsewhere):
    with held_for(0.5) as other:
        assert is_locked(Path("a.lock"))
        with locked(Path("a.lock")) as file:
            other.wait()
            file.seek(0)
            assert file.read() == "the other"
    assert not is_locked(Path("a.lock"))


def test_a_killed_holder_frees_it(elsewhere):
    with held_for(60) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        with locked(Path("a.lock"), wait=False):
            assert is_locked(Path("a.lock")), "another descriptor of this process is another holder"


def test_a_child_that_inherits_the_descriptor_holds_the_lock_on(tmp_path):
    path = tmp_path / "folder/b.lock"
    with locked(path) as file:
        wait = [sys.executable, "-c", "input()"]
        child = subprocess.Popen(wait, stdin=subprocess.PIPE, pass_fds=(file.fileno(),))
    assert is_locked(path)
    child.communicate(b"\n")
    assert not is_locked(path)


def send_interrupt():
    """As a terminal does: to the process, whichever of its threads takes it."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)


def interrupted_twice(done):
    with interrupts_held():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        send_interrupt()
        done.append("masked")
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        send_interrupt()
        done.append("whole")


def test_an_interrupt_comes_after_the_block_whichever_thread_takes_it():
    ended = threading.Event()
    done = []
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted_twice(done)
    finally:
        ended.set()
        thread.join()
    assert done == ["masked", "whole"]
    with pytest.raises(KeyboardInterrupt):
        send_interrupt()


def interrupted_and_wrong():
    with interrupts_held():
        send_interrupt()
        raise ValueError("mine")


def test_an_ignored_interrupt_stays_ignored_and_an_error_goes_on():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(ValueError, match="mine"):
            interrupted_and_wrong()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_do_not_touch_it():
    found = []

    def held():
        with interrupts_held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=held)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
