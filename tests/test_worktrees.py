"""Worktrees for flows: the code as it is now, a params.yaml of their own, DVC's cache shared; the
checkout itself untouched.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from copied_checkout import Checkout

from gpt1.base.errors import UserError
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import Params, read_params
from gpt1.pipeline.leases import alone_here
from gpt1.pipeline.worktrees import open_worktree, remove_worktrees, show_worktrees, worktree_name

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TINY = ["world.town.books=2", "world.town.pages=20"]


class Small:
    """What a worktree is made from, under git, with one commit; the current folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".dvc").mkdir(parents=True)
        (folder / ".dvc/config").write_text("[core]\n    analytics = false\n")
        (folder / ".dvc/.gitignore").write_text("/config.local\n/tmp\n/cache\n")
        shutil.copytree(ROOT / "conf", folder / "conf")
        for name in (".gitignore", ".dvcignore", "params.yaml"):
            shutil.copy(ROOT / name, folder / name)
        (folder / "gpt1").mkdir()
        (folder / "gpt1/code.py").write_text("one")
        (folder / "gpt1/gone.py").write_text("one")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")

    def git(self, *words: str, folder: Path | None = None) -> str:
        identity = ("-c", "user.name=me", "-c", "user.email=me@here")
        return subprocess.run(
            ["git", *identity, *words],
            cwd=folder or self.folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def of_the_user(self) -> list[object]:
        """What opening a worktree must not touch."""
        said = [
            self.git(*words.split())
            for words in (
                "status --short",
                "for-each-ref",
                "rev-parse HEAD",
                "reflog",
                "config -l --local",
            )
        ]
        return [
            *said,
            (self.folder / ".git/index").read_bytes(),
            (self.folder / "params.yaml").read_bytes(),
        ]

    def objects(self) -> str:
        return self.git("count-objects", "-v")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    made = Small(tmp_path / "Größe und Maß")
    monkeypatch.chdir(made.folder)
    return made


def params(tree: Path) -> Params:
    return read_params(tree / "params.yaml")


def test_names_tell_what_differs_and_nothing_else() -> None:
    assert worktree_name("small", [], None, None) == "small"
    named = {
        worktree_name("small", ["a=1"], None, None),
        worktree_name("small", [], [1], None),
        worktree_name("small", [], None, ["rte"]),
    }
    assert len(named) == 3
    assert all(re.fullmatch("small-[0-9a-f]{6}", name) for name in named)
    assert re.fullmatch("checkout-[0-9a-f]{6}", worktree_name(None, [], [1], None))
    assert worktree_name("small", [], None, ["rte", "snli"]) == worktree_name(
        "small", [], None, ("snli", "rte", "snli")
    )


def test_the_code_is_that_of_the_checkout_with_its_uncommitted_work(small: Small) -> None:
    (small.folder / "gpt1/code.py").write_text("staged")
    small.git("add", "-A")
    (small.folder / "gpt1/code.py").write_text("edited")
    (small.folder / "gpt1/new ü.py").write_text("new")
    (small.folder / "gpt1/gone.py").unlink()
    (small.folder / "ignored.partial").write_text("ignored")
    (small.folder / "dvc.lock").write_text("the checkout's")
    (hook := small.folder / ".git/hooks/post-checkout").write_text("#!/bin/sh\ntouch hook-ran\n")
    hook.chmod(0o755)
    before = small.of_the_user()
    tree = open_worktree("demo", ["finetune.epochs=2"], None, None)
    assert tree == small.folder / ".worktrees" / worktree_name(
        "demo", ["finetune.epochs=2"], None, None
    )
    assert small.of_the_user() == before, "opening a worktree changed what is the user's"
    assert ((tree / "gpt1/code.py").read_text(), (tree / "gpt1/new ü.py").read_text()) == (
        "edited",
        "new",
    )
    assert not [
        name
        for name in ("gpt1/gone.py", "ignored.partial", "dvc.lock", "hook-ran")
        if (tree / name).exists()
    ]
    assert small.git("log", "-1", "--format=%P", folder=tree) == small.git(
        "log", "-1", "--format=%H"
    )
    assert small.git("status", "--porcelain", "--untracked-files=no", folder=tree) == "", (
        "the code would count as edited"
    )


def test_the_next_opening_brings_the_code_of_then_and_keeps_what_runs_made(small: Small) -> None:
    tree = open_worktree("demo", [], None, None)
    assert small.git("rev-parse", "HEAD", folder=tree) == small.git("rev-parse", "HEAD"), (
        "a clean checkout is its own commit"
    )
    for name in ("data/check", "dvc.lock", "gpt1/code.py"):
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text("of the worktree")
    times = [(tree / name).stat().st_mtime_ns for name in ("params.yaml", "dvc.lock")]
    (small.folder / "gpt1/code.py").write_text("two")
    (small.folder / "gpt1/gone.py").unlink()
    (small.folder / "params.yaml").write_text(
        (small.folder / "params.yaml").read_text() + "# edited\n"
    )
    small.git("add", "-A")
    small.git("commit", "-qm", "second")
    (small.folder / "gpt1/code.py").write_text("three")
    assert open_worktree("demo", [], None, None) == tree
    assert (tree / "gpt1/code.py").read_text() == "three"
    assert not (tree / "gpt1/gone.py").exists()
    assert [(tree / name).read_text() for name in ("data/check", "dvc.lock")] == [
        "of the worktree"
    ] * 2
    assert [(tree / name).stat().st_mtime_ns for name in ("params.yaml", "dvc.lock")] == times, (
        "written anew though nothing differs"
    )


def test_opening_again_adds_nothing_to_git(small: Small) -> None:
    (small.folder / "gpt1/code.py").write_text("edited")
    open_worktree("demo", [], None, None)
    before = small.objects()
    open_worktree("demo", [], None, None)
    open_worktree("demo", [], [2], None)
    assert small.objects() == before
    for number in range(3):
        (small.folder / "gpt1/code.py").write_text(f"edited {number}")
        open_worktree("demo", [], None, None)
    assert not (small.folder / ".git/worktrees/demo/logs/HEAD").exists(), (
        "git's log of the worktree keeps old snapshots"
    )
    remove_worktrees(worktree_name("demo", [], [2], None))
    small.git("gc", "-q", "--prune=now")
    assert "edited 1" not in small.git("log", "--all", "-p"), "an old snapshot is kept by something"
    unreachable = small.git("fsck", "--unreachable", "--no-reflogs")
    assert unreachable == "", "git's housekeeping cannot remove old snapshots"


def test_the_checkouts_own_parameters_are_the_base_without_a_profile(small: Small) -> None:
    text = (small.folder / "params.yaml").read_text()
    text = text.replace("  merges: 1500", "  merges: 77").replace(
        "  learning_rate: 0.0025", "  learning_rate: 1e-3"
    )
    (small.folder / "params.yaml").write_text(re.sub(r" +lstm-rte: [^}]*}\n", "", text))
    tree = open_worktree(
        None, ["finetune.epochs=3", "tasks.rte.finetune.batch_size=4"], [1, 2], ["rte", "race"]
    )
    found = params(tree)
    assert (
        found.profile,
        found.bpe.merges,
        found.pretrain.learning_rate,
        found.finetune.epochs,
    ) == ("demo", 77, 1e-3, 3)
    assert (found.finetune.seeds, finetune_recipe(found, "rte").batch_size) == ((1, 2), 4)
    assert (list(found.tasks), list(found.transfer), list(found.zero_shot)) == (
        ["rte", "race"],
        ["race"],
        ["race"],
    )
    assert (list(found.sources), list(found.world)) == (["books", "rte", "race"], ["town"])
    assert list(found.stages.ablate) == [
        "no_pretraining-rte",
        "embeddings_only-rte",
        "no_aux_lm-rte",
        "lstm_equal-rte",
    ], "a row that a person took out is back"


def test_data_and_settings_are_those_of_the_checkout(small: Small, tmp_path: Path) -> None:
    (tmp_path / "brought/books").mkdir(parents=True)
    (tmp_path / "brought/books/one.txt").write_text("A book.\n")
    (small.folder / "data/raw").mkdir(parents=True)
    (small.folder / "data/raw/books").symlink_to(tmp_path / "brought/books")
    (small.folder / "data/raw/cola").mkdir()
    (small.folder / "data/raw/cola/train.tsv").write_text("rows")
    (small.folder / ".env").write_text("GPT1_THREADS=1\n")
    (tmp_path / "kept").mkdir()
    (small.folder / "data/checkpoints").symlink_to(tmp_path / "kept")  # flows/own_clone.sh does so
    dvc = [sys.executable, "-m", "dvc"]
    subprocess.run([*dvc, "remote", "add", "-q", "shared", "../remote"], check=True)
    subprocess.run(
        [*dvc, "remote", "modify", "-q", "--local", "shared", "verify", "true"], check=True
    )
    (small.folder / ".dvc/config.local").chmod(0o600)
    for _ in range(2):  # the second must not build on what the first wrote
        tree = open_worktree("small", ["bpe.merges=300"], None, None)
        assert list(params(tree).tasks) == ["cola"]
        assert (tree / "data/raw/books/one.txt").read_text() + (
            tree / "data/raw/cola/train.tsv"
        ).read_text() == "A book.\nrows"
        assert (tree / ".env").read_text() == "GPT1_THREADS=1\n"
        assert (tree / "data/checkpoints").resolve() == tmp_path / "kept"
    for words in (("remote", "list"), ("cache", "dir"), ("config", "remote.shared.verify")):
        said = [
            subprocess.run(
                [*dvc, *words], cwd=folder, capture_output=True, text=True, check=True
            ).stdout
            for folder in (small.folder, tree)
        ]
        assert said[0] == said[1], f"dvc {' '.join(words)} says something else in a worktree"
    assert (tree / ".dvc/config.local").stat().st_mode & 0o777 == 0o600
    shutil.rmtree(small.folder / "data/raw/cola")
    assert list(params(open_worktree("small", ["bpe.merges=300"], None, None)).tasks) == []
    assert not (tree / "data/raw/cola").is_symlink()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("smal", [], None, None),
            "no profile 'smal'; expected one of demo, evening, official, paper, small",
        ),
        (("../small", [], None, None), "no profile '../small'"),
        (("demo", ["finetune.epoch=2"], None, None), "did you mean finetune.epochs?"),
        (("demo", [], [1, 1], None), "finetune.seeds must differ"),
        (("demo", [], None, ["snil"]), "no task 'snil' here; did you mean snli?"),
        (("demo", [], None, []), "no task is named; expected some of snli"),
        (
            (None, ["finetune.epochs=two"], None, None),
            "finetune.epochs: found 'two', expected an integer",
        ),
        ((None, [], None, None), "nothing differs from the checkout"),
        (
            ("small", [], None, None),
            "nothing is in data/raw/books, and profile small cannot run without it",
        ),
        (
            ("small", [], None, ["rte"]),
            "nothing is in data/raw/rte, and a run on rte cannot run without it",
        ),
    ],
)
def test_a_mistake_is_one_line_and_makes_nothing(
    small: Small, arguments: tuple[str, list[str], list[int], list[str]], line: str
) -> None:
    with pytest.raises(UserError) as error:
        open_worktree(*arguments)
    assert line in str(error.value)
    assert not (small.folder / ".worktrees").exists()


