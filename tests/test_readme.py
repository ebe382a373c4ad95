"""The committed params.yaml's own pipeline, at a fraction of its size, and what the README says one
can type then.
"""

import json
import re
import shutil
import sqlite3
import sys
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest
from copied_checkout import ROOT, Checkout

from gpt1.params.yaml import read_yaml

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))]
PARAMS = read_yaml(ROOT / "params.yaml")
KEPT = ("scitail", "race", "cola")
# A quarter of the tasks, a sixth of the books, a hundredth of the updates, a tenth of the rows, a
# small network: no score means anything.
FRACTION = [
    "model.width=32",
    "model.heads=2",
    "model.layers=2",
    "model.feed_forward=128",
    "lstm.units=16",
    "lstm_equal.units=32",
    "transfer.race.layers=[0,2]",
    "transfer.mnli.layers=[0,2]",
    "variants.no_pretraining.tasks={}",
    "variants.no_aux_lm.tasks={}",
    "world.town.books=10",
    "shard.heldout_fraction=0.3",
    "bpe.merges=300",
    "pretrain.updates=20",
    "pretrain.warmup_updates=2",
    "pretrain.heldout_updates=10",
    "finetune.seeds=[0]",
    "finetune.epochs=1",
    "pretrain.snapshots_per_decade=1",
    *(f"zero_shot.{name}.rows=40" for name in PARAMS["zero_shot"] if name in (*KEPT, "dprd")),
    "zero_shot.cola.train_rows=40",
    *(f"tasks.{task}.train_rows=40" for task in KEPT),
]


class Block(NamedTuple):
    """Commands of the README, the line on which they start, and whether they are to be run; if not,
    why.
    """

    line: int
    commands: str
    mark: str


def blocks(text):
    """Every block of commands of a page: fenced, and no picture."""
    found = []
    for match in re.finditer(r"(?:<!-- ([^\n]*?) -->\n)?```(\w*)\n(.*?)```", text, re.DOTALL):
        if match[2] != "mermaid":
            found.append(Block(text[: match.start(3)].count("\n") + 1, match[3], match[1] or ""))
    return found


def to_run():
    """Those of the README that are to be run, in its order, then those of the documentation."""
    return [block for text in (README, *GUIDES) for block in blocks(text) if block.mark == "run"]


def test_every_block_says_whether_it_is_run():
    for block in blocks(README):
        assert re.fullmatch(r"run|not run: \w.+", block.mark), (
            f"README.md, line {block.line}: expected <!-- run --> or <!-- not run: … -->"
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The whole graph of the demo, run by `gpt1 run`."""
    checkout = Checkout(tmp_path_factory.mktemp("readme"), "params.yaml", "Makefile", "README.md")
    (checkout.folder / ".venv").symlink_to(sys.prefix)
    shutil.copy(Path(__file__).with_name("noted_params.py"), checkout.folder)
    with (checkout.folder / "gpt1/params/schema.py").open("a") as schema:
        schema.write("\nfrom noted_params import noting\n\n")
        schema.write("read_params = noting(Section, read_params)\n")
    checkout.gpt1("profile", "demo", "--tasks", ",".join(KEPT), *FRACTION)
    checkout.gpt1("run")
    return checkout


def asked(checkout, what):
    """What Prefect's server knows: `artifacts`, `flow_runs` or `task_runs`."""
    request = urllib.request.Request(
        f"{checkout.prefect}/{what}/filter", b"{}", {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return list(json.load(answer))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_runs_end_to_end(made):
    for table, scored in (("table2", 1), ("table3", 3), ("table4", 1)):  # RACE has three columns
        text = (made.folder / f"data/report/{table}/{table}.md").read_text()
        assert "Made-up tasks" in text
        ours = next(line for line in text.splitlines() if line.startswith("| this run"))
        assert len(re.findall(r"\d+\.\d", ours)) >= scored, f"{table}: a task is left out: {ours}"
    for report, words in (
        ("table5", "LSTM"),
        ("figure2", "layers transferred"),
        ("claims", "no verdict"),
        ("curves", "Parameters"),
    ):
        assert words in (made.folder / f"data/report/{report}/{report}.md").read_text(), report
    trained = {
        folder.name
        for folder in (made.folder / "data/finetune").glob("*/*")
        if (folder / "seed-0/weights.safetensors").exists()
    }
    assert trained == set(KEPT)


@pytest.mark.slow
def test_a_stage_reads_no_parameter_that_dvc_does_not_watch(made):
    lock = read_yaml(made.folder / "dvc.lock")["stages"]
    unwatched = {}
    for name in lock.keys() - {"check"}:  # which is given the whole file
        words = list((made.folder / "reads").glob(f"{name}.json"))
        assert words or name == "scores", "which reads none"
        watched = [f"{key}." for key in lock[name].get("params", {}).get("params.yaml", {})]
        unwatched[name] = [
            read
            for path in words
            for read in json.loads(path.read_text())
            if not any(f"{read}.".startswith(key) for key in watched)
            and not (read.endswith(".") and any(key.startswith(read) for key in watched))
        ]
    assert not any(unwatched.values()), {name: keys for name, keys in unwatched.items() if keys}


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.timeout(600)
def test_the_pages_of_prefect_and_mlflow_show_a_served_run(made):
    (made.folder / "data/report/table2/table2.md").unlink()
    with made.serving():
        made.run("prefect", "deployment", "run", "reproduce-table2", "--watch")
        served = [one for one in asked(made, "flow_runs") if one["deployment_id"]]
        run = max(served, key=lambda one: str(one["expected_start_time"]))
        assert run["state_type"] == "COMPLETED"
        tasks = {one["name"] for one in asked(made, "task_runs") if one["flow_run_id"] == run["id"]}
        assert tasks == {"table2", "gpt1 report", "gpt1 sync"}
        shown = {artifact["key"]: str(artifact["data"]) for artifact in asked(made, "artifacts")}
        assert shown["table2"].startswith("### Table 2")
    with sqlite3.connect(made.folder / "mlflow.db") as database:
        names = {name for (name,) in database.execute("SELECT name FROM runs")}
    assert {"(pre-training) transformer 0", "cola full 0"} <= names


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", to_run(), ids=lambda block: f"line-{block.line}")
def test_a_block_runs_as_it_stands(made, block):
    made.run("bash", "-euo", "pipefail", "-c", block.commands)


def test_the_readme_names_what_is_there():
    """Paths in the README exist in the repository, or are made by a run."""
    for name in re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(
        r"`((?:gpt1|tests|conf|benchmarks)/[\w/.]+)`", README
    ):
        assert Path(ROOT, name).exists(), f"README.md names {name}, which is not there"
