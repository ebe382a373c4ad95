"""The package where its users have it: a wheel, an empty folder, no clone; and the light core."""

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from made_wheel import ROOT, Installation
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gpt1.base.extras import EXTRAS, how_to_get
from gpt1.params.yaml import parse_yaml, read_yaml
from gpt1.pipeline import template

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SMALL = ("world.town.books=10", "bpe.merges=300", "shard.heldout_fraction=0.3")
LIGHT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel installed, and a project folder of it."""
    installation = Installation(tmp_path_factory.mktemp("wheel"))
    installation.install(installation.build("0.1.0"))
    installation.run("gpt1", "init")
    return installation


def ran(said: str) -> list[str]:
    """The stages of which `gpt1 run` says that they ran."""
    return re.findall(r"^([\w@]+): \d+ s", said, re.MULTILINE)


@pytest.mark.slow
def test_a_wheel_holds_one_package_and_the_files_of_a_project_folder(
    installed: Installation,
) -> None:
    names = zipfile.ZipFile(installed.build("0.1.0")).namelist()
    assert {name.split("/")[0] for name in names} == {"gpt1", "gpt1-0.1.0.dist-info"}
    assert "gpt1/py.typed" in names
    carried = {name.removeprefix("gpt1/project/") for name in names if "/project/" in name}
    assert carried == template.files().keys()
    assert installed.run("gpt1", "--version").startswith("gpt1 0.1.0\nextras: ")
    assert installed.run("git", "status", "--porcelain") == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_first_stages_run_and_an_upgrade_runs_again_what_has_other_code(
    installed: Installation,
) -> None:
    installed.run("gpt1", "profile", "demo", "--tasks", "cola", *SMALL)
    first = ran(installed.run("gpt1", "run", "shard", "encode"))
    assert {"check", "world@town", "clean", "bpe", "shard", "encode@cola"} <= set(first)
    assert "is up to date" in installed.run("gpt1", "run", "shard", "encode")
    assert "Running stage" not in installed.run("python", "-m", "dvc", "repro", "shard", "encode")

    for name in ("stages/clean.py", "results/captions.py"):
        with (installed.source / "gpt1" / name).open("a", encoding="utf-8") as file:
            file.write("# another version\n")
    installed.install(installed.build("0.2.0"))
    refused = installed.run("python", "-m", "gpt1.stages", "clean", status=2)
    assert refused.startswith("error: code.lock tells of other code than is installed")
    said = installed.run("gpt1", "status", "shard", "encode")
    assert re.search(r"gpt1 0\.1\.0 was installed, now 0\.2\.0: other code for clean, ", said)
    assert "gpt1/stages/clean.py changed" in " ".join(said.split())
    again = ran(installed.run("gpt1", "run", "shard", "encode"))
    assert again == ["clean"], "what it wrote is the same, and reports were not asked for"


@pytest.mark.slow
def test_a_second_init_brings_what_the_first_wrote_and_leaves_what_is_anothers(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = installed.folder
    (folder / "README.md").write_text("mine")
    conf = installed.source / "conf/small.yaml"
    conf.write_text(conf.read_text() + "# newer\n")
    installed.install(installed.build("0.3.0"))
    assert "conf/small.yaml here: gpt1 init brings" in installed.run("gpt1", "status")
    said = installed.run("gpt1", "init")
    assert "left as it is: README.md" in said
    assert said.count("left as it is") == 2, "params.yaml is the other"
    assert (folder / "README.md").read_text() == "mine"
    assert (folder / "conf/small.yaml").read_text().endswith("# newer\n")


def test_what_stands_in_the_way_of_init_is_one_line_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpt1.base.errors import UserError
    from gpt1.pipeline.init import make_folder

    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="is a checkout"):
        make_folder(ROOT, "demo")
    Path("file").touch()
    with pytest.raises(UserError, match="file cannot be written"):
        make_folder(Path("file"), "demo")
    Path("code.lock").write_text("another: program's\n")
    with pytest.raises(UserError, match="move it away"):
        make_folder(Path(), "demo")
    assert Path("code.lock").read_text() == "another: program's\n"
    with pytest.raises(UserError, match=r"made but for params.yaml: .*--data FOLDER"):
        make_folder(Path("new"), "small")
    assert Path("new/.git").is_dir()
    Path("new/conf/mine.yaml").touch()
    Path("new/dvc.yaml").write_text("mine")
    make_folder(Path("new"), "demo")
    assert "left as it is: dvc.yaml" in capsys.readouterr().out
    assert Path("new/dvc.yaml").read_text() == "mine"


def test_a_stage_of_a_project_folder_rests_on_its_key_where_a_checkouts_rests_on_code() -> None:
    here = read_yaml(ROOT / "dvc.yaml")
    there = parse_yaml(template.text_of("dvc.yaml", ROOT / "dvc.yaml"))
    for name, row in here["stages"].items():
        stage = row.get("do", row)
        deps = stage.pop("deps", [])
        data = [path for path in deps if not path.startswith("gpt1/")]
        if data:
            stage["deps"] = data
        if data != deps:
            stage["params"].insert(0, {"code.lock": [name]})
    assert there == here


def test_the_makefile_of_a_project_folder_has_no_goal_of_a_checkout() -> None:
    text = template.text_of("Makefile", ROOT / "Makefile")
    goals = re.findall(r"^([a-z-]+):", text, re.MULTILINE)
    assert goals == ["help", "reproduce", "serve", "ui", "worker", "clean"]
    phony = re.findall(r"^\.PHONY: (.*)", text, re.MULTILINE)
    assert sorted(phony[0].split()) == sorted(goals)
    assert "setup" not in re.sub("#.*", "", text)


def modules_of(requirements: list[str]) -> Iterator[str]:
    """What is imported of these requirements, as far as the project imports it."""
    by_name: dict[str, set[str]] = {}
    for module, names in metadata.packages_distributions().items():
        for name in names:
            by_name.setdefault(canonicalize_name(name), set()).add(module)
    for line in requirements:
        name = canonicalize_name(Requirement(line).name)
        yield from by_name.get(name, {name})  # of one that is not installed its own name


@pytest.mark.slow
def test_each_module_that_is_not_of_the_core_is_named_with_its_extra() -> None:
    core = set(modules_of(PROJECT["dependencies"]))
    for extra, modules in EXTRAS.items():
        brought = set(modules_of(PROJECT["optional-dependencies"][extra]))
        # of dvc, datatrove (twice), hydra-core, requests
        of_others = {"dvc_objects", "loguru", "multiprocess", "omegaconf", "urllib3"}
        assert set(modules) - of_others <= brought, extra
        assert not set(modules) & core, extra
    line = how_to_get(ModuleNotFoundError(name="dvc.repo"))
    assert "dvc" in line
    assert "pip install 'gpt1[pipeline]'" in line
    assert how_to_get(ModuleNotFoundError(name="gpt1.nothing")) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--version"], 0, "gpt1 "),
        (["predict", "cola", "--weights", "none", "--first", "A."], 2, "error: none"),
        (["generate", "--prompt", "a"], 2, "no model has been trained here"),
        (["export", "out"], 2, "error: "),
        (["table", "table2"], 2, "error: data/report/table2"),
        (["run"], 2, "pip install 'gpt1[pipeline]'"),
        (["status"], 2, "pip install 'gpt1[pipeline]'"),
        (["profile", "demo"], 2, "pip install 'gpt1[pipeline]'"),
        (["init", "x"], 2, "pip install 'gpt1[pipeline]'"),
    ],
)
def test_the_light_core_knows_its_own_and_asks_in_one_line_for_the_rest(
    words: list[str], status: int, said: str, tmp_path: Path
) -> None:
    for name in ("params.yaml", "dvc.yaml", "conf"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".dvc").mkdir()
    absent = {module for modules in EXTRAS.values() for module in modules} - {"requests", "urllib3"}
    program = LIGHT.format(absent=absent) + "from gpt1.cli import main; main()"
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
