"""Find a run, read its tables, and ask dvc.lock which are out of date."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder

if TYPE_CHECKING:  # pandas takes half a second, which not every command is worth
    import pandas as pd

SHIPPED = Path(__file__).parents[1] / "reference"
RUN = "run.json"
NAMES = ("table2", "table3", "table4", "table5", "figure2", "claims", "curves")
SCORES, PREDICTIONS, CLAIMS = "scores.parquet", "predictions.parquet", "claims.parquet"
PREDICTION_KEY = ["task", "system", "update", "pretraining_seed", "seed", "split", "example"]


def load(run: str | Path = ".") -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Return every score and every prediction of a run as two pandas tables, `scores, predictions`.
    The run is a checkout, a packed run, or one that ships with gpt1: "reference/town".

    `scores` has one row per score and seed: `table` (table2 to table5, figure2), `system` (full, an
    ablation, layers-N transferred, a baseline; for zero-shot sets the network), `task`, `column`,
    `metric`, `split`; `pretraining_seed` (NA without our pre-training), `seed` of the fine-tuning,
    `update` of a snapshot; `score` x 100; `n` examples; `error`, one standard error of resampling
    their clusters; `source`, "made up" or the release of the files; `rows`, a fingerprint of the
    task's encoded labelled rows. Test is scored by the weights best on dev, dev by the last ones.
    `outdated`: parameters, code or data have changed since; a warning says so too.

    `predictions` has one row per example and seed: `task`, `system`, `update`, `split` and seeds as
    above; `example`, counted from 0 in the split's order; `cluster`, equal for examples that belong
    together; `subset` (of RACE); `label`, a class or STS-B's score from 0 to 5; `answer`; `logits`
    before the softmax.

    Raises UserError where a report is missing or damaged.
    """
    import pandas as pd

    root = find_run(run)
    state, folder = freshness(root), root / stage_folder("report")
    tables = []
    for name in (SCORES, PREDICTIONS):
        paths = sorted(
            folder.glob(f"*/{name}"), key=lambda path: (path.parent.name in state.outdated, path)
        )
        if not paths:
            raise UserError(f"{folder}/*/{name}: expected reports of a run, found none: gpt1 run")
        each = [
            read_table(path).assign(outdated=path.parent.name in state.outdated) for path in paths
        ]
        tables.append(pd.concat(each, ignore_index=True))
    if line := state.line(path.parent.name for path in paths):
        warnings.warn(line, stacklevel=2)
    scores, predictions = tables
    return scores, predictions.drop_duplicates(PREDICTION_KEY, ignore_index=True)


def read_table(path: Path) -> "pd.DataFrame":
    """Read a table of a report. Raises UserError."""
    import pandas as pd
    import pyarrow as pa

    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except FileNotFoundError:
        raise missing(path) from None
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        again = "have whoever packed this run do so again"
        if Path("dvc.yaml").is_file():
            again = f"make it anew: dvc repro -f -s {path.parent.name}"
        raise UserError(f"{path} cannot be read ({error}); {again}") from None


def write_table(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table of a report. Equal tables give equal bytes."""
    frame.to_parquet(path, index=False, compression="zstd", compression_level=19)


def missing(path: Path) -> UserError:
    """Say why a report is missing, and what to do."""
    if not Path("dvc.yaml").is_file():
        return UserError(
            f"{Path.cwd()} holds no {path.parent}: run this in a project folder (the root of a"
            " clone), or add --run reference/town, which ships with gpt1"
        )
    return UserError(
        f"{path.parent} is not there: the run at work, or gpt1 run {path.parent.name}, makes it"
    )


def shipped() -> list[str]:
    """Return the names of the runs that ship with the program."""
    return sorted(f"{SHIPPED.name}/{path.parent.name}" for path in SHIPPED.glob(f"*/{RUN}"))


def find_run(name: str | Path, option: str = "run") -> Path:
    """Return a run's folder, which may ship with gpt1. Raises UserError for an unknown name."""
    if Path(name).is_dir():
        return Path(name)
    if str(name) in shipped():
        return SHIPPED.parent / name
    raise UserError(
        f"{option} {name}: no such folder; expected a run's folder or {' or '.join(shipped())}"
    )


@contextmanager
def within(run: str | None) -> Iterator[None]:
    """Work in a run's folder; None is the current one. Raises UserError."""
    if run is None:
        yield
        return
    folder = find_run(run, "--run")
    with reading_run("--run", folder), chdir(folder):
        yield


@contextmanager
def reading_run(option: str, folder: Path) -> Iterator[None]:
    """Turn errors on a stranger's run into a UserError that names the option."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        NotImplementedError,
        StopIteration,
        TypeError,
        ValueError,
    ) as error:
        if SHIPPED in folder.parents:
            raise
        raise UserError(
            f"{option} {folder}: {type(error).__name__} ({error}); the folder holds what is no"
            f" result of gpt1, or gpt1 is at fault: does {option} reference/town work?"
        ) from None


class Freshness(NamedTuple):
    """Which stages, and so which reports, are up to date."""

    outdated: frozenset[str] = frozenset()
    unrecorded: frozenset[str] = frozenset()  # that dvc.lock does not know
    same_inputs: bool = True  # of the outdated reports

    def beside(self, reports: Iterable[str]) -> list[str]:
        """Return the reports whose numbers may be shown together: the up-to-date ones; if there are
        none, all that have the same inputs.
        """
        there = list(reports)
        fresh = [name for name in there if name not in self.outdated]
        return fresh or (there if self.same_inputs else [])

    def line(self, reports: Iterable[str]) -> str:
        """Return a warning about these reports in one line, or ""."""
        there = set(reports)
        outdated = " ".join(name for name in NAMES if name in self.outdated & there)
        unknown = " ".join(name for name in NAMES if name in self.unrecorded & there)
        if outdated:
            return f"Out of date: parameters, code or data have changed: gpt1 run {outdated}"
        return f"dvc.lock does not say what made these: {unknown}" if unknown else ""


def freshness(folder: Path = Path()) -> Freshness:
    """Ask DVC about a checkout's reports. A packed run is up to date."""
    if not (folder / "dvc.yaml").is_file():
        return Freshness()
    try:
        from flows.graph import read_graph

        with chdir(folder):
            graph = read_graph(())
    except (ModuleNotFoundError, UserError):  # a package without DVC; a dvc.yaml that is damaged
        return Freshness(unrecorded=frozenset(NAMES))
    unrecorded = frozenset(name for name, stage in graph.items() if not stage.recorded)
    outdated = frozenset(name for name, stage in graph.items() if stage.outdated) - unrecorded
    reports = outdated.intersection(NAMES)
    recorded = [pair for name in reports for pair in graph[name].recorded.items()]
    same_inputs = len({path for path, _ in recorded}) == len(set(recorded))
    return Freshness(outdated, unrecorded, same_inputs)
