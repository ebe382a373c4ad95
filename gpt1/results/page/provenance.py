"""Where everything on the page comes from: data and their licences, code, parameters, machine, and
the commands that make it again.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gpt1.base.files import LOGS, read_json, sha256_file, stage_folder
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
NO_GIT = "not under git"


@dataclass(frozen=True)
class Source:
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


def sources() -> list[Source]:
    """Every acquired source by its manifest, books first. Raises OSError, ValueError, KeyError for
    a broken one.
    """
    found = []
    for path in sorted(stage_folder("acquire").glob("*/*/manifest.json")):
        told = read_json(path)
        found.append(
            Source(
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
    """What to type, in a clone, for the same results; `commit` as `code_facts` says it."""
    lines = PARAMS.read_text(encoding="utf-8").splitlines()
    composed = [line.removeprefix(COMPOSED) for line in lines[:1] if line.startswith(COMPOSED)]
    name, _, dirty = commit.partition(",")
    return [
        *([f"git checkout {name}"] if name != NO_GIT else []),
        *(["# without the changes that were not committed"] if dirty else []),
        "make setup && . .venv/bin/activate",
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


def _run_facts() -> dict[str, Any]:
    """Where pre-training ran; {} where that was not written down."""
    try:
        facts = read_json(LOGS / "pretrain" / "transformer.run.json")
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
