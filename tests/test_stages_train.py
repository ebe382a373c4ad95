"""The stages pretrain and finetune, run as commands on tiny made data in the formats of the stages
before them.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path

import numpy as np
import psutil
import pytest
from made_data import (
    CONTEXT,
    GROUPS,
    SETTINGS,
    VOCABULARY,
    WORDS,
    json_lines,
    outputs,
    write_params,
    write_shards,
    write_task,
)
from safetensors.numpy import load_file

from gpt1.tasks.definitions import TASKS
from gpt1.train.engine import DEEPSPEED
from gpt1.train.outputs import Curve

pytestmark = pytest.mark.slow

ROOT, CLIPPED = Path(__file__).parents[1], 0.42
ALIVE = """
import atexit, gc, os
def note():
    gc.collect()
    kinds = [type(one).__name__ for one in gc.get_objects()]
    open(f"alive-{os.environ.get('RANK')}", "w").write(str(kinds.count("Classifier")))
if "RANK" in os.environ:
    atexit.register(note)
"""


def command(stage, *names, **settings):
    environment = os.environ | SETTINGS | {"PYTHONPATH": str(ROOT)} | settings
    return subprocess.Popen(
        [sys.executable, "-m", "gpt1.stages", stage, *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def run(stage, *names, status=0, **settings):
    """Run a stage to its end in the current directory; returns what it said on stderr."""
    process = command(stage, *names, **settings)
    _, said = process.communicate(timeout=200)
    assert process.returncode == status, said
    return said


@pytest.fixture
def refused(run_here, capsys):
    """The one line with which a stage refuses bad input."""

    def said(stage, *names):
        with pytest.raises(SystemExit) as ended:
            run_here(stage, *names)
        error = capsys.readouterr().err
        assert (ended.value.code, error.count("\n"), error.startswith("error: ")) == (2, 1, True), (
            error
        )
        return error

    return said


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A folder with a finished pre-training in it."""
    folder = tmp_path_factory.mktemp("pretrained")
    with chdir(folder):
        write_params(folder)
        write_shards(Path("data/shard"))
        run("pretrain", "transformer", "0")
    return folder


@pytest.fixture
def workplace(elsewhere):
    write_params(elsewhere)
    Path("conf").symlink_to(ROOT / "conf")
    return elsewhere


@pytest.fixture
def with_weights(workplace, pretrained):
    target = Path("data/pretrain/transformer/seed-0")
    target.mkdir(parents=True)
    shutil.copy(pretrained / target / "weights.safetensors", target)
    return workplace


def test_pretraining_writes_what_the_next_stages_read(pretrained):
    out = pretrained / "data/pretrain/transformer/seed-0"
    snapshots = [f"snapshots/{update:08d}.safetensors" for update in (1, 2, 4)]
    assert list(outputs(out)) == ["curve.jsonl", *snapshots, "summary.json", "weights.safetensors"]
    weights, last = load_file(out / "weights.safetensors"), load_file(out / snapshots[-1])
    assert all(np.array_equal(weights[name], last[name]) for name in weights)
    points = json_lines(out / "curve.jsonl")
    training = [point for point in points if "loss" in point]
    heldout = [point for point in points if "heldout_loss" in point]
    assert [(point["update"], point["tokens"]) for point in training] == [
        (update, update * 4 * CONTEXT) for update in (1, 2, 3, 4)
    ]
    assert training[0].keys() == {"update", "tokens", "loss", "learning_rate", "gradient_norm"}
    assert [point["update"] for point in heldout] == [2, 4]
    summary, loss = json.loads((out / "summary.json").read_text()), heldout[-1]["heldout_loss"]
    assert (summary["updates"], summary["tokens"]) == (4, 4 * 4 * CONTEXT)
    assert summary["parameters"]["token_embeddings"] == VOCABULARY * 16
    assert summary["heldout_perplexity"] == pytest.approx(np.exp(loss))
    assert summary["heldout_word_perplexity"] == pytest.approx(np.exp(loss / WORDS))
    assert not list((pretrained / "data/checkpoints").glob("*/")), "they go away on success"


