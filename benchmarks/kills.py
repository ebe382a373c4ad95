"""Kill table: a stage, its DVC, the flow run's engine, the worker or the server dies by SIGKILL;
what is lost, what stays, does it go on?

    python benchmarks/kills.py [--port 4390] [--victims engine worker …] [--moments starting training writing] [--keep FOLDER]

A real service (make serve) in a copy of this checkout, in a temporary folder; it uses the port
given and the one after it. All that reproduce-table2 of one task needs is made once, undisturbed;
then for each cell the pre-training of the Transformer is undone, the run is asked for, its victim
killed in the moment (starting: no curve yet; training: updates since a checkpoint; writing: outputs
half written, or, for all but the stage itself, after the stage's end and before dvc.lock knows),
and the same run asked for again.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from served_copy import (
    CONTEXT,
    MARK,
    OUTPUTS,
    POLL_SECONDS,
    ROWS,
    SPEED,
    STAGE,
    UPDATES,
    VICTIMS,
    Place,
    wait,
)

BOTH = "engine and worker"
MOMENTS = ("starting", "training", "writing")
ORPHAN_SECONDS, RUN_SECONDS, SILENCE_SECONDS = 15.0, 180.0, 100.0


@dataclass
class Cell:
    """A row of the table: who was killed when, the run it hit, what was seen."""

    victim: str
    moment: str
    run: str = ""
    killed_at: float = 0.0
    reached: int = 0
    gone_after: float | None = None
    went_on: str = ""
    at_once: str = ""
    disturbed: bool = True
    faults: list[str] = field(default_factory=list)


def is_moment(place: Place, victim: str, moment: str) -> bool:
    """Whether the stage, which is at work, is where the victim is to be killed."""
    if moment == "starting":
        return True
    if moment == "writing":
        sign = OUTPUTS.with_name(f".{OUTPUTS.name}.partial") if victim == "stage" else MARK
        return (place.folder / sign).exists()
    reached, saved = place.updates()
    return 0 < saved <= reached - 3


def kill(place: Place, cell: Cell) -> None:
    """Wait for the moment, kill the victim, follow what is left of the run until nothing of it is
    without a worker.
    """
    if not wait(RUN_SECONDS, lambda: place.known()["stage"], 0.02):
        raise RuntimeError(
            f"{STAGE} did not start: Prefect says {place.state(cell.run)}; see"
            f" {place.folder}/data/logs/serve"
        )
    victims = place.known()
    stage = victims["stage"][0]
    wait(
        RUN_SECONDS,
        lambda: is_moment(place, cell.victim, cell.moment) or not stage.is_running(),
        POLL_SECONDS,
    )
    if not is_moment(place, cell.victim, cell.moment):
        raise RuntimeError(
            f"the moment {cell.moment} was missed; the service is"
            f" {'at work' if place.alive() else 'no more'}"
        )
    hit = [process for name in cell.victim.split(" and ") for process in victims[name]]
    for process in hit:
        process.kill()
    if not hit:
        cell.faults.append(f"no {cell.victim} was there to be killed")
    cell.killed_at, cell.reached = time.monotonic(), place.updates()[0]
    if cell.moment == "starting" and cell.reached:
        cell.faults.append("killed too late for this moment")
    if cell.moment == "writing" and STAGE in place.lock():
        cell.faults.append("killed too late for this moment: dvc.lock has the stage already")
    before = {process.pid for process in victims["stage"]}
    while time.monotonic() - cell.killed_at < ORPHAN_SECONDS:
        left, training = place.orphans(), place.known()["stage"]
        old = [process for process in training if process.pid in before]
        if old:
            cell.reached = max(cell.reached, place.updates()[0])
            if len(training) > len(old) and "two trainings side by side" not in cell.faults:
                cell.faults.append("two trainings side by side")
        if left:
            cell.gone_after = None
        elif cell.gone_after is None:
            cell.gone_after = time.monotonic() - cell.killed_at
        elif time.monotonic() - cell.killed_at - cell.gone_after > 1.5:
            cell.disturbed = not old
            return
        time.sleep(0.05)
    if cell.gone_after is None:
        for process in place.orphans():
            with suppress(psutil.Error):
                cell.faults.append(f"orphan: {' '.join(process.cmdline()[1:])}")
                process.kill()


def went_on(place: Place, cell: Cell, finished_before: float) -> str:
    """From which update the training went on that ended well, and how many of the updates it did
    again.
    """
    path = place.folder / SPEED
    if not path.exists():
        return "no training ended"
    if path.stat().st_mtime < finished_before:
        return "had ended; recorded, not done again"
    if not cell.disturbed:
        return "not disturbed"
    speed = json.loads(path.read_text())
    first = UPDATES - round(speed["seconds"] * speed["tokens_per_second"] / (ROWS * CONTEXT))
    return (
        f"went on from update {first}, reached {cell.reached}: {max(0, cell.reached - first)} done"
        " again"
    )


def try_cell(place: Place, cell: Cell, lock: dict[str, Any], sums: dict[str, str]) -> None:
    """One cell, from the kill to the end of the next run."""
    others = {name: value for name, value in lock.items() if name != STAGE}
    kill(place, cell)
    killed = time.time() - (time.monotonic() - cell.killed_at)
    if {name: value for name, value in place.lock().items() if name != STAGE} != others:
        cell.faults.append("dvc.lock lost finished stages")
    if [
        name
        for name, value in place.sums().items()
        if not name.startswith(str(OUTPUTS)) and sums.get(name) != value
    ]:
        cell.faults.append("finished outputs changed")
    cell.at_once = place.state(cell.run)[0] or "no server"
    if not wait(RUN_SECONDS, lambda: not place.known()["engine"], 0.2):
        cell.faults.append(f"the run that was hit has not ended after {RUN_SECONDS:.0f} s")
        for process in place.known()["engine"]:
            process.kill()
    wait(60, lambda: place.state(cell.run)[0], 0.2)
    again = place.ask()
    if not wait(RUN_SECONDS, lambda: place.ended(again), 0.2):
        cell.faults.append(f"the next run has not ended after {RUN_SECONDS:.0f} s")
    state, message = place.state(again)
    if state != "Completed":
        cell.faults.append(f"the next run is {state}: {message.splitlines()[0] if message else ''}")
    if place.lock() != lock:
        cell.faults.append("dvc.lock is not that of the undisturbed run")
    if differ := sorted(name for name, _ in place.sums().items() ^ sums.items()):
        cell.faults.append(
            f"not byte for byte those of the undisturbed run: {', '.join(dict.fromkeys(differ))}"
        )
    cell.went_on = went_on(place, cell, killed) + f"; {message}"
    wait(20, lambda: not place.known()["engine"], 0.2)


def main() -> None:
    """Print the table; status 1 where a cell is not as it has to be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=4390)
    parser.add_argument("--victims", nargs="+", choices=(*VICTIMS, BOTH), default=VICTIMS)
    parser.add_argument("--moments", nargs="+", choices=MOMENTS, default=MOMENTS)
    parser.add_argument("--keep", type=Path, help="an empty folder to work in, kept afterwards")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Place((chosen.keep or Path(temporary)).resolve() / "checkout", chosen.port)
        place.make()
        place.call(sys.executable, "-m", "gpt1.cli", "run", "table2")  # undisturbed
        with place.serving():
            cells = [(victim, moment) for victim in chosen.victims for moment in chosen.moments]
            first = (
                [(BOTH, "training")] if chosen.victims == VICTIMS else []
            )  # nobody is left to tell: only silence does, while others go
            tried = try_all(place, first + cells)
    sys.exit(1 if any(cell.faults for cell in tried) else 0)


