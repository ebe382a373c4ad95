"""dvc.lock, written a stage at a time, has the bytes that DVC writes."""

import subprocess
import sys
from pathlib import Path

import pytest
from dvc import dvcfile
from dvc.fs import localfs
from dvc.utils.serialize import dumps_yaml, modify_yaml
from made_graph import Repository

from gpt1.pipeline import dvc


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


@pytest.mark.slow
def test_a_run_writes_the_lock_that_dvc_writes(tmp_path: Path) -> None:
    assert dvcfile.modify_yaml is modify_yaml, "DVC writes dvc.lock by another function"
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
