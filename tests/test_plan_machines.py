"""What a plan says of machines by name, and of several of them."""

import json
import re
from pathlib import Path

import pytest

from gpt1.params.profile import compose, present_sources, without_absent
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


ROOT = Path(__file__).parents[1]
SMALLS_BOOKS = 69_700_000  # bytes, and tasks of the run that is packed in gpt1/reference/small
SMALLS_TASKS = "cola", "dprd", "mnli", "qnli", "qqp", "race", "rte", "snli", "sst2", "stsb"


def test_a_plan_of_two_cores_is_what_the_packed_run_of_small_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dvc.yaml", "conf"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    for name in ("books", *SMALLS_TASKS):
        (tmp_path / "data/raw" / name).mkdir(parents=True)
        (tmp_path / "data/raw" / name / "rows.tsv").write_text("a\n")
    with (tmp_path / "data/raw/books/book.txt").open("wb") as file:
        file.truncate(SMALLS_BOOKS)
    values = without_absent(compose("small", ()), present_sources())
    stages, params = expand(values), validate(values)
    two_cores = machines.NAMED[-1]
    share = two_cores.shares(stages)
    seconds = {
        name: estimate.data_sheet_seconds(work_of(stage, params, ()), two_cores, share[name], 1.0)
        for name, stage in stages.items()
    }
    minutes = wall_seconds(stages, seconds, two_cores.slots, share) / 60
    facts = json.loads((ROOT / "gpt1/reference/small/run.json").read_text())["facts"]
    [took] = re.findall(r"At work for ([\d.]+) min", facts["Time"])
    assert minutes == pytest.approx(float(took), rel=0.1)
