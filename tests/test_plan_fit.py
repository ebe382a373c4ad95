"""`gpt1 plan PROFILE --hours N`: what it proposes fits, by the plan of the command that it tells."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gpt1.base.errors import UserError
from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.pipeline.plan.fit import UPDATES_STEP, Planned, fit_lines, fitted
from gpt1.pipeline.plan.machines import NAMED
from gpt1.pipeline.plan.plan import estimate_costs, plan_and_show

ROOT = Path(__file__).parents[1]
H100, A100, RTX_4090 = NAMED[:3]


@pytest.fixture(autouse=True)
def _in_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dvc.yaml", "conf"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def commands(lines: list[str]) -> dict[str, list[str]]:
    """{GPU: arguments after `gpt1 profile NAME`} of those that are told to cut."""
    told, gpu = {}, ""
    for line in lines:
        if found := re.match(r"  (1 x [^:]+):", line):
            gpu = found[1]
        elif line.startswith("    gpt1 profile "):
            told[gpu] = shlex.split(line)[3:]
    return told


@pytest.mark.slow
def test_a_proposed_commands_plan_fits() -> None:
    """By `gpt1 plan` of that command, and no more is cut of updates than must be."""
    values = compose("evening", ())
    lines = fit_lines("evening", (), values, 8.0, {"1 x A100": 1.5})
    told = commands(lines)
    assert told.keys() == {"1 x A100", "1 x RTX 4090"}, "an H100 needs no cut"
    assert any(re.match(r"  1 x H100: \d\.\d h: fits", line) for line in lines)
    assert any("at 1.5 an hour" in line for line in lines)
    assert "    with GPT1_MICRO_BATCH=16 in the environment or in .env" in lines
    for gpu, overrides in told.items():
        cut = compose("evening", overrides)
        plan = estimate_costs(cut, validate(cut), set(), measure=False)
        assert 7.5 < plan.wall_seconds[gpu] / 3600 <= 8.0, gpu
        updates = cut["pretrain"]["updates"] + UPDATES_STEP
        more = compose("evening", [*overrides, f"pretrain.updates={updates}"])
        plan = estimate_costs(more, validate(more), set(), measure=False)
        assert plan.wall_seconds[gpu] / 3600 > 8.0, gpu
    assert [one.split("=")[0] for one in told["1 x A100"]] == ["pretrain.updates"]
    assert any("race.train_rows" in one for one in told["1 x RTX 4090"])


def test_what_fits_is_not_cut() -> None:
    fit = fitted(compose("evening", ()), H100, 8.0)
    assert fit.cuts == ()
    assert fit.uncut == fit.hours < 8.0
    assert fit.micro_batch is None


@pytest.mark.slow
def test_imported_weights_leave_rows_to_cut() -> None:
    values = compose("official", ())
    plan = Planned(values, H100)
    few = plan.fewer_rows(5_000)
    assert few["snli"] == 5_000
    assert few["race"] == 1_250, "four sequences a question"
    assert "rte" not in few, "which has 2,490 rows"
    hours = plan.hours(0, few) + 0.01
    fit = fitted(values, H100, hours)
    assert fit.hours <= hours < fit.uncut
    assert all(".train_rows=" in cut for cut in fit.cuts)


def test_hours_that_no_cut_reaches_are_told() -> None:
    lines = fit_lines("evening", ("finetune.epochs=2",), compose("evening", ()), 0.5, {})
    assert sum("still too long" in line for line in lines) == 3
    assert all(one[0] == "finetune.epochs=2" for one in commands(lines).values())


def test_epochs_give_way_to_updates() -> None:
    plan = Planned(compose("paper", ()), H100)
    assert plan.overrides(1000, {}) == ("pretrain.epochs=null", "pretrain.updates=1000")
    assert plan.hours(plan.updates // 2, {}) < plan.hours(plan.updates, {})


@pytest.mark.parametrize(("profile", "hours"), [(None, 8.0), ("evening", 0.0)])
def test_hours_need_a_profile_and_a_number(profile: str | None, hours: float) -> None:
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    with pytest.raises(UserError, match="--hours: expected a profile and a number above 0"):
        plan_and_show(profile, (), (), None, False, False, hours)
