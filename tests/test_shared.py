"""gpt1.pipeline.shared over real DVC repositories: two clones and a folder as their remote;
gpt1.pipeline.leases with real processes.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpt1.base.errors import UserError
from gpt1.pipeline import leases, shared
from gpt1.pipeline.schedule import Stage

WORK = """
import pathlib, sys
name, out = sys.argv[1:]
folder = pathlib.Path(out)
folder.mkdir(parents=True, exist_ok=True)
(folder / "one").write_text(name * 1000)
(folder / "two").write_text(pathlib.Path("word").read_text())
with open("journal", "a") as journal:
    journal.write(name + "\\n")
"""

GRAPH = """
stages:
  first:
    cmd: python work.py first out/first
    deps: [word, work.py]
    outs: [out/first]
  pretrain:
    cmd: python work.py pretrain out/pretrain
    deps: [out/first, gpt1/model]
    outs: [out/pretrain]
  finetune:
    foreach: [cola, rte]
    do:
      cmd: python work.py finetune@${item} out/finetune/${item}
      deps: [out/pretrain/one, gpt1/model]
      outs: ["out/finetune/${item}"]
"""


class Clone:
    """A git clone with a DVC graph of four tiny stages; stages run in a process of their own, the
    rest where the test stands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def dvc(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dvc", *words],
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            },
        )
        assert done.returncode == 0, f"dvc {' '.join(words)} failed:\n{done.stdout}{done.stderr}"
        return done.stdout

    def repro(self, name: str) -> str:
        return self.dvc("--wait-for-lock", "repro", "--single-item", name)

    def journal(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().split() if path.exists() else []


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Clone, Clone]:
    """Two clones of one commit; the test stands in the first."""
    first, second = tmp_path / "Ä one", tmp_path / "two"
    for name in (".dvc", "gpt1/model", "out"):
        (first / name).mkdir(parents=True)
    (first / ".dvc/config").write_text(
        "[core]\n    analytics = false\n    remote = store\n['remote \"store\"']\n    url ="
        f" {tmp_path}/store\n"
    )
    for name, text in {
        "work.py": WORK,
        "dvc.yaml": GRAPH,
        "word": "one",
        "params.yaml": "a: 1\n",
        "gpt1/model/code": "code",
        ".gitignore": "/out/\n/journal\n/.dvc/tmp\n/.dvc/cache\n",
    }.items():
        (first / name).write_text(text)
    git(first, "init", "-q")
    git(first, "add", "-A")
    git(first, "commit", "-q", "-m", "one")
    git(tmp_path, "clone", "-q", str(first), str(second))
    monkeypatch.chdir(first)
    monkeypatch.setattr(shared, "PAUSES_SECONDS", (0.0, 0.0))
    return Clone(first), Clone(second)