def interrupt(process, pattern, number=signal.SIGINT, wait=0.0, points=0, within=10.0):
    """Signal a stage `wait` seconds after a file of the pattern is there, of so many lines; its
    status and stderr. It is to end within so many seconds, with all of its processes.
    """
    deadline = time.monotonic() + 100
    while not any(
        not points or path.read_text().count("\n") >= points for path in Path().glob(pattern)
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(wait)
    parts = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, said = process.communicate(timeout=within)
    assert not psutil.wait_procs(parts, timeout=within)[1]
    return process.returncode, said


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],  # fine-tuning has SIGINT below
)
def test_an_interrupted_pretraining_goes_on_as_if_undisturbed(workplace, run_here, number, status):
    write_shards(Path("data/shard"))
    often = {"pretrain__checkpoint_minutes": 1e-4, "pretrain__heldout_updates": 40}
    write_params(workplace, pretrain__updates=150, **often)
    run_here("pretrain", "transformer", "0")
    expected = outputs(Path("data/pretrain"))
    process, folder = command("pretrain", "transformer", "0"), "data/checkpoints/pretrain-*"
    returned, said = interrupt(process, f"{folder}/update-0000001*", number)
    assert returned == status
    if number != signal.SIGKILL:
        assert said.count("\n") == 1
        assert "interrupted at update" in said
        assert "checkpoint saved; run the same command again to go on" in said
    assert list(Path().glob(f"{folder}/update-*"))
    run_here("pretrain", "transformer", "0")
    assert outputs(Path("data/pretrain")) == expected


def test_a_first_update_that_would_take_minutes_is_left_within_seconds(workplace):
    write_shards(Path("data/shard"), book_tokens=400_000)
    write_params(workplace, pretrain__batch_size=40_000)
    process = command("pretrain", "transformer", "0", GPT1_MICRO_BATCH="1")
    status, said = interrupt(process, "data/checkpoints/*/curve.jsonl", wait=2.0)
    assert status == 130
    assert said == (
        "interrupted at update 0 of 4, what came after it is dropped: nothing to save yet; "
        "run the same command again to go on\n"
    )
    assert not list(Path().glob("data/checkpoints/*/update-*"))


@pytest.mark.parametrize("stage", [pytest.param(0, marks=pytest.mark.long), 1])
def test_one_process_and_two_of_deepspeed_go_on_from_one_another(
    workplace, run_here, monkeypatch, stage
):
    """With ZeRO or without, when the one process is ended, then the launcher of the two killed."""
    config = json.loads(DEEPSPEED.read_text()) | {"zero_optimization": {"stage": stage}}
    Path("conf").unlink()
    DEEPSPEED.parent.mkdir()
    DEEPSPEED.write_text(json.dumps(config))
    write_shards(Path("data/shard"), book_tokens=2000)
    exact = {"dropout": 0.0, "precision": "fp32", "max_gradient_norm": CLIPPED}
    changes = exact | {"updates": 20, "batch_size": 64}
    write_params(workplace, **{f"pretrain__{key}": value for key, value in changes.items()})
    run_here("pretrain", "transformer", "0")
    alone = json_lines("data/pretrain/transformer/seed-0/curve.jsonl")
    norms = [point["gradient_norm"] for point in alone if "loss" in point]
    assert min(norms) < CLIPPED < max(norms), "of the gradients some are clipped"
    add = Curve.add

    def ended(curve, point):
        add(curve, point)
        if point["update"] == 4:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Curve, "add", ended)
    with pytest.raises(SystemExit, match="143"):
        run_here("pretrain", "transformer", "0")
    slowly = {"GPT1_PROCESSES": "2", "GPT1_MICRO_BATCH": "1"}
    process = command("pretrain", "transformer", "0", **slowly)
    interrupt(process, "data/checkpoints/*/curve.jsonl", signal.SIGKILL, points=12, within=60.0)
    assert len(list(Path().glob("data/checkpoints/*/update-*"))) == 2, "one of each"
    run_here("pretrain", "transformer", "0")
    together = json_lines("data/pretrain/transformer/seed-0/curve.jsonl")
    for one, other in zip(alone, together, strict=True):
        assert other == pytest.approx(one, rel=1e-5)


