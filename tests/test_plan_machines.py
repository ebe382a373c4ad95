"""What a plan says of machines by name, and of several of them."""

import pytest

from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.pipeline.forecast import wall_seconds
from gpt1.pipeline.graph import expand
from gpt1.pipeline.plan import estimate, machines
from gpt1.pipeline.plan.work import work_of
from gpt1.pipeline.schedule import shares


@pytest.mark.parametrize(("profile", "hardware"), [("paper", 0), ("demo", -1)])
def test_every_stage_has_a_time_on_every_machine(profile: str, hardware: int) -> None:
    values, named = compose(profile, ()), machines.NAMED[hardware]
    stages, params = expand(values), validate(values)
    share = shares(stages, named.slots, named.cores)
    seconds = {
        name: estimate.data_sheet_seconds(work_of(stage, params, ()), named, share[name], 1.0)
        for name, stage in stages.items()
    }
    assert all(1 <= value < 1e8 for value in seconds.values())
    assert (
        max(seconds.values())
        <= wall_seconds(stages, seconds, named.slots, share)
        <= sum(seconds.values())
    )


def test_more_machines_help_until_one_stage_is_all_that_lasts() -> None:
    """`paper` over 1, 8, 16 and 64 GPUs: no pre-training goes over two machines."""
    values, hours = compose("paper", ()), dict[str, float]()
    stages, params = expand(values), validate(values)
    for named in (one for one in machines.NAMED if "H100" in one.name):
        share = named.shares(stages)
        assert share["pretrain@lstm-seed-0"].devices == named.devices
        seconds = {
            name: estimate.data_sheet_seconds(work_of(stage, params, ()), named, share[name], 1.0)
            for name, stage in stages.items()
        }
        hours[named.name] = wall_seconds(stages, seconds, named.slots, share) / 3600
        longest = max(seconds.values()) / 3600
    assert list(hours) == ["1 x H100", "8 x H100", "2 x 8 x H100", "8 x 8 x H100"]
    assert hours["1 x H100"] > 3 * hours["8 x H100"] > 5 * hours["2 x 8 x H100"]
    assert longest < hours["8 x 8 x H100"] < longest + 0.5, "the LSTM of equal size"
