"""The architecture, held: who may import whom, and how long a file may be."""

import ast
import io
import tokenize
from pathlib import Path

import pytest
from our_imports import ROOT, SOURCES, imports, relative

FLOWS = sorted((ROOT / "flows").rglob("*.py"))
OTHERS = sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
TOKEN_CEILING = {
    "gpt1": 2200,
    "flows": 2200,
    "tests": 4000,
    "benchmarks": 2400,
}  # docstrings not counted

GROUND = {"base", "params.schema"}
ROOMS = {  # room -> what of ours it may import
    "base": {"base"},
    "params": GROUND | {"params", "sources", "tasks"},
    "sources": GROUND | {"sources"},
    "corpus": GROUND | {"corpus"},
    "tasks": GROUND | {"tasks", "sources", "corpus"},
    "model": GROUND | {"model"},
    "train": GROUND | {"train", "model", "corpus.shards", "tasks.metrics"},
    "inference": (
        GROUND | {"params.recipes", "inference", "model", "corpus", "sources", "tasks", "tracking"}
    ),
    "tracking": GROUND | {"params.recipes", "tracking"},
    "pipeline": (
        GROUND | {"model", "params", "pipeline", "sources", "tasks.table", "tracking", "train"}
    ),
    "results": (
        GROUND
        | {"params", "pipeline", "results", "sources.table", "tasks", "tracking", "train.schedules"}
    ),
    "exchange": GROUND
    | {
        "corpus",
        "exchange",
        "inference.finished",
        "inference.loading",
        "model",
        "params",
        "pipeline",
        "sources",
        "tasks",
    },
    "demo": {"demo"},
    "stages": (
        GROUND
        | {
            "corpus",
            "demo",
            "inference",
            "model",
            "params.recipes",
            "pipeline.code",
            "pipeline.completion",
            "results",
            "sources",
            "tasks",
            "tracking.live",
            "train",
        }
    ),
    "commands": (
        GROUND
        | {
            "cli",
            "commands.options",
            "exchange",
            "inference",
            "params",
            "pipeline",
            "results",
            "tracking",
            "train",
        }
    ),
    "cli": {"base"},
}
HOMES = {  # library -> the only places that may import it
    "mlflow": [
        "gpt1/tracking/sync.py",
        "gpt1/tracking/connection.py",
        "gpt1/tracking/datasets.py",
        "gpt1/tracking/models.py",
        "gpt1/inference/registered.py",
        "gpt1/inference/served.py",
    ],
    "deepspeed": ["gpt1/train/engine.py", "gpt1/train/zero.py"],
    "torch": [
        "gpt1/model/",
        "gpt1/train/",
        "gpt1/stages/pretrain.py",
        "gpt1/stages/finetune.py",
        "gpt1/stages/zero_shot.py",
        "gpt1/pipeline/plan/measure.py",
        "gpt1/inference/",
        "gpt1/exchange/",
        "gpt1/pipeline/doctor/machine.py",
    ],
    "triton": ["gpt1/model/kernels/"],
    "requests": ["gpt1/sources/transfer.py"],
    "urllib3": ["gpt1/sources/transfer.py"],
    "platformdirs": ["gpt1/sources/cache.py"],
    "pyarrow": ["gpt1/tasks/exports.py", "gpt1/corpus/", "gpt1/results/records.py"],
    "pandas": ["gpt1/results/records.py", "gpt1/results/spreads.py"],
    "ruamel": ["gpt1/params/yaml.py"],
    "yaml": [],
    "dvc": [
        "gpt1/pipeline/graph.py",
        "gpt1/pipeline/shared.py",
        "gpt1/pipeline/worktrees.py",
        "gpt1/pipeline/reasons.py",
        "gpt1/pipeline/dvc.py",  # which is its command line
    ],
    "prefect": ["flows/", "gpt1/pipeline/prefect_names.py"],
    "jinja2": ["gpt1/results/page/", "gpt1/exchange/"],
    "markdown_it": ["gpt1/results/article/", "gpt1/results/page/"],
    "datatrove": ["gpt1/corpus/steps.py"],
    "ray": ["gpt1/corpus/steps.py"],
    "pickle": [],
}


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_imports_point_down(path: Path) -> None:
    room = path.relative_to(ROOT / "gpt1").parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for name in sorted(imports(path)):
        if name.startswith("gpt1."):
            inner = name.removeprefix("gpt1.")
            allowed = any(inner == place or inner.startswith(f"{place}.") for place in ROOMS[room])
            assert allowed, (
                f"{relative(path)} imports {name}: {room} may import only {sorted(ROOMS[room])}"
                " (see ROOMS in this test)"
            )
            assert not (room == "stages" and inner.startswith("stages.")), (
                "stages meet through data/<stage>/, never by import"
            )


