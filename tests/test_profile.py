"""`gpt1 profile` through its command line: what it writes, links, leaves out, and refuses."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_data import put_files

from gpt1.base.errors import UserError
from gpt1.cli import main
from gpt1.params.profile import compose
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import read_params, validate
from gpt1.params.yaml import read_yaml
from gpt1.stages import check

ROOT = Path(__file__).parents[1]
SMALL = ("profile", "small")
BROUGHT = (*SMALL, "--data", "brought")
COLA = "gj04\t1\t\tThe cat sat.\ngj04\t0\t*\tSat cat the.\n"


@pytest.fixture
def checkout(tmp_path):
    """A folder with the profiles and a data folder `brought` that holds books and CoLA."""
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    files = {"books/one.txt": "A book.\n", "CoLA/train.tsv": COLA, "CoLA/dev.tsv": COLA}
    put_files(tmp_path / "brought", files)
    return tmp_path


@pytest.fixture
def gpt1(checkout, monkeypatch, capsys):
    """Run the command in the folder: its status, and what it wrote on both streams."""
    monkeypatch.chdir(checkout)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gpt1", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


def test_small_runs_on_what_is_there(checkout, gpt1):
    changes = ("finetune.epochs=2", "finetune.seeds=[2]", "tasks.cola.train_rows=1")
    ablations = ("ablations.no_aux_lm.finetune.epochs=1", "ablations.lstm.tasks={}")
    status, out, err = gpt1(*BROUGHT, *changes, *ablations)
    assert status == 0, err
    params = read_params()
    found = (params.finetune.epochs, params.finetune.seeds, params.tasks["cola"].train_rows)
    assert found == (2, (2,), 1)
    paper = read_yaml(ROOT / "conf" / "paper.yaml")
    assert params.finetune.beta2 == paper["finetune"]["beta2"], "small says only what differs"
    assert (list(params.tasks), list(params.sources)) == (["cola"], ["books", "cola"])
    assert (checkout / "data/raw/books/one.txt").read_text() == "A book.\n"
    assert "left out: story_cloze; to have it: fill in the form" in out
    assert "left out: dprd" in out, "a zero-shot set that is not there is listed"
    tasks = {name: dict(row.tasks) for name, row in params.ablations.items()}
    assert tasks.pop("lstm") == tasks.pop("lstm_equal") == {}
    assert set(map(str, tasks.values())) == {"{'cola': 'glue'}"}
    assert finetune_recipe(params, "cola", "no_aux_lm").epochs == 1
    assert (list(params.transfer), list(params.zero_shot)) == ([], ["cola"])
    seven = ("profile", "small", "pretrain.updates=7", "pretrain.warmup_updates=1")
    assert gpt1(*seven)[0] == 0, "the same data, not named again"
    assert read_params().pretrain.updates == 7
    assert gpt1(*SMALL, "--data", "data/raw")[0] == 0, "links of an earlier profile"
    assert (checkout / "data/raw/books/one.txt").read_text() == "A book.\n"


def test_the_lstm_of_equal_size_is_in_table_5_and_not_in_figure_2():
    networks = validate(compose("town", ())).networks
    assert networks.pretrain == ("transformer", "lstm", "lstm_equal")
    assert networks.zero_shot == ("transformer", "lstm")
    of_official = compose("official", ())["ablations"]
    assert {name for name, row in of_official.items() if not row["tasks"]} == {"lstm", "lstm_equal"}


def test_check_stage_passes_then_names_what_went_missing(checkout, gpt1):
    gpt1(*BROUGHT)
    check.main()
    shutil.rmtree(checkout / "brought" / "CoLA")
    with pytest.raises(UserError, match="data/raw/cola"):
        check.main()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["profile", "smal"], "no profile 'smal'; expected one of demo, evening, official, paper"),
        ([*SMALL, "finetune.epoch=2"], ".*did you mean finetune.epochs"),
        ([*SMALL, "finetune.lr=1"], ".*did you mean finetune.learning_rate"),
        ([*SMALL, "seed=1"], r".*unknown key seed \(found 1\); remove it"),
        ([*SMALL, "pretrain.updates=2"], ".*warmup_updates: expected at most the 2 updates"),
        ([*SMALL, "finetune.epochs=two"], "params.yaml: finetune.epochs: found 'two', expected"),
        (
            ["profile", "demo", "+ablations.x={network: lstm, finetune: {}, tasks: {}}"],
            "params.yaml: ablations.x: expected this row and a stage x in dvc.yaml",
        ),
        (SMALL, "nothing is in data/raw/books"),
        ([*SMALL, "--data", "conf"], "--data conf is no folder"),
        (["profile", "demo", "--tasks", "snil"], "no task 'snil'; expected some of snli, "),
        ([*BROUGHT, "--tasks", "cola,rte"], "nothing is in data/raw/rte"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(checkout, gpt1, arguments, line):
    status, _, err = gpt1(*arguments)
    assert (status, err.count("\n")) == (2, 1), err
    assert re.match(f"error: {line}", err)
    assert not (checkout / "params.yaml").exists(), (
        "a refused profile must leave params.yaml as it was"
    )


def test_only_some_tasks(checkout, gpt1):
    (checkout / "params.yaml").touch()  # empty, so there is nothing to keep
    status, out, err = gpt1("profile", "demo", "--tasks", "race,rte,", "tasks.cola.train_rows=3")
    assert status == 0, err
    params = read_params()
    assert list(params.tasks) == ["rte", "race"]
    assert list(params.transfer) == list(params.zero_shot) == ["race"]
    assert {task for row in params.ablations.values() for task in row.tasks} == {"rte"}
    assert list(params.sources) == ["books", "rte", "race"]
    first = "# Composed by: gpt1 profile demo tasks.cola.train_rows=3 --tasks race,rte\n"
    assert (checkout / "params.yaml").read_text().startswith(first)
    assert "left out" not in out, "what was not asked for is no loss"


def test_make_takes_a_profile_and_never_writes_over_an_edit(checkout):
    shutil.copy(ROOT / "Makefile", checkout)
    shutil.copy(ROOT / "params.yaml", checkout)
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run(["git", *name, *command], cwd=checkout, check=True)
    params = checkout / "params.yaml"

    def make(profile):
        return subprocess.run(
            ["make", "-o", "setup", "profile", f"PROFILE={profile}", f"VENV={sys.prefix}"],
            cwd=checkout,
            capture_output=True,
            text=True,
            check=False,
        )

    assert make("town").returncode == 0
    town = params.read_bytes()
    assert read_params(params).profile == "town"
    assert make("town").returncode == 0
    refused = make("demo")
    assert refused.returncode != 0
    assert "params.yaml was edited" in refused.stderr
    assert params.read_bytes() == town
