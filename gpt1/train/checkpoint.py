"""Checkpoints, and the finished seeds of a stage.

`data/checkpoints/<stage>-<name>-<fingerprint>/update-<n>/` holds weights and Adam's moments. The
fingerprint stands for parameters and inputs. No random state is stored: all draws follow from seed
and update, dropout also from processes and micro-batch.

`seed-<n>/` beside it holds a finished seed, so a killed stage repeats only the seed that it was in.
With state.json it is whole. With `ended` its stage has ended, which DVC may not have recorded yet;
other code trains it anew. It goes once DVC has its files.
"""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from gpt1.base.errors import UserError, printable
from gpt1.base.files import (
    CHECKPOINTS,
    fingerprint,
    link_or_copy,
    read_json,
    sha256_file,
    sync_file,
    write_json,
    writing_folder,
)
from gpt1.base.machine import setting
from gpt1.model.weights import read_tensors
from gpt1.params.yaml import read_yaml
from gpt1.train.engine import Engine

CHECKPOINT_FORMAT = 5
FILES = ("adam.safetensors", "weights.safetensors")
STATE, ENDED = "state.json", "ended"
KEPT = 2  # the last one, and the one before it in case the last is damaged


class Position(NamedTuple):
    """How far a run has come."""

    update: int
    curve_lines: int  # up to that update


class Checkpoint(NamedTuple):
    """A whole checkpoint."""

    folder: Path
    position: Position
    micro_batch: int | None  # which drew its dropout


def state_folder(stage: str, name: str, what_matters: Any) -> Path:
    """Return the folder of a run's checkpoints. `what_matters`: its parameters and the hashes of
    its inputs, as JSON.
    """
    # Named by what matters: a changed recipe looks into another folder and starts anew.
    digest = fingerprint({"format": CHECKPOINT_FORMAT, "run": what_matters})
    return CHECKPOINTS / f"{stage}-{name}-{digest}"


def code_digest(stage: str) -> str:
    """Return one sha256 of all code and settings that a stage depends on."""
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    # dvc.yaml is the one list of what a stage depends on, and a test holds it to the imports.
    about = read_yaml(root / "dvc.yaml")["stages"][stage]
    for dep in sorted(about.get("do", about)["deps"]):
        if dep.startswith(("gpt1/", "conf/")):
            path = root / dep
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                digest.update(file.read_bytes())
    return digest.hexdigest()


def check_code(then: str, now: str, folder: Path) -> None:
    """Raise UserError where other code made the state, unless GPT1_ACCEPT_CHECKPOINT is 1."""
    if then != now and setting("GPT1_ACCEPT_CHECKPOINT") != "1":
        raise UserError(
            f"{folder} was made by other code (digest {then[:8]}, now {now[:8]}): restore that to"
            " go on from it, or delete the folder to start again (or set GPT1_ACCEPT_CHECKPOINT=1"
            " to go on with the new code)"
        )


def write_checkpoint(
    folder: Path,
    position: Position,
    tensors: Sequence[Mapping[str, Tensor]],
    code: str,
    machine: Mapping[str, Any],
) -> None:
    """Write a checkpoint; then remove all but the last KEPT. Raises OSError."""
    # First the curve, then the checkpoint that counts its lines: never the other way round.
    if (curve := folder / "curve.jsonl").is_file():
        sync_file(curve)
    name = f"update-{position.update:08d}"
    try:
        with writing_folder(folder / name) as new:
            for file, values in zip(FILES, tensors, strict=True):
                save_file(dict(values), new / file)
            # The digests come last: a file that was cut short does not agree with them.
            state = position._asdict() | {"code": code, "machine": dict(machine)}
            digests = {file: sha256_file(new / file) for file in FILES}
            write_json(new / "state.json", state | {"sha256": digests})
    except SafetensorError as error:  # a full disk, in its own words
        raise OSError(str(error)) from None
    # Older ones go only now that the new one is whole.
    whole = sorted(folder.glob("update-*"))
    newest = [path for path in whole if path.name <= name][-KEPT:]  # what is later was damaged
    for path in (*whole, *folder.glob(".update-*.partial")):
        if path not in newest:
            shutil.rmtree(path)


