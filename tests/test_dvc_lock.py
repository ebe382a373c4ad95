"""dvc.lock, written a stage at a time, has the bytes that DVC writes; what is read is what DVC
reads.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dvc.dependency.param import read_param_file
from dvc.fs import localfs
from dvc.utils.serialize import dumps_yaml, modify_yaml, parse_yaml
from made_graph import ROOT, Repository

from gpt1.pipeline import dvc

REPLACED = """
from dvc import dvcfile
from dvc.dependency import param
from dvc.utils import serialize, strictyaml
from dvc.utils.serialize import _yaml
assert dvcfile.modify_yaml is serialize.modify_yaml
assert _yaml.parse_yaml is strictyaml.parse_yaml is serialize.parse_yaml
assert serialize.load_yaml.__globals__ is vars(_yaml)
assert param.ParamsDependency.read_params.__globals__["read_param_file"] is param.read_param_file
"""


def entry(name: str, md5: str) -> dict[str, object]:
    deps = [{"path": f"data/{name}", "hash": "md5", "md5": md5, "size": 12}]
    rates = {"finetune.learning_rate": 6.25e-05, "list": [1, [2]], "none": None, "text": "no: 'x'"}
    return {"cmd": f"python -m {name} " + "word " * 30, "deps": deps, "params": {"p.yaml": rates}}


def written(way: object, path: Path, stages: dict[str, object]) -> str:
    with way(str(path), fs=localfs) as data:  # type: ignore[operator]
        data.setdefault("schema", "2.0")
        data["stages"] = data.get("stages", {})
        data["stages"].update(stages)
    return path.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "",
        dumps_yaml({"schema": "2.0", "stages": {}}),
        dumps_yaml({"schema": "2.0", "stages": {"clean": entry("clean", "a")}}),
        dumps_yaml(
            {"schema": "2.0", "stages": {n: entry(n, "a") for n in ("f@x-1", "clean", "b")}}
        ),
        dumps_yaml({"schema": "2.0", "stages": {"clean": entry("clean", "a")}, "datasets": []}),
        "# mine\n" + dumps_yaml({"schema": "2.0", "stages": {"clean": entry("clean", "a")}}),
        dumps_yaml({"schema": "2.0", "stages": {"clean": entry("clean", "a")}}) + "# mine\n",
        "{schema: '2.0', stages: {clean: {cmd: x}}}\n",
        "schema: '2.0'\nstages:\n  '12':\n    cmd: x\n",
    ],
)
def test_dvc_lock_gets_the_bytes_that_dvc_writes(tmp_path: Path, text: str) -> None:
    for stages in (
        {"clean": entry("clean", "b")},
        {"clean": entry("clean", "a")},
        {"new@x": entry("new", "a")},
        {"b": entry("b", "c"), "clean": entry("clean", "d")},
    ):
        path = tmp_path / "dvc.lock"
        found = []
        for way in (modify_yaml, dvc.modify):
            path.write_text(text)
            found.append(written(way, path, dict(stages)))
        assert found[0] == found[1]


def test_dvc_lock_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A kill amid the writing leaves the one before, never a part of the new one."""
    path = tmp_path / "dvc.lock"
    path.write_text(text := dumps_yaml({"schema": "2.0", "stages": {"clean": entry("clean", "a")}}))
    with path.open() as before:
        assert written(dvc.modify, path, {"bpe": entry("bpe", "a")}) != text
        assert before.read() == text
    assert [one.name for one in tmp_path.iterdir()] == ["dvc.lock"]


@pytest.mark.parametrize(
    "keys",
    [
        ["finetune.seeds", "finetune", "stages.finetune.cola", "profile", "clean"],
        ["finetune.absent", "finetune.batch_size"],
        ["absent", "pretrain.seeds.1", "profile.x"],
        ["pretrain.bet*"],
        [],
        None,
    ],
)
@pytest.mark.parametrize("flatten", [True, False])
def test_a_parameter_has_the_value_that_dvc_reads(keys: list[str] | None, flatten: bool) -> None:
    def told(way: Any) -> object:
        try:
            return way(localfs, str(ROOT / "params.yaml"), keys, flatten=flatten)
        except ValueError as error:  # of two matches
            return str(error)

    assert told(dvc.read_keys) == told(read_param_file)


def test_what_a_reader_changes_the_next_one_does_not_see() -> None:
    text = "a: {b: [1, 2.0, 1e-05, no, null, '1', 2026-11-23]}\n"
    dvc.parse(text, "x.yaml")["a"]["b"].clear()
    found = dvc.parse(text, "x.yaml")
    assert found == parse_yaml(text, "x.yaml")
    assert list(map(type, found["a"]["b"])) == list(map(type, parse_yaml(text, "x.yaml")["a"]["b"]))


@pytest.mark.parametrize("kept", [None, "", "5", "[1, {}]", '["0", {}]'])
def test_the_next_process_reads_the_lock_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    dvc.KEPT.parent.mkdir(parents=True)
    path = tmp_path / "dvc.lock"
    path.write_text(dumps_yaml({"schema": "2.0", "stages": {"a": entry("a", "1")}}))
    text = written(dvc.modify, path, {"b": entry("b", "2"), "a": entry("a", "3")})
    assert json.loads(dvc.KEPT.read_text())[1] == parse_yaml(text, path), "kept for the next"
    if kept is not None:
        dvc.KEPT.write_text(kept)
    dvc.parsed.cache_clear()
    assert dvc.parse(text, path) == parse_yaml(text, path)
    path.write_text(text.replace("md5: '3'", "md5: '4'"))
    assert dvc.parse(path.read_text(), path)["stages"]["a"]["deps"][0]["md5"] == "4"


@pytest.mark.slow
def test_a_run_writes_the_lock_that_dvc_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", REPLACED], check=True)  # else DVC has other functions
    locks = []
    for command in ("dvc", "gpt1.pipeline.dvc"):
        (tmp_path / command).mkdir()
        made = Repository(tmp_path / command)
        for word in ("one", "two"):
            (made.folder / "word").write_text(word)
            subprocess.run(
                [sys.executable, "-m", command, "repro", "-q"], cwd=made.folder, check=True
            )
        locks.append((made.folder / "dvc.lock").read_bytes())
    assert locks[0] == locks[1]
