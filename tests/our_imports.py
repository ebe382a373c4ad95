"""Which of our files import which, read from their source."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "gpt1").rglob("*.py"))


def relative(path):
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path):
    """Every module that a file imports, inside functions too; `from gpt1.a import b` counts as
    gpt1.a.b where that is a module.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if "shipped" in path.parts:  # it lies beside others in an exported folder
                found |= {node.module} if node.module and not node.level else set()
                continue
            assert node.level == 0, (
                f"{relative(path)}:{node.lineno}: write the import from the root: from gpt1.…"
                " import …"
            )
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if module_file(name) else str(node.module))
    return found


def module_file(name):
    """The file of one of our modules or packages, or None."""
    base = ROOT.joinpath(*name.split("."))
    ours = name.startswith(("gpt1.", "flows."))
    return next(
        (
            path
            for path in (base.with_suffix(".py"), base / "__init__.py")
            if ours and path.is_file()
        ),
        None,
    )


def closure(start):
    """Every file of ours that importing `start` can bring in."""
    seen, waiting = set(), [start]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += [file for name in imports(path) if (file := module_file(name))]
    return seen
