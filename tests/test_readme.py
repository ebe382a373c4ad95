"""The committed params.yaml's own pipeline, at a fraction of its size, and what the README says one
can type then.
"""

import copy
import json
import re
import shutil
import signal
import sqlite3
import sys
import urllib.request
from collections import namedtuple
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import pytest
from copied_checkout import ROOT, Checkout
from made_results import empty_mlflow

import gpt1.tasks.definitions
from flows.graph import read_graph
from gpt1.base.errors import UserError
from gpt1.cli import app
from gpt1.params.profile import overridden
from gpt1.params.yaml import read_yaml, write_yaml
from gpt1.results import load
from gpt1.results.runs import NAMES, freshness

GUIDES = {
    page.name: page.read_text(encoding="utf-8")
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    )
    if page.name
    not in (
        "cli.md",
        "paper.md",
    )  # made from the code, and held by tests of their own
}
PARAMS = read_yaml(ROOT / "params.yaml")
KEPT = ("scitail", "race", "cola")
# A quarter of the tasks, a sixth of the books, a hundredth of the updates, a tenth of the rows, a
# small network: no score means anything.
FRACTION = """
model.width=32 model.heads=2 model.layers=2 model.feed_forward=128 lstm.units=16 lstm_equal.units=32
transfer.race.layers=[0,2] transfer.mnli.layers=[0,2] ablations.no_pretraining.tasks={}
ablations.no_aux_lm.tasks={} town.books=10 town.pages=20 shard.heldout_fraction=0.3 bpe.merges=300
pretrain.updates=20 pretrain.warmup_updates=2 pretrain.heldout_updates=10 finetune.seeds=[0]
finetune.epochs=1 pretrain.snapshots_per_decade=1 zero_shot.cola.train_rows=40
generate.tokens=8 generate.heldout_prompts=1 generate.beams=2 pretrain.heldout_windows=8
"""
ROWS = [
    *(f"zero_shot.{name}.rows=40" for name in PARAMS["zero_shot"] if name in (*KEPT, "dprd")),
    *(f"tasks.{task}.{rows}=40" for task in KEPT for rows in ("train_rows", "eval_rows")),
    *(f"tasks.{task}.finetune={{}}" for task in KEPT),
]


# commands of a page, the line on which they start, their language, and whether they are to be run
Block = namedtuple("Block", "page line language commands mark")


def blocks():
    """Every block of commands of every page: fenced, and no picture."""
    found = []
    fence = re.compile(r"(?:<!-- ([^\n]*?) -->\n *)?```(\w*)\n(.*?)```", re.DOTALL)
    for page, text in GUIDES.items():
        for match in fence.finditer(text):
            if match[2] != "mermaid":
                line = text[: match.start(3)].count("\n") + 1
                found.append(Block(page, line, match[2], match[3], match[1] or ""))
    return found


def to_run():
    """Those of README in every suite, those of the other pages in the whole one."""
    for block in blocks():
        if block.mark == "run":
            marks = () if block.page == "README.md" else pytest.mark.long
            yield pytest.param(block, marks=marks, id=f"{block.page}-{block.line}")


@pytest.mark.parametrize("block", blocks(), ids=lambda block: f"{block.page}-{block.line}")
def test_every_block_says_whether_it_is_run(block):
    assert re.fullmatch(r"run|in [\w/]+\.py|not run: \w.+", block.mark), (
        "expected <!-- run -->, <!-- in FILE.py --> or <!-- not run: … -->"
    )


