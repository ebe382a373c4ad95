"""Locked files, among real processes: one holder at a time, freed by any end."""

import signal
import subprocess
import sys
from pathlib import Path

from gpt1.base.locks import locked

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


def is_locked(path: Path) -> bool:
    try:
        with locked(path, wait=False):
            return False
    except BlockingIOError:
        return True


def held_for(seconds: float) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", HOLD, str(seconds)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, env=None)
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    return other


def test_who_waits_has_the_file_after(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with held_for(0.5) as other:
        assert is_locked(Path("a.lock"))
        with locked(Path("a.lock")) as file:
            other.wait()
            file.seek(0)
            assert file.read() == "the other"
    assert not is_locked(Path("a.lock"))


def test_a_killed_holder_frees_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
