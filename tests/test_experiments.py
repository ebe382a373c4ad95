"""DVC's experiments: what recipes are compared by, and the command lines of the page on DVC, on a
graph of one stage.
"""

import csv
import json
import subprocess
from pathlib import Path

import made_results
import pytest
from our_imports import ROOT

from gpt1.base.errors import UserError
from gpt1.params.profile import compose
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import read_params
from gpt1.params.yaml import read_yaml, write_yaml
from gpt1.stages import dev_scores

SCORES = Path("data/report/dev_scores")
AUTHOR = ("-c", "user.name=n", "-c", "user.email=a@b")
KINDS = ("metrics", "plots")
WEIGHTS = "data/pretrain/transformer"
SCORE = """
import json
from pathlib import Path
from ruamel.yaml import YAML
rate = YAML(typ="safe").load(Path("params.yaml"))["finetune"]["learning_rate"]
folder = Path("data/report/dev_scores")
folder.mkdir(parents=True)
(folder / "scores.json").write_text(json.dumps({"rte": round(rate * 10_000)}))
lines = ["task,seed,score,learning_rate", f"rte,0,{rate * 10_000:.0f},{rate}"]
(folder / "scores.csv").write_text("\\n".join(lines))
weights = Path("data/pretrain/transformer")
weights.mkdir(parents=True)
(weights / "weights").write_text(str(rate))
"""


def finetuned(folder, seed, score, **other):
    """A finished seed, by the recipe of params.yaml or by one with `other` values."""
    made = Path("data/finetune", folder, f"seed-{seed}")
    summary = {"best_dev_score": score, "best_update": 20, "updates": 20}
    made_results.write_json(made / "summary.json", summary)
    recipe = finetune_recipe(read_params(), folder.split("/")[1])
    trained_by = recipe.model_dump(mode="json", exclude={"seeds"}) | other
    made_results.write_json(made / "recipe.json", trained_by)


def test_scores_on_dev_stand_beside_their_recipes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made_results.write_params(["rte", "cola", "sst2"], [0, 1])
    values = read_yaml(Path("params.yaml"))
    values["tasks"]["cola"]["finetune"] = {"learning_rate": 0.5}
    Path("params.yaml").write_text(json.dumps(values))
    with pytest.raises(UserError, match="no task is fine-tuned by the recipe of params"):
        dev_scores.main()
    for folder, seed, score in (
        ("glue_nli/rte", 0, 0.5),
        ("glue_nli/rte", 1, 0.625),
        ("glue_nli/rte", 7, 0.9),  # of another run
        ("glue/cola", 0, 0.25),
    ):
        finetuned(folder, seed, score)
    dev_scores.main()
    assert json.loads((SCORES / "scores.json").read_text()) == {"rte": 56.25, "cola": 25.0}
    assert sorted(capsys.readouterr().out.strip().split(", ")) == ["cola 25", "rte 56.25"]
    with (SCORES / "scores.csv").open() as file:
        rows = {(row["task"], row["seed"]): row for row in csv.DictReader(file)}
    assert {key: float(row["score"]) for key, row in rows.items()} == {
        ("rte", "0"): 50.0,
        ("rte", "1"): 62.5,
        ("cola", "0"): 25.0,
    }
    rates = {task: float(row["learning_rate"]) for (task, _), row in rows.items()}
    assert rates == {"rte": values["finetune"]["learning_rate"], "cola": 0.5}
    finetuned("glue_nli/rte", 0, 0.5, learning_rate=0.25)
    finetuned("glue/cola", 0, 0.25, dropout=0.25)
    Path("data/finetune/glue/cola/seed-1").mkdir()
    (Path("data/finetune/glue/cola/seed-1") / "summary.json").write_text('{"best_dev_score": 1}')
    dev_scores.main()
    assert json.loads((SCORES / "scores.json").read_text()) == {"rte": 62.5}


@pytest.mark.slow
@pytest.mark.timeout(900)  # some twenty starts of DVC
def test_a_sweep_is_queued_run_shown_and_drawn(tmp_path):
    def run(*words):
        return subprocess.run(
            words, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    ours = read_yaml(ROOT / "dvc.yaml")
    shown = {key: [one for one in ours[key] if str(SCORES) in str(one)] for key in KINDS}
    stage = {
        "cmd": "python score.py",
        "params": ["finetune.learning_rate"],
        "outs": [str(SCORES), WEIGHTS],
    }
    graph = {"stages": {"dev_scores": stage}, "artifacts": ours["artifacts"]} | shown
    (tmp_path / "dvc.yaml").write_text(json.dumps(graph))  # JSON is YAML
    write_yaml(tmp_path / "params.yaml", compose("demo", []), "gpt1 profile demo")
    (tmp_path / "score.py").write_text(SCORE)
    run("git", "init", "-q")
    run("dvc", "init", "-q")
    (tmp_path / ".dvc/plots").mkdir()
    (tmp_path / ".dvc/plots/sweep.json").write_bytes((ROOT / ".dvc/plots/sweep.json").read_bytes())
    run("dvc", "repro", "-q")
    run("git", "add", "-A")
    run("git", *AUTHOR, "commit", "-qm", "first")
    run("git", *AUTHOR, "tag", "-a", "transformer@v1.0.0", "-m", "first")
    sweep = "finetune.learning_rate=0.002,0.003"
    run("dvc", "exp", "run", "-q", "--queue", "-s", "-S", sweep, "dev_scores")
    run("dvc", "exp", "run", "-q", "--run-all", "-j", "1")
    table = csv.DictReader(run("dvc", "exp", "show", "--csv", "--only-changed").splitlines())
    rows = {(row["rte"], row["finetune.learning_rate"]) for row in table if row["Experiment"]}
    assert rows == {("20", "0.002"), ("30", "0.003")}
    names = run("dvc", "exp", "list", "--name-only").split()
    (plot,) = json.loads(run("dvc", "plots", "diff", "--json", *names))["data"].values()
    (whole,) = plot
    points = whole["content"]["data"]["values"]
    assert {(row["task"], row["learning_rate"], row["score"]) for row in points} >= {
        ("rte", "0.002", "20"),
        ("rte", "0.003", "30"),
    }
    assert whole["content"]["encoding"]["x"]["field"] == "learning_rate"
    run("dvc", "exp", "run", "-q", "-S", "finetune.learning_rate=0.004")
    assert run("git", "diff", "--numstat", "params.yaml").split()[:2] == ["1", "1"]
    assert "rte" in run("dvc", "exp", "diff")
    assert "0.004" in (tmp_path / WEIGHTS / "weights").read_text()
    run("dvc", "artifacts", "get", ".", "transformer", "--rev", "v1.0.0", "-o", "got")
    first = compose("demo", [])["finetune"]["learning_rate"]
    assert (tmp_path / "got/weights").read_text() == str(first)
