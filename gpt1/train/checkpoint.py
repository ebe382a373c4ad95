"""Resumable state outside the outputs: weights, Adam's moments and how far the run had come, whole
or not at all.

`data/checkpoints/<stage>-<name>-<fingerprint>/update-<n>/` holds one checkpoint; the fingerprint
stands for parameters and inputs, so a changed run never finds the checkpoint of another. There is
no random state: all that is drawn follows from seed and update.
"""

import ast
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from gpt1.base.errors import UserError, printable
from gpt1.base.files import (
    CHECKPOINTS,
    fingerprint,
    read_json,
    sha256_file,
    write_json,
    writing_folder,
)
from gpt1.model.weights import read_tensors
from gpt1.train.engine import Engine

CHECKPOINT_FORMAT = 3
FILES = {"weights.safetensors", "adam.safetensors"}
KEPT = 2  # the last one, and the one before it in case the last is damaged
CANNOT_CHANGE_A_RESULT = (
    "gpt1.params.schema",
    "gpt1.base.cores",
    "gpt1.base.errors",
    "gpt1.base.files",
    "gpt1.tracking",
    "gpt1.params.strict",
)


class Position(NamedTuple):
    """How far a run has come: its last update that took a step, the curve's lines up to there, how
    many updates took no step.
    """

    update: int
    curve_lines: int
    skipped_updates: int


class State(NamedTuple):
    """A whole checkpoint: its folder, and the position it was made at."""

    folder: Path
    position: Position


def state_folder(stage: str, name: str, what_matters: Any) -> Path:
    """The folder of a run's checkpoints; `what_matters` is any JSON value of its parameters and the
    hashes of its inputs.
    """
    return (
        CHECKPOINTS
        / f"{stage}-{name}-{fingerprint({'format': CHECKPOINT_FORMAT, 'run': what_matters})}"
    )


def code_hashes(stage: str) -> dict[str, str]:
    """sha256 of every file of ours that a stage imports, itself or by way of others, and that can
    change a result.
    """
    root, hashes, waiting = Path(__file__).parents[2], {}, [f"gpt1.stages.{stage}"]
    while waiting:
        name = waiting.pop()
        path = root / (name.replace(".", "/") + ".py")
        if (
            name.startswith(CANNOT_CHANGE_A_RESULT)
            or not path.is_file()
            or str(path.relative_to(root)) in hashes
        ):
            continue
        hashes[str(path.relative_to(root))] = sha256_file(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpt1"):
                waiting += [
                    str(node.module),
                    *(f"{node.module}.{alias.name}" for alias in node.names),
                ]
    return hashes


def check_code(
    found: Mapping[str, str], now: Mapping[str, str], folder: Path, accept: bool
) -> None:
    """Raise UserError naming the files that have changed since the state in `folder` was made,
    unless it is to be accepted.
    """
    changed = sorted(name for name in found.keys() | now.keys() if found.get(name) != now.get(name))
    if changed and not accept:
        raise UserError(
            f"{folder} was made by other code ({', '.join(changed)} changed since): restore those"
            " files to go on from it, or delete the folder to start again (or set"
            " GPT1_ACCEPT_CHECKPOINT=1 to go on with the new code)"
        )


def write_checkpoint(
    folder: Path,
    position: Position,
    weights: Mapping[str, Tensor],
    moments: Mapping[str, Tensor],
    code: Mapping[str, str],
    machine: Mapping[str, Any],
) -> None:
    """Write tensors that lie in host memory and the position beside, sync, rename; then remove all
    but the last KEPT checkpoints.

    The curve in `folder` is synced first: its lines up to the position must be there as long as the
    checkpoint is. Raises OSError.
    """
    if (curve := folder / "curve.jsonl").is_file():
        with curve.open("rb") as file:
            os.fsync(file.fileno())
    name = f"update-{position.update:08d}"
    try:
        with writing_folder(folder / name) as new:
            save_file(dict(weights), new / "weights.safetensors")
            save_file(dict(moments), new / "adam.safetensors")
            write_json(
                new / "state.json",
                {
                    **position._asdict(),
                    "code": dict(code),
                    "machine": dict(machine),
                    "sha256": {
                        path.name: sha256_file(path) for path in sorted(new.glob("*.safetensors"))
                    },
                },
            )
    except SafetensorError as error:  # how safetensors tells of a full disk: "... (os error 28)"
        number = re.search(r"os error (\d+)", str(error))
        raise (
            OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error))
        ) from None
    before = sorted(path for path in folder.glob("update-*") if path.name < name)[-(KEPT - 1) :]
    for path in (
        *folder.glob("update-*"),
        *folder.glob(".update-*.partial"),
    ):  # what is later than the new one was damaged
        if path not in (*before, folder / name):
            shutil.rmtree(path)


def newest_checkpoint(folder: Path, code: Mapping[str, str], accept: bool) -> State | None:
    """The last whole checkpoint of a run, or None. A damaged one is named on stderr and left out.

    Raises UserError where it was made by other code and is not to be accepted.
    """
    for path in sorted(folder.glob("update-*"), reverse=True):
        try:
            state = read_json(path / "state.json")
            if set(state["sha256"]) != FILES or any(
                sha256_file(path / name) != digest for name, digest in state["sha256"].items()
            ):
                raise ValueError("a file's sha256 is not the one noted")
            found = State(
                path, Position(*(whole_number(state[field]) for field in Position._fields))
            )
            code_then = {str(name): str(digest) for name, digest in state["code"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            print(
                f"{path} is damaged ({printable(str(error))}): it is left out, and the run goes on"
                " from the one before it or from the start",
                file=sys.stderr,
                flush=True,
            )
            continue
        check_code(code_then, code, folder, accept)
        return found
    return None


def whole_number(value: Any) -> int:
    """A count that state.json holds. Raises ValueError for another thing."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a count that is none")
    return value


def restore(state: State, engine: Engine) -> None:
    """Put a checkpoint's weights and moments back where they were taken from. Raises UserError
    where a file cannot be read.
    """
    _, weights = read_tensors(state.folder / "weights.safetensors")
    _, moments = read_tensors(state.folder / "adam.safetensors")
    engine.load(weights, moments, state.position.update - state.position.skipped_updates)


def link_or_copy(source: str, target: str) -> str:
    """Give a file a second name, or copy it where the file system cannot; for shutil.copytree."""
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
    return target
