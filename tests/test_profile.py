"""`gpt1 profile` through its command line: what it writes, links, leaves out, and refuses."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpt1.params.profile import compose
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import read_params, validate
from gpt1.params.yaml import read_yaml

ROOT = Path(__file__).parents[1]
COLA = "gj04\t1\t\tThe cat sat.\ngj04\t0\t*\tSat cat the.\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the profiles and a data folder `brought` that holds books and CoLA."""
    shutil.copytree(ROOT / "conf", tmp_path / "conf")
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    brought = tmp_path / "brought"
    (brought / "books").mkdir(parents=True)
    (brought / "books" / "one.txt").write_text("A book.\n")
    (brought / "CoLA").mkdir()
    for name in ("train.tsv", "dev.tsv"):
        (brought / "CoLA" / name).write_text(COLA)
    return tmp_path


def gpt1(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from gpt1.cli import main; main()", *arguments],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )


def test_small_runs_on_what_is_there(checkout: Path) -> None:
    done = gpt1(
        checkout,
        "profile",
        "small",
        "--data",
        "brought",
        "finetune.epochs=2",
        "finetune.seeds=[2]",
        "tasks.cola.train_rows=1",
    )
    assert done.returncode == 0, done.stderr
    params = read_params(checkout / "params.yaml")
    assert params.profile == "small"
    assert (params.finetune.epochs, params.finetune.seeds, params.tasks["cola"].train_rows) == (
        2,
        (2,),
        1,
    )
    assert params.finetune.beta2 == read_yaml(ROOT / "conf" / "paper.yaml")["finetune"]["beta2"], (
        "small says only what differs"
    )
    assert (list(params.tasks), list(params.sources)) == (["cola"], ["books", "cola"])
    assert (checkout / "data/raw/books/one.txt").read_text() == "A book.\n"
    assert "left out: story_cloze; to have it fill in the form" in done.stdout, (
        "what was left out is listed"
    )


def test_ablations_and_curves_are_those_of_what_is_there(checkout: Path) -> None:
    changes = ("variants.no_aux_lm.finetune.epochs=1", "variants.lstm.tasks={}")
    done = gpt1(checkout, "profile", "small", "--data", "brought", *changes)
    assert done.returncode == 0, done.stderr
    params = read_params(checkout / "params.yaml")
    assert {name: dict(row.tasks) for name, row in params.variants.items()} == {
        "no_pretraining": {"cola": "glue"},
        "embeddings_only": {"cola": "glue"},
        "no_aux_lm": {"cola": "glue"},
        "lstm": {},
        "lstm_equal": {"cola": "glue"},
    }
    assert finetune_recipe(params, "cola", "no_aux_lm").epochs == 1
    assert (list(params.transfer), list(params.zero_shot)) == ([], ["cola"])
    assert "left out: dprd" in done.stdout, "a zero-shot set that is not there is listed"


def test_the_lstm_of_equal_size_is_in_table_5_and_not_in_figure_2() -> None:
    networks = validate(compose("town", ())).networks
    assert networks.pretrain == ("transformer", "lstm", "lstm_equal")
    assert networks.zero_shot == ("transformer", "lstm")
    of_official = compose("official", ())["variants"]
    assert {name for name, row in of_official.items() if not row["tasks"]} == {"lstm", "lstm_equal"}


@pytest.mark.slow
def test_the_same_data_again_without_naming_it(checkout: Path) -> None:
    gpt1(checkout, "profile", "small", "--data", "brought")
    done = gpt1(checkout, "profile", "small", "pretrain.updates=7")
    assert done.returncode == 0, done.stderr
    assert read_params(checkout / "params.yaml").pretrain.updates == 7


@pytest.mark.slow
def test_check_stage_passes_then_names_what_went_missing(checkout: Path) -> None:
    gpt1(checkout, "profile", "small", "--data", "brought")
    check = [sys.executable, "-m", "gpt1.stages", "check"]
    assert subprocess.run(check, cwd=checkout, check=False).returncode == 0
    shutil.rmtree(checkout / "brought" / "CoLA")
    done = subprocess.run(check, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.match("error: .*data/raw/cola", done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["profile", "smal"],
            "error: no profile 'smal'; expected one of demo, evening, official, paper, small",
        ),
        (["profile", "small", "finetune.epoch=2"], "did you mean finetune.epochs?"),
        (
            ["profile", "small", "finetune.epochs"],
            "error: finetune.epochs: expected KEY=VALUE",
        ),
        (
            ["profile", "small", "finetune.epochs=two"],
            "error: params.yaml: finetune.epochs: found 'two', expected a valid integer",
        ),
        (
            ["profile", "small", "+variants.x={network: gru, finetune: {}, tasks: {}}"],
            "error: params.yaml: variants.x.network: found 'gru', expected 'transformer', 'lstm' or 'lstm_equal'",
        ),
        (
            ["profile", "demo", "+variants.x={network: lstm, finetune: {}, tasks: {}}"],
            "error: params.yaml: variants.x: expected the variants of which dvc.yaml has a stage",
        ),
        (
            ["profile", "small", "model.heads=3"],
            "error: params.yaml: model: model.heads 3 must divide model.width 128",
        ),
        (
            ["profile", "small"],
            "error: nothing is in data/raw/books, and small cannot run without it",
        ),
        (["profile", "small", "--data", "nowhere"], "error: --data nowhere is no folder"),
        (
            ["profile", "small", "--data", "conf"],
            "error: --data conf is no folder that holds one of a known name",
        ),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    checkout: Path, arguments: list[str], line: str
) -> None:
    done = gpt1(checkout, *arguments)
    assert done.returncode == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not (checkout / "params.yaml").exists(), (
        "a refused profile must leave params.yaml as it was"
    )


def test_only_some_tasks(checkout: Path) -> None:
    done = gpt1(checkout, "profile", "demo", "--tasks", "race,rte,", "tasks.cola.train_rows=3")
    assert done.returncode == 0, done.stderr
    params = read_params(checkout / "params.yaml")
    assert (list(params.tasks), list(params.transfer), list(params.zero_shot)) == (
        ["rte", "race"],
        ["race"],
        ["race"],
    )
    assert {task for row in params.variants.values() for task in row.tasks} == {"rte"}
    assert (list(params.sources), list(params.world)) == (["books", "rte", "race"], ["town"])
    assert (
        (checkout / "params.yaml")
        .read_text()
        .startswith("# Composed by: gpt1 profile demo tasks.cola.train_rows=3 --tasks race,rte\n")
    )
    assert "left out" not in done.stdout, "what was not asked for is no loss"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "tasks", "line"),
    [
        ("demo", "snil", "error: no task 'snil'; expected some of snli, "),
        ("demo", ",", "error: no task ''; expected some of snli, "),
        (
            "small",
            "cola,rte",
            "error: nothing is in data/raw/rte, and small cannot run without it: ",
        ),
    ],
)
def test_tasks_that_cannot_run_are_one_line(
    checkout: Path, profile: str, tasks: str, line: str
) -> None:
    done = gpt1(checkout, "profile", profile, "--data", "brought", "--tasks", tasks)
    assert (done.returncode, done.stderr.startswith(line), done.stderr.count("\n")) == (
        2,
        True,
        1,
    ), done.stderr
    assert not (checkout / "params.yaml").exists()


def test_make_takes_a_profile_and_never_writes_over_an_edit(checkout: Path) -> None:
    shutil.copy(ROOT / "Makefile", checkout)
    shutil.copy(ROOT / "params.yaml", checkout)
    name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run(["git", *name, *command], cwd=checkout, check=True)
    params = checkout / "params.yaml"

    def make(profile: str) -> subprocess.CompletedProcess[str]:
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
    subprocess.run(["git", "checkout", "-q", "params.yaml"], cwd=checkout, check=True)
    assert "expected one of demo" in make("nosuch").stderr
