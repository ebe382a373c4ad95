"""DVC's experiments: the command lines of the page on DVC, on a graph of one stage."""

import csv
import json
import subprocess

import pytest
from our_imports import ROOT

from gpt1.params.profile import compose
from gpt1.params.yaml import read_yaml, write_yaml

SCORES = "data/finetune/glue_nli/rte.json"
AUTHOR = ("-c", "user.name=n", "-c", "user.email=a@b")
WEIGHTS = "data/pretrain/transformer"
SCORE = """
import json
from pathlib import Path
from ruamel.yaml import YAML
rate = YAML(typ="safe").load(Path("params.yaml"))["finetune"]["learning_rate"]
scores = Path("data/finetune/glue_nli/rte.json")
scores.parent.mkdir(parents=True, exist_ok=True)
scores.write_text(json.dumps({"rte": round(rate * 10_000)}))
weights = Path("data/pretrain/transformer")
weights.mkdir(parents=True)
(weights / "weights").write_text(str(rate))
"""


@pytest.mark.long
@pytest.mark.timeout(900)  # some twenty starts of DVC
def test_a_sweep_is_queued_run_and_shown(tmp_path):
    def run(*words):
        return subprocess.run(
            words, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    ours = read_yaml(ROOT / "dvc.yaml")
    (metrics,) = ours["stages"]["finetune"]["do"]["metrics"]
    stage = {
        "cmd": "python score.py",
        "params": ["finetune.learning_rate"],
        "outs": [WEIGHTS],
        "metrics": [metrics.replace("${item.group}/${key}", "glue_nli/rte")],
    }
    assert stage["metrics"] == [SCORES]
    graph = {"stages": {"finetune": stage}, "artifacts": ours["artifacts"]}
    (tmp_path / "dvc.yaml").write_text(json.dumps(graph))  # JSON is YAML
    write_yaml(tmp_path / "params.yaml", compose("demo", []), "gpt1 profile demo")
    (tmp_path / "score.py").write_text(SCORE)
    run("git", "init", "-q")
    run("dvc", "init", "-q")
    run("dvc", "repro", "-q")
    run("git", "add", "-A")
    run("git", *AUTHOR, "commit", "-qm", "first")
    run("git", *AUTHOR, "tag", "-a", "transformer@v1.0.0", "-m", "first")
    sweep = "finetune.learning_rate=0.002,0.003"
    run("dvc", "exp", "run", "-q", "--queue", "-s", "-S", sweep, "finetune")
    run("dvc", "exp", "run", "-q", "--run-all", "-j", "1")
    table = csv.DictReader(run("dvc", "exp", "show", "--csv", "--only-changed").splitlines())
    rows = {(row["rte"], row["finetune.learning_rate"]) for row in table if row["Experiment"]}
    assert rows == {("20", "0.002"), ("30", "0.003")}
    run("dvc", "exp", "run", "-q", "-S", "finetune.learning_rate=0.004")
    assert run("git", "diff", "--numstat", "params.yaml").split()[:2] == ["1", "1"]
    assert "rte" in run("dvc", "exp", "diff")
    assert "0.004" in (tmp_path / WEIGHTS / "weights").read_text()
    run("dvc", "artifacts", "get", ".", "transformer", "--rev", "v1.0.0", "-o", "got")
    first = compose("demo", [])["finetune"]["learning_rate"]
    assert (tmp_path / "got/weights").read_text() == str(first)
