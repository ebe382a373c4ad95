"""Which run is meant: a checkout, a packed run, or one that ships with the program."""

from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from gpt1.base.errors import UserError

SHIPPED = Path(__file__).parents[1] / "reference"
RUN, LOCK = "run.json", "dvc.lock"


def shipped() -> list[str]:
    """Names of the runs that ship with the program: reference/town."""
    return sorted(f"{SHIPPED.name}/{path.parent.name}" for path in SHIPPED.glob(f"*/{RUN}"))


def find_run(name: str | Path) -> Path | None:
    """The folder of a run: as it is named, or the shipped one of that name; None for none."""
    places = [Path(name)] + ([SHIPPED.parent / name] if str(name) in shipped() else [])
    return next((place for place in places if place.is_dir()), None)


@contextmanager
def within(run: str | None) -> Iterator[None]:
    """Work in a run's folder; None: in the current one. Raises UserError where there is none, and
    where something in it, which others may have made, is no result of ours.
    """
    if run is None:
        yield
        return
    if not (found := find_run(run)):
        raise UserError(
            f"--run {run}: no such folder; expected a checkout, a packed run,"
            f" or {' or '.join(shipped())}"
        )
    try:
        with chdir(found):
            yield
    except (AttributeError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise UserError(
            f"--run {run}: {found} holds what is no result of gpt1 ({type(error).__name__}:"
            f" {error})"
        ) from None


def make_anew(name: str) -> str:
    """What to do about a broken file of a report, in the folder where one stands."""
    if Path("dvc.yaml").is_file():
        return f"make it anew: dvc repro -f -s {name}"
    return "have whoever packed this run do so again"
