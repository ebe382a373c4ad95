"""DVC's blind spots: it follows no imports, and does not see what a stage reads of params.yaml.

What DVC does not watch is exempt, and cannot change a result: the tests below hold each exempt file
to that.
"""

import ast
import hashlib
import inspect
import json
import random
import textwrap
from pathlib import Path

import numpy as np
import pytest
from our_imports import ROOT, closure, module_file, relative
from pydantic import BaseModel

from gpt1.base import files
from gpt1.params import schema
from gpt1.params.schema import Section
from gpt1.params.yaml import read_yaml
from gpt1.tracking.live import Tracker

FUNCTIONS = {
    "ablation": "finetune",
    "transfer": "finetune",
}  # as in gpt1/stages/__main__.py, which runs when imported
EXEMPT = {  # what DVC does not watch -> all that what it watches may take from there
    "gpt1/params/schema.py": {
        "PARAMS",
        "Finetune",
        "Generate",
        "Model",
        "NetworkName",
        "Optimization",
        "Params",
        "Pretrain",
        "Schedule",
        "TaskParams",
        "read_params",
        "refuse_without_stage",  # by check, whose result is a constant
    },
    "gpt1/base/machine.py": {"cores", "cpu_name", "setting", "usable_gpus"},  # recorded
    "gpt1/base/errors.py": {"DISK_FULL", "not_utf8", "UserError", "printable"},
    "gpt1/base/files.py": {
        "CHECKPOINTS",
        "DATA",
        "LOGS",
        "RAW",
        "fingerprint",
        "is_hidden",
        "link_or_copy",
        "looks",
        "parse_json",
        "read_arrays",
        "read_json",
        "sha256_file",
        "stage_folder",
        "sync_file",
        "write_json",
        "writing",
        "writing_folder",
    },
    "gpt1/base/interrupts.py": {"end_with_parent", "interrupts_held"},  # when a process ends
    "gpt1/base/locks.py": set(),
    "gpt1/tracking/address.py": set(),
    "gpt1/tracking/live.py": {"tracked"},
    "gpt1/tracking/log.py": set(),
    "gpt1/tracking/store.py": set(),
    "gpt1/tracking/results.py": set(),
    "flows/graph.py": {"read_graph"},  # what is out of date, for a reader: no stage asks
    "gpt1/params/strict.py": {"validated"},
    "gpt1/params/yaml.py": {"read_yaml"},  # what dvc.yaml names, for a checkpoint's digest
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
        deps, watched = stages()[name].get("deps", []), imported_by(name) - EXEMPT.keys()
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
    assert ours == imported_by("pretrain") - EXEMPT.keys()


def taken_from_exempt_files():
    """{exempt file: names that files which DVC watches import from it, or use of it as a module}."""
    reached = set().union(*map(imported_by, stages()))
    taken: dict[str, set[str]] = {path: set() for path in EXEMPT if path in reached}
    for path in sorted(reached - EXEMPT.keys()):
        tree = ast.parse((ROOT / path).read_text())
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                assert isinstance(node, ast.ImportFrom)
                whole = module_file(f"{node.module}.{alias.name}")
                part = module_file(str(node.module))
                if whole and relative(whole) in EXEMPT:
                    modules[alias.asname or alias.name] = relative(whole)
                elif part and relative(part) in EXEMPT:
                    taken[relative(part)].add(alias.name)
        for node in ast.walk(tree):
            owner = getattr(node, "value", None)
            if isinstance(node, ast.Attribute) and isinstance(owner, ast.Name):
                taken.get(modules.get(owner.id, ""), set()).add(node.attr)
    return taken


@pytest.mark.slow
def test_of_what_dvc_does_not_watch_only_what_is_held_here_is_used():
    assert taken_from_exempt_files() == EXEMPT, (
        "a stage takes from a file that DVC does not watch what no test here holds to changing no"
        " result: move it to a watched file, or add it to EXEMPT and a test of its word"
    )


class Plain(BaseModel, frozen=True):
    """What pydantic itself puts into a class."""


def sections(of=Section):
    return [of, *(below for inner in of.__subclasses__() for below in sections(inner))]


def test_the_schema_has_fields_and_checks_and_nothing_that_makes_a_value():
    for section in sections():
        for name, field in section.model_fields.items():
            assert field.is_required(), (
                f"{name}: a default would decide what params.yaml does not say"
            )
            assert field.validation_alias is None, f"{name} is read under another name"
            assert not any("Validator" in type(rule).__name__ for rule in field.metadata), name
        kinds = section.__pydantic_decorators__
        checks = kinds.model_validators
        assert all(check.info.mode == "after" for check in checks.values())
        assert not any(
            getattr(kinds, kind)
            for kind in kinds.__dataclass_fields__
            if kind != "model_validators"
        ), "pydantic is to check, not to convert or compute"
        for name, member in vars(section).items():
            assert name in checks or name in vars(Plain) or not hasattr(member, "__get__"), (
                f"{section.__name__}.{name} makes a value where DVC does not look; see"
                " gpt1/params/recipes.py"
            )
            if name in checks:
                body = ast.parse(textwrap.dedent(inspect.getsource(member)))
                returned = [node.value for node in ast.walk(body) if isinstance(node, ast.Return)]
                assert all(isinstance(one, ast.Name) and one.id == "self" for one in returned), (
                    f"{section.__name__}.{name}: a check returns what it was given, or raises"
                )


def redrawn(value, chance, inside=""):
    """Plain values of params.yaml with other rates and seeds in another order."""
    if isinstance(value, dict):
        changed = {key: redrawn(inner, chance, key) for key, inner in value.items()}
        if "train_rows" in changed and "finetune" in changed:
            changed["finetune"] = {"learning_rate": chance.random(), "seeds": [3, 1]}
        return changed
    if isinstance(value, float):
        return value * chance.uniform(0.5, 1.0)
    if isinstance(value, list) and all(isinstance(one, int) for one in value):
        return chance.sample(range(1, 5), 3)
    return chance.randint(1, 2**40) if inside == "seed" else value


@pytest.mark.parametrize("file", ["conf/paper.yaml", "params.yaml"])
def test_params_are_what_stands_in_the_file(file, tmp_path):
    chance, path = random.Random(2018), tmp_path / "params.yaml"
    for _ in range(5):
        values = redrawn(read_yaml(ROOT / file), chance)
        values["pretrain"]["seeds"] = [chance.randint(1, 2**40)]  # the one that all start from
        path.write_text(json.dumps(values))  # JSON is YAML 1.2, by another writer than ours
        assert json.loads(schema.read_params(path).model_dump_json()) == values


def test_files_hold_what_was_written_and_give_back_what_they_hold(tmp_path):
    chance, path = random.Random(2018), tmp_path / "deep" / "file"
    numbers = [chance.uniform(-1, 1) * 10.0**power for power in range(-300, 300, 25)]
    value = {"é": [*numbers, 2**80, True, None, 0.1, 5e-324], "a": {"z": "\u2028", "b": []}}
    files.write_json(path, value)
    assert json.loads(path.read_bytes()) == value == files.read_json(path)
    assert files.parse_json(path.read_bytes()) == value
    files.write_json(path, {"b": 0.1, "a": [1e-05, "é"]})
    assert path.read_bytes() == '{\n "a": [\n  1e-05,\n  "é"\n ],\n "b": 0.1\n}\n'.encode()
    data = chance.randbytes(3 << 20)
    with files.writing(path, "wb") as file:
        file.write(data)
    assert path.read_bytes() == data
    assert files.sha256_file(path) == hashlib.sha256(data).hexdigest()
    with files.writing(path) as file:
        file.write("é\nb")
    assert path.read_bytes() == b"\xc3\xa9\nb"
    with files.writing_folder(tmp_path / "folder") as folder:
        (folder / "a").write_bytes(data)
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "folder").iterdir()] == [
        ("a", data)
    ]
    assert files.fingerprint({"b": [0.1, "é"], "a": None}) == "26a3da23e47a2a37"


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<f2", "i1", "<i8", "<u2", "?", "<U3"])
def test_arrays_are_read_as_numpy_reads_them(kind, tmp_path):
    draw = np.random.default_rng(2018)
    given = {
        "plain": draw.normal(size=(4, 5)).astype(kind),
        "columns": np.asfortranarray(draw.normal(size=(3, 2, 2)).astype(kind)),
        "empty": np.zeros((0, 3), kind),
    }
    np.savez(tmp_path / "arrays.npz", **given)  # type: ignore[arg-type]
    for name, array in files.read_arrays(tmp_path / "arrays.npz", list(given)).items():
        assert array.dtype == np.dtype(kind)
        assert np.array_equal(array, given[name])


def test_places_are_where_dvc_looks_for_them():
    places = (files.DATA, files.RAW, files.LOGS, files.CHECKPOINTS)
    assert tuple(map(str, places)) == ("data", "data/raw", "data/logs", "data/checkpoints")
    assert files.stage_folder("finetune", "glue", "cola") == Path("data/finetune/glue/cola")


def test_what_is_no_part_of_params_knows_nothing_of_them():
    for path in ["base/machine", "base/errors", "base/files", "params/yaml"]:
        known = set(map(relative, closure(ROOT / f"gpt1/{path}.py")))
        assert not known & {"gpt1/params/schema.py"}


def test_a_record_gives_a_stage_nothing_back():
    assert {
        name: inspect.signature(member).return_annotation
        for name, member in vars(Tracker).items()
        if not name.startswith("_")
    } == {"log": None, "close": None}
