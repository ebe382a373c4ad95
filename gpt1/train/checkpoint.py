"""Resumable state outside the outputs: weights, Adam's moments and how far the run had come, whole
or not at all. Training waits for a copy of it in host memory, which a thread then writes.

`data/checkpoints/<stage>-<name>-<fingerprint>/update-<n>/` holds one checkpoint; the fingerprint
stands for parameters and inputs, so a changed run never finds the checkpoint of another. There is
no random state: all that is drawn follows from seed and update, dropout from processes and
micro-batch too.
"""

import ast
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from gpt1.base.errors import UserError, printable
from gpt1.base.files import (
    CHECKPOINTS,
    fingerprint,
    read_json,
    sha256_file,
    sync_file,
    write_json,
    writing_folder,
)
from gpt1.model.weights import read_tensors
from gpt1.train.engine import Engine, on_any
from gpt1.train.outputs import Curve, Snapshots

CHECKPOINT_FORMAT = 4
FILES = {"weights.safetensors", "adam.safetensors"}
BACKGROUND_NICENESS = 10  # of the thread that writes: training comes first
DRAWN_BY = ("processes", "micro_batch")
KEPT = 2  # the last one, and the one before it in case the last is damaged
CANNOT_CHANGE_A_RESULT = (
    "gpt1.params.schema",
    "gpt1.base.cores",
    "gpt1.base.errors",
    "gpt1.base.extras",
    "gpt1.base.files",
    "gpt1.tracking",
    "gpt1.params.strict",
)


class Position(NamedTuple):
    """How far a run has come: its last update, and the curve's lines up to there."""

    update: int
    curve_lines: int


class Checkpoint(NamedTuple):
    """A whole checkpoint: its folder, the position it was made at, and what follows the machine of
    what was drawn up to there: processes and rows of a micro-batch.
    """

    folder: Path
    position: Position
    drawn_by: tuple[int | None, ...]


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
        sync_file(curve)
    name = f"update-{position.update:08d}"
    try:
        with writing_folder(folder / name) as new:
            save_file(dict(weights), new / "weights.safetensors")
            save_file(dict(moments), new / "adam.safetensors")
            write_json(
                new / "state.json",
                position._asdict()
                | {"code": dict(code), "machine": dict(machine)}
                | {"sha256": {name: sha256_file(new / name) for name in sorted(FILES)}},
            )
    except SafetensorError as error:  # how safetensors tells of a full disk: "... (os error 28)"
        number = re.search(r"os error (\d+)", str(error))
        raise (
            OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error))
        ) from None
    whole = sorted(folder.glob("update-*"))
    kept = [path for path in whole if path.name <= name][-KEPT:]  # what is later was damaged
    for path in (*whole, *folder.glob(".update-*.partial")):
        if path not in kept:
            shutil.rmtree(path)


def newest_checkpoint(folder: Path, code: Mapping[str, str], accept: bool) -> Checkpoint | None:
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
            position = Position(*(whole_number(state[field]) for field in Position._fields))
            drawn_by = tuple(state["machine"].get(name) for name in DRAWN_BY)
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
        return Checkpoint(path, position, drawn_by)
    return None


