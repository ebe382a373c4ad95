"""Make or renew the virtual environment: `python3 -m gpt1.install`, in the root of the checkout, as
`make setup` does.

Settings, from the environment: PYTHON, the Python to use; VENV, the folder (.venv); TORCH_INDEX,
another wheel index for torch.
"""

import os
import shutil
import sys
import time
from pathlib import Path

from gpt1.install.folder import (
    LOG,
    ROOT,
    check_disk,
    clear,
    drop_stamp,
    fault,
    inputs,
    locked,
    prepare,
    read_stamp,
    shown,
    write_stamp,
)
from gpt1.install.installer import Installer
from gpt1.install.pythons import Python, choose_python
from gpt1.install.words import SetupError, say

PIP_SETTINGS = (
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "PIP_CONFIG_FILE",
)


def find_uv() -> str:
    """Where uv is, if it serves as well: it does not read what pip's settings say of other
    indexes.
    """
    home = os.environ.get("HOME", "")
    files = ("/etc/pip.conf", home + "/.pip/pip.conf", home + "/.config/pip/pip.conf")
    ours = any(os.environ.get(name) for name in PIP_SETTINGS) or any(
        Path(name).exists() for name in files
    )
    theirs = any(
        name.startswith("UV_") and name.endswith(("INDEX", "INDEX_URL", "FIND_LINKS"))
        for name in os.environ
    )
    return "" if ours and not theirs else shutil.which("uv") or ""


def make(venv: Path, python: Python, worker: Installer) -> None:
    """An empty environment."""
    without = ["--without-pip"] if worker.name == "uv" else []
    if worker.run([python.path, "-m", "venv", *without, str(venv)]):
        raise worker.explain(f"making a virtual environment with {python.path}")
    if not without and worker.run([str(venv / "bin" / "python"), "-I", "-c", "import pip"]):
        package = "python{}.{}-venv".format(*python.minor)
        raise SetupError(
            f"{python.path} made an environment without pip (Debian, Ubuntu: apt install {package};"
            " or install uv)"
        )


def renew(venv: Path, lock: int, stamp: "dict[str, str]", why: str) -> None:
    """Make the environment anew where there is a reason why, else bring it up to date."""
    begun = time.monotonic()
    os.environ["TORCH_INDEX"] = os.environ.get("TORCH_INDEX") or stamp.get(
        "torch_index", ""
    )  # an update keeps to the same build
    (venv / LOG).write_bytes(b"")
    worker = Installer(venv, lock, find_uv())
    if (
        not why
        and worker.name == "pip"
        and worker.run([str(venv / "bin" / "python"), "-I", "-c", "import pip"])
    ):
        why = "has no pip"
    worker.progress.steps = 3 if why else 2
    if why:
        if why != "is not there":
            say(f"set-up: {shown(venv)} {why}: removed and made again")
        python = choose_python(venv / "bin", worker.name == "uv")
        clear(venv)
        check_disk(venv, "CPU", worker.name == "uv")
        worker.progress.begin(
            f"an empty environment in {shown(venv)}, with Python {python.version}",
            "asking the package index",
        )
        make(venv, python, worker)
        stamp = {"folder": str(venv), "python": python.version}
    build = worker.probe()
    if why:
        check_disk(venv, build, worker.name == "uv")
    drop_stamp(venv)
    stamp.update(inputs=inputs(), torch_index=os.environ["TORCH_INDEX"])
    worker.install(build, bool(why))
    write_stamp(venv, stamp)
    say(f"set-up: done in {time.monotonic() - begun:.0f} s")


def set_up(venv: Path) -> None:
    """Nothing where the environment is whole and up to date; else one at a time makes it so."""
    stamp = read_stamp(venv)
    if not fault(venv, stamp) and stamp["inputs"] == inputs():
        return
    prepare(venv)
    with locked(venv) as lock:
        stamp = read_stamp(venv)  # another set-up may have ended meanwhile
        why = fault(venv, stamp)
        if not why and stamp["inputs"] == inputs():
            return
        try:
            renew(venv, lock, stamp, why)
        except SetupError:
            if not read_stamp(venv):  # what is left is of no use, and the disk may be full
                clear(venv)
            raise


def main() -> int:
    """A set-up with its exit status: every mistake and Ctrl-C end with one line."""
    try:
        set_up(ROOT / (os.environ.get("VENV") or ".venv"))
    except (SetupError, OSError) as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say("interrupted: the set-up is not whole; run the same command again")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
