"""One surface of fuzz.py read again and again by atheris, which looks at what code an input
reaches: `pip install atheris` first.

    python benchmarks/fuzz_guided.py "task cola" -max_total_time=60

The surface's first file that is not params.yaml is what changes; what follows the name goes to
libFuzzer. It ends at the first input that gives neither a result nor one line, and leaves it as
crash-….
"""

import contextlib
import io
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "benchmarks")]

with atheris.instrument_imports(include=["gpt1"]):
    import fuzz
    from made_surfaces import inside, outcome

    known = fuzz.surfaces()


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        sys.exit(f"error: expected one of {', '.join(known)}")
    warnings.simplefilter("ignore")
    surface, folder = known[sys.argv[1]], Path(tempfile.mkdtemp(prefix="gpt1-guided-"))
    (folder / "seeds").mkdir()
    with inside(folder / "seeds"):
        surface.write()
    seeds = fuzz.files_of(folder / "seeds")
    name = next(one for one in sorted(seeds) if one != "params.yaml" or len(seeds) == 1)
    (folder / "corpus").mkdir()
    (folder / "corpus" / "undamaged").write_bytes(seeds[name])

    def one(data: bytes) -> None:
        shutil.rmtree(folder / "in", ignore_errors=True)
        for other, content in (seeds | {name: data}).items():
            (folder / "in" / other).parent.mkdir(parents=True, exist_ok=True)
            (folder / "in" / other).write_bytes(content)
        with (
            inside(folder / "in"),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            outcome(surface)

    print(f"{surface.name}: {name}, {len(seeds[name]):,} bytes at first", flush=True)
    atheris.Setup([sys.argv[0], *sys.argv[2:], str(folder / "corpus")], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
