"""`gpt1 status`: what runs now and how far it is, and what ended badly, from DVC's claims, the
stages' logs, curves and checkpoints; where this checkout stands, put together; and the same as
plain values for a program.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.files import CHECKPOINTS, LOGS, parse_json
from gpt1.base.locks import is_locked
from gpt1.params.rows import place_of
from gpt1.pipeline.forecast import last_seconds
from gpt1.pipeline.graph import CLAIMS
from gpt1.pipeline.job import EXITED, log_of, signal_of, why_it_failed
from gpt1.pipeline.leases import RUN_LOCK
from gpt1.pipeline.progress import progress_in, tail
from gpt1.pipeline.reasons import Reason, own_reasons, read_reasons, writes_the_same
from gpt1.pipeline.schedule import Stage, choose

LAST_LINES = 3
ENDED_ON_REQUEST = {
    2,
    15,
}  # signals by which a person, or a flow, ends a run; as statuses 130 and 143


class Running(NamedTuple):
    """A stage at work: DVC's process, when it began (seconds since 1970), what it said last, how
    far it is, where it would go on.
    """

    process: int
    began: float
    says: str = ""
    update: int | None = None
    updates: int | None = None
    part: str = ""
    left: str = ""
    checkpoint: str = ""


class EndedStage(NamedTuple):
    """How a stage that is not current ended: failed, interrupted or killed; when, why in one line,
    its last lines, where it goes on.
    """

    how: str
    when: float
    why: str
    lines: tuple[str, ...]
    checkpoint: str = ""


def at_work() -> str:
    """Who runs stages in this checkout, as `gpt1 run (process 12)`; '' for none."""
    from psutil import pid_exists

    try:
        who = RUN_LOCK.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    found = re.search(r"\(process (\d+)\)$", who)
    return who if found and pid_exists(int(found[1])) and is_locked(RUN_LOCK) else ""


def read_claims() -> dict[str, dict[str, Any]]:
    """Paths that processes of DVC write now: {path: {"pid": …, "cmd": …}}; empty where that cannot
    be read.
    """
    try:
        writes = parse_json(CLAIMS.read_text(encoding="utf-8")).get("write", {})
        return {str(path): dict(claim) for path, claim in writes.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def running(stages: Mapping[str, Stage]) -> dict[str, Running]:
    """The stages at work here, by name."""
    from psutil import Error, Process

    here, found = Path.cwd(), {}
    makers = {str(here / path): name for name, stage in stages.items() for path in stage.writes}
    for path, claim in read_claims().items():
        try:
            process = Process(int(claim["pid"]))
            if path in makers and any("dvc" in word for word in process.cmdline()):
                found[makers[path]] = progress(
                    makers[path], Running(process.pid, process.create_time())
                )
        except (Error, KeyError, ValueError, TypeError):
            continue
    return {name: found[name] for name in stages if name in found}


def progress(name: str, stage: Running) -> Running:
    """How far a stage is: by the last line of its log, or else by the curve of its training."""
    log = log_of(name)
    lines = tail(log) if log.is_file() and log.stat().st_mtime >= stage.began - 1 else []
    stage = stage._replace(checkpoint=checkpoint(name), says=lines[-1] if lines else "")
    if told := progress_in(lines):
        return stage._replace(**told._asdict())
    return stage._replace(update=last_of_curve(name, stage.began))


def last_of_curve(name: str, since: float) -> int | None:
    """The last update in the curve that a stage's training has written since then."""
    verb, _, item = name.partition("@")
    place = LOGS / verb / place_of(item)
    only = LOGS / verb / f"{place_of(item).split('/')[0]}.jsonl"  # of the one pre-training
    own = [only, place.with_name(f"{place.name}.jsonl"), *place.rglob("*.jsonl")]
    curves = [
        path
        for path in own
        if path.is_file() and path.stat().st_mtime >= since and not path.stem.endswith("-machine")
    ]
    for line in reversed(
        tail(max(curves, key=lambda path: path.stat().st_mtime)) if curves else []
    ):
        try:
            return int(parse_json(line)["update"])
        except (ValueError, KeyError, TypeError):
            continue
    return None


def checkpoint(name: str) -> str:
    """Where a training would go on: its newest checkpoint and the parts that are finished, in
    words; '' for none.
    """
    verb, _, item = name.partition("@")
    own = [
        folder
        for folder in CHECKPOINTS.glob(f"{verb}-{item}-*")
        if re.fullmatch(
            r"(-layers-\d+)?(-seed-\d+)?-[0-9a-f]{16}", folder.name.removeprefix(f"{verb}-{item}")
        )
    ]
    updates = [
        int(path.name.removeprefix("update-")) for folder in own for path in folder.glob("update-*")
    ]
    parts = sum(1 for folder in own for path in folder.glob("seed-*") if path.is_dir())
    words = [f"checkpoint at update {max(updates):,}"] if updates else []
    return ", ".join(
        [*words, *([f"{parts} finished {'seed' if parts == 1 else 'seeds'}"] if parts else [])]
    )


