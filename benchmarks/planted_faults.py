"""Faults planted one at a time in the code that computes: which does the fast suite find?

    python benchmarks/planted_faults.py [--faults 100] [--seed 2018] [--out FILE]

In the root of a checkout. Each fault is one operator, comparison or number changed in one place,
drawn by the seed. The tests that import the module run first; what they miss, all others that are
not slow are asked for. Both must pass before a fault is planted: an error of this machine would
count as found. A fault that no test notices is printed with its line: a missing test, or code that
nothing needs.
"""

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOMS = (
    "gpt1/model",
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
    "gpt1/**/filters.py",
    "gpt1/**/continuations.py",
)
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
TESTS = ["-x", "-vv", "-p", "no:cacheprovider", "-m", "not slow and not server and not gpu"]
SLOWER, SECONDS = (
    3,
    60,
)  # a fault by which tests take so much longer than without it counts as found


def modules(root: Path) -> list[Path]:
    """Files of the code that computes."""
    found = [
        path
        for place in ROOMS
        for path in (
            (root / place).rglob("*.py") if (root / place).is_dir() else sorted(root.glob(place))
        )
    ]
    return sorted({path for path in found if path.name != "__init__.py"})


def places(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes that a fault can be planted in: inside functions, and no annotation."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.BinOp | ast.BoolOp):
                    yield from [node] * (type(node.op) in SWAPS)
                elif isinstance(node, ast.Compare):
                    yield from [node] * (type(node.ops[0]) in SWAPS)
                elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    yield node


def planted(source: str, number: int) -> tuple[int, str, str]:
    """The line of the so-manieth place, what was done, and the text with the fault."""
    tree = ast.parse(source)
    node = list(places(tree))[number]
    before = ast.unparse(copy.deepcopy(node))
    if isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.Constant):
        node.value = node.value + 1  # type: ignore[operator]
    return node.lineno, f"{before} -> {ast.unparse(node)}", ast.unparse(tree)  # type: ignore[attr-defined]


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
        running = [
            line
            for line in (error.stdout or b"").decode().splitlines()
            if line.startswith("tests/")
        ]
        return f"ENDLESS {running[-1] if running else 'before the first test'}"[:160]
    if done.returncode in (0, 5):
        return ""
    lines = done.stdout.decode().splitlines()
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return (failed or [f"pytest does not start: {' '.join(lines[-1:])}"])[0][:160]


def seconds_untouched(copied: Path, tests: list[Path]) -> float:
    """How long the tests take where no fault is planted. Ends the command where one fails."""
    begun = time.monotonic()
    if failed := failing(copied, tests):
        raise SystemExit(
            f"error: expected tests that pass before a fault is planted, found {failed}"
        )
    return time.monotonic() - begun


@dataclass
class Fault:
    """A fault: the file, the line, what was changed, the file's text with it, and the test that
    finds it, "" for none.
    """

    path: Path
    line: int
    what: str
    text: str
    found: str = ""

    @property
    def module(self) -> str:
        """The dotted name that tests import."""
        return ".".join(self.path.with_suffix("").parts)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}: {self.found or 'NOT FOUND'}"

    def try_on(self, root: Path, copied: Path, tests: list[Path], seconds: float) -> None:
        """Plant it in the copy, run the tests, and take it out again."""
        (copied / self.path).write_text(self.text, encoding="utf-8")
        self.found = failing(copied, tests, SLOWER * seconds + SECONDS)
        shutil.copy(root / self.path, copied / self.path)


def write(path: Path | None, faults: list[Fault]) -> None:
    """The faults as JSON."""
    if path:
        found = [
            {"place": f"{fault.path}:{fault.line}", "fault": fault.what, "found": fault.found}
            for fault in faults
        ]
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def main() -> None:
    """Plant, test and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2018)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    root = Path.cwd()
    every = [
        (path.relative_to(root), number)
        for path in modules(root)
        for number in range(len(list(places(ast.parse(path.read_text(encoding="utf-8"))))))
    ]
    faults = [
        Fault(path, *planted((root / path).read_text(encoding="utf-8"), number))
        for path, number in random.Random(given.seed).sample(every, min(given.faults, len(every)))
    ]
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "checkout"
        shutil.copytree(
            root,
            copied,
            symlinks=True,
            ignore=shutil.ignore_patterns(".venv", ".worktrees", "*.db"),
        )
        tests = {
            path.relative_to(copied): path.read_text(encoding="utf-8")
            for path in sorted((copied / "tests").glob("test_*.py"))
        }
        near = {
            fault.path: [test for test, text in tests.items() if fault.module in text]
            for fault in faults
        }
        nearest = sorted({test for found in near.values() for test in found})
        seconds = seconds_untouched(copied, nearest)
        for fault in faults:
            if near[fault.path]:
                fault.try_on(root, copied, near[fault.path], seconds)
            print(fault, flush=True)
            write(given.out, faults)
        if left := [fault for fault in faults if not fault.found]:
            print(f"{len(left)} left for the other tests", flush=True)
            seconds += seconds_untouched(copied, [test for test in tests if test not in nearest])
        for fault in left:
            fault.try_on(
                root, copied, [test for test in tests if test not in near[fault.path]], seconds
            )
            print(fault, flush=True)
            write(given.out, faults)
    caught = sum(bool(fault.found) for fault in faults)
    print(f"{caught} of {len(faults)} faults found, {len(every)} places to plant one")


if __name__ == "__main__":
    main()
