"""The package where its users have it: a wheel, an empty folder, no clone; and the light core."""

import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
LIGHT = '''# without what the extras bring
import sys
ABSENT = """datatrove deepspeed dvc fastapi loguru matplotlib mlflow prefect psutil ray sklearn
threadpoolctl"""
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT.split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
'''


@pytest.mark.slow
def test_a_wheel_is_one_package_that_shows_a_shipped_run(tmp_path):
    """Built from a copy by the real back end; a virtual environment has it alone of ours and borrows
    the packages of this one.
    """
    source, made, folder = tmp_path / "source", tmp_path / "venv", tmp_path / "my run"
    passing = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "gpt1", source / "gpt1", ignore=passing)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    folder.mkdir()
    subprocess.run([sys.executable, "-c", BUILD, folder], cwd=source, check=True)
    wheel = next(folder.glob("*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"gpt1", f"gpt1-{VERSION}.dist-info"}
    assert "gpt1/py.typed" in names

    venv.create(made, with_pip=True)
    packages = next(made.glob("lib/python*/site-packages"))
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "borrowed.pth").write_text("\n".join(borrowed))
    environment = {"PATH": f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}

    def run(*words):
        return subprocess.check_output(
            words, cwd=folder, env=environment | {"GPT1_MLFLOW": "off"}, text=True
        )

    run("python", "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    assert run("gpt1", "--version").startswith(f"gpt1 {VERSION}")
    assert "Table 5" in run("python", "-m", "gpt1", "table", "table5", "--run", "reference/town")

    def refused(*words):
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        return done.stderr

    assert "make setup, and run this in a project folder" in refused("gpt1", "run")
    (folder / "gpt1").mkdir()  # a clone, whose own environment is not the active one
    (folder / "gpt1/cli.py").touch()
    assert f"this gpt1 is that of {packages}: activate" in refused("gpt1", "table")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["predict", "cola", "--weights", "none", "--first", "A."], 2, "error: none"),
        (["generate", "a"], 2, "is not there; run the stage"),
        (["run"], 2, "pip install '.[pipeline]'"),
    ],
)
def test_the_light_core_knows_its_own_and_asks_in_one_line_for_the_rest(
    words, status, said, tmp_path
):
    for name in ("params.yaml", "dvc.yaml", "conf"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".dvc").mkdir()
    program = LIGHT + "from gpt1.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in done.stdout + done.stderr, done.stderr
    assert (done.returncode, len(done.stderr.splitlines())) == (status, 1 if status else 0)
