"""DVC's remotes as the documentation sets them up, and the packages that they need."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dvc.cli import main
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpt1.base.errors import UserError
from gpt1.pipeline import shared

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
LINES = [
    line
    for page in PAGES
    for line in re.findall(r"(?:^|`)dvc (remote [^`\n]+)", page.read_text(encoding="utf-8"), re.M)
]
MODULES = {"s3": "dvc_s3", "ssh": "dvc_ssh"}
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M
    )
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def dvc(*words: str) -> None:
    """In this process: another would import DVC anew each time."""
    assert main(list(words)) == 0, f"dvc {shlex.join(words)}"


def git(*words: str) -> str:
    name = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    return subprocess.run(["git", *name, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git clone with a DVC graph of one stage; the test stands in it."""
    folder = tmp_path / "clone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "-q")
    dvc("init", "-q")
    Path("word").write_text("word")
    Path(".gitignore").write_text("/out\n/journal\n")
    Path("dvc.yaml").write_text(
        "stages: {copy: {cmd: cp word out && echo >> journal, deps: [word], outs: [out]}}\n"
    )
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    return folder


@pytest.mark.slow
def test_each_line_of_the_pages_sets_up_a_remote_outside_of_what_git_keeps(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {line.split()[1] for line in LINES} == {"add", "modify"}, "the pages lost their remotes"
    added = dict[str, str]()
    for line in LINES:
        if (words := shlex.split(line))[1] == "add":
            Path(".dvc/config.local").unlink(missing_ok=True)  # each page, each machine begins anew
            added[words[-1]] = words[-2]
        dvc(*words)
        if words[1] == "add":
            scheme = urlsplit(words[-1]).scheme
            with monkeypatch.context() as bare:
                bare.setitem(sys.modules, MODULES.get(scheme, "absent"), None)
                if scheme in MODULES:
                    with pytest.raises(UserError, match=rf"'dvc-{scheme}'.*make setup") as told:
                        shared.require_remote()
                    assert "\n" not in str(told.value)
                else:
                    assert shared.require_remote() == words[-2]
    assert {urlsplit(url).scheme for url in added} == {"", "s3", "ssh"}
    assert git("status", "--porcelain") == "", "a line of the pages writes what git would commit"


@pytest.mark.slow
def test_what_one_clone_pushes_to_a_folder_the_other_has_by_pull(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = {line for line in LINES if urlsplit(shlex.split(line)[-1]).path.startswith("/mnt/")}
    words = shlex.split(line.replace("/mnt/shared", str(tmp_path / "shared")))
    dvc(*words)
    dvc("repro")
    dvc("push")
    git("clone", "-q", ".", str(tmp_path / "second"))
    monkeypatch.chdir(tmp_path / "second")
    Path("dvc.lock").write_bytes((clone / "dvc.lock").read_bytes())
    dvc(*words)
    dvc("pull")
    assert shared.is_current("copy")
    assert Path("out").read_text() == "word"
    dvc("repro")
    assert not Path("journal").exists(), "it ran again"


def brought_by(requirement: Requirement) -> Iterator[Requirement]:
    """What a requirement of the project asks for, its own extras followed."""
    for extra in requirement.extras:
        for line in PROJECT["optional-dependencies"][extra]:
            if (one := Requirement(line)).name == PROJECT["name"]:
                yield from brought_by(one)
            else:
                yield one


def test_a_set_up_and_the_image_bring_what_the_remotes_need() -> None:
    remote = {one.name for one in brought_by(Requirement("gpt1[remote]"))}
    assert remote == {f"dvc-{scheme}" for scheme in MODULES}
    assert remote <= {one.name for one in brought_by(Requirement("gpt1[test]"))}, "make setup"
    image = (ROOT / "flows/docker/Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"--editable [\"']?\.\[[\w,]*\bremote\b", image)


def test_all_that_the_remotes_bring_is_pinned() -> None:
    """As deep as what is installed here tells."""
    waiting, seen = list(brought_by(Requirement("gpt1[remote]"))), set[str]()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in {*seen, "setuptools"} or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        assert name in PINS, f"constraints.txt has no {name}"
        assert one.specifier.contains(PINS[name]), f"{one}, but constraints.txt has {PINS[name]}"
        try:
            waiting += map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:
            continue
