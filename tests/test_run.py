"""`gpt1 run` over real DVC repositories of tiny stages: order, lanes, threads, failures, Ctrl-C, a
run that was killed.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from made_graph import GRAPH, Repository

from gpt1.pipeline.job import log_of, out_of_memory_kills, outcome
from gpt1.pipeline.run import NEXT
from gpt1.pipeline.schedule import Stage


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path.resolve())
    yield made
    assert made.processes() == [], "processes were left behind"


@pytest.mark.slow
def test_order_lanes_threads_and_what_is_up_to_date(repository: Repository) -> None:
    output, errors = repository.run("-j", "2")
    journal = repository.journal()
    assert list(journal)[:3] == ["first", "quiet", "pretrain"]
    assert set(journal) == {"first", "quiet", "pretrain", "finetune@cola", "finetune@rte", "table"}
    for before, after in (
        ("first", "quiet"),
        ("quiet", "pretrain"),
        ("pretrain", "finetune@cola"),
        ("finetune@rte", "table"),
    ):
        assert journal[before][1] < journal[after][0]
    cores = len(os.sched_getaffinity(0))
    assert {
        name: facts[2] for name, facts in journal.items() if name.startswith(("pre", "fine"))
    } == {
        "pretrain": str(cores),
        "finetune@cola": str(max(1, cores // 2)),
        "finetune@rte": str(max(1, cores // 2)),
    }
    assert {facts[3] for facts in journal.values()} == {sys.executable}
    assert re.fullmatch(rf"6 stages run in \d+ s\n{re.escape(NEXT)}\n", output)
    lines = [
        re.fullmatch(r"(\S+): \d+ s \((\d) of 6(?:, about [\d ]+(?:s|min) left)?\)", line)
        for line in errors.splitlines()
    ]
    ended = sorted(journal, key=lambda name: journal[name][1])
    assert sorted(
        (line[1], line[2]) for line in lines if line if not line[1].startswith("finetune")
    ) == sorted(
        (name, number)
        for name, number in zip(ended, "123456", strict=True)
        if not name.startswith("finetune")
    )
    assert [line[2] for line in lines if line] == list("123456")
    assert "at work on table" in (repository.folder / "data/logs/run/table.log").read_text()

    began = time.monotonic()
    assert repository.run() == (f"everything is up to date\n{NEXT}\n", "")
    assert time.monotonic() - began < 10
    assert repository.journal() == {}

    (repository.folder / "word").write_text("two")
    repository.run()
    assert set(repository.journal()) == {
        "first",
        "quiet",
    }, "what quiet writes is what it wrote before: nothing after it is tried"
    assert not (repository.folder / "data/logs/run/pretrain.log").read_text().count("didn't change")


@pytest.mark.slow
def test_lanes_overlap_and_targets_are_stages_or_groups(repository: Repository) -> None:
    (repository.folder / "await-finetune@cola").write_text("pid-finetune@rte")
    (repository.folder / "await-finetune@rte").write_text("pid-finetune@cola")
    repository.run("finetune", "-j", "2", GPT1_THREADS="3")
    journal = repository.journal()
    assert set(journal) == {"first", "quiet", "pretrain", "finetune@cola", "finetune@rte"}
    assert {facts[2] for facts in journal.values()} == {"3"}
    (repository.folder / "out/finetune/cola").unlink()
    (repository.folder / "gpt1/model/code").write_text("edited")
    repository.run("finetune@cola")
    assert set(repository.journal()) == {"pretrain"} | {"finetune@cola"}


@pytest.mark.slow
def test_what_does_not_need_a_failed_stage_goes_on(repository: Repository) -> None:
    (repository.folder / "fail-finetune@cola").touch()
    output, errors = repository.run("-j", "1", status=2)
    assert "finetune@cola: failed, see data/logs/run/finetune@cola.log (3 of 4" in errors
    assert errors.splitlines()[-2:] == [
        "error: finetune@cola: made to fail (log: data/logs/run/finetune@cola.log)",
        "error: 1 stage failed; not run, because they need what failed: table",
    ]
    assert "Traceback" not in errors + output
    assert set(repository.journal()) == {"first", "quiet", "pretrain", "finetune@rte"}
    (repository.folder / "fail-finetune@rte").touch()
    (repository.folder / "gpt1/model/code").write_text("edited")
    _, errors = repository.run(status=2)
    assert sorted(errors.splitlines()[-3:-1]) == [
        f"error: finetune@{task}: made to fail (log: data/logs/run/finetune@{task}.log)"
        for task in ("cola", "rte")
    ]
    assert errors.splitlines()[-1].startswith("error: 2 stages failed; ")
    (repository.folder / "fail-finetune@cola").unlink()
    (repository.folder / "fail-finetune@rte").unlink()
    repository.run("-j", "2")
    assert set(repository.journal()) >= {"finetune@cola", "finetune@rte", "table"}


@pytest.mark.slow
def test_where_the_disk_is_full_nothing_more_is_started(repository: Repository) -> None:
    (repository.folder / "fail-finetune@cola").write_text(
        "error: out cannot be written (No space left on device): make room"
    )
    _, errors = repository.run("-j", "1", status=2)
    assert errors.splitlines()[-1] == (
        "error: 1 stage failed; others would fail likewise, so nothing more was started:"
        " finetune@rte, table"
    )
    assert set(repository.journal()) == {"first", "quiet", "pretrain"}


@pytest.mark.slow
def test_in_a_file_what_is_at_work_is_told_at_times(repository: Repository) -> None:
    (repository.folder / "await-quiet").write_text("go")
    process = repository.start(
        "quiet",
        before="import gpt1.pipeline.run as run\n"
        "run.NEWS_SECONDS, run.QUIET_SECONDS = 0.2, 0.5",  # 15 and 60 elsewhere
    )
    assert process.stderr is not None
    told = next(
        line for line in process.stderr if line.startswith("at work: quiet (update 1,200 of 9,000)")
    )
    assert re.search(r" \(1 of 2(, about \d+ s left)?\)$", told), told
    (repository.folder / "go").touch()
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("said", "status", "of_machine"),
    [
        ("ERROR: failed to reproduce 'a': failed to run: exit 3, exited with 3", 255, False),
        ("ERROR: failed to reproduce 'a': [Errno 2] No such file or directory: '/dep'", 255, False),
        ("it was killed", -9, False),
        ("'./dvc.lock' is invalid.\n\nDid not find expected node content, in line 2", 255, True),
        ("ERROR: configuration error - config file error: Invalid line ('[core')", 1, True),
        (
            "ERROR: failed to reproduce 'a': Unable to read RWLock-file '.dvc/tmp/rwlock'. JSON",
            255,
            True,
        ),
        ("ERROR: unexpected error - [Errno 28] No space left on device", 255, True),
    ],
)
def test_whether_other_stages_would_fail_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, status: int, of_machine: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    log_of("a").parent.mkdir(parents=True)
    log_of("a").write_text(f"{said}\n")
    kills = out_of_memory_kills()
    assert outcome(Stage("a", frozenset()), status, kills, False).of_machine == of_machine


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_run_ends_its_stages_and_goes_on(
    repository: Repository, number: signal.Signals
) -> None:
    (repository.folder / "await-quiet").write_text("never")
    process = repository.start()
    repository.wait_for("pid-quiet")
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    said = errors.splitlines()
    assert [re.sub(r"\d+ s", "N s", said[0]), *said[1:]] == [
        "first: N s (1 of 6)",
        "ending: quiet stops, and what is finished is kept (Ctrl-C again ends at once)",
        "interrupted: nothing finished was lost; run the same command again to go on",
    ]
    assert (repository.folder / "checkpoint-quiet").exists(), (
        "the stage was not asked to end by itself"
    )
    last = (repository.folder / "data/logs/run/quiet.log").read_text().splitlines()[-1]
    assert re.search("exited with (130|-2)$", last), (
        f"DVC was disturbed, which can spoil dvc.lock: {last}"
    )  # -2: a shell in between
    assert repository.processes() == []
    (repository.folder / "await-quiet").unlink()
    repository.run("quiet")
    assert set(repository.journal()) == {"first", "quiet"}


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_behind_and_the_next_goes_on(repository: Repository) -> None:
    (repository.folder / "await-quiet").write_text("never")
    process = repository.start()
    repository.wait_for("pid-quiet")
    process.kill()
    process.communicate()
    (repository.folder / "await-quiet").unlink()
    _, errors = repository.run("quiet")  # waits until what the killed run left has ended
    assert (repository.folder / "checkpoint-quiet").exists()
    assert set(repository.journal()) == {"first", "quiet"}
    assert "error" not in errors.lower()


@pytest.mark.slow
def test_where_dvc_alone_is_killed_its_stage_ends_too(repository: Repository) -> None:
    (repository.folder / "await-first").write_text("never")
    process = repository.start("first")
    stage = psutil.Process(int(repository.wait_for("pid-first").read_text()))
    dvc = next(
        parent for parent in stage.parents() if parent.cmdline()[1:3] == ["-m", "gpt1.pipeline.dvc"]
    )  # some shells stand in between
    dvc.kill()
    _, errors = process.communicate(timeout=120)
    assert "error: first: it was ended by signal 9 (log: data/logs/run/first.log)\n" in errors
    assert process.returncode == 2
    assert (repository.folder / "checkpoint-first").exists()


@pytest.mark.slow
def test_a_stage_that_dvc_had_no_time_to_record_is_recorded_not_run_again(
    repository: Repository,
) -> None:
    (repository.folder / "kill-after-first").write_text("dvc")
    _, errors = repository.run("first")
    assert errors == "first: recorded (1 of 1)\n"
    (repository.folder / "kill-after-quiet").write_text("all")
    repository.run("quiet", status=-signal.SIGKILL)
    assert set(repository.journal()) == {"first", "quiet"}
    assert repository.run("quiet") == (f"everything is up to date\n{NEXT}\n", "")
    assert repository.journal() == {}, "quiet ended well, so it is not to run again"


@pytest.mark.slow
def test_what_ended_on_other_inputs_runs_again(repository: Repository) -> None:
    (repository.folder / "kill-after-first").write_text("all")
    repository.run("first", status=-signal.SIGKILL)
    assert set(repository.journal()) == {"first"}
    (repository.folder / "kill-after-first").unlink()
    (repository.folder / "word").write_text("two")
    repository.run("first")
    assert set(repository.journal()) == {"first"}
    assert (repository.folder / "out/first").read_text() == "firsttwo"


@pytest.mark.slow
def test_claims_that_a_killed_dvc_left_half_written_are_no_hindrance(
    repository: Repository,
) -> None:
    (repository.folder / ".dvc/tmp").mkdir()
    (repository.folder / ".dvc/tmp/rwlock").write_text('{"write": {"')
    repository.run("first")
    assert set(repository.journal()) == {"first"}


@pytest.mark.slow
@pytest.mark.xfail(
    strict=True,
    reason="gpt1 run waits for its own kind alone: beside dvc repro it ends, and its line names no"
    " process; one orchestrator that waits and tries again is to take its place",
)
def test_a_run_beside_dvc_repro_waits_for_it_or_names_it(repository: Repository) -> None:
    (repository.folder / "await-first").write_text("go")
    command = [sys.executable, "-m", "dvc", "repro", "--quiet", "first"]
    other = subprocess.Popen(command, cwd=repository.folder)
    repository.wait_for("pid-first")
    run = repository.start("first")
    with suppress(subprocess.TimeoutExpired):
        run.wait(20)
    (repository.folder / "go").touch()
    _, errors = run.communicate(timeout=120)
    assert other.wait(120) == 0
    assert run.returncode == 0 or str(other.pid) in errors.splitlines()[-1]


@pytest.mark.slow
def test_a_second_run_waits_for_the_first(repository: Repository) -> None:
    (repository.folder / "await-quiet").write_text("go")
    first = repository.start("quiet")
    repository.wait_for("pid-quiet")
    second = repository.start("quiet")
    assert second.stderr is not None
    assert (
        second.stderr.readline()
        == f"gpt1 run (process {first.pid}) is at work here; waiting for it to end\n"
    )
    (repository.folder / "go").touch()
    assert second.communicate(timeout=120) == (f"everything is up to date\n{NEXT}\n", "")
    first.communicate(timeout=120)
    assert (first.returncode, second.returncode) == (0, 0)
    assert set(repository.journal()) == {"first", "quiet"}


@pytest.mark.slow
def test_mistakes_are_one_line(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    _, errors = repository.run("finetune@coal", status=2)
    assert (
        errors
        == "error: no stage 'finetune@coal'; did you mean finetune@cola? (expected one of first,"
        " quiet, pretrain, finetune, table, or one item of a group, as finetune@cola)\n"
    )
    (repository.folder / "dvc.yaml").write_text(
        GRAPH.replace("foreach: [cola, rte]", "foreach: ${tasks}")
    )
    _, errors = repository.run(status=2)
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("error: DVC cannot tell what is out of date: "), errors
