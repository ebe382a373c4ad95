"""The checkout: git, DVC's locks and files, params.yaml, the last run, the data that were found."""

import shutil
import time
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import RAW, parse_json
from gpt1.base.locks import is_locked
from gpt1.pipeline.doctor.finding import Finding
from gpt1.pipeline.graph import CLAIMS, LOCK_FILE
from gpt1.pipeline.status import at_work
from gpt1.sources.table import is_made_up

DVC_LOCK = Path(".dvc/tmp/lock")  # DVC's processes hold it for moments only
MOMENT_SECONDS = 1.5


def git() -> list[Finding]:
    """Whether git is there and this is a clone: DVC, flows and comparisons ask for it."""
    if not shutil.which("git"):
        return [Finding("git", "do", "absent", "install git (Debian, Ubuntu: apt install git)")]
    if not Path(".git").exists():
        return [
            Finding(
                "git",
                "do",
                f"{Path.cwd()} is not the root of a clone",
                "clone the project with git, or call git init here",
            )
        ]
    return [Finding("git", "ok", "a clone")]


def locks() -> list[Finding]:
    """Who is at work here, and whether DVC's lock is held by something that hangs."""
    if who := at_work():
        return [Finding("DVC", "ok", f"{who} is at work here; gpt1 status says how far it is")]
    if held(DVC_LOCK):
        time.sleep(MOMENT_SECONDS)
        if held(DVC_LOCK):
            return [
                Finding(
                    "DVC",
                    "do",
                    f"DVC's lock is held by {holder(DVC_LOCK)}; every other DVC command waits"
                    " for it",
                    "wait for it to end, or end it",
                )
            ]
    left = abandoned()
    if left is None:
        return [
            Finding(
                "DVC",
                "note",
                f"{CLAIMS} cannot be read: left by a DVC that was killed; the next gpt1 run"
                " removes it",
            )
        ]
    if left:
        return [
            Finding(
                "DVC",
                "note",
                f"a DVC that was killed left {left} {'claim' if left == 1 else 'claims'}; "
                "the next gpt1 run passes over them",
            )
        ]
    return [Finding("DVC", "ok", "no lock is held")]


def held(path: Path) -> bool:
    """Whether a process holds the lock of a file that may not be there."""
    try:
        return is_locked(path)
    except OSError:
        return False


def holder(path: Path) -> str:
    """The process that wrote its number into a lock file, with its command."""
    from psutil import Error, Process

    try:
        process = Process(int(path.read_text(encoding="utf-8").split()[0]))
        return (
            f"process {process.pid} ({' '.join(' '.join(process.cmdline()).split())[:60]}; kill"
            f" {process.pid} ends it)"
        )
    except (OSError, ValueError, IndexError, Error):
        return "another process"


def abandoned() -> int | None:
    """How many claims processes left that are gone; None where the claims cannot be read."""
    from psutil import pid_exists

    try:
        claims = parse_json(CLAIMS.read_text(encoding="utf-8"))
        readers = [claim for ones in claims.get("read", {}).values() for claim in ones]
        return sum(
            not pid_exists(int(claim["pid"]))
            for claim in [*claims.get("write", {}).values(), *readers]
        )
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
        return [
            Finding("params", "do", str(error), "mend it, or compose it anew: gpt1 profile demo")
        ]
    return [
        Finding("params", "ok", f"{PARAMS}: profile {params.profile}, {len(params.tasks)} tasks")
    ]


def last_run() -> list[Finding]:
    """What the last run left: failed stages, interrupted ones, what is out of date."""
    from gpt1.pipeline.status import read_status

    try:
        status = read_status(())
    except UserError as error:
        kept = (
            f"mv {LOCK_FILE} {LOCK_FILE}.broken && gpt1 run, which finds finished results in DVC's"
            " cache"
        )
        return [
            Finding(
                "stages",
                "do",
                str(error).removesuffix("; gpt1 doctor says what is wrong with its files"),
                (
                    kept
                    if str(LOCK_FILE) in str(error)
                    else "mend what it names; git status shows what was changed"
                ),
            )
        ]
    findings = [
        Finding(
            "stages",
            "do",
            f"{name} failed: {ended.why}",
            f"mend that, then gpt1 run {name}; its last lines: gpt1 status {name}",
        )
        for name, ended in status.ended.items()
        if ended.how == "failed"
    ]
    stopped = [name for name, ended in status.ended.items() if ended.how != "failed"]
    if stopped:
        findings.append(
            Finding(
                "stages",
                "note",
                f"{', '.join(stopped[:4])}{' …' if len(stopped) > 4 else ''} did not come to an"
                " end; gpt1 run goes on from checkpoints and finished seeds",
            )
        )
    if findings:
        return findings
    now = f", at work: {', '.join(status.running)}" if status.running else ""
    return [
        Finding(
            "stages",
            "ok",
            f"{len(status.current)} of {len(status.stages)} are up to date{now}"
            + (f", {status.to_run()}: gpt1 status says why" if status.to_run() else ""),
        )
    ]


def data() -> list[Finding]:
    """Which of the data that params.yaml names are there, and how to get those that are not."""
    from gpt1.params.schema import read_params
    from gpt1.tasks.table import all_sources

    try:
        rows = read_params().sources
    except UserError:
        return []  # parameters() tells
    known, findings, there = all_sources(), [], []
    for name, row in rows.items():
        if row.folder != "raw":
            continue
        problem = absent(name)
        if problem:
            findings.append(
                Finding(
                    "data",
                    "do",
                    problem,
                    f"{known[name].how_to_get}; or leave it out: gpt1 profile NAME",
                )
            )
        else:
            there.append(name)
    made = sorted({row.folder for row in rows.values() if is_made_up(row.folder)})
    fetched = [name for name, row in rows.items() if row.folder == "download"]
    words = [f"in {RAW}: {', '.join(there)}"] if there else []
    words += [f"made up by the run itself: data/{', data/'.join(made)}"] if made else []
    words += [f"downloaded by the run itself: {', '.join(fetched)}"] if fetched else []
    lacking = [name for name in known if name not in rows]
    words += [f"not in params.yaml: {', '.join(lacking)}"] if lacking and not made else []
    return [*findings, *([Finding("data", "ok", "; ".join(words))] if words else [])]


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
