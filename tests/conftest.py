"""Test processes run torch and BLAS on one thread each: the suite runs side by side on small
machines, and the same run done twice has the same bits.
"""

import importlib
import os
import signal
import sys
import tempfile

import pytest
from hypothesis import settings

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # by a shell's `&`; children would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GPT1_THREADS", "1")
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
_code = tempfile.TemporaryDirectory(prefix="gpt1-code-of-exports-")
os.environ["HF_MODULES_CACHE"] = _code.name  # where transformers copies a folder's code to
os.environ.pop(
    "PYTHONDONTWRITEBYTECODE", None
)  # hundreds of processes start here: our code is compiled once, not in each of them
sys.dont_write_bytecode = True  # but this one imports files from folders whose content is tested

for profile, examples in (("suite", 100), ("all", 400)):  # all: of `make test-all`
    settings.register_profile(profile, deadline=None, max_examples=examples)  # a machine is busy
settings.load_profile("suite")
LONGEST = ("test_readme", "test_flow", "test_stages_train")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out tests by their marks
def pytest_collection_modifyitems(items):
    """The longest files come first: both workers end together. What is long is slow. Slow tests,
    those of real servers, kills and time limits, run once more where they fail: a machine that
    starves them is no fault of the code. The summary names each (R). Not after its timeout, which
    counts once for both: the second could hang for ever.
    """
    items.sort(key=lambda item: item.path.stem not in LONGEST)
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")
        if item.get_closest_marker("slow") or item.get_closest_marker("server"):
            item.add_marker(pytest.mark.flaky(reruns=1, rerun_except="Timeout"))


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty folder, to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run_here(monkeypatch):
    """Run a stage in this process: saves its imports."""
    from made_data import SETTINGS

    from gpt1.base.errors import run_stage

    def run_verb(verb, *names):
        other = verb in ("ablation", "transfer")  # verbs of the module finetune
        module = importlib.import_module(f"gpt1.stages.{'finetune' if other else verb}")
        for key, value in SETTINGS.items():
            monkeypatch.setenv(key, value)
        run_stage(lambda: getattr(module, verb if other else "main")(*names))

    return run_verb
