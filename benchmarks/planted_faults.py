"""Faults planted one at a time in the code that computes: which does the fast suite find?

    python benchmarks/planted_faults.py [--faults 100] [--seed 2018] [--out FILE]

In the root of a checkout. Each fault is one operator, comparison or number changed in one place,
drawn by the seed; the tests that import the module run first, then all others that are not slow.
A fault that no test notices is printed with its line: a missing test, or code that nothing needs.
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
from collections.abc import Iterator
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
    "gpt1/**/bootstrap.py",
    "gpt1/**/scores.py",
    "gpt1/**/filters.py",
    "gpt1/**/decode.py",
    "gpt1/**/beam.py",
    "gpt1/**/perplexity.py",
    "gpt1/**/continuations.py",
    "gpt1/tasks/contamination/index.py",
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
TESTS = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not server and not gpu"]
SECONDS = 600  # a fault that makes a loop endless counts as found


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


def found_by(copied: Path, module: str) -> str:
    """The first test that fails, "" for none."""
    tests = sorted((copied / "tests").glob("test_*.py"))
    near = [path for path in tests if module in path.read_text(encoding="utf-8")]
    for chosen in (near, [path for path in tests if path not in near]):
        if not chosen:
            continue
        command = [sys.executable, "-m", "pytest", *TESTS, *map(str, chosen)]
        environment = {**os.environ, "PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=copied,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return "it does not end"
        if done.returncode not in (0, 5):
            failed = [
                line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERR"))
            ]
            return failed[0][:160] if failed else "the tests do not start"
    return ""


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
    chosen = random.Random(given.seed).sample(every, min(given.faults, len(every)))
    results = []
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "checkout"
        shutil.copytree(
            root,
            copied,
            symlinks=True,
            ignore=shutil.ignore_patterns(".venv", ".worktrees", "*.db"),
        )
        for path, number in chosen:
            source = (root / path).read_text(encoding="utf-8")
            line, what, text = planted(source, number)
            (copied / path).write_text(text, encoding="utf-8")
            test = found_by(copied, ".".join(path.with_suffix("").parts))
            (copied / path).write_text(source, encoding="utf-8")
            results.append({"place": f"{path}:{line}", "fault": what, "found": test})
            print(f"{path}:{line}: {what}: {test or 'NOT FOUND'}", flush=True)
            if given.out:
                given.out.write_text(json.dumps(results, indent=1), encoding="utf-8")
    caught = sum(bool(result["found"]) for result in results)
    print(f"{caught} of {len(results)} faults found, {len(every)} places to plant one")


if __name__ == "__main__":
    main()
