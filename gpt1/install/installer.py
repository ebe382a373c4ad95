"""uv or pip at work in one environment; all that they say goes to the log, one line of it to the
person.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from gpt1.install.folder import LOG, ROOT, SIZES, shown
from gpt1.install.progress import Progress
from gpt1.install.words import SetupError, without_secrets

PROBE_SECONDS = 45
NO_LOG = 10**7  # bytes free: too few for the log to tell why
TOO_LONG = 124
LED_ASTRAY = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_QUIET",
    "PIP_VERBOSE",
    "VIRTUAL_ENV",
)  # not for the children
NO_NETWORK = re.compile(
    r"connection error|connection broken|ConnectTimeout|NewConnectionError|ReadTimeout|dns"
    r" error|error sending request"
)
NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|Errno 28\b")
TOLD = re.compile(
    r"(ERROR:|error:|×|╰─▶)\s*"
)  # how pip's and uv's lines begin that say what went wrong


class Installer:
    """One of the two, with what every call of it has in common."""

    def __init__(self, venv: Path, lock: int, uv: str) -> None:
        self.venv, self.lock, self.log, self.name = venv, lock, venv / LOG, "uv" if uv else "pip"
        pins = [
            line
            for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
            if "==" in line
        ]
        self.progress = Progress(venv, self.log, len(pins))
        python, index = str(venv / "bin" / "python"), os.environ.get("TORCH_INDEX")
        self.command = (
            [uv, "pip", "install", "--python", python, "--color", "never", "--no-progress"]
            if uv
            else [
                python,
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--no-input",
                "--progress-bar",
                "off",
            ]
        )
        self.command += ["--constraint", str(ROOT / "constraints.txt")] + (
            ["--extra-index-url", index] if index else []
        )
        if uv and index:  # it would otherwise take every package that the index has from it alone
            self.command += ["--index-strategy", "unsafe-best-match"]

    def run(self, command: "list[str]", seconds: "float | None" = None, **settings: str) -> int:
        """Run a command with its output in the log; a person is told how far it is."""
        environment = {name: value for name, value in os.environ.items() if name not in LED_ASTRAY}
        environment.update(settings, PIP_USER="0")
        begun = time.monotonic()
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=str(ROOT),
                pass_fds=[self.lock],
            )
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        return process.wait(timeout=1)
                    self.progress.tick()
                    if seconds and time.monotonic() - begun > seconds:
                        process.kill()
                        process.wait()
                        return TOO_LONG
            except KeyboardInterrupt:
                process.wait()  # Ctrl-C reached it too
                raise
            finally:
                self.progress.clear()

    def probe(self) -> str:
        """See quickly that an index answers; which build of torch it would give, CPU or CUDA."""
        report = self.venv / "report.json"
        torch = [
            "--dry-run",
            "--no-deps",
            "--reinstall" if self.name == "uv" else "--ignore-installed",
            "torch",
            "setuptools>=77",
        ]
        if self.name == "uv":
            status = self.run(
                [*self.command, *torch], PROBE_SECONDS, UV_HTTP_TIMEOUT="10", UV_HTTP_RETRIES="0"
            )
        else:
            status = self.run(
                [
                    *self.command,
                    "-vv",
                    "--retries",
                    "0",
                    "--timeout",
                    "10",
                    "--report",
                    str(report),
                    *torch,
                ],
                PROBE_SECONDS,
            )
        said = self.text()
        if status and not (
            status == TOO_LONG and re.search(r"Downloading", said)
        ):  # a whole wheel, where the index has no metadata
            raise self.explain(
                f"asking the package index by {self.name}", offline=status == TOO_LONG
            )
        if self.name == "pip" and NO_NETWORK.search(said):
            self.command += [
                "--retries",
                "0",
            ]  # another index serves; minutes of waiting for this one would change nothing
        needs = ["cuda"] if "+cpu" not in said else []  # what uv tells
        with suppress(OSError, ValueError):
            needs = [
                need
                for package in json.loads(report.read_text(encoding="utf-8"))["install"]
                for need in package["metadata"].get("requires_dist", [])
                if "extra ==" not in need
            ]
            report.unlink()
        return (
            "CUDA"
            if sys.platform == "linux" and any(re.match("nvidia|cuda", need) for need in needs)
            else "CPU"
        )

    def install(self, build: str, anew: bool) -> None:
        """The package itself, editable, and all that it and its tests need."""
        size = f", about {SIZES[build][1]:.1f} GB" if anew else ""
        self.progress.begin(
            f"{'downloading' if anew else 'renewing'} the packages of constraints.txt by"
            f" {self.name} ({build} build of torch{size})"
        )
        if self.run([*self.command, "--editable", ".[test]"]):
            raise self.explain(f"installing by {self.name}")
        self.progress.look()  # uv unpacks in a moment

    def text(self) -> str:
        """The log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def explain(self, doing: str, offline: bool = False) -> SetupError:
        """One line for a failed command: a full disk and an absent network in our words, all else
        in its own.
        """
        text, log = self.text(), f"the log: {shown(self.log)}"
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if NO_ROOM.search(text) or shutil.disk_usage(str(self.venv)).free < NO_LOG:
            cpu, cuda = (sum(SIZES[build]) for build in ("CPU", "CUDA"))
            return SetupError(
                f"the disk filled up while {doing}: {cpu:.1f} GB are needed, {cuda:.1f} GB with"
                f" torch's CUDA build; {log}"
            )
        broken = [line for line in lines if NO_NETWORK.search(line)]
        if broken or offline:
            host = re.search(
                r"https?://[^\s/'\"),;]+|host='[^']+', port=\d+", " ".join(broken) or text
            )
            where = f" ({without_secrets(host.group())})" if host else ""
            return SetupError(
                f"no package index is reached{where}: look at the network and its proxy, then run"
                f" the same again; {log}"
            )
        told = [line for line in lines if TOLD.match(line)] or lines or ["without a word"]
        return SetupError(
            f"{doing} failed: {without_secrets(TOLD.sub('', told[-1], count=1))}; {log}"
        )
