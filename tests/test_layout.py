"""The architecture, held: who may import whom, how long a file may be, and DVC's blind spot (it
does not follow imports).
"""

import ast
import io
import tokenize
from pathlib import Path

import pytest

from gpt1.yaml_files import read_yaml

ROOT = Path(__file__).parents[1]
FUNCTIONS = {
    "ablate": "finetune",
    "transfer": "finetune",
}  # as in gpt1/stages/__main__.py, which runs when imported
SOURCES = sorted((ROOT / "gpt1").rglob("*.py"))
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

GROUND = {"config", "cores", "errors", "files"}
ROOMS = {  # room -> what of ours it may import
    "config": {"errors", "sections", "strict", "yaml_files"},
    "sections": set(),
    "cores": set(),
    "errors": set(),
    "files": {"errors"},
    "strict": {"errors"},
    "yaml_files": {"errors", "files"},
    "record": GROUND | {"record"},
    "tracking": GROUND | {"record"},
    "text": GROUND | {"text"},
    "corpora": GROUND | {"corpora", "text.clean"},
    "contamination": GROUND | {"contamination", "text"},
    "sources": GROUND | {"sources"},
    "model": GROUND | {"model"},
    "tasks": GROUND | {"tasks", "sources", "text.bpe"},
    "train": GROUND | {"train", "model"},
    "report": GROUND | {"report", "tasks.table", "tasks.metrics", "train.schedules"},
    "demo": {"demo"},
    "generation": GROUND | {"generation", "model", "text.bpe", "text.clean"},
    "exchange": (
        GROUND
        | {"exchange", "model", "sources.addresses", "text", "tasks.shapes", "strict", "runs.git"}
    ),
    "page": (
        GROUND
        | {
            "page",
            "plan",
            "record",
            "report",
            "runs",
            "status.made_with",
            "tasks.table",
            "yaml_files",
        }
    ),
    "answers": GROUND | {"answers", "model", "record", "sources", "tasks", "text", "tracking"},
    "show": GROUND | {"show"},
    "submission": GROUND | {"submission", "runs.graph", "tasks"},
    "status": GROUND | {"plan.graph", "runs", "show", "status", "yaml_files"},
    "doctor": (
        GROUND
        | {
            "doctor",
            "plan.machines",
            "profile",
            "record.address",
            "runs",
            "show",
            "sources",
            "status",
            "train.launch",
            "train.precision",
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
            "profile",
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
            "tracking",
        }
    ),
    "profile": GROUND | {"strict", "sources", "tasks", "yaml_files"},
    "runs": GROUND | {"runs", "profile", "train.launch"},
    "plan": GROUND | {"plan", "profile", "runs", "tasks.table", "yaml_files", "train", "model"},
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
    "ruamel": ["gpt1/yaml_files.py"],
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
EXEMPT_FROM_DEPS = (
    "gpt1/config.py",
    "gpt1/cores.py",
    "gpt1/errors.py",
    "gpt1/files.py",
    "gpt1/runs/mark.py",
    "gpt1/sections.py",
    "gpt1/strict.py",
    "gpt1/yaml_files.py",
    "gpt1/tracking.py",
    "gpt1/record/",
    "gpt1/train/launch",
)  # none changes outputs


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> set[str]:
    """Every module that a file imports, inside functions too; `from gpt1.a import b` counts as
    gpt1.a.b where that is a module.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{relative(path)}:{node.lineno}: write the import from the root: from gpt1.…"
                " import …"
            )
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if module_file(name) else str(node.module))
    return found


def module_file(name: str) -> Path | None:
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


def closure(start: Path) -> set[Path]:
    """Every file of ours that importing `start` can bring in."""
    seen, waiting = set(), [start]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += [file for name in imports(path) if (file := module_file(name))]
    return seen


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


FLOWS_MAY_IMPORT = GROUND | {"flows", "record", "runs", "yaml_files"}


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


def stages() -> dict[str, dict[str, object]]:
    rows = read_yaml(ROOT / "dvc.yaml")["stages"]
    return {name: row.get("do", row) for name, row in rows.items()}


@pytest.mark.parametrize("name", sorted(stages()))
def test_dvc_sees_what_a_stage_imports(name: str) -> None:
    stage = stages()[name]
    *python, verb = str(stage["cmd"]).split()[:4]
    file = module_file(f"gpt1.stages.{FUNCTIONS.get(verb, verb)}")
    assert file, f"dvc.yaml: {name} runs {verb}, which is no stage of ours"
    assert python == ["python", "-m", "gpt1.stages"]
    deps = [str(dep) for dep in stage.get("deps", [])]  # type: ignore[attr-defined]
    unseen = sorted(
        path
        for path in map(relative, closure(file))
        if not path.endswith("__init__.py")
        and not path.startswith(EXEMPT_FROM_DEPS)
        and not any(path == dep or path.startswith(f"{dep}/") for dep in deps)
    )
    if name == "check":  # its result is a constant: nothing that it imports can change it
        return
    assert not unseen, (
        f"dvc.yaml: {name} imports {unseen} but has no dep on them, so DVC would not re-run it when"
        " they change"
    )


def test_every_dep_of_ours_exists() -> None:
    for name, stage in stages().items():
        for dep in stage.get("deps", []):  # type: ignore[attr-defined]
            if str(dep).startswith("gpt1/"):
                assert (ROOT / str(dep)).exists(), (
                    f"dvc.yaml: {name} depends on {dep}, which is not there"
                )
