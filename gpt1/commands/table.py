"""`gpt1 table`."""

from typing import Annotated, Literal

import typer

from gpt1.commands.options import Run, argument, option

EXAMPLES = """
Examples:

    gpt1 table table2                     Table 2, ours beside the paper's

    gpt1 table claims | less              the paper's claims, with verdicts

    gpt1 table table4 --format latex > table4.tex

    gpt1 table table2 --against ../other  another run, by its folder

    gpt1 table table5 --json | jq .metrics

    gpt1 table --brief                    every table's scores and every verdict

    gpt1 table table5 --run reference/town    of the run that ships with gpt1
"""


def table(
    name: Annotated[
        Literal["table2", "table3", "table4", "table5", "figure2", "claims", "curves"] | None,
        argument("Which: table2 … table5, figure2, claims, curves."),
    ] = None,
    format_: Annotated[
        Literal["terminal", "markdown", "csv", "latex", "json", "parquet"],
        typer.Option("--format", help="How: for a terminal, or a file of the report as it is."),
    ] = "terminal",
    against: Annotated[
        str | None,
        option(
            "Show what differs from another run instead: its folder, or reference/town.",
            metavar="RUN",
        ),
    ] = None,
    run: Run = None,
    json: Annotated[bool, typer.Option("--json", help="For a program; as --format json.")] = False,
    brief: Annotated[
        bool,
        typer.Option(
            "--brief",
            help="Scores and verdicts alone: of NAME, or of all tables and claims.",
        ),
    ] = False,
) -> None:
    """Print a table, figure or page of the report, ours beside the paper's, or what differs from
    another run.
    """
    from gpt1.results.runs import find_run, within
    from gpt1.results.show import BRIEF, show_brief, show_table

    if brief and (
        name not in (*BRIEF, None) or format_ != "terminal" or json or against is not None
    ):
        raise typer.BadParameter(
            f"--brief knows {', '.join(BRIEF)} or none of them, and no other option but --run"
        )
    if name is None and not brief:
        raise typer.BadParameter("Missing argument 'name': table2, table3, …, or --brief for all")
    if run is not None and against is not None:
        if not (other := find_run(against)):
            raise typer.BadParameter(f"--against {against}: no such folder")
        against = str(other.absolute())
    with within(run):
        if brief:
            show_brief([name] if name else BRIEF)
        elif name:
            show_table(name, "json" if json else format_, against)