def test_two_processes_fine_tune_as_one_does_and_a_seed_leaves_memory_to_the_next(
    with_weights, run_here
):
    write_task("mrpc")
    exact = {"dropout": 0.0, "classifier_dropout": 0.0, "precision": "fp32", "seeds": [0, 1, 2]}
    write_params(with_weights, **{f"finetune__{key}": value for key, value in exact.items()})
    Path("sitecustomize.py").write_text(ALIVE)
    run_here("finetune", "mrpc")
    alone = dict(np.load("data/finetune/glue/mrpc/seed-1/logits.npz"))
    said = run("finetune", "mrpc", GPT1_PROCESSES="2", PYTHONPATH=f"{ROOT}:{Path.cwd()}")
    assert said == "", "nothing is said that nobody asked for"
    together = np.load("data/finetune/glue/mrpc/seed-1/logits.npz")
    for name, one in alone.items():
        np.testing.assert_allclose(together[name], one, rtol=0, atol=1e-4)
    assert {path.read_text() for path in Path().glob("alive-*")} == {"0"}


def test_an_error_of_one_process_ends_all_with_one_line(workplace):
    write_shards(Path("data/shard"))
    said = run("pretrain", "transformer", "0", status=2, GPT1_PROCESSES="3")
    assert (
        said == "error: expected a number of processes that divides the batch of 4, found 3; "
        "set GPT1_PROCESSES to a divisor of batch_size\n"
    )


def test_a_pretraining_of_not_one_update_is_refused(workplace, refused):
    write_shards(Path("data/shard"))
    write_params(workplace, pretrain__updates=None, pretrain__epochs=1e-3)
    assert "make not one update" in refused("pretrain", "transformer", "0")


@pytest.mark.parametrize("task", GROUPS)
def test_finetuning_writes_what_the_report_reads(with_weights, run_here, task):
    group, classes = GROUPS[task], TASKS[task].outputs
    write_task(task)
    write_params(with_weights, finetune__evaluation_updates=[3], finetune__seeds=[5])
    run_here("finetune", task)
    out = Path("data/finetune", group, task)
    names = ("curve.jsonl", "logits.npz", "recipe.json", "summary.json", "weights.safetensors")
    assert list(outputs(out)) == [f"seed-5/{name}" for name in names]
    best_score = json.loads((out / "seed-5/summary.json").read_text())["best_dev_score"]
    assert json.loads(out.with_suffix(".json").read_text()) == {task: round(100 * best_score, 2)}
    with np.load(out / "seed-5/logits.npz", allow_pickle=False) as logits:
        shapes = {name: (logits[name].shape, logits[name].dtype) for name in logits.files}
    assert shapes == {
        f"{split}/{which}": ((count, classes), np.float32)
        for split, count in (("dev", 7), ("test", 5))
        for which in ("best", "last")
    }
    points = json_lines(out / "seed-5/curve.jsonl")
    training = [point for point in points if "loss" in point]
    evaluations = [point for point in points if "dev_score" in point]
    assert [point["update"] for point in training] == list(range(1, 9)), "floor(18 / 4) * 2 epochs"
    assert training[-1]["learning_rate"] == 0
    tokens = [point["tokens"] for point in training]
    assert tokens == sorted(set(tokens)), "ever more"
    for point in training:
        assert point["loss"] == pytest.approx(point["task_loss"] + 0.5 * point["lm_loss"])
    places = [(point["update"], point["epoch"]) for point in evaluations]
    assert places == [(3, 0.75), (4, 1), (8, 2)]
    best = max(evaluations, key=lambda point: point["dev_score"])
    chosen = {"best_update": best["update"], "best_dev_score": best["dev_score"], "updates": 8}
    assert json.loads((out / "seed-5/summary.json").read_text()) == chosen


