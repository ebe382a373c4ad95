"""The whole pipeline through its real command lines: `gpt1 profile`, `dvc repro`, `gpt1 run`, in a
checkout of its own.

The tests share one checkout and go on from one another's state, in the order in which they stand.
"""

import copy
import json
import shutil
import sqlite3
from pathlib import Path

import made_corpus
import numpy as np
import pytest
from copied_checkout import Checkout

from gpt1.params.yaml import parse_yaml

TASKS = {"cola", "scitail", "story_cloze"}
ABLATED = {"lstm@cola", "lstm_equal@cola"}
TABLES, ANALYSES = {"table2", "table3", "table4"}, {"table5", "figure2", "claims", "scores"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Brought(Checkout):
    """A checkout with made-up data beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.brought = folder / "brought"
        made_corpus.write(self.brought)
        shutil.copy(Path(__file__).with_name("noted_params.py"), self.folder)
        with (self.folder / "gpt1/params/schema.py").open("a") as schema:
            schema.write(
                "\nfrom noted_params import noting\n\nread_params = noting(Section, read_params)\n"
            )

    def profile(self, *overrides: str) -> None:
        self.gpt1(
            "profile",
            "small",
            "--data",
            str(self.brought),
            "variants.no_pretraining.tasks={}",
            "variants.no_aux_lm.tasks={}",
            "variants.embeddings_only.tasks={}",
            "transfer={cola: {group: glue, layers: [0]}}",
            *made_corpus.OVERRIDES,
            *overrides,
        )

    def twin(self, name: str = "twin") -> Checkout:
        """A copy of the checkout as it is now, with the same data beside it."""
        made = copy.copy(self)
        made.folder = self.folder.with_name(name)
        shutil.copytree(self.folder, made.folder, symlinks=True)
        return made


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Brought:
    made = Brought(tmp_path_factory.mktemp("pipeline"))
    made.profile()
    return made


def test_from_raw_files_to_tables(checkout: Brought) -> None:
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
        "dev_scores",
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
    assert "(pre-training) transformer 0" in names, f"no pre-training among MLflow's runs {names}"
    assert all(any(task in name for name in names) for task in TASKS), (
        f"a task is missing among MLflow's runs {names}"
    )


def test_a_stage_reads_no_parameter_that_dvc_does_not_watch(checkout: Brought) -> None:
    lock = parse_yaml((checkout.folder / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    unwatched = {}
    for name in lock.keys() - {"check"}:  # which is given the whole file
        words = list((checkout.folder / "reads").glob(f"{name}.json"))
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


def trained(checkout: Checkout) -> dict[str, float]:
    """What a pre-training and a fine-tuning found: held-out loss, every loss and score, logits."""
    data, found = checkout.folder / "data", dict[str, float]()
    for name in (
        "pretrain/transformer/seed-0/curve.jsonl",
        "finetune/glue/cola/seed-0/curve.jsonl",
    ):
        for line in (data / name).read_text().splitlines():
            point = json.loads(line)
            named = {f"{name} {point['update']} {what}": value for what, value in point.items()}
            found |= {key: value for key, value in named.items() if "norm" not in key}
    with np.load(data / "finetune/glue/cola/seed-0/logits.npz") as logits:
        for split in logits.files:
            for place, number in enumerate(logits[split].flatten()):
                found[f"{split} {place}"] = float(number)
    return found


def test_two_processes_of_deepspeed_find_what_one_does(
    checkout: Brought, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dvc repro` of a pre-training and of a fine-tuning again, in a copy of the checkout."""
    monkeypatch.setenv("GPT1_PROCESSES", "2")
    two, stages = checkout.twin("two"), ("pretrain@transformer-0", "finetune@cola")
    ran = two.repro("--force", "--single-item", *stages)
    assert ran == set(stages)
    log = json.loads((two.folder / "data/logs/pretrain/transformer-0-speed.json").read_text())
    assert log["processes"] == 2
    found, expected = trained(two), trained(checkout)
    assert found.keys() == expected.keys()
    assert len([name for name in found if name.endswith((" loss", " dev_score"))]) > 8
    for name, number in expected.items():
        assert found[name] == pytest.approx(number, rel=2e-3, abs=2e-3), name


def test_a_second_run_runs_nothing(checkout: Brought) -> None:
    assert checkout.repro() == set()


def test_an_experiment_on_one_task_has_no_score_of_those_that_it_did_not_train(
    checkout: Brought,
) -> None:
    scores = Path("data/report/dev_scores/scores.json")
    assert json.loads((checkout.folder / scores).read_text()).keys() == TASKS
    twin = checkout.twin("experiment")
    twin.run("git", "add", "-A")
    twin.run("git", "-c", "user.name=n", "-c", "user.email=a@b", "commit", "-qm", "a run")
    rate = "finetune.learning_rate=0.002"
    twin.run("dvc", "exp", "run", "-s", "-S", rate, "finetune@cola", "dev_scores")
    assert json.loads((twin.folder / scores).read_text()).keys() == {"cola"}
    assert "0.002" in twin.run("dvc", "exp", "diff")


@pytest.mark.long
def test_a_changed_task_and_a_changed_variant_run_themselves_and_their_tables(
    checkout: Brought,
) -> None:
    checkout.profile("tasks.story_cloze.finetune.epochs=2", "variants.lstm.finetune.epochs=2")
    assert checkout.repro() == {
        "check",
        "baselines",
        "finetune@story_cloze",
        "lstm@cola",
        "dev_scores",
        *TABLES,
        *ANALYSES,
    }


@pytest.mark.long
def test_a_file_changed_in_place_and_an_edited_reader_run_what_reads_them_side_by_side_with_equal_bytes(
    checkout: Brought,
) -> None:
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
        "dev_scores",
        "curves",
        *TABLES,
        *ANALYSES,
    }
    assert "everything is up to date\n" in twin.gpt1("run", "-j", "2")
    assert twin.hashes() == checkout.hashes()
    assert twin.gpt1("run").startswith("everything is up to date (")


def test_a_mistake_is_the_last_line_before_dvcs_own(checkout: Brought) -> None:
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
