"""From seconds of each stage to the whole run's: the stages side by side in slots, started as `gpt1
run` starts them.
"""

import heapq
from collections.abc import Mapping

from gpt1.pipeline.schedule import Share, Slots, Stage, startable, urgencies


def wall_seconds(
    stages: Mapping[str, Stage],
    seconds: Mapping[str, float],
    slots: Slots,
    share: Mapping[str, Share],
) -> float:
    """Seconds until the last of `stages` has ended; stages without seconds take none."""
    urgency = urgencies(stages, seconds)
    waiting, running = set(stages), list[tuple[float, str, tuple[str, ...]]]()
    lanes, devices, now, ended = slots.lanes, slots.devices, 0.0, set[str]()
    while waiting or running:
        ready = sorted(
            (
                one
                for one in stages
                if one in waiting and not stages[one].needs & stages.keys() - ended
            ),
            key=lambda name: -urgency[name],
        )
        for name, given in startable(ready, share, Slots(lanes, devices)):
            heapq.heappush(running, (now + seconds.get(name, 0.0), name, given))
            waiting.discard(name)
            lanes, devices = (
                lanes - share[name].lanes,
                tuple(device for device in devices if device not in given),
            )
        assert running, f"{sorted(waiting)} can never start: they take more than there is"
        now, name, given = heapq.heappop(running)
        ended.add(name)
        lanes, devices = lanes + share[name].lanes, (*devices, *given)
    return now