def test_what_gives_the_label_away_is_learned(with_weights, run_here):
    write_task("cola", train=80)
    write_params(with_weights, finetune__epochs=15, finetune__seeds=[0], finetune__lambda_lm=0.0)
    run_here("finetune", "cola")
    summary = Path("data/finetune/glue/cola/seed-0/summary.json").read_text()
    assert json.loads(summary)["best_dev_score"] == 1.0


def test_an_interrupted_finetuning_repeats_only_the_seed_it_was_in(with_weights, run_here):
    write_task("cola", train=80)
    write_params(with_weights, finetune__epochs=6)
    run_here("finetune", "cola")
    expected = outputs(Path("data/finetune"))
    seeds = [expected[f"glue/cola/seed-{seed}/weights.safetensors"] for seed in (0, 1)]
    assert seeds[0] != seeds[1]
    process = command("finetune", "cola")
    returned, said = interrupt(process, "data/checkpoints/*/seed-1.jsonl")
    assert returned == 130
    *progress, said = said.splitlines()  # a busy machine takes more than ten seconds
    assert all("tokens/s" in line for line in progress)
    assert "of finetune cola/seed-1: finished seeds are kept; run the same command again" in said
    kept = next(Path().glob("data/checkpoints/*/seed-0/weights.safetensors"))
    inode, written = kept.stat().st_ino, kept.stat().st_mtime_ns
    run_here("finetune", "cola")
    again = Path("data/finetune/glue/cola/seed-0/weights.safetensors").stat()
    assert (again.st_ino, again.st_mtime_ns) == (inode, written), "seed 0 was not run again"
    assert outputs(Path("data/finetune")) == expected


def test_finetuning_refuses(with_weights, refused):
    assert (
        "expected one of the rows tasks of params.yaml, which gpt1 profile writes: snli, "
        in refused("finetune", "imdb")
    )
    line = refused("finetune", "mrpc")
    assert "data/encode/glue/mrpc/task.json: expected JSON, found none" in line
    assert "; run dvc repro" in line
    write_task("mrpc", fingerprint="e" * 16)
    assert f"expected vocabulary_fingerprint {'e' * 16}, found {'f' * 16}" in refused(
        "finetune", "mrpc"
    )
    write_task("cola", train=3)
    few = "expected at least one batch of 4 training rows, found 3 rows; lower finetune.batch_size"
    assert few in refused("finetune", "cola")
    write_params(with_weights, model__context=8)
    assert "expected sequences of at most 8 tokens" in refused("finetune", "mrpc")


def test_each_pretraining_seed_is_as_if_alone_and_finetuning_starts_from_its_own(
    workplace, pretrained, run_here
):
    write_shards(Path("data/shard"))
    write_task("mrpc")
    write_params(workplace, pretrain__seeds=[0, 1], finetune__seeds=[1])
    for seed in ("0", "1"):
        run_here("pretrain", "transformer", seed)
    zero, one = (outputs(f"data/pretrain/transformer/seed-{seed}") for seed in (0, 1))
    alone = outputs(pretrained / "data/pretrain/transformer/seed-0")
    assert zero == alone, "seed 0 is what it is without another"
    assert zero["weights.safetensors"] != one["weights.safetensors"]
    assert not list(Path("data/checkpoints").glob("*/")), "what was kept goes away at the end"
    logs = {path.name for path in Path("data/logs/pretrain/transformer").glob("*.run.json")}
    assert logs == {"seed-0.run.json", "seed-1.run.json"}

    logits = Path("data/finetune/glue/mrpc/seed-1/logits.npz")
    run_here("finetune", "mrpc")
    from_one = logits.read_bytes()
    write_params(workplace, pretrain__seeds=[1], finetune__seeds=[1])
    run_here("finetune", "mrpc")
    assert logits.read_bytes() == from_one, "the only pre-training is that of seed 1"
    write_params(workplace, pretrain__seeds=[0], finetune__seeds=[1])
    Path("data/pretrain/transformer/seed-1/weights.safetensors").unlink()
    run_here("finetune", "mrpc")
    assert logits.read_bytes() != from_one, "from seed 0, the only one, other logits"
