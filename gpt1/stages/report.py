"""Tables 2, 3 and 4, ours beside the paper's, and as pictures: from labels and logits, with no torch, in seconds."""

import sys

from gpt1.config import read_params
from gpt1.errors import UserError
from gpt1.files import stage_folder, write_json, writing_folder
from gpt1.report.formats import as_csv, caption, latex, markdown, metrics, rows
from gpt1.report.picture import svg
from gpt1.report.scores import glue_cells, our_glue_mean, table_cells
from gpt1.report.tables import made_up, page, table_named
from gpt1.tracking import sync


def main(name: str) -> None:
    """Score every task of a table, write it in four formats and as a picture, print it, and tell MLflow."""
    params = read_params()
    table = table_named(name)
    cells = table_cells(params, table.name)
    glue = our_glue_mean(glue_cells(params)) if table.name == "table4" else None
    text = markdown(laid_out := page(params, table, cells, glue))
    with writing_folder(stage_folder("report", table.name)) as folder:
        (folder / f"{table.name}.md").write_text(text, encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(latex(laid_out), encoding="utf-8")
        (folder / f"{table.name}.csv").write_text(as_csv(rows(params, table, cells, glue, caption(laid_out))), encoding="utf-8")
        picture = svg(f"{table.title} ({params.profile})", cells, comparable=not made_up(params, table))
        (folder / f"{table.name}.svg").write_text(picture, encoding="utf-8")
        write_json(folder / "metrics.json", metrics(table, cells, glue))
    try:
        sync(params)
    except UserError as error:
        print(f"warning: {error}", file=sys.stderr)
    print(text)
