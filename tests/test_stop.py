"""Ctrl-C and termination of a training: prompt, within an update or an evaluation, and the run that
goes on is as if undisturbed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from made_data import write_params, write_shards, write_task
from made_pretraining import BATCH, HELDOUT, UPDATES, Run, made_recipe, outputs
from safetensors.numpy import load_file

from gpt1.train import checkpoint

SETTINGS = {
    "GPT1_DEVICE": "cpu",
    "GPT1_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "GPT1_MLFLOW": "off",
    "GPT1_MICRO_BATCH": "1",
}
PROMPT_SECONDS = 10.0
CURVE, SECOND_SEED = (
    "data/checkpoints/*/curve.jsonl",
    "data/checkpoints/finetune-cola-*/seed-1.jsonl",
)


def lines(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


# One pre-training in this process: real signals at places that are known to the micro-batch


@pytest.fixture(scope="module")
def recipe():
    return made_recipe()


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("undisturbed"), recipe)
    outcome = run.go()
    return outcome.heldout, run.results()


# micro-batches of updates 1 to 3 and of the first held-out evaluation, which follows update 3
THREE, EVALUATED = 3 * BATCH, 3 * BATCH + HELDOUT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask_at", "at"),
    [
        pytest.param(2 * BATCH + 1, 2, id="first micro-batch of an update"),
        pytest.param(2 * BATCH + 3, 2, id="amid an update"),
        pytest.param(THREE + 2, 3, id="amid held-out evaluation"),
        pytest.param(EVALUATED + 2, 3, id="right after held-out evaluation"),
    ],
)
def test_a_stopped_update_or_evaluation_is_dropped_and_made_anew(
    recipe, undisturbed, tmp_path, ask_at, at, capsys
):
    run = Run(tmp_path, recipe)
    run.stopped(
        ask_at,
        f"interrupted at update {at} of {UPDATES}, what came after it is dropped: checkpoint saved;"
        " run the same",
        capsys,
    )
    assert run.checkpoints() == [at]
    weights, snapshot = (
        load_file(tmp_path / path)
        for path in (f"update-{at:08d}/weights.safetensors", f"snapshots/{at:08d}.safetensors")
    )
    for name in snapshot:
        assert np.array_equal(weights[f"decoder.{name}"], snapshot[name]), (
            "the checkpoint is not that of the last whole update"
        )
    assert run.go().heldout == undisturbed[0]
    assert run.results() == undisturbed[1]


def test_stopped_again_and_again_and_at_last_in_the_last_evaluation(
    recipe, undisturbed, tmp_path, capsys
):
    run = Run(tmp_path, recipe)
    run.stopped(THREE + 2, "at update 3", capsys)
    run.stopped(2, "at update 3", capsys)  # again in the evaluation
    assert run.checkpoints() == [3]
    run.stopped(
        2 * HELDOUT + 4 * BATCH - 1, "at update 6", capsys
    )  # the evaluations of updates 3 and 6 before it
    run.stopped(HELDOUT + 2, "at update 6", capsys)
    run.stopped(2 * HELDOUT + 6 * BATCH + 3, f"at update {UPDATES} of {UPDATES}", capsys)
    assert run.go().heldout == undisturbed[0]
    assert run.calls == HELDOUT, "only the last evaluation was left to do"
    assert run.results() == undisturbed[1]


def test_before_the_first_update_is_whole_there_is_nothing_to_save(
    recipe, undisturbed, tmp_path, capsys
):
    run = Run(tmp_path, recipe)
    run.stopped(
        2,
        f"interrupted at update 0 of {UPDATES}, what came after it is dropped: nothing to save yet;"
        " run the same command again",
        capsys,
    )
    assert run.checkpoints() == []
    run.go()
    assert run.results() == undisturbed[1]


def test_a_termination_ends_alike_with_its_own_status(recipe, tmp_path, capsys):
    run = Run(tmp_path, recipe)
    run.stopped(2 * BATCH + 3, f"^interrupted at update 2 of {UPDATES}, ", capsys, signal.SIGTERM)
    assert run.checkpoints() == [2]


def test_a_checkpoint_that_is_there_is_not_written_again(
    recipe, undisturbed, tmp_path, monkeypatch, capsys
):
    run, saved, write = Run(tmp_path, recipe), [], checkpoint.write_checkpoint
    monkeypatch.setattr(
        checkpoint,
        "write_checkpoint",
        lambda folder, position, *rest: (
            saved.append(position.update),
            write(folder, position, *rest),
        ),
    )
    run.stopped(EVALUATED + BATCH + 2, "at update 4 of .*: checkpoint saved", capsys)
    run.stopped(3, "at update 4 of .*: checkpoint saved", capsys)
    assert saved == [4]
    run.go()
    assert run.results() == undisturbed[1]


@pytest.mark.parametrize("place", ["save_file", "write_json"])
def test_a_signal_amid_a_checkpoint_lets_it_be_written_whole(
    recipe, undisturbed, tmp_path, monkeypatch, place, capsys
):
    run, write, asked = (
        Run(tmp_path, recipe.model_copy(update={"checkpoint_minutes": 0.0})),
        getattr(checkpoint, place),
        threading.Event(),
    )

    def ask_and_write(*parts):
        os.kill(os.getpid(), signal.SIGINT)
        asked.set()
        write(*parts)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, place, ask_and_write)
        with pytest.raises(SystemExit, match="130"):
            run.go()
    assert "checkpoint saved" in capsys.readouterr().err
    assert asked.is_set()
    assert 1 in run.checkpoints(), "the checkpoint in progress was not written to its end"
    run.go()
    assert run.results() == undisturbed[1]


# The stages as commands


def command(stage, *names, **settings):
    environment = os.environ | SETTINGS | {"PYTHONPATH": str(Path(__file__).parents[1])} | settings
    return subprocess.Popen(
        [sys.executable, "-m", "gpt1.stages", stage, *names],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def run(stage, *names, **settings):
    process = command(stage, *names, **settings)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 0, said


def ended(process, there, wait, number=signal.SIGINT):
    """Signal a stage `wait` seconds after `there()` holds; its status, what it said and how many
    seconds it took to end.
    """
    deadline = time.monotonic() + 100
    while not there():
        assert process.poll() is None, f"the stage ended before the signal: {process.communicate()}"
        assert time.monotonic() < deadline, (
            "the stage did not come to where it was to be interrupted"
        )
        time.sleep(0.01)
    time.sleep(wait)
    parts = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    asked = time.monotonic()
    _, said = process.communicate(timeout=100)
    assert not [part for part in parts if part.is_running()], (
        "a process of the stage is still there"
    )
    return process.returncode, said, time.monotonic() - asked


def glob(pattern):
    return lambda: list(Path().glob(pattern))


def repeat_rows(path, times):
    """Make a split of single sequences longer."""
    with np.load(path) as split:
        lengths, tokens, labels = (
            np.tile(values, times)
            for values in (np.diff(split["offsets"]), split["tokens"], split["labels"])
        )
    np.savez(
        path,
        tokens=tokens,
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=labels,
    )


def on_curve(update, name):
    return lambda: any(
        point["update"] == update and name in point
        for path in glob(CURVE)()
        for point in lines(path)
    )


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").symlink_to(Path(__file__).parents[1] / "conf")
    return tmp_path


@pytest.mark.slow
def test_a_first_update_that_would_take_minutes_is_left_within_seconds(workplace):
    write_shards(Path("data/shard"), book_tokens=400_000)
    write_params(workplace, pretrain__batch_size=40_000)
    status, said, seconds = ended(command("pretrain", "transformer", "0"), glob(CURVE), 2.0)
    assert (status, seconds < PROMPT_SECONDS) == (130, True), f"it took {seconds} s to end: {said}"
    assert set(said.splitlines()) == {
        "interrupted at update 0 of 4, what came after it is dropped: nothing to save yet; "
        "run the same command again to go on"
    }
    assert not glob("data/checkpoints/*/update-*")()


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_stopped_amid_an_evaluation_go_on_as_if_undisturbed(workplace):
    write_shards(Path("data/shard"), book_tokens=20_000)
    write_params(
        workplace, pretrain__batch_size=100, pretrain__heldout_windows=401
    )  # an odd number: one process has more than the other
    run("pretrain", "transformer", "0", GPT1_PROCESSES="2")
    expected = outputs("data/pretrain")
    returned, said, seconds = ended(
        command("pretrain", "transformer", "0", GPT1_PROCESSES="2"),
        on_curve(4, "loss"),
        0.05,
        signal.SIGTERM,
    )
    assert (returned, seconds < PROMPT_SECONDS) == (143, True), said
    told = {
        line
        for line in said.splitlines()
        if not line.startswith("pretrain transformer/seed-0: update")
    }
    assert told == {
        "interrupted at update 4 of 4, what came after it is dropped: checkpoint saved; run the"
        " same command again to go on"
    }
    run("pretrain", "transformer", "0", GPT1_PROCESSES="2")
    assert outputs("data/pretrain") == expected


@pytest.mark.slow
@pytest.mark.long
def test_a_finetuning_drops_the_seed_that_it_is_in_at_once(workplace):
    write_shards(Path("data/shard"))
    write_task("cola", train=200)
    repeat_rows(Path("data/encode/glue/cola/dev.npz"), 61)
    write_params(
        workplace, finetune__batch_size=100, finetune__evaluation_updates=[1], finetune__epochs=1
    )
    run("pretrain", "transformer", "0")
    run("finetune", "cola")
    expected = outputs("data/finetune")
    returned, said, seconds = ended(
        command("finetune", "cola"), lambda: any(map(lines, glob(SECOND_SEED)())), 0.05
    )
    assert (returned, seconds < PROMPT_SECONDS) == (130, True), said
    assert (
        said.splitlines()[-1]
        == "interrupted at update 1 of 2 of finetune cola/seed-1: finished seeds are kept; "
        "run the same command again to go on (this seed starts anew)"
    )
    points = lines(glob(SECOND_SEED)()[0])
    assert len(points) == 1, f"the evaluation that was in progress went on to its end: {points}"
    run("finetune", "cola")
    assert outputs("data/finetune") == expected
