"""The checkout's code in git worktrees: as it is now, uncommitted work included, without touching
the user's index, branches or stash.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpt1.base.errors import ELSEWHERE, UserError

WORKTREES = Path(".worktrees")
OWN = ("params.yaml", "dvc.lock")  # a worktree's own, never the checkout's
GIT = (
    "git",
    "-c",
    "core.hooksPath=/dev/null",  # a hook of DVC's would check out data
    "-c",
    # no log of old snapshots, so that git's own housekeeping removes them
    "core.logAllRefUpdates=false",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.safecrlf=false",
)
SIGNATURE = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in (("NAME", "gpt1"), ("EMAIL", "gpt1@localhost"), ("DATE", "@0 +0000"))
}  # equal code, equal commit
ANOTHER_REPOSITORY = {
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
}


def git(*words: str, index: Path | None = None, folder: Path | None = None) -> str:
    """What git says, less the last line's end. Raises UserError with git's own reason."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ANOTHER_REPOSITORY
    } | SIGNATURE
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        done = subprocess.run(
            [*GIT, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        raise UserError(
            "git is not there, and a flow with a profile of its own runs in a git worktree;"
            " install git"
        ) from None
    if done.returncode:
        said = [
            line for line in done.stderr.splitlines() if line.startswith(("fatal:", "error:"))
        ] or done.stderr.splitlines()
        raise UserError(
            f"git {words[0]} failed in {folder or Path.cwd()}:"
            f" {said[0] if said else f'status {done.returncode}'}"
        )
    return done.stdout.removesuffix("\n")


def git_folder() -> Path:
    """The checkout's .git. Raises UserError where this is not the root of a git checkout, or is a
    worktree itself.
    """
    if not Path(".dvc").is_dir():
        raise UserError(f"no DVC repository in {Path.cwd()}: {ELSEWHERE}")
    try:
        said = git(
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--git-dir",
            "--git-common-dir",
        )
    except UserError as error:
        if "not a git repository" not in str(error):
            raise
        raise UserError(
            f"a flow with a profile of its own runs in a git worktree, and {Path.cwd()} is not"
            " under git; call git init here"
        ) from None
    top, own, common = map(Path, said.splitlines())
    if top.resolve() != Path.cwd().resolve():
        raise UserError(
            f"expected the root of a git repository, found a folder of {top}: a project folder"
            " is a repository of its own (a clone, or what gpt1 init makes)"
        )
    if own.resolve() != common.resolve():
        raise UserError(
            f"{Path.cwd()} is a git worktree itself; run flows with a profile in its main folder,"
            f" {common.parent}"
        )
    return common


def head_commit() -> str:
    """The checkout's commit, or '' before the first."""
    try:
        return git("rev-parse", "--quiet", "--verify", "HEAD")
    except UserError:
        return ""


def snapshot(common: Path) -> str:
    """The commit that holds the checkout's files as they are, ignored ones left out: HEAD, or one
    on no branch that comes after HEAD.

    The user's index, branches, stash and HEAD stay as they are. Equal files give the same commit,
    so that nothing piles up.
    """
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        if (common / "index").is_file():
            shutil.copy2(
                common / "index", index
            )  # what git knows of unchanged files, and its time: git distrusts files as young
        git("add", "--all", "--", ".", *(f":(exclude,top){name}" for name in OWN), index=index)
        head = head_commit()
        if head:
            git("reset", "--quiet", head, "--", *OWN, str(WORKTREES), index=index)
        else:
            git(
                "rm",
                "--cached",
                "--force",
                "--quiet",
                "-r",
                "--ignore-unmatch",
                "--",
                *OWN,
                str(WORKTREES),
                index=index,
            )
        files = git("write-tree", index=index)
    if head and files == git("rev-parse", f"{head}^{{tree}}"):
        return head
    return git(
        "commit-tree",
        files,
        *(["-p", head] if head else []),
        "-m",
        "gpt1: the checkout with its uncommitted work",
    )


def update_code(tree: Path, commit: str, common: Path) -> None:
    """Bring a worktree to a commit, made anew where there is none; what git ignores, its
    params.yaml and its dvc.lock stay.
    """
    if not made_here(tree):  # none yet, or the making of it was cut short
        if tree.exists():
            raise_unless_empty(tree)
        git("worktree", "add", "--force", "--force", "--no-checkout", "--detach", str(tree), commit)
    own_git = link_to_git(tree, common)
    (own_git / "index.lock").unlink(missing_ok=True)  # left by a killed git: we are alone here
    with kept_aside(tree):
        git("checkout", "--quiet", "--force", "--detach", commit, folder=tree)
    if known := git("ls-files", "--", *OWN, folder=tree):
        git(
            "update-index", "--skip-worktree", "--", *known.splitlines(), folder=tree
        )  # or else the code would count as edited


def raise_unless_empty(tree: Path) -> None:
    """Raises UserError where something of the user's own stands in its place."""
    if tree.is_symlink() or not tree.is_dir() or any(tree.iterdir()):
        raise UserError(f"{tree} is not a git worktree that a flow has made; move it away")


def made_here(tree: Path) -> bool:
    """Whether a folder in .worktrees/ is a worktree of update_code: reached by no link, and on no
    branch, as a user's own is.
    """
    try:
        named = (tree / ".git").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    own_git = Path(named.removeprefix("gitdir:").strip())
    heads = (own_git / "HEAD", Path(".git/worktrees", own_git.name, "HEAD"))  # moved: the second
    return not tree.is_symlink() and not any(
        head.read_bytes().startswith(b"ref:") for head in heads if head.is_file()
    )


def link_to_git(tree: Path, common: Path) -> Path:
    """git's own folder for a worktree; the two are made to name each other again after the checkout
    was moved. Raises UserError.
    """
    named = (
        (tree / ".git")
        .read_text(encoding="utf-8", errors="surrogateescape")
        .removeprefix("gitdir:")
        .strip()
    )
    own_git = common / "worktrees" / Path(named).name
    if not own_git.is_dir():
        raise UserError(
            f"git does not know the worktree {tree} any more; call gpt1 worktrees --remove"
            f" {tree.name} (what finished is in DVC's cache)"
        )
    for file, text in (
        (tree / ".git", f"gitdir: {own_git}\n"),
        (own_git / "gitdir", f"{tree / '.git'}\n"),
    ):
        if file.read_text(encoding="utf-8", errors="surrogateescape") != text:
            file.write_text(text, encoding="utf-8", errors="surrogateescape")
    return own_git


@contextmanager
def kept_aside(tree: Path) -> Iterator[None]:
    """Within the block a worktree's own files lie where git does not look; a block that was cut
    short is mended by the next.
    """
    aside = tree / ".dvc" / "tmp" / "kept"
    aside.mkdir(parents=True, exist_ok=True)
    for name in OWN:
        if (tree / name).is_file() and not (aside / name).exists():
            (tree / name).replace(aside / name)
    try:
        yield
    finally:
        for name in OWN:
            if (aside / name).exists():
                (aside / name).replace(tree / name)
