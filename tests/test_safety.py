"""What the code never does, held over its sources; and what a terminal, a log and MLflow never get
to see.
"""

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from gpt1.base.errors import UserError, printable, run_stage

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    [
        *(ROOT / "gpt1").rglob("*.py"),
        *(ROOT / "flows").rglob("*.py"),
        *(ROOT / "benchmarks").rglob("*.py"),
    ]
)
STARTED = [
    *SOURCES,
    ROOT / "Makefile",
    ROOT / "prefect.yaml",
    ROOT / "dvc.yaml",
    *(ROOT / "docs").glob("*.md"),
    ROOT / "README.md",
]
PICKLES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "jsonpickle",
}
RUNS_CODE = {"eval", "exec", "compile", "__import__", "execfile"}
SHELLS = {
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "commands.getoutput",
}
TOKEN = "hf_aVeryPrivateToken0123456789"


class Call(NamedTuple):
    """A call in a source file: its dotted name, its named arguments, where it stands."""

    name: str
    named: dict[str, ast.expr]
    where: str


@cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def calls():
    found = [(path, node) for path in SOURCES for node in nodes(path) if isinstance(node, ast.Call)]
    return [
        Call(
            dotted(node.func),
            {keyword.arg or "**": keyword.value for keyword in node.keywords},
            f"{path.relative_to(ROOT)}:{node.lineno}",
        )
        for path, node in found
    ]


def dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


@pytest.mark.slow
def test_nothing_pickles():
    assert [
        f"{path}: {name}"
        for path in SOURCES
        for name in imported(path)
        if name.split(".")[0] in PICKLES
    ] == []


def test_nothing_runs_text_as_code():
    found = [
        where
        for name, named, where in calls()
        if name in RUNS_CODE | SHELLS
        or (isinstance(shell := named.get("shell"), ast.Constant) and shell.value)
    ]
    assert found == []


def test_every_load_of_torch_and_numpy_is_of_numbers_alone():
    loads = calls()
    torch = [(named, where) for name, named, where in loads if name == "torch.load"]
    numpy = [(named, where) for name, named, where in loads if name in ("np.load", "numpy.load")]
    assert [where for named, where in torch if not _is(named.get("weights_only"), True)] == []
    assert [where for named, where in numpy if not _is(named.get("allow_pickle"), False)] == [], (
        "nothing that numpy reads may be a pickle"
    )
    assert [
        where
        for name, named, where in loads
        if _is(named.get("allow_pickle"), True)
        or _is(named.get("weights_only"), False)
        or _is(named.get("trust_remote_code"), True)
    ] == []


def _is(value, wanted):
    return isinstance(value, ast.Constant) and value.value is wanted


def test_yaml_is_read_by_the_safe_reader_alone():
    found = [
        where for name, _, where in calls() if re.search(r"\byaml\.(unsafe_|full_)?load", name)
    ]
    made = [(named, where) for name, named, where in calls() if name == "YAML"]
    assert found == []
    for named, where in made:
        kind = named.get("typ")
        assert "params/yaml.py" in where, f"{where}: read_yaml of gpt1/params/yaml.py is for that"
        assert kind is None or (isinstance(kind, ast.Constant) and kind.value == "safe")


def test_no_description_of_a_parquet_column_is_asked_for():
    """pyarrow ends the process over a damaged one (an exception of C++ that nothing catches); those
    of whole row groups are safe.
    """
    asked = re.compile(r"group\w*(\([^()]*\))?\.column\(")
    assert [path for path in SOURCES if asked.search(path.read_text(encoding="utf-8"))] == []


def test_servers_listen_on_this_machine_alone():
    everywhere = re.compile(
        r"0\.0\.0\.0|--host["
        r" =,\"']+(?!127\.0\.0\.1|localhost)[\d*:\[]|[\"']::[\"']|host=[\"'][\"']|INADDR_ANY"
    )
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in STARTED
        for line in path.read_text(encoding="utf-8").splitlines()
        if everywhere.search(line)
    ]
    assert found == []
    started = [
        line
        for path in STARTED
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"(mlflow (server|models serve)|prefect server start)", line)
        and path.suffix != ".md"
        and "--host" in line
    ]
    assert started
    assert all("127.0.0.1" in line for line in started)


@pytest.mark.parametrize(
    "text",
    ["\x1b[2J\x1b]0;owned\x07", "\x9b31m", "a\rb", "\u202egnp.exe", "\ud800", "x\x00y", "\u200b"],
)
def test_a_line_of_ours_cannot_steer_a_terminal(text, capsys):
    assert printable(text).isprintable()
    assert str(UserError(f"expected a name, found {text}!")).isprintable()

    def fail():
        raise UserError(f"found {text}")

    def full():
        raise OSError(28, "No space left on device", f"data/{text}")

    for stage in (fail, full):
        with pytest.raises(SystemExit):
            run_stage(stage)
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


def test_a_line_of_ours_stays_a_line_and_keeps_its_advice():
    line = str(UserError("expected a name, found \x1b[31m\n\n; rename it"))
    assert line == r"expected a name, found \x1b[31m ; rename it"
    assert printable("héllo “naïve” 漢字 😀") == "héllo “naïve” 漢字 😀"


@pytest.mark.slow
def test_tokens_are_written_nowhere(tmp_path):
    """Private settings in .env and in the environment: no output, log, table of parameters or
    database holds them afterwards.
    """
    for name in ("conf", "dvc.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".env").write_text(
        f"HF_TOKEN={TOKEN}\nMLFLOW_TRACKING_PASSWORD={TOKEN}\nGPT1_DEVICE=cpu\n"
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GPT1_", "MLFLOW_"))
    } | {
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home/cache"),
        "AWS_SECRET_ACCESS_KEY": TOKEN,
        "HTTPS_PROXY": f"http://me:{TOKEN}@127.0.0.1:9",
        "MLFLOW_TRACKING_URI": f"http://me:{TOKEN}@127.0.0.1:9",
        "HF_HUB_OFFLINE": "1",
    }
    said = ""
    for command in (["gpt1.cli", "profile", "demo"], ["gpt1.stages", "acquire", "rte"]):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        said += done.stdout + done.stderr
    assert TOKEN not in said
    holding = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file()
        and path.name != ".env"
        and not path.is_symlink()
        and TOKEN.encode() in path.read_bytes()
    ]
    assert holding == []
    assert (tmp_path / "params.yaml").is_file(), said
    assert json.loads(json.dumps(said)), "something was said"
