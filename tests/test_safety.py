"""What the code never does, held over its sources; and what a terminal, a log and MLflow never get
to see.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpt1.base.errors import UserError, printable, run_stage

ROOT = Path(__file__).parents[1]
SOURCES = [
    path for package in ("gpt1", "flows", "benchmarks") for path in (ROOT / package).rglob("*.py")
]
STARTED = [
    *SOURCES,
    ROOT / "Makefile",
    ROOT / "prefect.yaml",
    ROOT / "dvc.yaml",
    *(ROOT / "docs").glob("*.md"),
    ROOT / "README.md",
]
# pickles, text run as code, shells, YAML's unsafe readers, servers for all addresses
RULES = "S102,S104,S301,S302,S307,S403,S506,S602,S604,S605"
TOKEN = "hf_aVeryPrivateToken0123456789"


def test_nothing_unpickles_runs_text_as_code_or_starts_a_shell():
    places = [ROOT / name for name in ("gpt1", "flows", "benchmarks")]
    command = ["ruff", "check", "--isolated", "--ignore-noqa", "--select", RULES, *places]
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    trusting = re.compile("allow_pickle=True|weights_only=False|trust_remote_code=True")
    assert [path for path in SOURCES if trusting.search(path.read_text(encoding="utf-8"))] == []


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
