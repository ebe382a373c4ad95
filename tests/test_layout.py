"""The architecture, held: who may import whom, and how long a file may be."""

import ast
import io
import subprocess
import tokenize
from collections import Counter
from functools import cache

from our_imports import ROOT, SOURCES, imports, relative

FLOWS = sorted((ROOT / "flows").rglob("*.py"))
OTHERS = sorted([*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")])
LAYOUT = "COMMENT NL NEWLINE INDENT DEDENT ENCODING ENDMARKER"
FILE_CEILING = {  # tokens, docstrings not counted
    "gpt1": 2200,
    "flows": 2200,
    "tests": 4000,
    "benchmarks": 2400,
}
CEILING = {  # of all tracked files together; docs/*.py count as product
    "product, tokens": 116_651,
    "product, files": 171,
    "tests, tokens": 101_195,
    "tests, files": 88,
    "benchmarks, tokens": 14_686,
    "benchmarks, files": 12,
    "pages, bytes": 141_585,
    "scripts and templates, bytes": 14_542,
}


def rows(text):
    """{name: words} of lines `name: words`."""
    parts = (line.partition(":") for line in text.strip().splitlines())
    return {name.strip(): words.split() for name, _, words in parts}


GROUND = "base params.schema"
PACKAGES = rows(  # package: what of ours it may import
    """
base: base
params: GROUND params sources tasks
sources: GROUND sources
corpus: GROUND corpus
tasks: GROUND corpus sources tasks
model: GROUND model
train: GROUND corpus.shards model params.yaml tasks.metrics train
inference: GROUND corpus inference model params.recipes sources tasks tracking
tracking: GROUND params.profile params.recipes params.yaml tracking
results: GROUND params results sources.definitions tasks tracking train.schedules
exchange: GROUND corpus exchange inference model params sources tasks tracking.log
town: town
stages: GROUND corpus town inference model params.recipes results sources tasks tracking.live train
commands: GROUND cli commands.options estimate exchange inference params results tasks.definitions tracking train
cli: base
__main__: cli
estimate: GROUND params sources.definitions tasks.definitions train.schedules
flows: GROUND estimate params.yaml tracking
    """.replace("GROUND", GROUND)
)
HOMES = rows(  # library: the only places that may import it
    """
mlflow: gpt1/tracking/store.py gpt1/tracking/live.py gpt1/inference/registered.py gpt1/inference/served.py
deepspeed: gpt1/train/engine.py
torch: gpt1/model/ gpt1/train/ gpt1/stages/pretrain.py gpt1/stages/finetune.py gpt1/stages/zero_shot.py gpt1/base/machine.py gpt1/inference/ gpt1/exchange/
requests: gpt1/sources/download.py
huggingface_hub: gpt1/sources/download.py gpt1/exchange/card.py
pyarrow: gpt1/tasks/table_files.py gpt1/corpus/ gpt1/results/runs.py
pandas: gpt1/results/ gpt1/tracking/results.py gpt1/exchange/card.py gpt1/inference/prediction.py
ruamel: gpt1/params/yaml.py
yaml:
dvc: flows/
prefect: flows/
jinja2: gpt1/results/page.py gpt1/exchange/
datatrove: gpt1/corpus/steps.py
ray: gpt1/corpus/steps.py
pickle:
    """
)


def within(name, places):
    return any(name == place or name.startswith(f"{place}.") for place in places)


def test_imports_point_down():
    """Stages meet through data/<stage>/, never by import; flows know how stages run, not what they do."""
    for path in [*SOURCES, *FLOWS]:
        top, *inner = path.relative_to(ROOT).parts
        package = top if top == "flows" else inner[0].removesuffix(".py")
        for name in imports(path) if package != "__init__" else ():
            ours = name.removeprefix("gpt1.")
            assert ours == name or within(ours, PACKAGES[package]), (
                f"{relative(path)} imports {name}: {package} may import only {PACKAGES[package]}"
            )


def test_each_library_has_its_home():
    for path in [*SOURCES, *FLOWS]:
        for name in imports(path):
            homes = HOMES.get(name.split(".")[0])
            assert homes is None or relative(path).startswith(tuple(homes)), (
                f"{relative(path)} imports {name}; its home is {homes or 'nowhere'}"
            )


def test_every_room_is_ruled():
    packages = {
        path.relative_to(ROOT / "gpt1").parts[0].removesuffix(".py") for path in SOURCES
    } - {"__init__"}
    assert packages | {"flows"} == set(PACKAGES), (
        "a new package needs its row in PACKAGES; a row without a package goes"
    )


@cache
def tokens(path, docstrings=True):
    """Python's tokens of a file, without comments and layout."""
    source = path.read_text()
    texts = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and ast.get_docstring(node) is not None
    }
    count = depth = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        depth += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if not depth and kind not in LAYOUT:  # Python 3.12 divides an f-string; its end counts
            count += docstrings or kind != "STRING" or token.start[0] not in texts
    return count


def test_file_size():
    for path in [*SOURCES, *FLOWS, *OTHERS]:
        count, ceiling = tokens(path, False), FILE_CEILING[path.relative_to(ROOT).parts[0]]
        assert count <= ceiling, (
            f"{relative(path)} has {count:,} tokens, the ceiling is {ceiling:,}:"
            " divide it by what it knows"
        )


def test_the_whole_only_shrinks():
    """Lower a ceiling after a deletion; nobody raises one."""
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    files = [path for path in listed if (ROOT / path).is_file()]
    sizes = Counter()
    for path in files:
        if path.endswith(".py"):
            top = path.split("/")[0]
            part = top if top in ("tests", "benchmarks") else "product"
            sizes[f"{part}, tokens"] += tokens(ROOT / path)
            sizes[f"{part}, files"] += 1
        elif path.endswith(".md") and "/reference/" not in path:
            sizes["pages, bytes"] += (ROOT / path).stat().st_size
        elif path.endswith((".sh", ".j2", ".jinja", ".css")) or path in ("Makefile", ".ci/run"):
            sizes["scripts and templates, bytes"] += (ROOT / path).stat().st_size
    over = {part: size for part, size in sizes.items() if size > CEILING[part]}
    assert not over, f"{over} where the ceilings are {CEILING}"


def defined(kind):
    """{name: files that define it at the top}, of what travels with an export none: it cannot
    import ours.
    """
    files = {}
    for path in [*SOURCES, *FLOWS]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, kind) and "shipped" not in path.parts:
                files.setdefault(node.name, []).append(relative(path))
    return files


def test_a_class_name_means_one_thing():
    twice = {name: files for name, files in defined(ast.ClassDef).items() if len(files) > 1}
    assert not twice, f"say in the name what sets them apart: {twice}"


def test_a_public_function_name_is_not_everywhere():
    many = {
        name: files
        for name, files in defined(ast.FunctionDef).items()
        if len(files) > 4 and name != "main" and not name.startswith("_")
    }
    assert not many, f"say in the name what each gives: {many}"


def test_packages_run_nothing_at_import():
    for path in SOURCES:
        public = relative(path) == "gpt1/results/__init__.py"  # load, which imports later
        assert path.name != "__init__.py" or len(ast.parse(path.read_text()).body) <= 1 + public, (
            f"{relative(path)}: a docstring only, so that importing a package costs nothing"
        )


VAGUE = "asked by drawn item its known left mine of one own part piece place said such told"


def test_names_say_what_they_hold():
    """Of variables and arguments at most one in a hundred is named by a word that must be decoded."""
    names = [
        node.arg if isinstance(node, ast.arg) else node.id
        for path in [*SOURCES, *FLOWS]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    ]
    vague = [name for name in names if name in VAGUE.split()]
    assert len(vague) <= 0.01 * len(names), Counter(vague).most_common()
