"""Tables 2 to 5, Figure 2, the curves and the paper's claims, ours beside the paper's: from result
files, with no torch, in seconds.
"""

from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing_folder
from gpt1.params.schema import Params, read_params
from gpt1.results import claims_page, curves, figure2, table5
from gpt1.results.answers import read_answers
from gpt1.results.document import write_document
from gpt1.results.formats import CSV_COLUMNS, as_csv, caption, latex, metrics, rows
from gpt1.results.paper import TABLES, Table
from gpt1.results.picture import svg
from gpt1.results.records import write_predictions, write_scores
from gpt1.results.scores import glue_cells, our_glue_mean, scored_splits, table_cells
from gpt1.results.tables import page, tasks_of
from gpt1.tasks.table import TASKS

OTHERS = {
    "table5": table5.write,
    "figure2": figure2.write,
    "curves": curves.write,
    "claims": claims_page.write,
}


def main(name: str) -> None:
    """Write one report as a whole and print it; `gpt1 sync` tells MLflow, of all results at
    once.
    """
    params = read_params()
    if name not in TABLES and name not in OTHERS:
        raise UserError(
            f"expected one of {', '.join((*TABLES, *OTHERS))}, found {name!r}; "
            "for example: python -m gpt1.stages report table2"
        )
    with writing_folder(stage_folder("report", name)) as folder:
        text = (
            write_table(params, TABLES[name], folder)
            if name in TABLES
            else OTHERS[name](params, folder)
        )
    print(text)


def write_table(params: Params, table: Table, folder: Path) -> str:
    """Score every task of Table 2, 3 or 4, write it in four formats and as a picture; returns its
    markdown. Raises UserError.
    """
    cells = table_cells(params, table.name)
    glue = our_glue_mean(glue_cells(params, cells)) if table.name == "table4" else None
    laid_out = page(params, table, cells, glue)
    text = write_document(folder, table.name, laid_out.document)
    (folder / f"{table.name}.tex").write_text(latex(laid_out), encoding="utf-8")
    records = rows(params, table, cells, glue, caption(laid_out))
    write_scores(folder, records)
    write_predictions(
        folder,
        (
            scored
            for task in tasks_of(params, table)
            for scored in scored_splits(
                [column for column in TASKS[task].columns if column.table == table.name],
                [read_answers(params, task)],
            )
        ),
    )
    (folder / f"{table.name}.csv").write_text(as_csv(records, CSV_COLUMNS), encoding="utf-8")
    picture = svg(f"{table.title} ({params.profile})", cells)
    (folder / f"{table.name}.svg").write_text(picture, encoding="utf-8")
    write_json(folder / "metrics.json", metrics(table, cells, glue))
    return text