def newest_checkpoint(folder: Path, code: str) -> Checkpoint | None:
    """Return a run's last whole checkpoint, or None; name damaged ones on stderr. Raises UserError
    where other code made it.
    """
    for path in sorted(folder.glob("update-*"), reverse=True):
        try:
            state = read_json(path / "state.json")
            # Disks and copies do damage files; a run must not go on from a wrong weight in silence.
            if any(sha256_file(path / file) != state["sha256"][file] for file in FILES):
                raise ValueError("a file's sha256 is not the one noted")
            position = Position(*(int(state[field]) for field in Position._fields))
            micro_batch = state["machine"].get("micro_batch")
            code_then = str(state["code"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            print(
                f"{path} is damaged ({printable(str(error))}): it is left out, and the run goes on"
                " from the one before it or from the start",
                file=sys.stderr,
            )
            continue
        check_code(code_then, code, folder)
        return Checkpoint(path, position, micro_batch)
    return None


def restore(checkpoint: Checkpoint, engine: Engine) -> None:
    """Load weights and moments. Raises UserError for a damaged file."""
    moments, weights = (read_tensors(checkpoint.folder / file)[1] for file in FILES)
    engine.load(weights, moments, checkpoint.position.update)


class Saver:
    """Writes a run's checkpoints. Every process has one; the first writes."""

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        code: str,
        minutes: float,
        saved: int,  # the last checkpoint's update
    ) -> None:
        self.engine, self.folder, self.code = engine, folder, code
        self.seconds, self.main = minutes * 60, engine.rank == 0
        self.saved, self.saved_at = saved, time.monotonic()

    def due(self) -> bool:
        """Return whether this is the first process and it is time for a checkpoint."""
        return self.main and time.monotonic() - self.saved_at >= self.seconds

    def save(self, position: Position, micro_batch: int) -> str:
        """Write a checkpoint unless it is there, and say what there is. All processes must call it.
        Raises OSError.
        """
        if not position.update:
            return "nothing to save yet"
        # Under ZeRO each process holds a part of the moments, so all of them must come here.
        weights, moments = self.engine.state()
        if self.main and position.update != self.saved:
            machine = {"micro_batch": micro_batch}
            write_checkpoint(self.folder, position, (moments, weights), self.code, machine)
            self.saved_at, self.saved = time.monotonic(), position.update
        return "checkpoint saved"


def note_finished(folder: Path, code: str) -> None:
    """Write which code made a seed."""
    write_json(folder / STATE, {"code": code})


def is_finished(folder: Path, code: str) -> bool:
    """Return whether this seed is trained. Raises UserError where other code made it and its stage
    has not ended.
    """
    ended = (folder / ENDED).exists()
    try:
        code_then = str(read_json(folder / STATE)["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    # Its outputs stand already; other code means that DVC wants it trained again.
    if ended and code_then != code:
        _remove(folder)  # or the next stage that ends would, and the training beside it
        return False
    check_code(code_then, code, folder.parent)
    if ended:
        print(
            f"{folder} is trained: its files are the outputs (delete it to train)", file=sys.stderr
        )
    return True


def put_seeds(places: Mapping[Path, Path], out: Path) -> None:
    """Put kept seeds in their places below `out`. Raises UserError where one is missing."""
    with writing_folder(out) as new:
        for folder, place in places.items():
            if not folder.is_dir():
                raise UserError(
                    f"{folder} went away while the stage ran; run the same command again"
                )
            shutil.copytree(
                folder,
                new / place.relative_to(out),
                copy_function=link_or_copy,
                ignore=shutil.ignore_patterns(STATE, ENDED),
                dirs_exist_ok=True,
            )


def end_seeds(folders: Collection[Path]) -> None:
    """Remove the seeds of a stage that ends. Under DVC, mark them, and remove those that it has
    recorded.
    """
    # A second name means that the outputs are hard links of these files, which cost no room; one
    # name, or a file that cannot be written, means that DVC has it in its cache by now.
    with suppress(OSError):  # another stage is removing them; the next to end sees what is left
        for mark in CHECKPOINTS.glob(f"*/seed-*/{ENDED}"):
            # Outputs on another disk are copies from the start, before DVC has noted them.
            file = mark.with_name("summary.json").stat()
            noted = file.st_nlink == 1 or not file.st_mode & 0o222
            if mark.parent not in folders and noted:
                _remove(mark.parent)
    for folder in folders:
        if "DVC_STAGE" in os.environ:
            (folder / ENDED).touch()
        else:
            _remove(folder)


def _remove(seed: Path) -> None:
    with suppress(FileNotFoundError):  # of several ranks one removes it
        (seed / STATE).unlink()  # first: what a kill leaves is not taken for whole
        shutil.rmtree(seed.parent)
