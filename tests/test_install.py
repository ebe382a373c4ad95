"""`make setup` as a person meets it: the real Makefile and script, in a path with spaces, with
stand-ins for what is slow or absent.
"""

import ast
import json
import os
import shutil
import signal
import socket
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from made_checkout import BASE, MAKE, ROOT, Checkout

VERSION = ".".join(map(str, sys.version_info[:3]))
MINOR = f"python{sys.version_info.major}.{sys.version_info.minor}"
SCRIPT = [BASE, "-B", "-E", "-s", "-m", "gpt1.install"]
BEGINNING = f"set-up: 1 of 3: an empty environment in .venv, with Python {VERSION}"
ANOTHER = "name another: make setup PYTHON=/path/to/python3.12"
OFFLINE = "look at the network and its proxy, then run the same again; the log: .venv/setup.log"


@pytest.fixture
def clone(tmp_path: Path) -> Checkout:
    folder = tmp_path / "my gpt ü"
    folder.mkdir()
    return Checkout(folder, tmp_path / "tools of mine")


def made(clone: Checkout, **settings: str) -> None:
    status, lines = clone.make(**settings)
    assert status == 0, lines
    assert lines[-1].startswith("set-up: done in ")


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_second_call_does_nothing_and_new_content_renews(clone: Checkout) -> None:
    status, lines = clone.make()
    doing = (
        "set-up: 2 of 3: downloading the packages of constraints.txt by uv (CPU build of torch,"
        " about 0.5 GB)"
    )
    assert (status, lines[:-1]) == (0, [BEGINNING, doing])
    os.utime(clone.folder / "pyproject.toml")
    assert clone.make() == (0, [])
    assert clone.calls() == ["probe", "install"]
    with (clone.folder / "constraints.txt").open("a") as file:
        file.write("# new\n")
    made(clone)
    assert clone.calls() == ["probe", "install"] * 2
    with (clone.folder / "constraints.txt").open("a") as file:
        file.write("# newer\n")
    assert (
        clone.make()[1][0]
        == "set-up: 1 of 2: renewing the packages of constraints.txt by uv (CPU build of torch)"
    )


def test_the_commands_run_in_the_environment(clone: Checkout) -> None:
    status, lines = clone.make("test-fast")
    assert (status, lines[1]) == (0, f"the suite runs in {clone.venv}/bin/pytest")


def test_an_old_python_first_on_path(clone: Checkout) -> None:
    clone.python_that_says("python3", "3.9.18")
    status, lines = clone.make()
    old = f"{clone.tools}/python3 (3.9.18, too old)"
    assert (status, lines) == (
        2,
        [f"error: Python 3.11 or later is needed, found {old}: install one, or {ANOTHER}"],
    )
    clone.tool("python3.12", f'exec "{BASE}" "$@"')
    status, lines = clone.make()
    assert (status, lines[0]) == (
        0,
        f"set-up: not {old}; taking {clone.tools}/python3.12 ({VERSION})",
    )


def test_an_old_python_can_read_the_script() -> None:
    for path in (ROOT / "gpt1" / "install").glob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 6))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for hint in (
                function.returns,
                *(argument.annotation for argument in function.args.args),
            ):
                assert not isinstance(hint, ast.Subscript | ast.BinOp), (
                    f"{path.name}: quote the hints of {function.name}"
                )


def test_no_python_at_all(clone: Checkout) -> None:
    (clone.tools / "python3").unlink()
    assert clone.make() == (
        2,
        [
            "error: no Python starts here: install Python 3.11 or later, or "
            + ANOTHER.replace("another", "one")
        ],
    )
    made(clone, PYTHON=BASE)


def test_python_named(clone: Checkout) -> None:
    assert clone.make(PYTHON="python7") == (2, [f"error: PYTHON=python7 does not start; {ANOTHER}"])
    made(clone)
    clone.python_that_says("python3.99", "3.99.1")
    status, lines = clone.make(PYTHON="python3.99")
    assert (status, lines[0]) == (
        0,
        f"set-up: .venv has Python {VERSION}, not python3.99: removed and made again",
    )


