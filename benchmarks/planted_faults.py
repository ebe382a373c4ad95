"""Faults planted one at a time in the code that computes: which does the fast suite find?

    python benchmarks/planted_faults.py [--faults 100] [--seed 2018]

In the root of a checkout. Each fault is one operator, comparison or number changed in one place,
drawn by the seed. The tests that import the module run first; what they miss, all others that are
not slow are asked for. Both must pass before a fault is planted: an error of this machine would
count as found. A fault that no test notices is printed with its line: a missing test, or code that
nothing needs.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from our_imports import imports

PACKAGES = (
    "gpt1/model/**/*.py",
    "gpt1/train/objectives.py",
    "gpt1/train/optim.py",
    "gpt1/train/schedules.py",
    "gpt1/train/losses.py",
    "gpt1/train/batches.py",
    "gpt1/tasks/metrics.py",
    "gpt1/tasks/shapes.py",
    "gpt1/tasks/prompts.py",
    "gpt1/tasks/zero_shot.py",
    "gpt1/**/bpe.py",
    "gpt1/**/learn.py",
    "gpt1/**/books.py",
    "gpt1/**/shards.py",
    "gpt1/results/intervals.py",
    "gpt1/**/scores.py",
    "gpt1/inference/zero_shot.py",
)
SWAPS = (
    "Add Sub, Sub Add, Mult Div, Div Mult, FloorDiv Mult, Mod FloorDiv, Pow Mult, Lt LtE, LtE Lt,"
    " Gt GtE, GtE Gt, Eq NotEq, NotEq Eq, And Or, Or And, In NotIn, NotIn In"
)
SWAPPED = {getattr(ast, old): getattr(ast, new) for old, new in map(str.split, SWAPS.split(","))}
TESTS = [
    "-x",
    "-vv",
    "-pno:cacheprovider",
    "--deselect=tests/test_layout.py",  # a fault is a token more
    "-mnot slow and not server and not gpu",
]
SLOWER, SECONDS = 3, 60  # a fault by which tests take so much longer counts as found


def places(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes that a fault can be planted in: inside functions, and no annotation."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.BinOp | ast.BoolOp):
                    yield from [node] * (type(node.op) in SWAPPED)
                elif isinstance(node, ast.Compare):
                    yield from [node] * (type(node.ops[0]) in SWAPPED)
                elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    yield node


class Fault(NamedTuple):
    """The file, what was changed at which line, the file's text with it."""

    path: Path
    what: str
    text: str


def planted(path: Path, number: int) -> Fault:
    """A fault at the so-manieth place of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node: Any = list(places(tree))[number]
    before = ast.unparse(copy.deepcopy(node))
    if isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        node.value += 1
    else:
        node.op = SWAPPED[type(node.op)]()
    return Fault(path, f"{path}:{node.lineno}: {before} -> {ast.unparse(node)}", ast.unparse(tree))


def failing(copied: Path, tests: list[Path], seconds: float | None = None) -> str:
    """The first of these tests that fails, or still runs after so many seconds; "" for none."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *TESTS, *map(str, tests)],
            cwd=copied,
            env={**os.environ, "PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        lines = (error.stdout or b"").decode().splitlines()
        running = [line for line in lines if line.startswith("tests/")]
        return f"ENDLESS {running[-1] if running else 'before the first test'}"[:160]
    if done.returncode in (0, 5):
        return ""
    lines = done.stdout.decode().splitlines()
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return (failed or [f"pytest does not start: {' '.join(lines[-1:])}"])[0][:160]


def seconds_untouched(copied: Path, tests: list[Path]) -> float:
    """How long the tests take where no fault is planted. Ends the command where one fails."""
    began = time.monotonic()
    if failed := failing(copied, tests):
        raise SystemExit(
            f"error: expected tests that pass before a fault is planted, found {failed}"
        )
    return time.monotonic() - began


def missed(copied: Path, faults: list[tuple[Fault, list[Path]]]) -> list[Fault]:
    """The faults that none of their tests finds, each planted in the copy and taken out again;
    prints a line each.
    """
    left = []
    seconds = seconds_untouched(copied, sorted({test for _, tests in faults for test in tests}))
    for fault, tests in faults:
        found = ""
        if tests:
            (copied / fault.path).write_text(fault.text, encoding="utf-8")
            found = failing(copied, tests, SLOWER * seconds + SECONDS)
            shutil.copy(fault.path, copied / fault.path)
        print(f"{fault.what}: {found or 'NOT FOUND'}", flush=True)
        left += [fault] * (not found)
    return left


def main() -> None:
    """Plant, test and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2018)
    given = parser.parse_args()
    every = [
        (path, number)
        for path in sorted({path for package in PACKAGES for path in Path().glob(package)})
        for number in range(len(list(places(ast.parse(path.read_text(encoding="utf-8"))))))
    ]
    drawn = random.Random(given.seed).sample(every, min(given.faults, len(every)))
    faults = [planted(*place) for place in drawn]
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "checkout"
        ignored = shutil.ignore_patterns(".venv", ".worktrees", "*.db")
        shutil.copytree(".", copied, symlinks=True, ignore=ignored)
        tests = set(Path("tests").glob("test_*.py"))

        def near(fault: Fault) -> set[Path]:
            module = ".".join(fault.path.with_suffix("").parts)
            return {path for path in tests if module in imports(path)}

        left = missed(copied, [(fault, sorted(near(fault))) for fault in faults])
        if left:
            left = missed(copied, [(each, sorted(tests - near(each))) for each in left])
    found = len(faults) - len(left)
    print(f"{found} of {len(faults)} faults found, {len(every)} places to plant one")


if __name__ == "__main__":
    main()