def test_a_new_task_is_written_as_the_page_says():
    [block] = [block for block in blocks() if block.mark == "in gpt1/tasks/definitions.py"]
    names = vars(gpt1.tasks.definitions)
    [task] = eval(f"[{block.commands}]", names)
    assert task.name == "wnli"
    layouts = re.search(r"`layouts` is\s+`(.*?)`", GUIDES["extend.md"])[1]
    assert replace(task, layouts=eval(layouts, names)).layouts[0][1].files == ("dev.csv",)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The whole graph of the demo, its stages run in one process, as if DVC had run them."""
    checkout = Checkout(tmp_path_factory.mktemp("readme"), "params.yaml", "Makefile", "README.md")
    (checkout.folder / ".venv").symlink_to(sys.prefix)
    checkout.gpt1("profile", "demo", "--tasks", ",".join(KEPT), *FRACTION.split(), *ROWS)
    checkout.run(sys.executable, str(Path(__file__).with_name("whole_graph.py")))
    checkout.run("dvc", "commit", "-q", "-f")
    checkout.run("git", "add", "-A")
    checkout.run("git", "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "all")
    shutil.copy(empty_mlflow(tmp_path_factory), checkout.folder / "mlflow.db")
    checkout.gpt1("sync")
    return checkout


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
    with sqlite3.connect(made.folder / "mlflow.db") as database:
        names = {name for (name,) in database.execute("SELECT name FROM runs")}
    assert {"(pre-training) transformer seed 0", "cola full seed 0"} <= names


@pytest.mark.slow
def test_a_stage_reads_no_parameter_that_dvc_does_not_watch(made):
    unwatched = json.loads((made.folder / "unwatched.json").read_text())
    assert unwatched.keys() == read_yaml(made.folder / "dvc.lock")["stages"].keys()
    assert not any(unwatched.values()), {name: keys for name, keys in unwatched.items() if keys}


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(600)
def test_the_pages_of_prefect_and_mlflow_show_a_served_run(made):
    (made.folder / "data/report/table2/table2.md").unlink()
    service, line = made.command(sys.executable, "-m", "flows.serve"), ""
    while "http://" not in line:
        line = service.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+", line)[0]

    def asked(what):
        """What Prefect's server knows: `artifacts`, `flow_runs` or `task_runs`."""
        words = f"{address}/api/{what}/filter", b"{}", {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(*words), timeout=30) as answer:
            return list(json.load(answer))

    lines = ""
    while not (line := service.stdout.readline()).startswith("next, "):
        assert service.poll() is None
        lines += line
    made.run("prefect", "deployment", "run", "reproduce-table2", "--watch")
    [run] = [one for one in asked("flow_runs") if one["deployment_id"]]
    assert (run["state_type"], run["name"]) == ("COMPLETED", "table2 · demo")
    assert {one["name"] for one in asked("task_runs")} >= {"table2", "gpt1 report", "gpt1 sync"}
    shown = {artifact["key"]: str(artifact["data"]) for artifact in asked("artifacts")}
    assert shown["table2"].startswith("### Table 2")
    if browser := shutil.which("chromium"):
        flags = "--headless --no-sandbox --disable-gpu --virtual-time-budget=60000 --dump-dom"
        page = made.run(browser, *flags.split(), re.search(r"http\S+", lines)[0])
        with sqlite3.connect(made.folder / "mlflow.db") as database:
            query = "SELECT value FROM latest_metrics WHERE key = 'score'"
            assert all(f"{score:g}" in page for (score,) in database.execute(query))
    service.send_signal(signal.SIGINT)
    assert service.wait(120) == 0


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_real_command_lines_side_by_side_make_the_same_bytes_and_then_run_nothing(made):
    """Of stages as DVC and `gpt1 run` start them, in another checkout."""
    twin = copy.copy(made)
    twin.folder = made.folder.with_name("twin")
    shutil.copytree(made.folder, twin.folder, symlinks=True)
    for made_there in ("dvc.lock", "data", ".dvc/cache"):
        twin.run("rm", "-rf", made_there)
    twin.run("git", "checkout", "-q", "data")
    assert "everything is up to date\n" in twin.gpt1("run", "-j", "2")
    assert twin.hashes() == made.hashes()
    assert twin.gpt1("run").startswith("everything is up to date (")


@pytest.mark.slow
def test_a_mistake_is_the_last_line_before_dvcs_own(made):
    params = made.folder / "params.yaml"
    good = params.read_text()
    params.write_text(good.replace("lambda_lm:", "lamda_lm:"))
    lines = made.run("dvc", "repro", "check", status=255).splitlines()
    params.write_text(good)
    error = next(number for number, line in enumerate(lines) if line.startswith("error:"))
    assert lines[error].endswith("(found 0.5); did you mean finetune.lambda_lm?")
    assert lines[error + 1].startswith("ERROR: failed to reproduce 'check'")
    assert "Traceback" not in "\n".join(lines)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", to_run())
