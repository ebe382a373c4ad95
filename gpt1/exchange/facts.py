"""What the files of a run say about weights that lie among them: for the model card. A file that is
not there says nothing.
"""

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.exchange.incoming import IMPORTED
from gpt1.pipeline.git import git

MADE_UP = (  # the origin that `acquire` writes down for a made-up world's files
    "made up by gpt1.demo"
)
RESULT_TABLES = ("table2", "table3", "table4")


@dataclass(frozen=True)
class Result:
    """One of our scores (x 100) beside the paper's (None for a made-up task): 95 % bootstrap
    interval over examples and seeds, deviation over seeds.
    """

    task: str
    column: str
    metric: str
    split: str
    examples: str
    seeds: str
    score: float
    deviation: float | None
    low: float | None
    high: float | None
    paper: float | None
    made_up: bool


@dataclass(frozen=True)
class Facts:
    """A run's facts; empty where its files are not there. `licences`: source, origin, licence."""

    corpus: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    imported: dict[str, Any] = field(default_factory=dict)
    seed: dict[str, Any] = field(default_factory=dict)
    licences: tuple[tuple[str, str, str], ...] = ()
    results: tuple[Result, ...] = ()
    composed_by: str = ""
    commit: str = ""


def facts_about(weights: Path, task: str | None = None, seed: int | None = None) -> Facts:
    """The facts of the run that weights at data/pretrain/transformer or
    data/finetune/<group>/<task>/seed-<n> belong to.

    For a task: its own results and licence alone. Weights that lie elsewhere have none but those of
    the import beside them. Raises UserError where a result of the run is damaged.
    """
    parents = weights.resolve().parents
    imported = _json(parents[0] / IMPORTED)
    up = 4 if task else 2
    if len(parents) <= up or parents[up - 1].name != ("finetune" if task else "pretrain"):
        return Facts(imported=imported)
    try:
        return _facts_of_run(parents[up], parents[1], imported, task, seed)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{parents[up]}: a result that the model card tells of cannot be read"
            f" ({type(error).__name__}: {error}); make it again with dvc repro, or export a copy of"
            " the weights that lies elsewhere"
        ) from None


def _facts_of_run(
    data: Path, results_folder: Path, imported: dict[str, Any], task: str | None, seed: int | None
) -> Facts:
    index = _json(data / "shard" / "index.json")
    train = index.get("splits", {}).get("train", {})
    corpus = (
        {
            "name": plain(index["corpus_name"]),
            "books": len(train["books"]),
            "words": train["words"],
            "tokens": train["tokens"],
        }
        if train.get("tokens")
        else {}
    )
    training = _json(data / "pretrain" / "transformer" / "summary.json")
    if training.get("source") == "official":
        corpus, imported = {}, _json(data / "acquire" / "weights" / "official" / IMPORTED)
    seeds = _json(results_folder / "summary.json").get("seeds", {}) if task else {}
    return Facts(
        corpus,
        training,
        imported,
        seeds.get(str(seed), {}),
        licences(data, task),
        results(data, task),
        composed_by(data.parent / "params.yaml"),
        commit_of(data.parent),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def plain(text: object) -> str:
    """Text without control characters, in one line, for a page and a terminal."""
    return " ".join(
        "".join(character if character.isprintable() else " " for character in str(text)).split()
    )


def licences(data: Path, task: str | None) -> tuple[tuple[str, str, str], ...]:
    """Source, origin and licence of the corpus and the byte pairs, and of the named task, from what
    `acquire` wrote down.
    """
    wanted = ("corpus/*", "bpe/*", "weights/*", *([f"tasks/{task}"] if task else []))
    found = (
        _json(path)
        for folder in wanted
        for path in sorted((data / "acquire").glob(f"{folder}/manifest.json"))
    )
    return tuple(
        (plain(one.get("source")), plain(one.get("origin")), plain(one.get("licence")))
        for one in found
        if one
    )


def results(data: Path, task: str | None) -> tuple[Result, ...]:
    """Our scores in Tables 2 to 4, of all tasks or of the named one."""
    rows = []
    for table in RESULT_TABLES:
        try:
            with (data / "report" / table / f"{table}.csv").open(
                encoding="utf-8", newline=""
            ) as file:
                rows += [
                    row
                    for row in csv.DictReader(file)
                    if row.get("row") == "ours" and row.get("score") and row.get("examples")
                ]
        except OSError:
            continue
        except csv.Error as error:
            raise ValueError(f"{table}.csv: {error}") from None
    return tuple(
        result_of(
            row,
            _json(data / "acquire" / "tasks" / row["task"] / "manifest.json").get("origin")
            == MADE_UP,
        )
        for row in rows
        if task in (None, row["task"])
    )


def result_of(row: dict[str, str], made_up: bool) -> Result:
    """A result from a row of a table's CSV."""
    low, high = (_number(row.get(name) or "") for name in ("low", "high"))
    return Result(
        row["task"],
        row["column"],
        row["metric"],
        row["split"],
        row["examples"],
        row["seeds"],
        float(row["score"]),
        _number(row["sd"]),
        low,
        high,
        None if made_up else _number(row["compared_with"]),
        made_up,
    )


def _number(text: str) -> float | None:
    return float(text) if text else None


def composed_by(path: Path) -> str:
    """The command that composed params.yaml, from its first line; empty where it does not say."""
    try:
        with path.open(encoding="utf-8") as file:
            first = file.readline()
    except (OSError, ValueError):
        return ""
    return plain(first.removeprefix("# Composed by:")) if first.startswith("# Composed by:") else ""


def commit_of(checkout: Path) -> str:
    """The checkout's commit, with a word where files differ from it; empty where there is none."""
    try:
        commit = git("rev-parse", "HEAD", folder=checkout)
        return commit + (
            " with uncommitted changes"
            if git("status", "--porcelain", "--", ":(exclude)dvc.lock", folder=checkout)
            else ""
        )
    except (UserError, OSError):
        return ""