def try_all(place: Place, wanted: list[tuple[str, str]]) -> list[Cell]:
    """All cells, one after another, and the table of them."""
    began, lock, sums, cells = time.monotonic(), place.lock(), place.sums(), list[Cell]()
    for victim, moment in wanted:
        place.undo()
        cell = Cell(victim, moment)
        cells.append(cell)
        try:
            cell.run = place.ask()
            try_cell(place, cell, lock, sums)
        except RuntimeError as error:
            cell.faults.append(str(error))
        print(f"{time.monotonic() - began:.0f} s: {cell}", file=sys.stderr, flush=True)
    wait(SILENCE_SECONDS, lambda: all(place.ended(cell.run) for cell in cells if cell.run), 1)
    print(
        "| killed | moment | last orphan gone after | Prefect at once | in the end | training; the"
        " next run | faults |"
    )
    print("|---|---|---|---|---|---|---|")
    for cell in cells:
        gone = "not within 15 s" if cell.gone_after is None else f"{cell.gone_after:.1f} s"
        print(
            f"| {cell.victim} | {cell.moment} | {gone} | {cell.at_once} |"
            f" {place.state(cell.run)[0]} | {cell.went_on} | {'; '.join(cell.faults) or 'none'} |",
            flush=True,
        )
    print(f"{len(cells)} cells in {time.monotonic() - began:.0f} s")
    return cells


if __name__ == "__main__":
    main()
