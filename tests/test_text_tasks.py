"""Text as tasks of datatrove: any number of them and either executor write the same bytes, what was
finished before a kill is kept, and Ctrl-C ends all.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from made_corpora import FORMS
from test_stages_text import ROOT, outputs, run_here, sentence, stage, write_books, write_params

from gpt1.base.errors import UserError
from gpt1.corpus import books, inspection
from gpt1.corpus.parallel import kept_tasks, mapped, tasks_for

STAGES = ("clean", "bpe", "shard")
KEPT = Path("data/checkpoints/text")


def text_of(sentences: int, seed: int = 1) -> str:
    generator = random.Random(seed)
    return "\n".join(sentence(generator) for _ in range(sentences))


def mixed_corpus(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Books, one of them long, and documents in every form, read in small blocks."""
    source = write_books(folder)
    (source / "long.txt").write_text(text_of(400), encoding="utf-8")
    for number, (name, write) in enumerate(FORMS.items()):
        texts: list[str | None] = [text_of(1 + row % 5, row) for row in range(60)]
        write(source / f"{number}{Path(name).name[1:]}", texts)
    write_params(folder, clean={"corpus_name": "a mixture"}, bpe={"merges": 40})
    monkeypatch.setattr(inspection, "LONGEST_LINE", 500)
    monkeypatch.setattr(books, "BLOCK_CHARACTERS", 900)


@pytest.mark.parametrize(
    "numbers", [("1", "3"), pytest.param(("1", "4", "16"), marks=pytest.mark.slow)], ids="-".join
)
def test_any_number_of_tasks_gives_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: tuple[str, ...]
) -> None:
    mixed_corpus(tmp_path, monkeypatch)
    found = []
    for tasks in numbers:
        monkeypatch.setenv("GPT1_TEXT_TASKS", tasks)
        for name in STAGES:
            run_here(name, tmp_path, monkeypatch)
        found.append(outputs(tmp_path))
        assert not [*(tmp_path / KEPT).glob("*")]
    assert all(others == found[0] for others in found)
    assert len(found[0]) == 9 + len(FORMS) + 1 + 3 + 3