def test_without_ensurepip(clone: Checkout) -> None:
    clone.python_that_says("python3", "3.12.4", "ensurepip")
    made(clone)  # uv does without it
    shutil.rmtree(clone.venv)
    (clone.tools / "uv").unlink()
    status, lines = clone.make()
    assert (status, lines) == (
        2,
        [
            f"error: found {clone.tools}/python3 (3.12.4, without ensurepip): install what it lacks"
            f" (Debian, Ubuntu: apt install python3.12-venv), or {ANOTHER}"
        ],
    )


def test_without_pip(clone: Checkout) -> None:
    (clone.tools / "uv").unlink()
    clone.tool(
        "python3",
        f'[ "$2" = venv ] && exec "{BASE}" -m venv --without-pip "$3"; exec "{BASE}" "$@"',
    )
    clone.python_that_says("python3.12", VERSION)
    status, lines = clone.make(PYTHON="no-pip")
    assert status == 2
    clone.tool(
        "no-pip",
        f'case "$*" in *find_spec*) echo {VERSION}; echo "{clone.tools}/python3";; *) exec "{BASE}"'
        ' "$@";; esac',
    )
    status, lines = clone.make(PYTHON="no-pip")
    assert (status, lines[1:]) == (
        2,
        [
            f"error: {clone.tools}/python3 made an environment without pip (Debian, Ubuntu: "
            f"apt install {MINOR}-venv; or install uv)"
        ],
    )


def test_no_network(clone: Checkout) -> None:
    status, lines = clone.make(UV_PLAY="offline")
    assert (status, lines) == (
        2,
        [BEGINNING, f"error: no package index is reached (http://127.0.0.1:9): {OFFLINE}"],
    )
    assert sorted(path.name for path in clone.venv.iterdir()) == ["setup.lock", "setup.log"]
    made(clone)


def test_no_network_for_pip(clone: Checkout) -> None:
    """The real pip, lent to the new environment: ensurepip takes seconds."""
    pip = Path(sysconfig.get_path("purelib")) / "pip"
    if not pip.is_dir():
        pytest.skip("this environment has no pip")
    (clone.tools / "uv").unlink()
    clone.tool(
        "lender",
        f'"{BASE}" -m venv --without-pip "$3" && /bin/ln -s "{pip}"'
        f' "{clone.venv}/lib/{MINOR}/site-packages/pip"',
    )
    clone.tool(
        "python3",
        f'case "$*" in *find_spec*) echo {VERSION}; echo "{clone.tools}/lender";; *) exec "{BASE}"'
        ' "$@";; esac',
    )
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, not listening: refused
        index = f"http://127.0.0.1:{closed.getsockname()[1]}"
        status, lines = clone.make(PIP_INDEX_URL=f"{index}/simple", PIP_CONFIG_FILE=os.devnull)
    assert (status, lines) == (
        2,
        [BEGINNING, f"error: no package index is reached ({index}): {OFFLINE}"],
    )


def test_an_installation_that_fails(clone: Checkout) -> None:
    assert (
        clone.make(UV_PLAY="fail")[1][-1]
        == "error: installing by uv failed: Because torch has no wheels, it cannot be used.; "
        "the log: .venv/setup.log"
    )
    status, lines = clone.make(UV_PLAY="full")
    assert (status, lines[-1].split(":")[1]) == (2, " the disk filled up while installing by uv")
    assert not (clone.venv / "pyvenv.cfg").exists()


def test_a_disk_too_small(clone: Checkout) -> None:
    usage = "shutil._ntuple_diskusage(10**9, 8 * 10**8, 2 * 10**8)"
    run = (
        f"import runpy, shutil, sys; shutil.disk_usage = lambda path: {usage};"
        " runpy.run_module('gpt1.install', run_name='__main__')"
    )
    clone.tool(
        "python3",
        f'case "$*" in *gpt1.install) exec "{BASE}" -B -c "{run}";; *) exec "{BASE}" "$@";; esac',
    )
    status, lines = clone.make()
    assert status == 2
    assert len(lines) == 1
    assert lines[0].startswith("error: 0.2 GB are free at ")
    assert lines[0].endswith(" GB are needed with torch's CPU build: make room")
    assert clone.calls() == []