def test_where_no_worktree_can_be_one_line_says_so(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.git("worktree", "add", "-q", str(tmp_path / "mine"))
    shutil.copytree(small.folder, tmp_path / "no git", ignore=shutil.ignore_patterns(".git"))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for folder, line in (
        (
            "mine",
            (
                "is a git worktree itself; run flows with a profile in its main folder,"
                f" {small.folder}"
            ),
        ),
        ("no git", "is not under git; call git init here"),
        ("empty", "no DVC repository in"),
    ):
        monkeypatch.chdir(tmp_path / folder)
        with pytest.raises(UserError, match=re.escape(line)):
            open_worktree("demo", [], None, None)


def test_two_processes_open_one_worktree_at_once(small: Small) -> None:
    code = (
        "from gpt1.pipeline.worktrees import open_worktree; print(open_worktree('demo', [], None,"
        " None))"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in both:
        output, errors = process.communicate(timeout=120)
        assert (process.returncode, output) == (0, f"{small.folder / '.worktrees/demo'}\n"), errors
    assert params(small.folder / ".worktrees/demo").profile == "demo"


def test_what_a_killed_opening_left_is_mended(small: Small) -> None:
    tree = small.folder / ".worktrees/demo"
    tree.mkdir(parents=True)
    open_worktree("demo", [], None, None)
    (tree / "dvc.lock").write_text("kept")
    (tree / ".dvc/tmp/kept").mkdir(exist_ok=True)
    (tree / "dvc.lock").replace(tree / ".dvc/tmp/kept/dvc.lock")
    (small.folder / ".git/worktrees/demo/index.lock").touch()
    (small.folder / ".git/worktrees/demo/locked").write_text("initializing")
    open_worktree("demo", [], None, None)
    assert (tree / "dvc.lock").read_text() == "kept"
    remove_worktrees("demo")
    assert not (small.folder / ".git/worktrees/demo").exists()


def test_a_checkout_that_was_moved_keeps_its_worktrees(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.git("worktree", "add", "-q", str(tmp_path / "demo"))  # takes git's name for it
    (open_worktree("demo", [], None, None) / "dvc.lock").write_text("kept")
    small.folder.rename(tmp_path / "moved")
    small.folder = tmp_path / "moved"
    monkeypatch.chdir(small.folder)
    (small.folder / "gpt1/code.py").write_text("two")
    tree = open_worktree("demo", [], None, None)
    assert ((tree / "dvc.lock").read_text(), (tree / "gpt1/code.py").read_text()) == ("kept", "two")
    assert str(tree) in small.git("worktree", "list")
    shutil.rmtree(small.folder / ".git/worktrees")
    with pytest.raises(
        UserError,
        match=r"git does not know the worktree .* any more; call gpt1 worktrees --remove demo",
    ):
        open_worktree("demo", [], None, None)
    remove_worktrees("demo")
    assert open_worktree("demo", [], None, None) == tree


def test_what_no_flow_made_is_not_touched(small: Small, tmp_path: Path) -> None:
    trees = small.folder / ".worktrees"
    small.git("worktree", "add", "-q", "-b", "mine", ".worktrees/demo")
    (trees / "demo/gpt1/code.py").write_text("edited")
    (trees / "notes").mkdir()
    (trees / "notes/thesis").touch()
    small.git("worktree", "add", "-q", "--detach", str(tmp_path / "another"))
    (trees / "link").symlink_to(tmp_path / "another")
    for name in ("demo", "link", "notes", "all"):
        with pytest.raises(UserError, match=r"nothing to remove|expected one of"):
            remove_worktrees(name)
    with pytest.raises(UserError, match="not a git worktree that a flow has made; move it away"):
        open_worktree("demo", [], None, None)
    small.git("worktree", "move", str(trees / "demo"), str(tmp_path / "mine"))
    tree = open_worktree("demo", [], None, None)
    (small.folder / ".env").write_text("A=1")
    (tree / ".env").write_text("B=1")
    assert (open_worktree("demo", [], None, None) / ".env").read_text() == "B=1"
    remove_worktrees("all")
    assert sorted(path.name for path in trees.iterdir()) == ["link", "notes"]
    assert (tmp_path / "another/gpt1/code.py").exists()
    assert (tmp_path / "mine/gpt1/code.py").read_text() == "edited"


def test_list_and_remove(
    small: Small, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show_worktrees()
    assert "no worktrees in" in capsys.readouterr().out
    tree = open_worktree("demo", ["finetune.epochs=2"], None, ["rte"])
    open_worktree("demo", [], None, None)
    (small.folder / ".dvc/cache").mkdir()
    (small.folder / ".dvc/cache/file").write_bytes(bytes(10**7))
    os.link(small.folder / ".dvc/cache/file", tree / "file")
    show_worktrees()
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert f"{tree.name} demo finetune.epochs=2 --tasks rte" in shown
    assert "MB" not in shown, "what DVC's cache holds is counted as the worktree's own"
    with pytest.raises(
        UserError, match=f"no worktree 'dem'; expected one of demo, {tree.name}, or all"
    ):
        remove_worktrees("dem")
    for folder in (small.folder, tree):
        monkeypatch.chdir(folder)
        with alone_here("a run of mine", print):
            monkeypatch.chdir(small.folder)
            with pytest.raises(
                UserError,
                match=r"a run of mine .*is at work here \(.*\); remove worktrees when it has ended",
            ):
                remove_worktrees(tree.name)
    assert (tree / "params.yaml").exists()
    remove_worktrees(tree.name)
    assert not tree.exists()
    remove_worktrees("all")
    assert len(small.git("worktree", "list").splitlines()) == 1
    assert (small.folder / ".dvc/cache/file").exists()
    assert small.git("status", "--porcelain") == ""


@pytest.mark.long
def test_what_the_checkout_ran_is_restored_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Größe und Maß").mkdir()
    checkout = Checkout(tmp_path / "Größe und Maß")  # without a commit
    checkout.gpt1("profile", "demo", *TINY)
    assert checkout.repro("acquire@cola") == {"check", "world@town", "acquire@cola"}
    lock, index = (
        (checkout.folder / "dvc.lock").read_bytes(),
        (checkout.folder / ".git/index").read_bytes(),
    )
    monkeypatch.chdir(checkout.folder)
    tree = open_worktree("demo", TINY, None, ["cola"])
    checkout.folder = tree
    said = checkout.run("dvc", "repro", "acquire@cola", "acquire@books")
    assert set(re.findall(r"Running stage '(.+)':", said)) == {"check", "acquire@books"}, said
    assert set(re.findall(r"Stage '(.+)' is cached", said)) == {"world@town", "acquire@cola"}, said
    assert (tree / "data/acquire/tasks/cola/train.tsv").is_file()
    checkout.folder = tree.parents[1]
    assert checkout.repro("acquire@cola") == set(), "the checkout itself is disturbed"
    assert (
        (checkout.folder / "dvc.lock").read_bytes(),
        (checkout.folder / ".git/index").read_bytes(),
    ) == (lock, index)
    assert ".worktrees" not in checkout.run("dvc", "ls", "--recursive", ".") + checkout.run(
        "git", "status", "--short"
    )
    open_worktree("demo", TINY, None, ["cola"])
    checkout.folder = tree
    assert checkout.repro("acquire@cola", "acquire@books") == set(), (
        "opening it again makes stages out of date"
    )