@contextmanager
def two_ray_nodes() -> Iterator[str]:
    """The address of a Ray cluster of two nodes with a core each, on this machine alone."""
    ray = str(Path(sys.executable).with_name("ray"))
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
    common = ("--num-cpus=1", "--node-ip-address=127.0.0.1", "--object-store-memory=100000000")
    address = f"127.0.0.1:{20000 + os.getpid() % 9000}"
    nodes: list[subprocess.Popen[bytes]] = []
    # not under tmp_path: names of sockets are short
    folder = tempfile.mkdtemp(prefix="ray")
    try:
        for node in (
            ("--head", f"--port={address.split(':')[1]}", "--include-dashboard=false"),
            (f"--address={address}",),
        ):
            command = [ray, "start", "--block", *node, *common]
            if node[0] == "--head":
                command.append(f"--temp-dir={folder}")
            nodes.append(
                subprocess.Popen(
                    command,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            time.sleep(5)
        yield address
    finally:
        for one in reversed(nodes):
            one.terminate()
        for one in nodes:
            one.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_ray_gives_the_files_of_the_local_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    write_books(tmp_path, 40)
    write_params(tmp_path)
    for name in STAGES:
        run_here(name, tmp_path, monkeypatch)
    alone = outputs(tmp_path)
    with two_ray_nodes() as address:
        for name in STAGES:
            done = stage(
                name,
                tmp_path,
                GPT1_TEXT_TASKS="4",
                GPT1_TEXT_EXECUTOR="ray",
                RAY_ADDRESS=address,
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert outputs(tmp_path) == alone


def test_no_ray_cluster_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    write_books(tmp_path, 2)
    write_params(tmp_path)
    done = stage(
        "clean",
        tmp_path,
        GPT1_TEXT_TASKS="2",
        GPT1_TEXT_EXECUTOR="ray",
        RAY_ADDRESS="127.0.0.1:1",
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: GPT1_TEXT_EXECUTOR=ray: expected a Ray cluster, found")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("GPT1_TEXT_EXECUTOR", "slurm", "expected local or ray, found 'slurm'"),
        ("GPT1_TEXT_TASKS", "0", "expected a number of tasks, found '0'"),
        ("GPT1_TEXT_TASKS", "many", "expected a number of tasks, found 'many'"),
    ],
)
def test_wrong_settings_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, said: str
) -> None:
    monkeypatch.setenv("GPT1_TEXT_TASKS", "2")
    monkeypatch.setenv(setting, value)
    with pytest.raises(UserError, match=said):
        list(mapped("testing", dict, doubled, [1, 2], 2, tmp_path))


def doubled(_: Any, number: int) -> int:
    return 2 * number


def test_results_come_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tasks in ("1", "7", "30"):
        monkeypatch.setenv("GPT1_TEXT_TASKS", tasks)
        assert [*mapped("testing", dict, doubled, range(20), 1, tmp_path)] == [*range(0, 40, 2)]


def test_how_many_tasks() -> None:
    assert [tasks_for(int(gigabytes * 1e9)) for gigabytes in (0.001, 0.02, 0.1, 5, 1000)] == [
        1,
        1,
        12,
        512,
        512,
    ]


def kill_once(marks: Path, task: int) -> int:
    """Ends its process, as a lack of memory does, at the fifth task and the first time."""
    with (marks / str(task)).open("a") as file:
        file.write("x")
    if task == 5 and (marks / "5").stat().st_size == 1:
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    return task


class Marks:
    """What a process prepares: a folder in which to count."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self) -> Path:
        return self.folder


def test_a_killed_task_alone_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPT1_TEXT_TASKS", "8")
    (tmp_path / "marks").mkdir()
    arguments = (Marks(tmp_path / "marks"), kill_once, range(8), 8, tmp_path / "kept")
    with pytest.raises(UserError, match="a worker process was ended from outside"):
        list(mapped("testing", *arguments))
    before = {path.name for path in (tmp_path / "kept").rglob("completions/*")}
    assert 0 < len(before) < 8
    assert list(mapped("testing", *arguments)) == list(range(8))
    often = {path.name: path.stat().st_size for path in (tmp_path / "marks").iterdir()}
    assert {name for name, times in often.items() if times == 2} >= {"5"}
    assert all(often[str(int(name))] == 1 for name in before)


def wrong(_: Any, task: int) -> int:
    if task == 3:
        raise UserError("the third is wrong")
    if task == 4:
        raise ZeroDivisionError("a fault of ours")
    return task


@pytest.mark.parametrize("tasks", ["1", "5"])
def test_what_is_wrong_with_a_text_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: str
) -> None:
    monkeypatch.setenv("GPT1_TEXT_TASKS", tasks)
    with pytest.raises(UserError, match=r"^the third is wrong$"):
        list(mapped("testing", dict, wrong, [1, 2, 3], 3, tmp_path / "user"))
    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        list(mapped("testing", dict, wrong, [1, 2, 4], 3, tmp_path / "ours"))


def test_what_is_kept_is_of_the_same_files_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input").write_text("a")

    def kept(*facts: Any) -> Path:
        with suppress(ZeroDivisionError), kept_tasks("some", [Path("input")], *facts) as found:
            (found / "made").touch()
            raise ZeroDivisionError
        return found

    first = kept()
    assert kept() == first
    assert kept(1) != first
    assert not first.exists()
    second = kept()
    (tmp_path / "input").write_text("ab")
    assert kept() != second
    assert [path.name for path in KEPT.glob("*/*")] == ["made"]
    with kept_tasks("some", [Path("input")]) as found:
        assert (found / "made").exists()
    assert not [*KEPT.iterdir()]


def test_what_others_keep_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a stage whose name begins the same, and where several checkouts share their folder, of any
    that may be at work.
    """
    monkeypatch.chdir(tmp_path)
    with (
        kept_tasks("encode", []) as one,
        kept_tasks("encode-texts", []) as two,
    ):
        assert one.exists()
        assert two.exists()
    for checkout in ("one", "two"):
        (tmp_path / checkout / "data").mkdir(parents=True)
        (tmp_path / checkout / KEPT.parent).symlink_to(tmp_path / KEPT.parent)
    monkeypatch.chdir(tmp_path / "one")
    with kept_tasks("bpe", [], 1) as one:
        monkeypatch.chdir(tmp_path / "two")
        with kept_tasks("bpe", [], 2):
            assert one.exists()
        assert one.exists()


def group_is_gone(group: int, seconds: float) -> bool:
    """Whether no process of the group is left before so many seconds have passed."""
    for _ in range(int(seconds * 10)):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def begun(folder: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpt1.stages", name],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "GPT1_TEXT_TASKS": "8"},
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of a parent's death")
def test_no_process_outlives_a_killed_stage(tmp_path: Path) -> None:
    write_books(tmp_path, 20)
    write_params(tmp_path)
    for ended_tasks in (0, 1, 9):
        process = begun(tmp_path, "clean")
        while len([*(tmp_path / KEPT).rglob("completions/*")]) < ended_tasks or not [
            *(tmp_path / KEPT).rglob("logs/*")
        ]:
            assert process.poll() is None, "the stage ended before it was killed"
            time.sleep(0.01)
        process.kill()
        process.communicate()
        assert group_is_gone(process.pid, 10.0)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_with_one_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    source = write_books(tmp_path, 2)
    for number in range(8):
        (source / f"long{number}.txt").write_text(text_of(40_000, number), encoding="utf-8")
    write_params(tmp_path)
    # at last when nine tasks have ended: the eight that look through the books, and one that cleans
    for seconds, ended_tasks in ((0.0, 0), (0.2, 0), (0.5, 0), (0.8, 0), (0.0, 9)):
        process = begun(tmp_path, "clean")
        own = tmp_path / KEPT
        while not own.exists() or len([*own.rglob("completions/*")]) < ended_tasks:
            assert process.poll() is None, "the stage ended before it began"
            time.sleep(0.01)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to every process of the group
        _, told = process.communicate(timeout=20)
        assert (process.returncode, told.count("\n")) == (130, 1), told
        assert told.startswith("interrupted")
        assert not (tmp_path / "data" / "clean").exists()
        assert group_is_gone(process.pid, 10.0)
    ended = {path: path.stat().st_mtime_ns for path in (tmp_path / KEPT).rglob("completions/*")}
    assert ended
    process = begun(tmp_path, "clean")
    made: dict[Path, int] = {}
    while process.poll() is None:
        made |= {path: path.stat().st_mtime_ns for path in ended if path.exists()}
        time.sleep(0.05)
    assert process.returncode == 0
    process.communicate()
    assert made == ended
    counts = json.loads((tmp_path / "data/clean/counts.json").read_text())
    assert len(counts["books"]) == 10
