"""A run: what is out of date of DVC's graph, several stages side by side, each by a `dvc repro -s`
of its own.

DVC stays the only judge of what is up to date and the only writer of dvc.lock. `supervise` is also
what a flow's main thread does, while Prefect starts its stages.
"""

import time
from collections.abc import Callable, Collection

from gpt1.pipeline.alone import signals_noted
from gpt1.pipeline.forecast import last_seconds
from gpt1.pipeline.graph import read_graph
from gpt1.pipeline.job import StageProcess
from gpt1.pipeline.news import News, Watch
from gpt1.pipeline.process_group import end_group, process_group
from gpt1.pipeline.run_state import Plan, RunState
from gpt1.pipeline.schedule import Slots, concerned, shares, urgencies
from gpt1.pipeline.slots import find_slots

POLL_SECONDS = 0.05
NEWS_SECONDS = 15.0  # so that the time left is not that of a stage's start


def make_plan(targets: Collection[str], lanes: int | None) -> Plan:
    """Who runs where with how many threads. Raises UserError for unknown targets and GPT1_…
    settings that make no sense.
    """
    stages, chosen = read_graph(targets)
    todo = concerned(stages, chosen)
    slots, threads = (
        find_slots(lanes, any(stages[name].trains for name in todo)) if todo else (Slots(1), None)
    )
    share, urgency = shares(stages, slots, threads), urgencies(stages, last_seconds())
    return Plan(stages, chosen, todo, slots, share, urgency)


def carry_out(plan: Plan, watch: Watch, lock: int) -> dict[str, float]:
    """Run the stages of a plan as processes here; what is left of them, should this process die,
    holds `lock` until it has ended. Returns seconds, DVC's start included, by name of each stage
    that changed. Raises as `supervise` does.
    """
    if not plan.todo:
        return {}
    state, processes = RunState(plan), dict[str, StageProcess]()
    with signals_noted() as signals, process_group(lock) as group:

        def at_work() -> bool:
            for name, process in list(processes.items()):
                if ended := process.ended(state.ending):
                    del processes[name]
                    state.end(name, ended)
            if not signals:
                for name, given in state.begin().items():
                    processes[name] = StageProcess(plan.stages[name], given, group)
            return bool(processes)

        return supervise(state, at_work, watch, signals, group)


def supervise(
    state: RunState, at_work: Callable[[], bool], watch: Watch, signals: list[int], group: int
) -> dict[str, float]:
    """Tell of a run, and hand signals to its stages, until nothing is at work; returns seconds.

    Where a stage fails, all that does not need it goes on, and in the end UserError says what
    failed; where the machine fails, nothing more is started. A signal that asks for an end is
    handed to the stages, a second one ends them at once; then KeyboardInterrupt is raised.
    """
    asked, told = set[tuple[int, int]](), time.monotonic()
    while True:
        working = at_work()
        while state.unread:
            watch(state.unread.popleft())
        if not working:
            break
        time.sleep(POLL_SECONDS)
        if time.monotonic() - told > NEWS_SECONDS:
            told = time.monotonic()
            watch(state.news())
        if signals:
            state.stop()
            end_group(group, len(signals), asked)
    for ended in state.failed.values():
        watch(News(f"error: {ended.why}"))
    return state.conclude()
