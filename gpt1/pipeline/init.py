"""`gpt1 init`: a project folder, in which the installed package runs as a checkout does."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import chdir
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import writing
from gpt1.params.data import compose_profile
from gpt1.params.schema import PARAMS
from gpt1.pipeline import code
from gpt1.pipeline.template import sixteen_digits, texts


def make_folder(folder: Path, profile: str) -> None:
    """Write into a folder what a run of the installed package needs, under git and DVC, params.yaml
    composed from a profile; called again, bring what it wrote to the package's version.

    What it did not write, or a person has changed since, stays as it is, and is named. Raises
    UserError, before anything is written, in a checkout, where a package of the extra is not there,
    and where a code.lock is another's; and where a file cannot be written.
    """
    require_programs()
    if (folder / "gpt1/__init__.py").exists():
        raise UserError(
            f"{folder.absolute()} is a checkout, which has its own code and needs no project folder"
            " made: name another"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fill(folder, profile)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise UserError(
            f"{error.filename} cannot be written ({error.strerror}): name another folder, or make"
            " way for it"
        ) from None


def fill(folder: Path, profile: str) -> None:
    """make_folder, in a folder that is there."""
    with chdir(folder):
        code.refresh()
        written, foreign = write_files(texts(), code.read_code().get(code.FILES, {}))
        code.write_code(code.installed() | {code.FILES: written})
        for name in foreign:
            print(f"left as it is: {name}, which is yours (or changed since gpt1 init wrote it)")
        print(f"{Path.cwd()}: a project folder; README.md there says what is what")
        try:
            compose(profile, folder)
        finally:
            set_up_git()


def require_programs() -> None:
    """Raises ModuleNotFoundError, or UserError, where what runs stages is not installed."""
    for name in ("dvc", "hydra"):
        if not find_spec(name):
            raise ModuleNotFoundError(name=name)
    try:
        subprocess.run(["git", "--version"], check=True, capture_output=True)
    except FileNotFoundError:
        raise UserError("git is not there, by which DVC keeps a folder; install git") from None


def write_files(
    wanted: Iterator[tuple[str, str]], before: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Write what is not there, or stands as it was written before (name: digest); returns the
    digests of what has been written, and the names of what is another's.
    """
    written, foreign = dict[str, str](), []
    for name, text in wanted:
        path, data = Path(name), text.encode()
        there = path.read_bytes() if path.exists() else data
        if there != data and sixteen_digits(there) != before.get(name):
            foreign.append(name)
            continue
        if there != data or not path.exists():
            with writing(path) as file:
                file.write(text)
        written[name] = sixteen_digits(data)
    return written, foreign


def set_up_git() -> None:
    """A repository of git with a first commit, where the folder is not the root of one already."""
    if Path(".git").exists():
        return
    name = ["-c", "user.name=gpt1", "-c", "user.email=gpt1@localhost"]
    whose = [] if git("config", "user.email") else name
    git("init", "--quiet")
    git("add", "--all")
    git(*whose, "commit", "--quiet", "--no-verify", "-m", f"gpt1 init, version {version('gpt1')}")


def git(*words: str) -> str:
    """What git says; '' where it refuses."""
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout


def compose(profile: str, folder: Path) -> None:
    """Write params.yaml, where there is none. Raises UserError where data lack."""
    if PARAMS.exists():
        print(f"left as it is: {PARAMS} (gpt1 profile {profile} composes it anew)")
        return
    try:
        compose_profile(profile, [], None, None, None, False)
    except UserError as error:
        raise UserError(
            f"{folder} is made but for {PARAMS}: {error}. In it: gpt1 profile {profile} --data"
            " FOLDER"
        ) from None
