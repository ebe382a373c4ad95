"""`gpt1 table`: a report in a format, or beside another run's; the answer of all on one screen."""

import re
import sys
from pathlib import Path
from shutil import get_terminal_size
from textwrap import TextWrapper, fill

from gpt1.base.errors import UserError, plain
from gpt1.base.files import stage_folder
from gpt1.results.runs import CLAIMS, SCORES, missing, read_table

ENDINGS = {"terminal": "txt", "markdown": "md", "latex": "tex"}  # of others their own name
NOTE = re.compile("^- .*(\n  .*)*", re.MULTILINE)  # below a table
KEYS = ["system", "column", "metric", "update"]
WIDTH = 80  # of the answer of all
SAME = 5e-5  # as far apart as two numbers of four decimals may be


def show_answer(run: str | None) -> None:
    """Print what was run, a row a task, the three claims: one screen; of `run`, in whose folder it
    works. Raises UserError where nothing has been made.
    """
    import pandas as pd

    from gpt1.results.answer import legend, primary_table, sentence, tasks_table
    from gpt1.results.provenance import facts

    claims = read_table(stage_folder("report", "claims", CLAIMS))
    scores = pd.concat(map(read_table, sorted(stage_folder("report").glob(f"table?/{SCORES}"))))
    sentences = sentence(claims, facts().get("Time", "")), legend(scores, claims)
    parts = [fill(text, WIDTH) for text in sentences if text]
    parts += [table.to_string() for table in (tasks_table(scores), primary_table(claims))]
    of = f" --run {run}" if run else ""
    parts.append(
        f"Page:   gpt1 report{of}\nTables: gpt1 table{of} table2 … table5, figure2, claims, curves"
    )
    print(plain("\n\n".join(parts)))


def show_table(name: str, format_: str) -> None:
    """Print a report as its stage wrote it, for a terminal the notes as wide as that is. Raises
    UserError where it has not been made.
    """
    path = stage_folder("report", name, f"{name}.{ENDINGS.get(format_, format_)}")
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise missing(path) from None
    if format_ == "terminal":
        width = get_terminal_size().columns
        item = TextWrapper(width, subsequent_indent="  ", break_on_hyphens=False)
        text = NOTE.sub(lambda note: item.fill(" ".join(note[0].split())), text)
    sys.stdout.write(plain(text))


def show_against(name: str, other: Path, title: str) -> None:
    """Print a report's scores beside another run's, means over the seeds that both have, or over
    all: here, there, their difference. Raises UserError where one of both has none.
    """
    import pandas as pd

    if name in ("claims", "curves"):
        raise UserError(f"--against compares scores, expected table2 … table5 or figure2: {name}")
    scores = [read_table(run / stage_folder("report", name, SCORES)) for run in (Path(), other)]
    ours, theirs = (
        table.set_index([*KEYS, table["seed"].fillna(table["pretraining_seed"])])["score"]
        for table in scores
    )
    each = pd.concat({"here": ours, title: theirs}, axis=1)
    paired = each.notna().all(axis=1)
    of_both = paired.groupby(KEYS, dropna=False).transform("any")
    both = each[paired | ~of_both].groupby(KEYS, dropna=False, sort=False).mean()
    both["difference"] = both["here"] - both[title]
    differ, alone = (both["difference"].abs() > SAME).sum(), both["difference"].isna().sum()
    both.index = [" ".join(str(part) for part in key if not pd.isna(part)) for key in both.index]
    said = f"{differ} of {len(both) - alone} scores differ; of one run alone: {alone}"
    print(plain(f"{both.round(4).to_string()}\n\n{said}"))
