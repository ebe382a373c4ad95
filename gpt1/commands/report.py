"""`gpt1 report`."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import Run, option

EXAMPLES = """
Examples:

    gpt1 report                          write data/report/index.html from what is there

    gpt1 report -o ~/gpt1.html           elsewhere

    gpt1 report --run reference/town     where the page of the shipped run lies
"""


def report(
    out: Annotated[
        Path | None, option("The file to write. Default: data/report/index.html.", "-o", "--out")
    ] = None,
    run: Run = None,
) -> None:
    """Put every result of the run on one page: tables, figures, claims, samples, cost, provenance.

    Runs nothing: the page of an unfinished run names what is missing. With --run it prints where
    the page of that run lies.
    """
    from gpt1.results.page import INDEX, write_page
    from gpt1.results.runs import missing, within

    if run is not None:
        if out is not None:
            raise typer.BadParameter("--run makes no page: leave --out out")
        with within(run):
            if not INDEX.is_file():
                raise missing(INDEX)
            print(INDEX.absolute())
        return
    if not Path("dvc.yaml").is_file():
        raise missing(INDEX)
    written = write_page(out or INDEX)
    print(f"{written['path']}: {written['bytes'] / 1000:,.0f} kB, to open in any browser")
    if written["parts_missing"]:
        some = ", ".join(written["parts_missing"])
        print(f"without {some}: gpt1 run makes them, gpt1 report the page again")
