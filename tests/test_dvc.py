"""DVC's blind spots: it follows no imports, and does not see what a stage reads of params.yaml.

What DVC does not watch is exempt, and cannot change a result: the last tests hold to that what every
stage goes through, params.yaml and files. That a stage reads no other parameter: test_readme.py.
"""

import json

import pytest
from our_imports import ROOT, closure, module_file, relative

from gpt1.params.schema import read_params
from gpt1.params.yaml import read_yaml

FUNCTIONS = {
    "ablation": "finetune",
    "transfer": "finetune",
}  # as in gpt1/stages/__main__.py, which runs when imported
EXEMPT = {
    *(f"gpt1/base/{name}.py" for name in ("errors", "files", "interrupts", "locks", "machine")),
    *(f"gpt1/tracking/{name}.py" for name in ("address", "live", "log", "results", "store")),
    *(f"gpt1/params/{name}.py" for name in ("profile", "schema", "strict", "yaml")),
    "flows/graph.py",  # what is out of date, for a reader: no stage asks
}


def stages():
    rows = read_yaml(ROOT / "dvc.yaml")["stages"]
    return {name: row.get("do", row) for name, row in rows.items()}


def imported_by(name):
    """Our files that a stage imports."""
    *python, verb = str(stages()[name]["cmd"]).split()[:4]
    file = module_file(f"gpt1.stages.{FUNCTIONS.get(verb, verb)}")
    assert file, f"dvc.yaml: {name} runs {verb}, which is no stage of ours"
    assert python == ["python", "-m", "gpt1.stages"]
    return {path for path in map(relative, closure(file)) if not path.endswith("__init__.py")}


def covers(dep, path):
    return path == dep or path.startswith(f"{dep}/")


@pytest.mark.slow
def test_dvc_sees_what_a_stage_imports():
    for name in sorted(stages()):
        deps, watched = stages()[name].get("deps", []), imported_by(name) - EXEMPT
        for dep in (dep for dep in deps if str(dep).startswith("gpt1/")):
            assert (ROOT / dep).exists(), f"dvc.yaml: {name} depends on {dep}, which is not there"
            assert any(covers(dep, path) for path in watched), (
                f"dvc.yaml: {name} depends on {dep}, of which it imports nothing"
            )
        unseen = sorted(path for path in watched if not any(covers(dep, path) for dep in deps))
        if name != "check":  # its result is a constant: nothing that it imports can change it
            assert not unseen, (
                f"dvc.yaml: {name} imports {unseen} but has no dep on them, so DVC would not re-run it"
                " when they change"
            )


def test_only_what_a_pretraining_imports_starts_it_again():
    ours = {dep for dep in stages()["pretrain"]["deps"] if dep.startswith("gpt1/")}
    assert ours == imported_by("pretrain") - EXEMPT


@pytest.mark.parametrize("file", ["conf/paper.yaml", "params.yaml"])
def test_params_are_what_stands_in_the_file(file):
    path = ROOT / file
    assert json.loads(read_params(path).model_dump_json()) == read_yaml(path)
