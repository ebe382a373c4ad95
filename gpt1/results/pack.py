"""`gpt1 pack`: a run's results, without data and weights, as a folder that `--run` and
`gpt1.results.load` read; it lies as a checkout does.
"""

import shutil
from pathlib import Path
from typing import Any

from gpt1.base.errors import PROJECT, UserError
from gpt1.base.files import read_json, sha256_file, stage_folder, write_json, writing_folder
from gpt1.base.terminal import plain
from gpt1.params.yaml import read_yaml
from gpt1.pipeline.forecast import PLAN
from gpt1.pipeline.graph import expand
from gpt1.results.page.page import INDEX, write_page
from gpt1.results.page.provenance import LOCK, PARAMS, code_facts, stages_taken, totals
from gpt1.results.records import PREDICTIONS, SCORES, pack_predictions
from gpt1.results.runs import RUN, within

REPORT = stage_folder("report")
TEXTS = (".csv", ".json", ".md", ".svg", ".tex")


def pack(folder: Path) -> dict[str, Any]:
    """Write the results of the run in the current folder; returns what `run.json` there says: the
    commit, the machine, the time, each file's sha256. Raises UserError where the run is not there,
    or the folder holds something else.
    """
    if folder.exists() and not (folder / RUN).is_file():
        raise UserError(f"{folder} is there and holds no packed run: name a new folder")
    for path in (LOCK, PARAMS):
        if not path.is_file():
            raise UserError(f"{path} is not there: gpt1 run, in {PROJECT}, makes a run")
    with writing_folder(folder) as made:
        for path in sorted(REPORT.glob("*/*")):
            if path.is_file() and (path.suffix in TEXTS or path.name == SCORES):
                copy(path, made / path)
        copy(LOCK, made / LOCK)
        copy(PARAMS, made / PARAMS)
        (made / REPORT / "predictions").mkdir(parents=True)
        pack_predictions(REPORT, made / REPORT / "predictions" / PREDICTIONS)
        write_page(path=made / INDEX)
        files = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
        facts = {
            "facts": {name: said for name, said in code_facts() if "sha256" not in name}
            | {"Memory": memory(), "Time": took()},
            "files": {path.as_posix(): sha256_file(made / path) for path in files},
        }
        write_json(made / RUN, facts)
    return facts


def copy(path: Path, to: Path) -> None:
    """Copy a file into a folder that is made."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


def memory() -> str:
    """What the machine of the run's plan has; "unknown" where no plan was made."""
    try:
        return f"{read_json(PLAN)['room']['memory'] / 1e9:.0f} GB"
    except (OSError, ValueError, LookupError, TypeError):
        return "unknown"


def took() -> str:
    """How long the run was at work, in words."""
    return totals(stages_taken(expand(read_yaml(PARAMS))), {}, None)[0]


def told_of(run: str) -> dict[str, Any]:
    """Of another run: its page's path and size; where it was packed its facts, and which files are
    not as they were then. Raises UserError where it has no page, or no such run is there.
    """
    with within(run):
        page = INDEX.absolute()
        if not page.is_file():
            raise UserError(f"{page} is not there: gpt1 report, in the root of that run, makes it")
        packed = read_json(Path(RUN)) if Path(RUN).is_file() else {"facts": {}, "files": {}}
        return {
            "path": page.as_posix(),
            "bytes": page.stat().st_size,
            "facts": {plain(name): plain(said) for name, said in packed["facts"].items()},
            "changed": [
                plain(name)
                for name, digest in packed["files"].items()
                if not Path(name).is_file() or sha256_file(Path(name)) != digest
            ],
        }
