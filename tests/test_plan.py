"""`gpt1 plan`: its formulas on cases done by hand, its graph against DVC's own, its slots, what it
counts, what it says.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import made_data
import numpy as np
import pytest
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import write_json
from gpt1.demo.files import SIZES
from gpt1.model.networks import make_network
from gpt1.params.profile import compose
from gpt1.params.schema import Params, validate
from gpt1.pipeline.forecast import PLAN, SECONDS, stage_facts
from gpt1.pipeline.graph import expand
from gpt1.pipeline.job import log_of
from gpt1.pipeline.plan import benchmark, estimate, facts, formulas, machines, measure, table
from gpt1.pipeline.plan.formulas import Network
from gpt1.pipeline.plan.plan import pays_to_compile, read_prices
from gpt1.pipeline.plan.table import CostEstimate, StageEstimate
from gpt1.pipeline.plan.work import StageWork, evaluations_of, work_of
from gpt1.pipeline.schedule import Allocation, Slots, Stage, choose
from gpt1.tasks.table import TASKS
from gpt1.train import launch

ROOT = Path(__file__).parents[1]
TINY = (
    "model.width=16",
    "model.heads=2",
    "model.feed_forward=32",
    "model.context=16",
    "model.layers=1",
    "lstm.units=16",
    "lstm_equal.units=32",
    "pretrain.updates=300",
    "transfer.race.layers=[0]",
)


@pytest.fixture(autouse=True)
def _in_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with dvc.yaml and conf/ in it, and no data."""
    for name in ("dvc.yaml", "conf"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


def params_of(profile: str, *overrides: str) -> Params:
    return validate(compose(profile, overrides))


def network_of(profile: str, units: int = 0, rows: int = 40_478) -> Network:
    return Network(params_of(profile).model, units, rows)


def test_parameters_of_the_paper() -> None:
    assert formulas.parameters(network_of("paper")) == 116_534_784, (
        "paper.md, section 2; see gpt1/model/gpt.py if the network was changed"
    )


@pytest.mark.parametrize("name", ["transformer", "lstm", "lstm_equal"])
def test_parameters_are_those_of_the_networks(name: str) -> None:
    params = params_of("demo")
    made = make_network(name, params, 50, torch.Generator())
    units = {"lstm": params.lstm.units, "lstm_equal": params.lstm_equal.units}.get(name, 0)
    assert formulas.parameters(Network(params.model, units, 50)) == sum(
        one.numel() for one in made.parameters()
    )


def test_operations_of_a_token() -> None:
    network = network_of("paper")
    assert formulas.training_flops(network, 512, with_softmax=True) == pytest.approx(
        724.4e6, rel=1e-3
    ), "counted by a profiler at 8 x 512"
    weights = 12 * (4 * 768**2 + 2 * 768 * 3072)
    assert formulas.hidden_flops(network, 0) == 2 * weights
    assert formulas.hidden_flops(network, 512) - 2 * weights == 12 * 2 * 768 * 512, (
        "two products with half of 512 rows on average"
    )
    lstm = network_of("paper", units=2048)
    assert (
        formulas.hidden_flops(lstm, 1)
        == formulas.hidden_flops(lstm, 512)
        == 2 * (4 * 2048 * (768 + 2048) + 2048 * 768)
    )


def test_memory_and_exchange_by_hand() -> None:
    sizes = {"width": 2, "layers": 1, "heads": 1, "feed_forward": 4, "context": 8}
    tiny = Network(params_of("paper").model.model_copy(update=sizes), 0, 10)
    # 36 of embeddings; a block: 32 in matrices, 18 + 4 in biases and norms. Kept a token of length
    # 8: 12 * 2 + 2 * 4 + 2 * 8 = 48.
    assert formulas.parameters(tiny) == 36 + 32 + 22
    assert formulas.training_bytes(tiny, 16, 8, "fp32", 16) == 90 * 28 + 16 * 48 * 4 + 16 * 10 * 12
    assert formulas.petaflop_days(8.64e19) == 1


def test_a_line_through_two_points_never_goes_below_zero() -> None:
    assert estimate.line({1.0: 3.0, 3.0: 7.0}) == (1.0, 2.0)
    assert estimate.line({2.0: 3.0}) == (0.0, 1.5)
    assert estimate.line({1.0: 1.0, 2.0: 4.0}) == (0.0, 2.0), (
        "through the larger: it is nearer to what a run does"
    )
    assert estimate.line({1.0: 5.0, 2.0: 4.0}) == (0.0, 2.0)


@pytest.mark.slow
def test_the_graph_is_dvcs_own(tmp_path: Path) -> None:
    from gpt1.params.yaml import write_yaml
    from gpt1.pipeline.graph import repository

    shutil.copy(ROOT / ".dvcignore", tmp_path)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    values = compose("demo", ())
    write_yaml(Path("params.yaml"), values, "")
    with repository() as repo:
        graph = repo.index.graph
        known = {
            stage.addressing: {need.addressing for need in graph.successors(stage)}
            for stage in repo.index.stages
        }
    ours = expand(values)
    assert list(ours) == list(known)
    assert {name: stage.needs for name, stage in ours.items()} == known


def test_the_graph_of_each_profile_ends_in_reports() -> None:
    stages = expand(compose("paper", ("granularity=task",)))
    assert stages["pretrain@lstm"].needs == {"shard", "acquire@official"}, (
        "imported weights are left out where there are none"
    )
    assert stages["pretrain@lstm"].trains
    assert stages["ablate@no_pretraining-cola"].needs == {"encode@cola", "bpe"}
    assert "finetune@cola" in stages["table4"].needs
    assert "finetune@snli" not in stages["table4"].needs
    assert not any(name.startswith("world") for name in stages)


def test_parameters_that_make_no_graph_are_one_line() -> None:
    values = compose("demo", ())
    with pytest.raises(UserError, match=r"dvc\.yaml makes no graph .*tasks"):
        expand({name: value for name, value in values.items() if name != "tasks"})


def test_work_of_the_demo_by_hand() -> None:
    params = params_of("demo")
    stages = expand(compose("demo", ()))
    pretrain = work_of(stages["pretrain@transformer"], params, ())
    network = Network(params.model, 0, 1500 + 2 * 60 + 2)
    assert (pretrain.updates, pretrain.tokens, pretrain.network) == (
        3 * 3200,
        3 * 3200 * 16 * 64,
        network,
    )
    assert pretrain.flops == pytest.approx(
        pretrain.tokens * formulas.training_flops(network, 64, with_softmax=True)
    )
    cola = work_of(stages["finetune@cola"], params, ())
    assert (cola.updates, cola.networks) == (3 * 4 * (600 // 8), 3)
    race = work_of(stages["transfer@race"], params, ())
    assert (race.updates, race.networks) == (3 * 4 * (400 // 8), 3), (
        "0 layers of 4: all four are the ordinary fine-tuning"
    )
    no_lm, full = (
        work_of(stages[name], params, ()) for name in ("ablate@no_aux_lm-cola", "finetune@cola")
    )
    assert no_lm.flops < full.flops, "without the auxiliary objective there is no softmax"
    assert work_of(stages["ablate@lstm-cola"], params, ()).network == Network(
        params.model, 172, 1500 + 2 * 60 + 2 + 3
    )
    assert evaluations_of(params.finetune, 3000) == 4 + 2, (
        "after each of four epochs, and at updates 1000 and 2000 of the first"
    )


def test_the_paper_trains_for_a_hundred_epochs() -> None:
    work = work_of(
        expand(compose("paper", ()))["pretrain@transformer-seed-0"], params_of("paper"), ()
    )
    assert work.network is not None
    assert work.network.rows == 40_478
    assert not work.counted
    assert work.updates == pytest.approx(100 * 0.995 * 5e9 / 4.7 / (64 * 512), rel=1e-3)
    assert 0.5 < formulas.petaflop_days(work.flops) < 1.5, (
        "the authors give 0.96 petaflop-days; Figure 2's axis ends at 10^6 updates of it"
    )


def test_rows_of_the_town_are_those_that_it_makes() -> None:
    assert facts.TOWN.keys() <= facts.OFFICIAL.keys() == TASKS.keys(), (
        "a new task needs its rows in gpt1/pipeline/plan/facts.py"
    )
    for name, rows in facts.TOWN.items():
        train, dev, test = SIZES[name]
        made = rows.train + rows.dev + rows.labelled + rows.unlabelled
        assert made == train + dev + (dev if name == "mnli" else test), (
            f"{name}: facts.TOWN must follow SIZES of gpt1/demo/files.py"
        )


def test_a_task_without_a_row_is_assumed_to_be_of_middling_size_and_named(monkeypatch) -> None:
    for table_ in (facts.OFFICIAL, facts.TOWN, facts.OFFICIAL_ZERO_SHOT, facts.TASK_BYTES):
        monkeypatch.delitem(table_, "cola")
    params, stages = params_of("paper"), expand(compose("paper", ()))
    tuned, read = (
        work_of(stages[name], params, ()) for name in ("finetune@cola-seed-0", "acquire@cola")
    )
    assert (tuned.counted, tuned.updates) == (False, 3 * (facts.ASSUMED.train // 32))
    assert (read.counted, read.disk_bytes) == (False, facts.ASSUMED_BYTES)
    assert facts.unknown({"cola": "raw", "rte": "raw"}, ["cola", "dprd"]) == [
        "cola",
        "cola (zero-shot)",
    ]
    assert facts.unknown({"cola": "world/town"}, []) == ["cola"]
    assert work_of(Stage("novel@cola", frozenset()), params, ()).kind == "text"
    assert estimate.seconds(work_of(Stage("novel", frozenset()), params, ()), None, 1.0, 2) >= 1


def test_what_is_on_disk_counts_more_than_tables() -> None:
    made_data.write_params(Path())
    made_data.write_shards(Path("data/shard"))
    made_data.write_task("cola")
    params, fresh = params_of("paper"), ["shard", "encode@cola"]
    stages = expand(compose("paper", ()))
    seen, known = (work_of(stages["finetune@cola-seed-0"], params, given) for given in (fresh, ()))
    assert seen.counted
    assert not known.counted
    assert seen.network
    assert seen.network.rows == made_data.VOCABULARY + 3
    assert (seen.updates, known.updates) == (0, 3 * (8_551 // 32)), "18 rows make no batch of 32"
    assert (
        work_of(stages["pretrain@transformer-seed-0"], params, fresh).updates
        == round(100 * 600 / (64 * 512))
        or 1
    )


def test_tokens_of_encoded_prompts_are_counted() -> None:
    folder = Path("data/prompt/race")
    folder.mkdir(parents=True)
    np.savez(folder / "test.npz", tokens=np.arange(7), offsets=np.array([0, 3, 7]))
    np.savez(folder / "clusters.npz", test=np.zeros(1))
    (folder / "set.json").write_text(json.dumps({"splits": {"test": {}}}), encoding="utf-8")
    params = params_of("demo")
    assert facts.zero_shot_tokens("race", params, {"prompt@race"}) == (7, True)
    assert not facts.zero_shot_tokens("race", params, ())[1]


def test_measured_shapes_are_real_or_scaled_down() -> None:
    network = network_of("paper")
    most = StageWork(
        "finetune@race",
        "finetune",
        network=network,
        rows=32,
        sequences=4,
        length=350.0,
        updates=10,
        flops=10e12,
    )
    least = StageWork(
        "finetune@cola",
        "finetune",
        network=network,
        rows=32,
        sequences=1,
        length=10.0,
        updates=10,
        flops=1e11,
    )
    assert benchmark.shapes_of([most, least], 1e18) == [(32, 1, 10.0, 1e10), (32, 4, 350.0, 1e12)]
    assert benchmark.shapes_of([most], 1e18) == [(32, 4, 350.0, 1e12)], (
        "one size of update needs one measurement"
    )
    assert benchmark.shapes_of([most], 0.5e12) == [(8, 4, 350.0, 25e10), (16, 4, 350.0, 5e11)]
    rows, sequences, length, flops = benchmark.shapes_of([most], 1e10)[1]
    assert (rows, sequences) == (1, 4)
    assert length == pytest.approx(350 * 0.32), "one row is too long still"
    assert flops == pytest.approx(1e10)


def planned(work: StageWork, memory: float) -> StageEstimate:
    return StageEstimate(
        work, 60.0, True, memory, False, dict.fromkeys((one.name for one in machines.NAMED), 30.0)
    )


def plan_of(
    profile: str,
    memory: float = 1e9,
    disk: float = 1e9,
    uncompiled: bool = False,
    few_rows: bool = False,
) -> CostEstimate:
    network = network_of("paper")
    work = StageWork(
        "pretrain@transformer",
        "pretrain",
        True,
        "transformer",
        network,
        64,
        1,
        512,
        1,
        100,
        8.64e19,
        tokens=1e9,
        disk_bytes=disk,
    )
    walls = {"": 3600.0} | {one.name: 1800.0 for one in machines.NAMED}
    return CostEstimate(
        profile,
        {work.stage: planned(work, memory)},
        walls,
        None,
        1e11,
        None,
        2,
        "a processor",
        machines.Room(8e9, 0.0, 1e11, 2),
        {"1 x RTX 4090": 16} if few_rows else {},
        uncompiled,
    )


def test_a_compiler_that_lacks_is_told() -> None:
    assert not any("SPEED" in line for line in table.lines_of(plan_of("small"), {}))
    (line,) = table.problems(plan_of("small", uncompiled=True))
    assert line.startswith("SPEED: no C++ compiler is there")
    assert "install g++" in line
    params = params_of("official")
    imported = work_of(Stage("pretrain@transformer", frozenset()), params, ())
    assert not pays_to_compile(imported, params, launch.read_machine())


def test_the_table_keeps_measured_and_estimated_apart() -> None:
    lines = table.lines_of(plan_of("small"), read_prices(["2.5", "1 x H100=4"]))
    row = next(line for line in lines if line.startswith("pretrain@transformer"))
    assert re.search(r" 60 s +~30 s +~30 s", row), (
        "measured here without a mark, estimated with one"
    )
    assert next(line for line in lines if line.startswith("cost")).split()[1:] == [
        "~2.50",
        "~2.00",
        *["~1.25"] * (len(machines.NAMED) - 1),
    ]
    assert any("Energy here is unknown" in line for line in lines)
    assert not any("month on 8 GPUs" in line for line in lines)
    assert any("1.00 petaflop-days" in line for line in table.lines_of(plan_of("paper"), {})), (
        "beside the paper's own 0.96"
    )


def test_what_does_not_fit_is_said() -> None:
    assert table.problems(plan_of("small")) == []
    [memory] = table.problems(plan_of("small", memory=7e9))
    assert "pretrain@transformer needs 14 GB" in memory
    assert "this machine has 8 GB" in memory
    assert "gpt1 run -j 1" in memory
    [disk] = table.problems(plan_of("small", disk=2e11))
    assert "writes 200 GB, 100 GB are free" in disk
    [rows] = table.problems(plan_of("small", few_rows=True))
    assert "1 x RTX 4090 has 24 GB on a device: planned with GPT1_MICRO_BATCH=16" in rows


@pytest.mark.parametrize("wrong", ["much", "9 x H100=3", "1 x H100="])
def test_a_wrong_price_is_one_line(wrong: str) -> None:
    with pytest.raises(UserError, match="--price"):
        read_prices([wrong])


def test_plan_beside_fact() -> None:
    told = table.as_json(plan_of("small"), {}, made=1000.0)
    json.dumps(told, allow_nan=False)
    with pytest.raises(UserError, match="make a plan before the run"):
        table.show_after(None)
    write_json(PLAN, told)
    with pytest.raises(UserError, match="no stage has run since"):
        table.show_after(None)
    write_json(SECONDS, {"pretrain@transformer": 75.0, "check": 1.0})
    log_of("pretrain@transformer").write_text("Running stage 'pretrain@transformer':\n")
    write_json(Path("data/logs/pretrain/transformer-speed.json"), {"peak_memory_bytes": 2e9})
    row = next(
        line
        for line in table.lines_after(told, stage_facts(told))
        if line.startswith("pretrain@transformer")
    )
    assert row.split()[1:] == ["1", "60", "s", "75", "s", "1.25", "1", "GB", "2", "GB"]


@pytest.mark.parametrize("kind", ["pretrain", "finetune"])
def test_a_measurement_is_of_the_real_training(kind: str) -> None:
    params = params_of("demo", *TINY)
    stages = expand(compose("demo", ()))
    names = ("pretrain@lstm",) if kind == "pretrain" else ("finetune@cola", "finetune@race")
    work = [work_of(stages[name], params, ()) for name in names]
    job = benchmark.job_of(work, params, 1e18)
    answer = measure.measured(job | {"seconds": 0.1})
    pace = benchmark.measured_pace(job["shapes"], [answer])
    assert len(job["shapes"]) == len(answer["updates"]) == len(work)
    assert pace.measured
    most = max(one.flops / one.updates for one in work)
    assert 0 < pace.update + pace.flop * most < 1
    assert answer["peak_bytes"] > 1e8


@pytest.mark.slow
def test_a_plan_is_measured_in_processes_with_a_stages_threads() -> None:
    params = params_of("demo", *TINY)
    stages = expand(compose("demo", ()))
    work = [work_of(stages[name], params, ()) for name in ("pretrain@transformer", "pretrain@lstm")]
    share = {one.stage: Allocation(1, 1) for one in work}
    found = benchmark.benchmark(work, params, share, Slots(2), fits=True)
    assert set(found.paces) == {("pretrain", "transformer"), ("pretrain", "lstm")}
    assert all(pace.measured for pace in found.paces.values())
    assert all(bytes_ > 1e8 for bytes_ in found.peaks.values())
    assert found.matmul_flops > 1e8
    unmeasured = benchmark.benchmark(work, params, share, Slots(2), fits=False)
    assert not any(pace.measured for pace in unmeasured.paces.values())


def test_a_measurement_that_fails_says_why() -> None:
    with (
        benchmark.Processes(1, Slots(1)) as processes,
        pytest.raises(
            UserError, match=r"the measurement ended with status 1: .*KeyError.*--no-measure"
        ),
    ):
        processes.answers({"nothing": 0}, 1, Allocation(1, 1))


def test_a_process_that_ended_before_it_was_asked_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one for which memory did not do."""
    monkeypatch.setattr(sys, "executable", "false")
    with benchmark.Processes(1, Slots(1)) as processes:
        processes.all[0].wait(10)
        with pytest.raises(UserError, match="ended with status 1: it said nothing"):
            processes.answers({}, 1, Allocation(1, 1))


def test_a_row_a_seed_depends_on_its_own_pretraining_and_a_further_seed_adds_stages_alone() -> None:
    few = "pretrain.seeds=[0,1]", "finetune.seeds=[0,1]"
    more = "pretrain.seeds=[0,1,2]", "finetune.seeds=[0,1,2]"
    before, after = (compose("paper", settings) for settings in (few, more))
    for kind, rows in before["stages"].items():
        assert rows.items() <= after["stages"][kind].items(), "what was there is as it was"
    stages = expand(after)
    assert stages["finetune@snli-seed-2"].needs == {"encode@snli", "pretrain@transformer-seed-2"}
    assert stages["ablate@lstm-cola-seed-1"].needs == {"encode@cola", "pretrain@lstm-seed-1"}
    assert stages["generate"].needs >= {"pretrain@transformer-seed-0"}
    assert "pretrain@transformer-seed-1" not in stages["generate"].needs
    new = stages.keys() - expand(before).keys()
    assert {"transfer@mnli-layers-3-seed-2", "zero_shot@lstm-seed-2"} <= new
    assert all(name.endswith("-seed-2") for name in new)
    assert choose(stages, ["finetune@snli"]) == choose(
        stages, [f"finetune@snli-seed-{seed}" for seed in range(3)]
    )
