"""What users and their scripts hold on to, recorded from a finished run, to compare after a change
of the code that should change none of it.

    python benchmarks/frozen_surface.py record FILE      in the root of a checkout with a run
    python benchmarks/frozen_surface.py compare FILE FILE

Recorded: commands and their options, exit statuses of mistaken command lines, stages, keys of
params.yaml, digests of every output that DVC recorded (weights, logits and tables among them),
every number of the tables, and in MLflow experiments, runs, tags, parameters and metrics.
"""

import argparse
import csv
import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from gpt1.params.yaml import read_yaml

MISTAKES = (
    "run nosuch",
    "table nosuch",
    "predict nosuch",
    "predict",
    "profile nosuch",
    "profile demo nosuch=1",
    "generate x --temperature x",
    "export",
    "import nosuch --to nosuch",
    "register nosuch",
    "nosuch",
    "status --nosuch",
)
MLFLOW = {
    "experiments": "select name from experiments",
    "runs": "select distinct name from runs",
    "tags": "select distinct key from tags",
    "params": "select distinct key from params",
    "metrics": "select distinct key from latest_metrics",
}


def gpt1(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """One command line of the program."""
    return subprocess.run(
        ["gpt1", *arguments], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def options_by_command() -> dict[str, list[str]]:
    """The options that each command's help names."""
    names = re.findall(r"^  ([a-z]+)  ", gpt1("--help").stdout, re.MULTILINE)
    return {
        name: sorted(set(re.findall(r"^ +(--[a-z-]+)", gpt1(name, "--help").stdout, re.MULTILINE)))
        for name in names
    }


def flat(values: Any, place: str = "") -> Iterator[str]:
    """The dotted names of all leaves."""
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from flat(value, f"{place}.{name}" if place else str(name))
    else:
        yield place


def outputs() -> dict[str, str]:
    """Digest by path of what dvc.lock says was written."""
    stages = read_yaml(Path("dvc.lock"))["stages"]
    return {out["path"]: out["md5"] for stage in stages.values() for out in stage.get("outs", [])}


def numbers() -> dict[str, list[float]]:
    """Every number of the tables' CSV files, sorted, by file."""
    found = {}
    for path in sorted(Path("data/report").rglob("*.csv")):
        with path.open(encoding="utf-8") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        found[path.as_posix()] = sorted(
            float(cell) for cell in cells if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell)
        )
    return found


def record() -> dict[str, Any]:
    """The whole surface of the checkout in the current folder."""
    listed = subprocess.run(
        ["dvc", "stage", "list", "--name-only"], check=True, capture_output=True, text=True
    ).stdout
    with closing(sqlite3.connect("file:mlflow.db?mode=ro", uri=True)) as store:
        mlflow = {
            name: sorted(str(row[0]) for row in store.execute(query))
            for name, query in MLFLOW.items()
        }
    return {
        "options": options_by_command(),
        "statuses": {words: gpt1(*words.split()).returncode for words in MISTAKES},
        "stages": sorted(listed.split()),
        "params": sorted(flat(read_yaml(Path("params.yaml")))),
        "outputs": outputs(),
        "numbers": numbers(),
        "mlflow": mlflow,
    }


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """A line for each thing that one has and the other has not, or has otherwise."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            if name not in after:
                yield f"- {place}{name}"
            elif name not in before:
                yield f"+ {place}{name}"
            else:
                yield from differences(before[name], after[name], f"{place}{name} ")
    elif isinstance(before, list) and isinstance(after, list):
        yield from (f"- {place}{one}" for one in before if one not in after)
        yield from (f"+ {place}{one}" for one in after if one not in before)
    elif before != after:
        yield f"! {place}{before} -> {after}"


def main() -> None:
    """Record or compare, as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    if given.what == "record":
        text = json.dumps(record(), indent=1, sort_keys=True)
        given.files[0].write_text(f"{text}\n", encoding="utf-8")
        return
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in given.files)
    found = list(differences(before, after))
    print("\n".join([*found, f"{len(found)} differences"]))
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
