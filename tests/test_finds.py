"""Bad inputs that once ended with a traceback, a hang or a full memory, or were made to: each gives
one line, or is rightly left out.

tests/finds/<surface>/<case>/ holds the files that differ from the surface's valid ones
(made_surfaces*.py); benchmarks/fuzz.py looks for more.
"""

import resource
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_surfaces import SURFACES, encode, outcome
from made_surfaces_of_corpora import SURFACES_OF_CORPORA
from made_surfaces_of_runs import SURFACES_OF_RUNS

from gpt1.base.errors import UserError
from gpt1.params.yaml import parse_yaml

FINDS = Path(__file__).parent / "finds"
CASES = sorted(path for path in FINDS.glob("*/*"))
SURFACE_OF = {one.name: one for one in (*SURFACES, *SURFACES_OF_CORPORA, *SURFACES_OF_RUNS)}
LEFT_OUT = {
    "checkpoint",
    "served rows",
}  # what is damaged there is passed over, and what is whole is used
WITH_WORDS = ("task", "text", "corpus")
SECONDS, BYTES = 10.0, 1 << 30


def label(case):
    return f"{case.parent.name}: {case.name}"


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=label)
def test_a_find_stays_mended(case, tmp_path, monkeypatch, capfd):
    surface = SURFACE_OF[case.parent.name]
    inside = tmp_path / "in"
    inside.mkdir()
    monkeypatch.chdir(inside)
    surface.write()
    for path in sorted(case.rglob("*")):
        if path.is_file():
            target = inside / path.relative_to(case)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    if case.parent.name.startswith(WITH_WORDS):
        encode("spaCy is loaded by now.")
    capfd.readouterr()
    began, before = time.process_time(), memory()
    line = outcome(surface)
    assert time.process_time() - began < SECONDS
    assert memory() - before < BYTES
    assert (line != "result") or case.parent.name in LEFT_OUT, "read as if all were well"
    assert line.isprintable(), "a terminal would obey"
    said = "".join(capfd.readouterr())
    assert all(letter.isprintable() or letter in "\n\t" for letter in said), said
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert not Path("/tmp/escaped").exists(), "code in a file has run"


def test_there_are_finds():
    assert len(CASES) >= 55


@settings(max_examples=60)
@given(
    st.text(alphabet=st.sampled_from("[]{}:,-&*!?|>'\"#%@` \n\tab1.~\x07\u2028\ud800"), max_size=60)
)
def test_any_text_is_yaml_or_not(text):
    with suppress(UserError):
        parse_yaml(text)