def test_a_folder_that_cannot_be_written(clone: Checkout) -> None:
    setpriv = shutil.which("setpriv")
    if os.geteuid() == 0 and not setpriv:
        pytest.skip("root may write everywhere")
    clone.folder.chmod(0o555)
    powerless = (
        [setpriv, "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 and setpriv else []
    )
    process = clone.start([*powerless, MAKE, "setup"])
    said = process.communicate()[1].splitlines()
    clone.folder.chmod(0o755)
    assert (
        said[0]
        == f"error: {clone.venv} cannot be written (Permission denied): clone into a folder where"
        " you may write, or name one for the packages: make setup VENV=/path/to/a/new/folder"
    )
    assert process.returncode == 2


def leave_half(clone: Checkout) -> str:
    (clone.venv / "setup.json").unlink()
    return "is half made"


def spoil_stamp(clone: Checkout) -> str:
    (clone.venv / "setup.json").write_text('{"inputs": ')
    return "is half made"


def lose_python(clone: Checkout) -> str:
    for link in (clone.venv / "bin").glob("python*"):
        link.unlink()
        link.symlink_to("/nowhere/python3")
    return "has a Python that no longer starts"


def break_python(clone: Checkout) -> str:
    (clone.venv / "bin" / "python").unlink()
    shutil.copy("/bin/false", clone.venv / "bin" / "python")
    return "has a Python that no longer starts"


def upgrade_python(clone: Checkout) -> str:
    stamp = json.loads((clone.venv / "setup.json").read_text())
    (clone.venv / "setup.json").write_text(json.dumps(stamp | {"python": "3.10.1"}))
    return f"was made with Python 3.10.1, which is {VERSION} now"


def move(clone: Checkout) -> str:
    before, clone.folder = clone.venv, clone.folder.rename(clone.folder.with_name("moved ö"))
    clone.venv = clone.folder / ".venv"
    return f"was made as {before}"


@pytest.mark.parametrize(
    "harm", [leave_half, spoil_stamp, lose_python, break_python, upgrade_python, move]
)
def test_a_broken_environment_is_made_again(
    clone: Checkout, harm: Callable[[Checkout], str]
) -> None:
    made(clone)
    leftover = clone.venv / "lib" / "leftover"
    leftover.touch()
    fault = harm(clone)
    status, lines = clone.make()
    assert (status, lines[0]) == (0, f"set-up: .venv {fault}: removed and made again")
    assert not (clone.venv / "lib" / "leftover").exists()
    assert clone.make() == (0, [])


def test_a_folder_of_other_things_is_left_alone(clone: Checkout) -> None:
    thesis = clone.folder / "mine" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.touch()
    assert clone.make(VENV="mine") == (
        2,
        [
            "error: mine holds other things than a virtual environment: move it away, "
            "or name another folder by VENV"
        ],
    )
    assert list(thesis.parent.iterdir()) == [thesis]
    clone.venv.symlink_to("nowhere")
    assert clone.make() == (
        2,
        ["error: .venv is no folder, or a link to one that is not there: remove it"],
    )


def test_ctrl_c_is_one_line_and_never_taken_for_whole(clone: Checkout) -> None:
    process = clone.start(SCRIPT, UV_PLAY="wait")
    wait_for(lambda: "install" in clone.calls())
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate()[1].splitlines()[2:] == [
        "interrupted: the set-up is not whole; run the same command again"
    ]
    assert process.returncode == 130
    assert clone.make()[1][0] == "set-up: .venv is half made: removed and made again"


def test_two_at_once_after_a_kill(clone: Checkout) -> None:
    """A killed set-up's installer lives on and keeps the lock; of two that wait for it one
    installs.
    """
    killed = clone.start(SCRIPT, UV_PLAY="wait")
    wait_for(lambda: "install" in clone.calls())
    killed.kill()
    killed.wait()
    waiting = [clone.start(SCRIPT) for _ in range(2)]
    for process in waiting:
        assert process.stderr
        assert process.stderr.readline() == "set-up: waiting for another set-up of .venv to end\n"
    assert clone.calls() == ["probe", "install"]
    (clone.folder / "go").touch()
    said = [process.communicate()[1] for process in waiting]
    assert [process.returncode for process in waiting] == [0, 0]
    assert sorted(map(bool, said)) == [False, True], said
    assert clone.calls() == ["probe", "install"] * 2
    assert clone.make() == (0, [])
