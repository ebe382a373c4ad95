"""Two workers with a clone each, and one DVC remote: which ran what, that no stage ran twice, and
that both come to the same bytes.

    python benchmarks/two_workers.py [--remote URL] [--set key=value …] [--port 4200] [--seconds 2] [--keep FOLDER]

Makes two clones of this checkout's code with a graph of fourteen small stages, starts a Prefect
server and a worker in each clone, and runs reproduce-all with spread=True in the first, then in the
second, whose stages are all to be found finished. --set gives settings of the remote that are not
to be written into a repository (keyfile=…, endpointurl=…); credentials come from the environment.
Without --remote it is a folder.
"""

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = """
import pathlib, sys, time
name, seconds, *outs = sys.argv[1:]
with open("journal", "a") as journal:
    journal.write(f"{name} {time.time()}\\n")
time.sleep(float(seconds))
for number, out in enumerate(outs):
    folder = pathlib.Path(out)
    folder.mkdir(parents=True)
    for part in range(3):
        (folder / f"part-{part}").write_text(f"{name} {number} {part}\\n" * 5000)
"""
TASKS = ("cola", "rte", "mrpc", "sst2")


def graph(seconds: float) -> str:
    """dvc.yaml: what reads data/raw and what is a report stay where the flow is, the other eleven
    stages may go to either worker.
    """
    stages = {
        "acquire": (["data/raw/books"], "books"),
        "clean": (["out/books"], "clean"),
        "bpe": (["out/clean"], "bpe"),
        "shard": (["out/clean", "out/bpe"], "shard"),
        "pretrain": (["out/shard", "gpt1/model"], "pretrain"),
    }
    stages |= {
        f"encode-{task}": (["out/bpe", "gpt1/tasks"], f"encode/{task}") for task in TASKS[:2]
    }
    stages |= {
        f"finetune-{task}": (
            [
                "out/pretrain/part-0",
                f"out/encode/{task}" if task in TASKS[:2] else "out/bpe",
                "gpt1/model",
            ],
            f"finetune/{task}",
        )
        for task in TASKS
    }
    stages |= {
        "transfer": (["out/pretrain", "out/encode/rte", "gpt1/model"], "transfer"),
        "table2": (["out/finetune", "gpt1/results"], "table2"),
        "figure2": (["out/transfer", "gpt1/results"], "figure2"),
    }
    rows = [
        f"  {name}:\n    cmd: python work.py {name} {seconds} out/{out}\n    deps: [work.py,"
        f" {', '.join(deps)}]\n    outs: [out/{out}]"
        for name, (deps, out) in stages.items()
    ]
    return "\n".join(["stages:", *rows, ""])


def run(*command: object, folder: Path, environment: dict[str, str] | None = None) -> str:
    """What a command prints; ends this script with it where the command fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(
            f"{' '.join(map(str, command))} in {folder} ended with"
            f" {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def make_clones(folder: Path, remote: str, settings: list[str], seconds: float) -> list[Path]:
    """Two git clones, one made from the other, that have the remote and its settings."""
    first, second = folder / "one", folder / "two"
    first.mkdir(parents=True)
    listed = run(
        "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=ROOT
    ).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/")):
            (first / name).parent.mkdir(parents=True, exist_ok=True)
            (first / name).write_bytes((ROOT / name).read_bytes())
    (first / "flows/__init__.py").touch()
    (first / "work.py").write_text(WORK)
    (first / "dvc.yaml").write_text(graph(seconds))
    with (first / ".gitignore").open("a") as ignored:
        ignored.write("/out/\n/journal\n/prefect/\n")
    run("git", "init", "-q", folder=first)
    run(*dvc(), "remote", "add", "-d", "shared", remote, folder=first)
    run("git", "add", "-A", folder=first)
    run(
        "git",
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@localhost",
        "commit",
        "-q",
        "-m",
        "two workers",
        folder=first,
    )
    run("git", "clone", "-q", first, second, folder=folder)
    for clone in (first, second):
        (clone / "data/raw/books").mkdir(parents=True)
        (clone / "data/raw/books/one.txt").write_text("once upon a time\n")
        for place in ("out/finetune", "out/encode"):
            (clone / place).mkdir(parents=True)
        for setting in settings:
            run(
                *dvc(),
                "remote",
                "modify",
                "--local",
                "shared",
                *setting.split("=", 1),
                folder=clone,
            )
    return [first, second]


def dvc() -> list[str]:
    return [sys.executable, "-m", "dvc"]


@contextmanager
def at_work(
    *command: object, folder: Path, environment: dict[str, str], log: Path
) -> Iterator[None]:
    """A process that is ended, with its group, at the end of the block."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)