FLOWS_MAY_IMPORT = GROUND | {"flows", "tracking", "pipeline", "params.yaml"}


@pytest.mark.parametrize("path", FLOWS, ids=relative)
def test_flows_know_how_stages_run_but_not_what_they_do(path: Path) -> None:
    for name in sorted(imports(path)):
        inner = name.removeprefix("gpt1.")
        assert not name.startswith("gpt1.") or any(
            inner == place or inner.startswith(f"{place}.") for place in FLOWS_MAY_IMPORT
        ), (
            f"{relative(path)} imports {name}: flows may import only {sorted(FLOWS_MAY_IMPORT)} of"
            " gpt1"
        )


@pytest.mark.parametrize("path", [*SOURCES, *FLOWS], ids=relative)
def test_each_library_has_its_home(path: Path) -> None:
    for name in imports(path):
        homes = HOMES.get(name.split(".")[0])
        if homes is not None:
            assert relative(path).startswith(tuple(homes)), (
                f"{relative(path)} imports {name}; its home is {homes or 'nowhere'}"
            )


def test_every_room_is_ruled() -> None:
    rooms = {path.relative_to(ROOT / "gpt1").parts[0].removesuffix(".py") for path in SOURCES} - {
        "__init__"
    }
    assert rooms == set(ROOMS), "a new room needs its row in ROOMS; a row without a room goes"


def tokens(path: Path) -> int:
    """Python's tokens of a file, without comments, layout and docstrings."""
    source = path.read_text()
    docstrings = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and ast.get_docstring(node) is not None
    }
    return sum(
        token.type not in LAYOUT
        and not (token.type == tokenize.STRING and token.start[0] in docstrings)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )


@pytest.mark.parametrize("path", [*SOURCES, *FLOWS, *OTHERS], ids=relative)
def test_file_size(path: Path) -> None:
    found, ceiling = tokens(path), TOKEN_CEILING[path.relative_to(ROOT).parts[0]]
    assert found <= ceiling, (
        f"{relative(path)} has {found:,} tokens, the ceiling is {ceiling:,}:"
        " divide it by what it knows"
    )


def defined(kind: type[ast.stmt]) -> dict[str, list[str]]:
    """{name: files that define it at the top}, of what travels with an export none: it cannot
    import ours.
    """
    files: dict[str, list[str]] = {}
    for path in [*SOURCES, *FLOWS]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, kind) and "shipped" not in path.parts:
                files.setdefault(node.name, []).append(relative(path))  # type: ignore[attr-defined]
    return files


def test_a_class_name_means_one_thing() -> None:
    twice = {name: files for name, files in defined(ast.ClassDef).items() if len(files) > 1}
    assert not twice, f"say in the name what sets them apart: {twice}"


def test_a_public_function_name_is_not_everywhere() -> None:
    many = {
        name: files
        for name, files in defined(ast.FunctionDef).items()
        if len(files) > 4 and name != "main" and not name.startswith("_")
    }
    assert not many, f"say in the name what each gives: {many}"


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.name == "__init__.py"], ids=relative
)
def test_packages_run_nothing_at_import(path: Path) -> None:
    public = 1 if relative(path) == "gpt1/results/__init__.py" else 0  # load, which imports later
    assert len(ast.parse(path.read_text()).body) <= 1 + public, (
        f"{relative(path)}: a docstring only, so that importing a room costs nothing"
    )


@pytest.mark.parametrize("path", OTHERS, ids=relative)
def test_what_a_sibling_is_asked_for_is_there(path: Path) -> None:
    """No other test imports most of benchmarks/."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            sibling = path.with_name(f"{node.module}.py")
            if sibling.is_file():
                there = {
                    name.id
                    for name in ast.walk(ast.parse(sibling.read_text()))
                    if isinstance(name, ast.Name)
                }
                there |= {
                    getattr(one, "asname", None) or one.name
                    for one in ast.walk(ast.parse(sibling.read_text()))
                    if isinstance(one, ast.FunctionDef | ast.ClassDef | ast.alias)
                }
                assert {alias.name for alias in node.names} <= there
