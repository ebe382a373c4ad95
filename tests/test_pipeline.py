"""The whole pipeline through its real command lines: `gpt1 profile`, `dvc repro`, `gpt1 run`, in a
checkout of its own.

The tests share one checkout and go on from one another's state, in the order in which they stand.
"""

import copy
import shutil
import sqlite3

import made_corpus
import pytest
from copied_checkout import Checkout

TASKS = {"cola", "scitail", "story_cloze"}
ABLATED = {"lstm@cola", "lstm_equal@cola"}
TABLES, ANALYSES = {"table2", "table3", "table4"}, {"table5", "figure2", "claims"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Brought(Checkout):
    """A checkout with made-up data beside it."""

    def __init__(self, folder):
        super().__init__(folder)
        self.brought = folder / "brought"
        made_corpus.write(self.brought)

    def profile(self, *overrides):
        self.gpt1(
            "profile",
            "small",
            "--data",
            str(self.brought),
            "ablations.no_pretraining.tasks={}",
            "ablations.no_aux_lm.tasks={}",
            "ablations.embeddings_only.tasks={}",
            "transfer={cola: {group: glue, layers: [0]}}",
            *made_corpus.OVERRIDES,
            *overrides,
        )

    def twin(self, name="twin"):
        """A copy of the checkout as it is now, with the same data beside it."""
        made = copy.copy(self)
        made.folder = self.folder.with_name(name)
        shutil.copytree(self.folder, made.folder, symlinks=True)
        return made


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    made = Brought(tmp_path_factory.mktemp("pipeline"))
    made.profile()
    return made


@pytest.mark.long
def test_from_raw_files_to_tables(checkout):
    ran = checkout.repro()
    expected = {
        "check",
        "acquire@books",
        "clean",
        "baselines",
        "bpe",
        "shard",
        "prompt@cola",
        *TABLES,
        *ANALYSES,
        "curves",
        "generate",
        *ABLATED,
        "transfer@cola",
        "pretrain@lstm_equal-0",
    }
    expected |= {
        f"{stage}@{network}-0"
        for stage in ("pretrain", "zero_shot")
        for network in ("transformer", "lstm")
    }
    assert ran == expected | {
        f"{stage}@{task}" for stage in ("acquire", "encode", "finetune") for task in TASKS
    }
    for table, titles in (
        ("table2", ["SciTail", "Finetuned Transformer LM", "82.1"]),
        ("table3", ["Story Cloze", "86.5"]),
        ("table4", ["CoLA", "45.4"]),
    ):
        text = (checkout.folder / "data/report" / table / f"{table}.md").read_text()
        assert all(title in text for title in [*titles, "Not run"]), text
    checkout.gpt1("sync")
    assert "MLflow is up to date" in checkout.gpt1("sync")
    with sqlite3.connect(checkout.folder / "mlflow.db") as database:
        names = {name for (name,) in database.execute("SELECT name FROM runs")}
    assert "(pre-training) transformer seed 0" in names, (
        f"no pre-training among MLflow's runs {names}"
    )
    assert all(any(task in name for name in names) for task in TASKS), (
        f"a task is missing among MLflow's runs {names}"
    )


@pytest.mark.long
def test_a_second_run_runs_nothing(checkout):
    assert checkout.repro() == set()


@pytest.mark.long
def test_a_changed_task_and_a_changed_ablation_run_themselves_and_their_tables(checkout):
    checkout.profile("tasks.story_cloze.finetune.epochs=2", "ablations.lstm.finetune.epochs=2")
    assert checkout.repro() == {
        "check",
        "baselines",
        "finetune@story_cloze",
        "lstm@cola",
        *TABLES,
        *ANALYSES,
    }


@pytest.mark.long
def test_a_file_changed_in_place_and_an_edited_reader_run_what_reads_them_side_by_side_with_equal_bytes(
    checkout,
):
    with (checkout.brought / "CoLA" / "train.tsv").open("a") as file:
        file.write("aa01\t1\t\tOne more sentence.\n" * 4)
    with (checkout.folder / "gpt1/tasks/readers.py").open("a") as file:
        file.write("# edited\n")
    twin = checkout.twin()
    assert checkout.repro() == {
        "acquire@books",
        *(f"{stage}@{task}" for stage in ("acquire", "encode") for task in TASKS),
        "baselines",
        "prompt@cola",
        "finetune@cola",
        *ABLATED,
        "transfer@cola",
        "zero_shot@transformer-0",
        "zero_shot@lstm-0",
        "curves",
        *TABLES,
        *ANALYSES,
    }
    assert "everything is up to date\n" in twin.gpt1("run", "-j", "2")
    assert twin.hashes() == checkout.hashes()
    assert twin.gpt1("run").startswith("everything is up to date (")


def test_a_mistake_is_the_last_line_before_dvcs_own(checkout):
    params = checkout.folder / "params.yaml"
    good = params.read_text()
    params.write_text(good.replace("lambda_lm:", "lamda_lm:"))
    lines = checkout.run("dvc", "repro", "check", status=255).splitlines()
    params.write_text(good)
    error = next(number for number, line in enumerate(lines) if line.startswith("error:"))
    assert (
        lines[error]
        == "error: params.yaml: unknown key finetune.lamda_lm (found 0.5); did you mean"
        " finetune.lambda_lm?"
    )
    assert lines[error + 1].startswith("ERROR: failed to reproduce 'check'")
    assert "Traceback" not in "\n".join(lines)