def wait_until(there: Callable[[], object], what: str, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        with suppress(OSError):
            if there():
                return
        time.sleep(0.5)
    sys.exit(f"no {what} within 90 s; see {log}")


def journal(clone: Path) -> list[str]:
    """The stages that ran in a clone since the last look, in order."""
    path = clone / "journal"
    names = [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return names


def sums(clone: Path) -> dict[str, str]:
    """md5 of every output file."""
    return {
        path.relative_to(clone).as_posix(): hashlib.md5(path.read_bytes()).hexdigest()
        for path in sorted((clone / "out").rglob("*"))
        if path.is_file()
    }


DEPLOY = """
from prefect.flows import EntrypointType
from flows.remote import run_stage
run_stage.to_deployment("stage", work_pool_name="gpt1", entrypoint_type=EntrypointType.MODULE_PATH).apply()
"""
REPRODUCE = """
import sys
from flows.reproduce import reproduce_all
sys.exit(0 if reproduce_all(spread=True, return_state=True).is_completed() else 1)
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--remote", help="what dvc remote add takes (default: a folder)")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--port", type=int, default=4200)
    parser.add_argument("--seconds", type=float, default=2.0, help="that a stage takes")
    parser.add_argument("--keep", type=Path, help="an empty folder to work in, kept afterwards")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        measure(
            folder,
            arguments.remote or str(folder / "remote"),
            arguments.settings,
            arguments.port,
            arguments.seconds,
        )


def measure(folder: Path, remote: str, settings: list[str], port: int, seconds: float) -> None:
    """All of it, printed; ends with status 1 where something is not as it has to be."""
    clones = make_clones(folder, remote, settings, seconds)
    environment = {
        **os.environ,
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "GPT1_DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
    }
    here = {clone: {**environment, "PYTHONPATH": str(clone)} for clone in clones}
    prefect = [sys.executable, "-m", "prefect"]
    server = [*prefect, "server", "start", "--host", "127.0.0.1", "--port", port]
    with at_work(*server, folder=folder, environment=environment, log=folder / "server.log"):
        wait_until(
            lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health"),
            "server",
            folder / "server.log",
        )
        run(
            *prefect,
            "work-pool",
            "create",
            "gpt1",
            "--type",
            "process",
            folder=folder,
            environment=environment,
        )
        for queue in ("cpu", "gpu"):
            run(
                *prefect,
                "work-queue",
                "create",
                queue,
                "--pool",
                "gpt1",
                folder=folder,
                environment=environment,
            )
        run(sys.executable, "-c", DEPLOY, folder=clones[0], environment=here[clones[0]])
        worker = [
            *prefect,
            "worker",
            "start",
            "--pool",
            "gpt1",
            "--type",
            "process",
            "--limit",
            1,
            "--work-queue",
            "cpu",
        ]
        with (
            at_work(
                *worker,
                "--name",
                "one",
                folder=clones[0],
                environment=here[clones[0]],
                log=folder / "worker-one.log",
            ),
            at_work(
                *worker,
                "--name",
                "two",
                folder=clones[1],
                environment=here[clones[1]],
                log=folder / "worker-two.log",
            ),
        ):
            time.sleep(8)  # until they have asked for work
            wrong = [look(clones, clone, here[clone]) for clone in clones]
    if any(wrong):
        sys.exit(1)


def look(clones: list[Path], clone: Path, environment: dict[str, str]) -> bool:
    """One run of reproduce-all in a clone; whether something is not as it has to be."""
    began = time.monotonic()
    output = run(sys.executable, "-c", REPRODUCE, folder=clone, environment=environment)
    took, ran = time.monotonic() - began, {each.name: journal(each) for each in clones}
    (clone.parent / f"flow-in-{clone.name}.log").write_text(output)
    names = [name for each in ran.values() for name in each]
    print(f"reproduce-all in clone {clone.name}: {took:.0f} s")
    for each, stages in ran.items():
        print(f"  ran in clone {each}: {', '.join(stages) or 'nothing'}")
    twice = {name for name in names if names.count(name) > 1}
    print(f"  {len(names)} stages run; more than once: {', '.join(sorted(twice)) or 'none'}")
    pending = run(*dvc(), "status", "--quiet", folder=clone) if not twice else ""
    found, other = sums(clone), sums(clones[1 - clones.index(clone)])
    differ = [name for name in found.keys() & other.keys() if found[name] != other[name]]
    print(
        f"  up to date by dvc status: {not pending}; {len(found)} files, of which"
        f" {len(found.keys() & other.keys())} in both clones, {len(differ)} of these with"
        " another md5"
    )
    return bool(twice or differ)


if __name__ == "__main__":
    main()
