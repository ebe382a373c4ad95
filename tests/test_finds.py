"""What others made is read or refused in one line: bad inputs that once ended with a traceback, a
hang or a full memory, or were made to; and valid files with a part replaced, by Hypothesis.

tests/finds/<surface>/<case>/ holds the files that differ from the surface's valid ones
(made_surfaces*.py).
"""

import resource
import time
from contextlib import chdir, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_surfaces import SURFACES, outcome, put
from made_surfaces_of_runs import SURFACES_OF_RUNS

from gpt1.base.errors import UserError
from gpt1.params.yaml import parse_yaml

FINDS = Path(__file__).parent / "finds"
CASES = sorted(path for path in FINDS.glob("*/*"))
SURFACE_OF = {one.name: one for one in (*SURFACES, *SURFACES_OF_RUNS)}
LEFT_OUT = {
    "checkpoint",
    "served rows",
}  # what is damaged there is passed over, and what is whole is used
SECONDS, BYTES = 10.0, 1 << 30
PIECES = st.binary(max_size=64) | st.sampled_from(
    (b"", b"NaN", b"-1", b"1e999", b"null", b'"', b"a\0b", b"\x1b[2J", b"../..", b"[" * 100_000)
)


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read(surface, capfd):
    """The outcome, in bounded time and memory, and nothing said that steers a terminal."""
    capfd.readouterr()
    began, before = time.process_time(), memory()
    line = outcome(surface)
    assert time.process_time() - began < SECONDS
    assert memory() - before < BYTES
    assert line.isprintable(), "a terminal would obey"
    said = "".join(capfd.readouterr())
    assert all(letter.isprintable() or letter in "\n\t" for letter in said), said
    return line


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}: {case.name}")
def test_a_find_stays_mended(case, tmp_path, monkeypatch, capfd):
    surface = SURFACE_OF[case.parent.name]
    root = tmp_path / "in"
    root.mkdir()
    monkeypatch.chdir(root)
    surface.write()
    for path in sorted(case.rglob("*")):
        if path.is_file():
            put(path.relative_to(case).as_posix(), path.read_bytes())
    line = read(surface, capfd)
    assert (line != "result") or case.parent.name in LEFT_OUT, "read as if all were well"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert not Path("/tmp/escaped").exists(), "code in a file has run"


@pytest.mark.slow
@pytest.mark.parametrize("surface", SURFACE_OF.values(), ids=SURFACE_OF)
def test_a_file_with_a_part_replaced_is_read_or_refused_in_one_line(surface, tmp_path, capfd):
    with chdir(tmp_path):
        surface.write()
    files = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    names = {path.relative_to(tmp_path).as_posix(): whole for path, whole in files.items()}

    @settings(max_examples=settings.default.max_examples // 10, derandomize=True)
    @given(st.data())
    def read_damaged(data):
        name = data.draw(st.sampled_from(list(names)))
        place = st.integers(0, len(names[name]))
        start, stop = sorted(data.draw(st.tuples(place, place)))
        new = names[name][:start] + data.draw(PIECES) + names[name][stop:]
        with TemporaryDirectory() as folder, chdir(folder):
            for file, whole in (names | {name: new}).items():
                put(file, whole)
            read(surface, capfd)

    read_damaged()


@given(
    st.text(alphabet=st.sampled_from("[]{}:,-&*!?|>'\"#%@` \n\tab1.~\x07\u2028\ud800"), max_size=60)
)
def test_any_text_is_yaml_or_not(text):
    with suppress(UserError):
        parse_yaml(text)