def test_a_block_runs_as_it_stands(made, block):
    program = [sys.executable] if block.language == "python" else ["bash", "-euo", "pipefail"]
    files = {name: (made.folder / name).read_text() for name in ("params.yaml", "dvc.yaml")}
    if "no_dropout" in block.commands:  # of which the page says: copy the stage no_aux_lm
        stage = re.search(r"  no_aux_lm:.*?\n\n", files["dvc.yaml"], re.DOTALL)[0]
        copied = files["dvc.yaml"].replace(stage, stage + stage.replace("no_aux_lm", "no_dropout"))
        (made.folder / "dvc.yaml").write_text(copied)
    made.run(*program, "-c", block.commands)
    if "no_dropout" in block.commands:
        assert "kept, for dvc.yaml has a stage of it" in made.gpt1("profile", "demo")
    for name, text in files.items():
        (made.folder / name).write_text(text)


UPSTREAM = {  # of a parameter the reports that hang on it, by the arrows of dvc.yaml
    "finetune.epochs=2": "table2 table3 table4 table5 figure2 claims",
    "lstm.units=32": "table5 figure2 claims curves",
    "zero_shot.cola.rows=30": "figure2 claims",
    "pretrain.dropout=0.1": "table2 table3 table4 table5 figure2 claims curves",
    "ablations.lstm.finetune={learning_rate: 0.001}": "table2 table3 table4 table5 figure2 claims",
    "generate.tokens=9": "",
}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_out_of_date_is_said_wherever_it_is_shown(made, tmp_path, capsys):
    """Of each report and each kind of parameter above it; then after a run of one report alone."""

    def gpt1(*words):
        """In this process, which has imported everything."""
        with chdir(made.folder):
            app(words, standalone_mode=False)
        return "".join(capsys.readouterr())

    params = made.folder / "params.yaml"
    before = params.read_text()
    there = shutil.copytree(made.folder / "data/report", tmp_path / "other/data/report").parents[1]
    for change, outdated in UPSTREAM.items():
        write_yaml(params, overridden(read_yaml(params), [change]), "")
        assert freshness(made.folder).outdated & {*NAMES} == {*outdated.split()}, change
        if change.startswith("lstm"):  # as DVC itself says
            with chdir(made.folder):
                outdated = {name for name, stage in read_graph(()).items() if stage.outdated}
            changed = set(json.loads(made.run("dvc", "status", "--json")))
            assert changed < outdated
            assert changed >= {"pretrain@lstm-0", "lstm@cola", "zero_shot@lstm-0"}
        params.write_text(before)
    assert not freshness(there).outdated
    assert "dvc.lock" not in freshness(there).line(["table2"])

    write_yaml(
        params,
        overridden(read_yaml(params), ["tasks.cola.finetune={epochs: 2}", "generate.tokens=9"]),
        "",
    )
    made.run("dvc", "repro", "-q", "table4")
    line = "gpt1 run table2 table3 table5 figure2 claims"
    answer = gpt1("table")
    assert line.replace("figure2 ", "") in " ".join(answer.split())
    assert "Pre-training brings" not in answer
    assert "Out of date" not in gpt1("table", "table4")
    assert "Out of date" in gpt1("table", "table5", "--against", str(there))
    gpt1("report")
    page = (made.folder / "data/report/index.html").read_text()
    assert line.replace("figure2 ", "") in page
    assert page.count("gpt1 run table5</p>") == 1
    assert page.count("<details") == 1, "params.yaml; samples are out of date too"
    assert "Pre-training brings" not in page
    with pytest.warns(UserWarning, match=line.removesuffix(" claims")):
        scores, predictions = load(made.folder)
    assert set(scores.loc[~scores["outdated"], "table"]) == {"table4"}
    cola = predictions.query("task == 'cola' and system == 'full' and update.isna()")
    assert not cola["outdated"].any()
    pack = made.run(sys.executable, str(ROOT / "benchmarks/pack_run.py"), "packed", status=1)
    assert line in pack
    made.gpt1("sync")
    with sqlite3.connect(made.folder / "mlflow.db") as database:
        notes = database.execute("SELECT value FROM tags WHERE key = 'mlflow.note.content'")
        assert any(line in note for (note,) in notes)
    write_yaml(params, overridden(read_yaml(params), ["finetune.epochs=3"]), "")
    with pytest.raises(UserError, match="expected a fine-tuned task, found none"):
        gpt1("register")
    params.write_text(before)
