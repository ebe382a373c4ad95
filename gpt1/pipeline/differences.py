"""`gpt1 status --against`: two runs stage by stage, by what their dvc.lock say: which results are
equal, and which inputs differ.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

from rich.table import Table
from rich.text import Text

from gpt1.base.errors import UserError, perhaps
from gpt1.base.terminal import console, plain, print_json
from gpt1.pipeline.graph import read_lock, stages_in
from gpt1.pipeline.reasons import parameter_changes
from gpt1.pipeline.schedule import group, subject

Results = Literal["equal", "other", "not run here", "not run there"]
BESIDE = {"path", "size", "nfiles"}  # of an entry in dvc.lock, what is no hash
SHOWN = 6  # of what differs; --json has all


class StageDifference(NamedTuple):
    """A stage of two runs: its results, and the inputs that differ: parameters from there to here,
    paths of code and of data.
    """

    results: Results
    parameters: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """What differs, in words."""
        found = ("parameters", "code", "data")
        words = [f"other {name}" for name in found if getattr(self, name)]
        return ", ".join(words) or ("equal inputs" if self.results in ("equal", "other") else "")


def differences(
    here: Mapping[str, Any], there: Mapping[str, Any], targets: Collection[str] = ()
) -> dict[str, StageDifference]:
    """Every stage of either lock, or the targets among them (stages, groups). Raises UserError for
    an unknown one.
    """
    names = list(dict.fromkeys([*here, *there]))
    parts = {name: {name, group(name), subject(name)} for name in names}
    known = set[str]().union(*parts.values())
    for target in targets:
        if target not in known:
            raise UserError(f"no stage {target!r} in either run{perhaps(target, known)}")
    wanted = [name for name in names if not targets or parts[name] & set(targets)]
    return {name: _difference(here.get(name), there.get(name)) for name in wanted}


def _difference(here: Any, there: Any) -> StageDifference:
    if here is None or there is None:
        return StageDifference("not run here" if here is None else "not run there")
    changed = _differ(here, there, "deps")
    data = {path for path in changed if path.startswith("data/")}
    command = ["its command"] if here.get("cmd") != there.get("cmd") else []
    return StageDifference(
        "other" if _differ(here, there, "outs") else "equal",
        tuple(map(str, parameter_changes("", _parameters(there), _parameters(here)))),
        (*command, *sorted(changed - data)),
        tuple(sorted(data)),
    )


def _differ(here: Any, there: Any, kind: str) -> set[str]:
    """Paths of inputs or outputs whose hashes are not the same."""
    ours, theirs = (_hashes(run, kind) for run in (here, there))
    return {path for path in ours | theirs if ours.get(path) != theirs.get(path)}


def _hashes(entry: Any, kind: str) -> dict[str, set[tuple[str, str]]]:
    return {
        str(one["path"]): {(key, str(one[key])) for key in one.keys() - BESIDE}
        for one in entry.get(kind, ())
    }


def _parameters(entry: Any) -> dict[str, Any]:
    return {
        name: value for file in entry.get("params", {}).values() for name, value in file.items()
    }


def show_differences(lock: str, against: str, targets: Collection[str], json: bool) -> None:
    """Say how the run here stands to the one whose dvc.lock has this text. Raises UserError where
    that is no dvc.lock.
    """
    try:
        found = differences(read_lock(), stages_in(lock), targets)
    except (AttributeError, LookupError, TypeError) as error:
        raise UserError(f"{against}: its dvc.lock is not as DVC writes it ({error})") from None
    if json:
        stages = {name: one._asdict() for name, one in found.items()}
        print_json({"against": against, "stages": stages})
        return
    lines: dict[tuple[str, str], list[str]] = {}
    for name, one in found.items():
        lines.setdefault((one.results, one.why), []).append(name)
    table = Table("results", "inputs", "stages", box=None, pad_edge=False, header_style="bold")
    for (results, why), names in lines.items():
        kinds = Counter(map(group, names))
        told = [kind if count == 1 else f"{kind} ({count})" for kind, count in kinds.items()]
        table.add_row(results, why, Text(plain(", ".join(told))))
    screen = console()
    screen.print(f"{len(found)} stages here, and of {against}:", markup=False)
    screen.print(table)
    for title, name in (("parameters, there → here", "parameters"), ("code", "code")):
        each = list(dict.fromkeys(path for one in found.values() for path in getattr(one, name)))
        more = [f"{len(each) - SHOWN} more (--json has all)"] if len(each) > SHOWN else []
        if each:
            shown = plain("; ".join([*each[:SHOWN], *more]))
            screen.print(Text(f"{title}: ", "bold") + Text(shown))
