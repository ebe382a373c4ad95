"""What MLflow is told of ablations, layer transfer and zero-shot curves: names, parameters, curves,
last numbers.
"""

import json
from pathlib import Path

import made_results
import pytest

from gpt1.params.schema import read_params
from gpt1.tracking.names import colour_of, group_of, run_name
from gpt1.tracking.results import finished_groups, finished_results, stage_params

SEED = {"best_update": 20, "best_dev_score": 0.5, "updates": 20}
VARIANTS = {"lstm": {"network": "lstm", "finetune": {"lambda_lm": 0.25}}}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_results.write_params(
        ["cola"],
        [0, 1],
        variants=VARIANTS,
        ablate=made_results.ablate_rows(("lstm",), ("cola",)),
        transfer={"cola": {"group": "glue", "layers": [0, 12]}},
        zero_shot={"cola": {"train_rows": None, "rows": None}},
    )


def write_curve(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "curve.jsonl").write_text(json.dumps({"update": 10, "loss": 1.5}) + "\n")


def write_everything() -> None:
    write_curve(Path("data/ablate/lstm-cola/seed-1"))
    made_results.write_json(Path("data/ablate/lstm-cola/seed-1/summary.json"), SEED)
    write_curve(Path("data/transfer/cola/layers-0/seed-0"))
    made_results.write_json(Path("data/transfer/cola/layers-0/seed-0/summary.json"), SEED)
    snapshots = [
        {"update": update, "tokens": 8 * update, "scores": {"cola": update / 10}}
        for update in (1, 3)
    ]
    made_results.write_json(
        Path("data/zero_shot/lstm/seed-0/scores.json"),
        {"network": "lstm", "sets": {"cola": {}}, "snapshots": snapshots},
    )
    made_results.write_json(
        Path("data/report/figure2/metrics.json"),
        {"figure2": {"layers": {"cola": {"0": {"score": 41.0}}}}},
    )
    Path("data/report/figure2/figure2-left.svg").write_text("<svg/>")


def test_every_result_is_a_run():
    write_everything()
    found = {f"{result.stage} {result.name}": result for result in finished_results(read_params())}
    assert list(found) == [
        "ablate lstm-cola/seed-1",
        "transfer cola/layers-0/seed-0",
        "zero_shot lstm",
        "report figure2",
    ]
    assert found["ablate lstm-cola/seed-1"].final["final/best_dev_score"] == 0.5
    assert [(point["update"], point["cola"]) for point in found["zero_shot lstm"].points] == [
        (1, 0.1),
        (3, 0.3),
    ]
    assert found["zero_shot lstm"].headline == {"zero_shot.lstm.cola": 0.3}
    assert [path.name for path in found["report figure2"].artifacts] == [
        "figure2-left.svg",
        "metrics.json",
    ]


def test_seeds_make_a_group_and_numbers_of_layers_a_curve():
    scores = {"0": 0.25, "1": 0.75}
    for layers in (0, 12):
        for seed, score in scores.items():
            path = Path(f"data/transfer/cola/layers-{layers}/seed-{seed}/summary.json")
            made_results.write_json(path, {"best_dev_score": score + layers})
    (group,) = finished_groups(read_params())
    assert (group.stage, group.name) == ("transfer", "cola")
    found = [
        (point["update"], point["dev_score.mean"], point["dev_score.best"])
        for point in group.points
    ]
    assert found == [(0, 0.5, 0.75), (12, 12.5, 12.75)]
    assert group.points[0]["dev_score.sd"] == pytest.approx(0.5 / 2**0.5)


def test_names_sort_as_the_paper_goes():
    names = [
        ("report", "table2"),
        ("transfer", "race/layers-12/seed-0"),
        ("transfer", "race/layers-2/seed-0"),
        ("ablate", "lstm-mnli/seed-0"),
        ("zero_shot", "lstm"),
        ("finetune", "rte/seed-0"),
        ("finetune", "rte"),
        ("pretrain", "transformer"),
    ]
    assert sorted(run_name(*name) for name in names) == [
        "1 pretrain transformer",
        "2 finetune rte",
        "2 rte seed 0",
        "3 lstm-mnli seed 0",
        "4 race layers 02 seed 0",
        "4 race layers 12 seed 0",
        "5 zero-shot lstm",
        "6 report table2",
    ]
    assert [group_of(*name) for name in names] == [
        None,
        "race",
        "race",
        "lstm-mnli",
        None,
        "rte",
        None,
        None,
    ]


def test_seeds_side_by_side_have_colours_of_their_own():
    colours = [colour_of("finetune", f"rte/seed-{seed}")["mlflow.runColor"] for seed in range(7)]
    assert len(set(colours)) == 7
    assert colour_of("ablate", "lstm-rte/seed-10")["mlflow.runColor"] == colours[3]
    for stage, name in (
        ("pretrain", "lstm/seed-0"),  # stands beside other networks
        ("transfer", "race/layers-2/seed-0"),  # beside other numbers of layers
        ("finetune", "rte"),
        ("report", "table2"),
    ):
        assert colour_of(stage, name) == {}


def test_each_run_has_the_parameters_that_made_it():
    params = read_params()
    ablated = stage_params(params, "ablate", "lstm-cola/seed-1")
    assert (ablated["network"], ablated["finetune.lambda_lm"], ablated["task.group"]) == (
        "lstm",
        "0.25",
        "glue",
    )
    moved = stage_params(params, "transfer", "cola/layers-0/seed-0")
    assert (moved["network"], moved["finetune.transfer"], moved["finetune.seeds"]) == (
        "transformer",
        "0",
        "[0, 1]",
    )
    assert stage_params(params, "finetune", "cola/seed-0")["finetune.transfer"] == "all"


def test_a_run_without_zero_shot_sets_has_no_curve():
    made_results.write_json(
        Path("data/zero_shot/lstm/seed-0/scores.json"),
        {"network": "lstm", "sets": {}, "snapshots": []},
    )
    assert list(finished_results(read_params())) == []
