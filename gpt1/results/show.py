"""`gpt1 table`: a report in a format, or beside another run's; the answer of all on one screen."""

import sys
from pathlib import Path
from textwrap import fill
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder
from gpt1.base.terminal import WIDTH, plain, print_json
from gpt1.results.runs import CLAIMS, RUN, SCORES, find_run, missing, read_table, shipped, within

ENDINGS = {"terminal": "txt", "markdown": "md", "latex": "tex"}  # of others their own name
SCORED = ("table2", "table3", "table4", "table5", "figure2")
KEYS = ["system", "column", "metric", "update"]
SAME = 5e-5  # as far apart as two numbers of four decimals may be


def show_answer() -> None:
    """Print what was run, a row a task, the three claims: one screen. Raises UserError where
    nothing has been made.
    """
    import pandas as pd

    from gpt1.results.answer import primary_table, sentence, tasks_table
    from gpt1.results.provenance import duration_in_words

    claims = read_table(stage_folder("report", "claims", CLAIMS))
    there = [
        path for name in SCORED[:-1] if (path := stage_folder("report", name, SCORES)).is_file()
    ]
    scores = pd.concat([read_table(path) for path in there], ignore_index=True)
    parts = [fill(sentence(claims, duration_in_words()), WIDTH)]
    parts += [table.to_string() for table in (tasks_table(scores), primary_table(claims))]
    parts.append(
        f"The page:    {stage_folder('report', 'index.html')} (gpt1 report)\n"
        "Each table:  gpt1 table table2 … table5, figure2, claims, curves"
    )
    print(plain("\n\n".join(parts)))


def show_table(name: str, format_: str) -> None:
    """Print a report as its stage wrote it. Raises UserError where it has not been made."""
    path = stage_folder("report", name, f"{name}.{ENDINGS.get(format_, format_)}")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise missing(path) from None
    sys.stdout.write(plain(text) if sys.stdout.isatty() else text)


def show_against(name: str, other: Path, title: str, as_json: bool) -> None:
    """Print a report's scores beside another run's: here, there, their difference. Raises UserError
    where one of both has none.
    """
    import pandas as pd

    if name not in SCORED:
        raise UserError(f"--against compares scores, expected one of {', '.join(SCORED)}")
    here, there = (
        read_table(place / stage_folder("report", name, SCORES))
        .groupby(KEYS, dropna=False, sort=False)["score"]
        .mean()
        for place in (Path(), other)
    )
    both = pd.concat({"here": here, title: there}, axis=1)
    both["difference"] = both["here"] - both[title]
    differ = int((~(both["difference"].abs() <= SAME)).sum())
    if as_json:
        rows = both.reset_index().astype(object).where(lambda cell: cell.notna(), None)
        print_json({"table": name, "differ": differ, "rows": rows.to_dict("records")})
        return
    both.index = [" ".join(str(one) for one in key if not pd.isna(one)) for key in both.index]
    print(plain(f"{both.round(4).to_string()}\n\n{differ} of {len(both)} scores differ"))


def other_run(against: str) -> Path:
    """The folder of a run to compare with. Raises UserError where there is none."""
    if not (found := find_run(against)):
        raise UserError(
            f"--against {against}: expected a run's folder, or {' or '.join(shipped())}"
        )
    return found.absolute()


def facts_of(run: str) -> dict[str, Any]:
    """Of another run its page's path and size, and where it was packed its facts. Raises UserError
    where it has no page, or no such run is there.
    """
    with within(run):
        page = stage_folder("report", "index.html").absolute()
        if not page.is_file():
            raise UserError(f"{page} is not there: gpt1 report, in the root of that run, makes it")
        packed = read_json(Path(RUN))["facts"] if Path(RUN).is_file() else {}
        facts = {plain(name): plain(said) for name, said in packed.items()}
        return {"path": page.as_posix(), "bytes": page.stat().st_size, "facts": facts}