def whole_number(value: Any) -> int:
    """A count that state.json holds. Raises ValueError for another thing."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError("a count that is none")
    return value


def restore(checkpoint: Checkpoint, engine: Engine) -> None:
    """Put a checkpoint's weights and moments back where they were taken from. Raises UserError
    where a file cannot be read.
    """
    _, weights = read_tensors(checkpoint.folder / "weights.safetensors")
    _, moments = read_tensors(checkpoint.folder / "adam.safetensors")
    engine.load(weights, moments, checkpoint.position.update)


class Saver:
    """Checkpoints of one run in `folder`, every so many minutes and at its end; every process has
    one, the first one writes.

    `outputs` are what must be on disk before a checkpoint is. A checkpoint that cannot be written
    is named on stderr; it never ends a training.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        code: Mapping[str, str],
        machine: Mapping[str, Any],
        minutes: float,
        saved: int,
        outputs: Sequence[Curve | Snapshots],
    ) -> None:
        self.engine, self.folder, self.code = engine, folder, code
        self.machine, self.outputs = machine, outputs
        self.seconds, self.main = minutes * 60, engine.rank == 0
        # the update of the last checkpoint, and when the last was begun
        self.saved, self.began = saved, time.monotonic()
        self.thread = ThreadPoolExecutor(1, "checkpoint", _lower_priority)
        self.writing: tuple[Position, Future[None]] | None = None
        self.copies: dict[str, Tensor] = {}
        self.said = ""  # what was said last of a checkpoint that could not be written in time

    def due(self, update: int) -> bool:
        """Whether this process, the first one, wants a checkpoint of an update: the time has come,
        and the one before is written.
        """
        if self.writing and self.writing[1].done():
            self._collect()
        late = self.main and time.monotonic() - self.began >= self.seconds
        if late and self.writing:
            self._say(
                f"the checkpoint due at update {update} waits: that of update"
                f" {self.writing[0].update} is still being written"
            )
        return late and not self.writing

    def begin(self, position: Position) -> None:
        """Begin to write a checkpoint; all processes take part in giving the state."""
        state = self.engine.state()
        if self.main:
            self.began = time.monotonic()
            try:
                self.writing = position, self.thread.submit(self._write(position, *state))
            except OSError as error:
                self._failed(position, error)

    def finish(self, position: Position) -> str:
        """Wait for a checkpoint in progress, then write that of `position` if it is not there.
        Returns in words what there is.
        """
        self._collect()
        if on_any(self.engine, self.main and position.update > self.saved):
            weights, moments = self.engine.state()
            if self.main:
                wrong = "weights that are not finite"
                try:
                    if all(bool(torch.isfinite(tensor).all()) for tensor in weights.values()):
                        self._write(position, weights, moments)()
                        self.saved, wrong = position.update, ""
                except OSError as error:
                    wrong = _reason(error)
                if wrong:
                    last = f"the last one is of update {self.saved}"
                    return f"no checkpoint of it ({wrong}), {last}"
        return "checkpoint saved" if position.update else "nothing to save yet"

    def close(self) -> None:
        """Wait for a checkpoint in progress; the thread is no more."""
        self._collect()
        self.thread.shutdown()

    def _write(
        self, position: Position, weights: Mapping[str, Tensor], moments: Mapping[str, Tensor]
    ) -> Callable[[], None]:
        """Write the outputs and copy the state; what is left to be done, for any thread."""
        for output in self.outputs:
            output.write()
        host_weights, host_moments = (
            {name: self._copy(f"{kind}/{name}", tensor) for name, tensor in tensors.items()}
            for kind, tensors in (("weights", weights), ("moments", moments))
        )
        if self.engine.device.type == "cuda":
            torch.cuda.synchronize(self.engine.device)
        state = host_weights, host_moments
        return lambda: write_checkpoint(self.folder, position, *state, self.code, self.machine)

    def _copy(self, name: str, tensor: Tensor) -> Tensor:
        """A tensor's values in memory of this machine that is kept from one checkpoint to the
        next.
        """
        if name not in self.copies:
            self.copies[name] = torch.empty(
                tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda
            )
        return self.copies[name].copy_(tensor.detach(), non_blocking=True)

    def _collect(self) -> None:
        """Wait for the checkpoint in progress, if there is one, and note what became of it."""
        if self.writing is None:
            return
        (position, future), self.writing = self.writing, None
        try:
            future.result()
        except OSError as error:
            self._failed(position, error)
        else:
            self.saved, self.said = position.update, ""

    def _failed(self, position: Position, error: OSError) -> None:
        self._say(
            f"checkpoint of update {position.update} not written: {_reason(error)}; training goes"
            f" on, next try in {self.seconds / 60:g} min"
        )

    def _say(self, line: str) -> None:
        """Say it unless the same kind of thing was said last."""
        kind = line.partition(" update ")[0]
        if self.main and kind != self.said:
            self.said = kind
            print(line, file=sys.stderr, flush=True)


def _reason(error: OSError) -> str:
    return getattr(error, "strerror", None) or str(error)


def _lower_priority() -> None:
    """Let this thread's work wait for that of others; only Linux gives a thread a priority of its
    own.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)


def link_or_copy(source: str, target: str) -> str:
    """Give a file a second name, or copy it where the file system cannot; for shutil.copytree."""
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
    return target
