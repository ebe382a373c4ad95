"""Where everything on the page comes from and what it took: data and licences, code, machine,
commands; time and memory by stage.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gpt1.base.files import LOGS, read_json, sha256_file, stage_folder
from gpt1.base.units import duration, number
from gpt1.results.document import NONE, counted
from gpt1.results.page.sheets import Sheet, SheetCell
from gpt1.tracking.log import checkout, machine

FILES_SHOWN = 40  # of a source; a corpus of thousands of books has its manifest for that
LIBRARIES = (
    "torch",
    "deepspeed",
    "dvc",
    "prefect",
    "mlflow",
    "tokenizers",
    "spacy",
    "ftfy",
    "scikit-learn",
    "numpy",
)
PARAMS, LOCK = Path("params.yaml"), Path("dvc.lock")
COMPOSED = "# Composed by: "
STAGE = re.compile(r"^  ([\w@.-]+):$", re.MULTILINE)  # of dvc.lock, which is long
NO_GIT = "not under git"


@dataclass(frozen=True)
class AcquiredSource:
    """A source of data: its manifest's facts, and one sha256 for all its files."""

    name: str
    origin: str
    licence: str
    files: Mapping[str, Mapping[str, Any]]
    manifest: str

    @property
    def bytes_(self) -> int:
        """Of all its files."""
        return sum(int(file["bytes"]) for file in self.files.values())

    @property
    def sha256(self) -> str:
        """Of the lines that `sha256sum` prints for the files in the order of their names; of one
        file, the file's own.
        """
        if len(self.files) == 1:
            return str(next(iter(self.files.values()))["sha256"])
        lines = "".join(f"{file['sha256']}  {name}\n" for name, file in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def shown(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The first files by name."""
        return sorted(self.files.items())[:FILES_SHOWN]


def sources() -> list[AcquiredSource]:
    """Every acquired source by its manifest, books first. Raises OSError, ValueError, KeyError for
    a broken one.
    """
    found = []
    for path in sorted(stage_folder("acquire").glob("*/*/manifest.json")):
        told = read_json(path)
        found.append(
            AcquiredSource(
                str(told["source"]),
                str(told["origin"]),
                str(told["licence"]),
                told["files"],
                path.as_posix(),
            )
        )
    return found


def code_facts() -> list[tuple[str, str]]:
    """Commit, parameters, machine and versions as name and words."""
    here, trained = checkout(Path()), _run_facts()
    facts = [("Commit", _commit(here))]
    if (then := trained.get("checkout", {})).get("git_commit", "unknown") not in (
        "unknown",
        here["git_commit"],
    ):
        facts.append(("Commit of the pre-training", _commit(then)))
    where = trained.get("machine") or machine()
    facts.append(
        (
            "Machine",
            (
                f"{where['cpu']}, {where['cores']} cores; GPU: {where['gpu']}; Python"
                f" {where['python']}, torch {where['torch']}"
            ),
        )
    )
    facts.append(
        (
            "Libraries",
            ", ".join(f"{name} {found}" for name in LIBRARIES if (found := _version(name))),
        )
    )
    facts += [(f"sha256 of {path}", sha256_file(path)) for path in (PARAMS, LOCK) if path.is_file()]
    return facts


def commands(commit: str) -> list[str]:
    """What to type, in a clone, for the same results; `commit` as `code_facts`
    says it.
    """
    install = "make setup && . .venv/bin/activate"
    lines = PARAMS.read_text(encoding="utf-8").splitlines()
    composed = [line.removeprefix(COMPOSED) for line in lines[:1] if line.startswith(COMPOSED)]
    name, _, dirty = commit.partition(",")
    return [
        *([f"git checkout {name}"] if name != NO_GIT else []),
        *(["# without the changes that were not committed"] if dirty else []),
        install,
        *(composed or ["# params.yaml as it stands below"]),
        "gpt1 run",
        "gpt1 report",
    ]


def _commit(facts: Mapping[str, str]) -> str:
    commit = facts["git_commit"]
    return (
        f"{commit}, with uncommitted changes"
        if facts.get("dirty") == "true"
        else commit
        if commit != "unknown"
        else NO_GIT
    )


def computation() -> str:
    """How the Transformer's pre-training was computed: arithmetic, what was compiled, attention,
    processes; "" where that was not written down.
    """
    facts = _pretraining_facts("transformer*-speed.json")
    if not {"arithmetic", "compiled", "attention", "processes", "threads"} <= facts.keys():
        return ""
    compiled = str(facts["compiled"])
    if not compiled.startswith("not"):  # which then says why
        compiled = "not compiled" if compiled == "no" else f"{compiled} compiled"
    processes = f"{facts['processes']} process{'' if facts['processes'] == 1 else 'es'}"
    threads = counted(facts["threads"], "thread")
    how = f"{facts['arithmetic']}; {compiled}; attention: {facts['attention']}"
    return f"{how}; {processes}, {threads} each"


def _run_facts() -> dict[str, Any]:
    """Where pre-training ran; {} where that was not written down."""
    return _pretraining_facts("transformer.run.json", "transformer/seed-*.run.json")


def _pretraining_facts(*patterns: str) -> dict[str, Any]:
    """The log of these names that was written last, of several seeds; {} where there is none."""
    try:
        found = [path for pattern in patterns for path in (LOGS / "pretrain").glob(pattern)]
        facts = read_json(max(found, key=lambda path: path.stat().st_mtime)) if found else {}
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class StageCost:
    """A stage that dvc.lock has results of; as far as known its seconds, its end (seconds since
    1970), its peak memory in bytes.
    """

    name: str
    seconds: float | None
    ended: float | None
    memory_bytes: float


def stages_taken() -> list[StageCost]:
    """Every stage with results, in their order."""
    lock = LOCK.read_text(encoding="utf-8") if LOCK.is_file() else ""
    stages = dict.fromkeys(STAGE.findall(lock))
    seconds: dict[str, float] = {}
    with suppress(OSError, ValueError):
        seconds = dict(read_json(LOGS / "run" / "seconds.json"))
    return [
        StageCost(name, seconds.get(name), _ended(name), _memory(name))
        for name in {**stages, **seconds}
    ]


def _memory(stage: str) -> float:
    verb, _, item = stage.partition("@")
    with suppress(OSError, ValueError, KeyError):
        return float(read_json(LOGS / verb / f"{item}-speed.json")["peak_memory_bytes"])
    return 0.0


def _ended(stage: str) -> float | None:
    """When a stage's own command last ran; None where its log tells only that nothing was to do."""
    log = LOGS / "run" / f"{stage}.log"
    ran = log.is_file() and "Running stage '" in log.read_text(encoding="utf-8", errors="replace")
    return log.stat().st_mtime if ran else None


def busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of these spans (beginning, end) was open: stages side by side count
    once, pauses not at all.
    """
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def wall_seconds(taken: Iterable[StageCost]) -> float:
    """Time with any stage at work, of those whose beginning and end are known."""
    return busy_seconds(
        (one.ended - one.seconds, one.ended)
        for one in taken
        if one.seconds is not None and one.ended is not None
    )


def by_stage(taken: Iterable[StageCost], caption: str) -> Sheet:
    """A line for each kind of stage: how many, time, longest, peak memory."""
    lines: dict[str, list[StageCost]] = {}
    for one in taken:
        lines.setdefault(one.name.partition("@")[0], []).append(one)
    rows = [_row(line, ones) for line, ones in lines.items()]
    total = _row("all", [one for ones in lines.values() for one in ones])
    return Sheet(caption, ("stages", "of", "time", "longest", "peak memory"), (*rows, total))


def _row(line: str, ones: list[StageCost]) -> tuple[SheetCell, ...]:
    seconds = [one.seconds for one in ones if one.seconds]
    memory = max(one.memory_bytes for one in ones)
    return (
        SheetCell(line),
        SheetCell(str(len(ones))),
        SheetCell(duration(sum(seconds)) if seconds else NONE),
        SheetCell(duration(max(seconds)) if seconds else NONE),
        SheetCell(f"{number(memory)}B" if memory else NONE),
    )


def totals(taken: list[StageCost]) -> list[str]:
    """The whole run in sentences: wall time and stage time, as far as they are known."""
    wall, added = wall_seconds(taken), sum(one.seconds or 0.0 for one in taken)
    if not added:
        return [
            "No stage has been timed: `gpt1 run` writes times down, `dvc repro` and results from"
            " DVC's cache do not."
        ]
    told = [
        f"At work for {duration(wall)}; the stages' own times add up to {duration(added)}, for some"
        " ran side by side. Each is of a stage's last run, with the start of DVC and of Python; of"
        " a run that was killed and went on, the last part."
    ]
    if untimed := sum(one.seconds is None for one in taken):
        told.append(
            f"{counted(untimed, 'finished stage')} without a time: pulled, from DVC's cache, or run"
            " by hand."
        )
    return told