@pytest.mark.slow
def test_a_stage_finished_in_one_clone_is_fetched_by_the_other(
    clones: tuple[Clone, Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = clones
    first.repro("first")
    shared.push(["first"])
    sent = shared.lock_entries(["first"])

    monkeypatch.chdir(second.folder)
    assert shared.lay_entries(sent) == {"first"}
    assert shared.lay_entries(sent) == set(), "an entry that is there already is left as it is"
    shared.pull(["first"])
    assert (second.folder / "out/first/two").read_text() == "one"
    assert not shared.restore("pretrain"), "nobody has run it"
    second.repro("pretrain")
    shared.push(["pretrain"])

    monkeypatch.chdir(first.folder)
    assert not shared.is_current("pretrain")
    assert shared.restore("pretrain")
    assert shared.is_current("pretrain")
    assert "didn't change, skipping" in first.repro("pretrain")
    assert (first.journal(), second.journal()) == (["first"], ["pretrain"])
    assert (first.folder / "dvc.lock").read_bytes() == (second.folder / "dvc.lock").read_bytes()
    assert (first.folder / "out/pretrain/one").read_bytes() == (
        second.folder / "out/pretrain/one"
    ).read_bytes()

    (first.folder / "gpt1/model/code").write_text("edited")
    assert not shared.restore("pretrain"), "other inputs, another result"
    first.repro("pretrain")
    shared.push(["pretrain"])
    (first.folder / "gpt1/model/code").write_text("code")
    assert shared.restore("pretrain"), "the first inputs again"
    assert first.journal() == ["first", "pretrain"]
    assert "up to date" in first.dvc("status", "pretrain")


@pytest.mark.slow
def test_what_is_on_the_remote_serves_dvc_itself(clones: tuple[Clone, Clone]) -> None:
    first, second = clones
    first.repro("first")
    first.repro("pretrain")
    shared.push(["first", "pretrain"])
    said = second.dvc("repro", "--pull", "pretrain")
    assert "is cached - skipping run" in said
    assert second.journal() == []


@pytest.mark.slow
def test_an_older_result_makes_room(
    clones: tuple[Clone, Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = clones
    (second.folder / "word").write_text("two")
    second.repro("first")
    first.repro("first")
    shared.push(["first"])
    sent = shared.lock_entries(["first"])
    monkeypatch.chdir(second.folder)
    assert shared.lay_entries(sent) == {"first"}
    shared.pull(["first"])
    assert (second.folder / "out/first/two").read_text() == "one"


@pytest.mark.slow
def test_a_remote_out_of_reach_is_one_line_and_heals(
    clones: tuple[Clone, Clone], tmp_path: Path
) -> None:
    first, _ = clones
    first.repro("first")
    store = tmp_path / "store"
    store.write_text("a file where a folder should be")
    with pytest.raises(
        UserError, match=r"DVC cannot push to its remote 'store': .*nothing finished is lost"
    ) as told:
        shared.push(["first"])
    assert "\n" not in str(told.value)
    store.unlink()
    shared.push(["first"])
    for path in [
        *(store / "files").rglob("*"),
        *(first.folder / ".dvc/cache/files").rglob("*"),
        *(first.folder / "out/first").iterdir(),
    ]:
        if path.is_file():
            path.unlink()
    with pytest.raises(UserError, match="DVC cannot pull from its remote 'store'"):
        shared.pull(["first"])


@pytest.mark.slow
def test_mistakes_are_one_line(
    clones: tuple[Clone, Clone], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, second = clones
    ours = shared.digest()
    monkeypatch.chdir(second.folder)
    shared.refuse_other_code(ours)
    (second.folder / "gpt1/new.py").touch()
    (second.folder / "params.yaml").write_text("a: 2\n")
    with pytest.raises(
        UserError,
        match=r"^gpt1 and params\.yaml in .* are not what the checkout that sent the stage has: ",
    ):
        shared.refuse_other_code(ours)
    with pytest.raises(UserError, match="says nothing of first"):
        shared.lock_entries(["first"])
    (second.folder / ".dvc/config").write_text("[core]\n    analytics = false\n")
    assert shared.remote_name() is None
    with pytest.raises(UserError, match=r"dvc remote add --local -d NAME URL"):
        shared.push(["first"])
    with pytest.raises(UserError, match="finetune@coal"):
        shared.find_stage("finetune@coal")
    assert shared.find_stage("finetune@cola") == Stage(
        "finetune@cola",
        frozenset(),
        ("out/pretrain/one", "gpt1/model"),
        ("out/finetune/cola",),
        trains=True,
        stale=True,
    )


@pytest.mark.slow
def test_entries_are_laid_while_stages_run(clones: tuple[Clone, Clone]) -> None:
    first, _ = clones
    first.repro("first")
    first.repro("pretrain")
    entries = shared.lock_entries(["first", "pretrain"])
    made_up = {f"other-{number}": entries["first"] for number in range(10)}
    stages = [
        threading.Thread(target=first.repro, args=[f"finetune@{task}"]) for task in ("cola", "rte")
    ]
    for stage in stages:
        stage.start()
    for name, entry in made_up.items():
        shared.lay_entries({name: entry})
    for stage in stages:
        stage.join()
    assert set(
        shared.lock_entries([*made_up, "first", "pretrain", "finetune@cola", "finetune@rte"])
    ), "an entry was lost"


@pytest.mark.slow
def test_run_cache_entries_are_where_dvc_puts_them(clones: tuple[Clone, Clone]) -> None:
    first, _ = clones
    first.repro("first")
    with shared.opened() as repo:
        (stage,) = repo.stage.collect("first")
        folder = shared._entry_folder(repo, stage)
    (entry,) = Path(".dvc/cache/runs").glob("*/*/*")
    assert entry.parent.resolve() == folder.resolve(), (
        "dvc.stage.cache._get_stage_hash, which is private, no longer gives the key of a run-cache"
        " entry: mend gpt1/pipeline/shared.py, then raise the bound of dvc in pyproject.toml"
    )


def test_an_error_is_told_by_its_cause_and_without_credentials() -> None:
    error = FileNotFoundError()
    error.__cause__ = ConnectionError("no answer from https://ann:secret@store.example/x\nmore")
    assert shared.why(error) == "ConnectionError: no answer from https://store.example/x"


def test_which_stages_travel() -> None:
    def stage(*reads: str, needs: tuple[str, ...] = ("check",), writes: str = "data/any") -> Stage:
        return Stage("any", frozenset(needs), reads, (writes,))

    assert shared.can_travel(stage("data/shard", "gpt1/model"))
    assert not shared.can_travel(stage("data/raw/books", "gpt1/sources")), (
        "only this machine has data/raw"
    )
    assert shared.can_be_fetched(stage("data/raw/books", "gpt1/sources"))
    assert not shared.can_travel(stage("data/finetune", writes="data/report/table2"))
    assert not shared.can_be_fetched(stage(needs=())), (
        "DVC keeps no run-cache entry of a stage without deps"
    )


def test_a_checkout_is_lent_to_one_sender_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    with (
        leases.lent_to("a:/b (1)", told.append, lambda: True),
        leases.lent_to("a:/b (1)", told.append, lambda: True),
    ):
        assert told == []
        with (
            pytest.raises(KeyboardInterrupt),
            leases.lent_to("c:/d (2)", told.append, lambda: False),
        ):
            pass
        assert told == [f"a stage sent by a:/b (1) is at work in {tmp_path}; waiting for it to end"]
        with leases.RUN_LOCK.open("a") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a run of this checkout's own
    with leases.lent_to("c:/d (2)", told.append, lambda: False):
        assert len(told) == 1, "it was free"
    with leases.RUN_LOCK.open("a") as own:
        fcntl.flock(own, fcntl.LOCK_EX)
        with leases.lent_to(leases.this_checkout(), told.append, lambda: False):
            assert len(told) == 1, "what this checkout sends to itself does not wait for it"
    assert leases.is_this(leases.this_checkout().replace("/", "/mounted/elsewhere/", 1)), (
        "a shared disk shows it under another path"
    )
    copied = tmp_path / "copy"
    shutil.copytree(tmp_path / ".dvc", copied / ".dvc")
    before = leases.this_checkout()
    monkeypatch.chdir(copied)
    assert not leases.is_this(before), "a copy is another checkout"


def test_a_gpu_is_lent_to_one_stage_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    devices = ("0", "1", "GPU-ab/c")
    with (
        leases.lent_devices(devices, 1, lambda: False) as one,
        leases.lent_devices(devices, 2, lambda: False) as two,
    ):
        assert sorted(one + two) == sorted(devices)
        with pytest.raises(KeyboardInterrupt), leases.lent_devices(devices, 1, lambda: False):
            pass
    with leases.lent_devices(devices, 3, lambda: False) as three:
        assert three == devices
        monkeypatch.setenv("SLURM_JOB_ID", "7")  # whose GPU 0 is another
        with leases.lent_devices(("0",), 1, lambda: False) as of_job:
            assert of_job == ("0",)