def ended_badly(name: str) -> EndedStage | None:
    """How a stage ended when it last ran; None where that went well, or nothing is known."""
    log = log_of(name)
    try:
        said, when = log.read_text(encoding="utf-8", errors="replace"), log.stat().st_mtime
    except OSError:
        return None
    lines = tail(log)
    if "ERROR: " not in said.rpartition("Running stage '")[2]:
        cut = "Running stage '" in said and "lock file 'dvc.lock'" not in said
        why = "it ended without a word: killed, or the machine went down"
        return (
            EndedStage("killed", when, why, tuple(lines[-LAST_LINES:]), checkpoint(name))
            if cut
            else None
        )
    number = signal_of(1, said) or next(
        (int(found) % 128 for found in EXITED.findall(said) if int(found) in (130, 143)), 0
    )
    own = [line for line in lines if not line.startswith("ERROR: failed to reproduce")]
    how = "interrupted" if number in ENDED_ON_REQUEST else "killed" if number else "failed"
    why = (
        why_it_failed(name, number, said, False)
        .removeprefix(f"{name}: ")
        .removesuffix(f" (log: {log})")
    )
    if how == "interrupted":
        why = next(
            (line for line in reversed(own) if line.startswith("interrupted")), "ended on request"
        )
    return EndedStage(how, when, why, tuple(own[-LAST_LINES:]), checkpoint(name))


class Status(NamedTuple):
    """Where the stages stand, by name in the graph's order; every stage that would run has its own
    reasons, none where it only waits.
    """

    stages: dict[str, Stage]
    would_run: dict[str, list[Reason]]
    at_work: str
    running: dict[str, Running]
    ended: dict[str, EndedStage]
    seconds: dict[str, float]

    @property
    def current(self) -> list[str]:
        """Stages whose results stand."""
        return [
            name for name in self.stages if name not in self.would_run and name not in self.running
        ]

    @property
    def surely(self) -> list[str]:
        """Stages not at work that will run; the others of `would_run` follow where what these write
        differs from what it was.
        """
        return [
            name for name, reasons in self.would_run.items() if reasons and name not in self.running
        ]

    @property
    def perhaps(self) -> list[str]:
        """Stages that run if what comes before them writes other results."""
        return [
            name
            for name, reasons in self.would_run.items()
            if not reasons and name not in self.running
        ]

    def waits_for(self, name: str) -> list[str]:
        """Stages that would run before this one, among those whose outputs it reads, and may write
        other results.
        """
        return [
            need
            for need in self.stages
            if need in self.stages[name].needs
            and need in self.would_run
            and not writes_the_same(need, self.would_run[need])
        ]

    def to_run(self) -> str:
        """How many stages are to run, in words; '' for none."""
        if self.surely and self.perhaps:
            return f"{len(self.surely)} to run, then up to {len(self.perhaps)} after them"
        return (
            f"{len(self.surely)} to run"
            if self.surely
            else f"up to {len(self.perhaps)} to run after these"
            if self.perhaps
            else ""
        )


def read_status(targets: Collection[str]) -> Status:
    """Where the targets (stages or groups; none: all) and all that they need stand. Raises
    UserError for other names, or broken files.
    """
    whole, reasons = read_reasons()
    names = choose(whole, targets)
    stages, work = {name: whole[name] for name in names}, running(whole)
    own = own_reasons(stages, reasons)
    would_run = {name: own[name] for name in names if name in own}
    ended = {name: found for name in would_run if name not in work and (found := ended_badly(name))}
    return Status(
        stages,
        would_run,
        at_work(),
        {name: work[name] for name in names if name in work},
        ended,
        last_seconds(),
    )


def as_json(status: Status, profile: str) -> dict[str, Any]:
    """All of it as plain values."""

    def plain(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in values.items() if value not in (None, "")}

    return {
        "profile": profile,
        "stages": len(status.stages),
        "current": status.current,
        "at_work": status.at_work or None,
        "running": {name: plain(stage._asdict()) for name, stage in status.running.items()},
        "ended": {name: stage._asdict() for name, stage in status.ended.items()},
        "would_run": {
            name: {
                "reasons": [{**plain(reason._asdict()), "text": str(reason)} for reason in reasons],
                "after": status.waits_for(name),
                "last_seconds": status.seconds.get(name),
            }
            for name, reasons in status.would_run.items()
            if name not in status.running
        },
    }
