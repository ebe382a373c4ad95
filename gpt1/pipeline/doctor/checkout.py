"""The checkout: git, DVC's locks and files, params.yaml, the last run, the data that were found."""

import shutil
import time
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import RAW, parse_json
from gpt1.base.locks import is_locked
from gpt1.pipeline.doctor.finding import Finding, to_do, well
from gpt1.pipeline.graph import CLAIMS, LOCK_FILE
from gpt1.pipeline.status import at_work, read_status
from gpt1.sources.table import is_made_up

DVC_LOCK = Path(".dvc/tmp/lock")  # DVC's processes hold it for moments only
MOMENT_SECONDS = 1.5


def git() -> list[Finding]:
    """Whether git and a repository of it are there: DVC, flows and comparisons ask for them."""
    if not shutil.which("git"):
        return to_do("git", "absent", "install git (Debian, Ubuntu: apt install git)")
    if not Path(".git").exists():
        found = f"{Path.cwd()} is not the root of a git repository"
        return to_do(
            "git", found, "clone the project with git, or call gpt1 init in a folder of its own"
        )
    return well("git", "this is a repository")


def locks() -> list[Finding]:
    """Who is at work here, and whether DVC's lock is held by something that hangs."""
    if who := at_work():
        return well("DVC", f"{who} is at work here; gpt1 status says how far it is")
    if held(DVC_LOCK):
        time.sleep(MOMENT_SECONDS)
        if held(DVC_LOCK):
            return to_do(
                "DVC",
                f"DVC's lock is held by {holder(DVC_LOCK)}; every other DVC command waits for it",
                "wait for it to end, or end it",
            )
    left = abandoned()
    if left is None:
        return well(
            "DVC",
            f"{CLAIMS} cannot be read: left by a DVC that was killed; the next gpt1 run removes it",
            noted=True,
        )
    if left:
        claims = f"{left} {'claim' if left == 1 else 'claims'}"
        return well(
            "DVC",
            f"a DVC that was killed left {claims}; the next gpt1 run passes over them",
            noted=True,
        )
    return well("DVC", "no lock is held")


def held(path: Path) -> bool:
    """Whether a process holds the lock of a file that may not be there."""
    return path.is_file() and is_locked(path)


def holder(path: Path) -> str:
    """The process that wrote its number into a lock file, with its command."""
    from psutil import Error, Process

    try:
        process = Process(int(path.read_text(encoding="utf-8").split()[0]))
        command = " ".join(" ".join(process.cmdline()).split())[:60]
    except (OSError, ValueError, IndexError, Error):
        return "another process"
    return f"process {process.pid} ({command}; kill {process.pid} ends it)"


def abandoned() -> int | None:
    """How many claims processes left that are gone; None where the claims cannot be read."""
    from psutil import pid_exists

    try:
        claims = parse_json(CLAIMS.read_text(encoding="utf-8"))
        readers = [claim for ones in claims.get("read", {}).values() for claim in ones]
        every = [*claims.get("write", {}).values(), *readers]
        return sum(not pid_exists(int(claim["pid"])) for claim in every)
    except FileNotFoundError:
        return 0
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def parameters() -> list[Finding]:
    """Whether params.yaml is whole and sound."""
    from gpt1.params.schema import PARAMS, read_params

    try:
        params = read_params()
    except UserError as error:
        return to_do("params", str(error), "mend it, or compose it anew: gpt1 profile demo")
    return well("params", f"{PARAMS}: profile {params.profile}, {len(params.tasks)} tasks")


def last_run() -> list[Finding]:
    """What the last run left: failed stages, interrupted ones, what is out of date."""
    try:
        status = read_status(())
    except UserError as error:
        cure = "mend what it names; git status shows what was changed"
        if str(LOCK_FILE) in str(error):
            cure = (
                f"mv {LOCK_FILE} {LOCK_FILE}.broken && gpt1 run, which finds finished results in"
                " DVC's cache"
            )
        found = str(error).removesuffix("; gpt1 doctor says what is wrong with its files")
        return to_do("stages", found, cure)
    findings = [
        finding
        for name, ended in status.ended.items()
        if ended.how == "failed"
        for finding in to_do(
            "stages",
            f"{name} failed: {ended.why}",
            f"mend that, then gpt1 run {name}; its last lines: gpt1 status {name}",
        )
    ]
    if stopped := [name for name, ended in status.ended.items() if ended.how != "failed"]:
        found = f"{', '.join(stopped[:4])}{' …' if len(stopped) > 4 else ''} did not come to an end"
        goes_on = "gpt1 run goes on from checkpoints and finished seeds"
        findings += well("stages", f"{found}; {goes_on}", noted=True)
    words = [f"{len(status.current)} of {len(status.stages)} are up to date"]
    words += [f"at work: {', '.join(status.running)}"] if status.running else []
    words += [f"{status.to_run()}: gpt1 status says why"] if status.to_run() else []
    return findings or well("stages", ", ".join(words))


def data() -> list[Finding]:
    """Which of the data that params.yaml names are there, and how to get those that are not."""
    from gpt1.params.schema import read_params
    from gpt1.tasks.table import all_sources

    try:
        folders = {name: row.folder for name, row in read_params().sources.items()}
    except UserError:
        return []  # parameters() tells
    known, findings, there = all_sources(), list[Finding](), list[str]()
    for name in (name for name, folder in folders.items() if folder == "raw"):
        if problem := absent(name):
            cure = f"{known[name].how_to_get}; or leave it out: gpt1 profile NAME"
            findings += to_do("data", problem, cure)
        else:
            there.append(name)
    made = sorted({folder for folder in folders.values() if is_made_up(folder)})
    fetched = [name for name, folder in folders.items() if folder == "download"]
    lacking = [] if made else [name for name in known if name not in folders]
    words = {
        f"in {RAW}: ": there,
        "made up by the run itself: ": [f"data/{folder}" for folder in made],
        "downloaded by the run itself: ": fetched,
        "not in params.yaml: ": lacking,
    }
    told = [f"{what}{', '.join(names)}" for what, names in words.items() if names]
    return [*findings, *(well("data", "; ".join(told)) if told else [])]


def absent(name: str) -> str:
    """What is missing of a source in data/raw; '' where its files, or an archive that holds them,
    are there.
    """
    from gpt1.sources.archives import is_archive
    from gpt1.sources.find import find_files
    from gpt1.tasks.table import all_sources

    folder, source = RAW / name, all_sources()[name]
    if folder.is_symlink() and not folder.exists():
        return f"{folder} is a link to {folder.readlink()}, which is not there"
    if not folder.is_dir():
        return f"{folder} is not there"
    try:
        if find_files(source, folder) or any(is_archive(path) for path in folder.iterdir()):
            return ""
    except (UserError, OSError) as error:
        return str(error)
    return f"{folder} holds no {source.expected}"
