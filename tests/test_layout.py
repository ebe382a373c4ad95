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
    "gpt1": 2700,
    "flows": 2700,
    "tests": 4000,
    "benchmarks": 4000,
}  # docstrings not counted

GROUND = {"cores", "errors", "files", "params.schema"}
ROOMS = {  # room -> what of ours it may import
    "cores": set(),
    "errors": set(),
    "files": {"errors"},
    "record": GROUND | {"params.recipes", "record"},
    "tracking": GROUND | {"record"},
    "text": GROUND | {"text"},
    "corpora": GROUND | {"corpora", "text.clean"},
    "contamination": GROUND | {"contamination", "text"},
    "sources": GROUND | {"sources"},
    "model": GROUND | {"model"},
    "tasks": GROUND | {"tasks", "sources", "text.bpe"},
    "train": GROUND | {"train", "model"},
    "report": (
        GROUND
        | {
            "params.recipes",
            "report",
            "sources.table",
            "tasks.table",
            "tasks.metrics",
            "train.schedules",
        }
    ),
    "demo": {"demo"},
    "generation": GROUND | {"generation", "model", "text.bpe", "text.clean"},
    "exchange": (
        GROUND
        | {
            "exchange",
            "model",
            "sources.addresses",
            "text",
            "tasks.shapes",
            "params.strict",
            "runs.git",
        }
    ),
    "page": (
        GROUND
        | {
            "page",
            "plan",
            "record",
            "report",
            "runs",
            "sources.table",
            "status.made_with",
            "tasks.table",
            "params.yaml",
        }
    ),
    "answers": GROUND | {"answers", "model", "record", "sources", "tasks", "text", "tracking"},
    "show": GROUND | {"show"},
    "submission": GROUND | {"submission", "runs.graph", "tasks"},
    "status": GROUND | {"plan.graph", "runs", "show", "status", "params.yaml"},
    "doctor": (
        GROUND
        | {
            "doctor",
            "plan.machines",
            "params.profile",
            "record.address",
            "runs",
            "show",
            "sources",
            "status",
            "train.launch",
            "train.precision",
            "train.speed",
        }
    ),
    "commands": (
        GROUND
        | {
            "answers",
            "cli",
            "doctor",
            "exchange",
            "generation",
            "page",
            "plan",
            "params.profile",
            "runs",
            "show",
            "status",
            "submission",
            "tracking",
            "train.launch",
        }
    ),
    "stages": (
        GROUND
        | {
            "runs.mark",
            "contamination",
            "corpora",
            "demo",
            "generation",
            "page",
            "text",
            "sources",
            "model",
            "tasks",
            "train",
            "report",
            "params.recipes",
            "record.live",
        }
    ),
    "params": GROUND | {"params", "sources", "tasks"},
    "runs": GROUND | {"runs", "params.profile", "train.launch"},
    "plan": (
        GROUND
        | {
            "model",
            "params.recipes",
            "plan",
            "params.profile",
            "runs",
            "sources.table",
            "tasks.table",
            "train",
            "params.yaml",
        }
    ),
    "cli": {"errors"},
}
HOMES = {  # library -> the only places that may import it
    "mlflow": [
        "gpt1/tracking.py",
        "gpt1/record/runs.py",
        "gpt1/answers/registered.py",
        "gpt1/answers/served.py",
    ],
    "deepspeed": ["gpt1/train/engine.py", "gpt1/train/zero.py"],
    "torch": [
        "gpt1/model/",
        "gpt1/train/",
        "gpt1/stages/pretrain.py",
        "gpt1/stages/finetune.py",
        "gpt1/stages/zero_shot.py",
        "gpt1/plan/measure.py",
        "gpt1/generation/",
        "gpt1/stages/generate.py",
        "gpt1/exchange/",
        "gpt1/answers/",
        "gpt1/doctor/machine.py",
    ],
    "requests": ["gpt1/sources/transfer.py"],
    "urllib3": ["gpt1/sources/transfer.py"],
    "platformdirs": ["gpt1/sources/cache.py"],
    "pyarrow": ["gpt1/tasks/exports.py", "gpt1/corpora/"],
    "ruamel": ["gpt1/params/yaml.py"],
    "yaml": [],
    "dvc": [
        "gpt1/runs/graph.py",
        "gpt1/runs/shared.py",
        "gpt1/runs/worktrees.py",
        "gpt1/status/index.py",
    ],
    "prefect": ["flows/"],
    "jinja2": ["gpt1/page/", "gpt1/exchange/"],
    "markdown_it": ["gpt1/page/"],
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


FLOWS_MAY_IMPORT = GROUND | {"flows", "record", "runs", "params.yaml"}


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


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.name == "__init__.py"], ids=relative
)
def test_packages_run_nothing_at_import(path: Path) -> None:
    assert len(ast.parse(path.read_text()).body) <= 1, (
        f"{relative(path)}: a docstring only, so that importing a room costs nothing"
    )
