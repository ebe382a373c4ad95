"""`gpt1 table`."""

from typing import Annotated, Literal

import typer

from gpt1.commands.options import Run, argument, option

EXAMPLES = """
Examples:

    gpt1 table                            a summary on one screen: tasks and claims

    gpt1 table table2                     Table 2, ours beside the paper's

    gpt1 table table4 --format latex > table4.tex

    gpt1 table table2 --against ../other  another run, by its folder

    gpt1 table table5 --run reference/town    of the run that ships with gpt1
"""


def table(
    name: Annotated[
        Literal["table2", "table3", "table4", "table5", "figure2", "claims", "curves"] | None,
        argument("Which: table2 … table5, figure2, claims, curves. Default: a summary of all."),
    ] = None,
    format_: Annotated[
        Literal["terminal", "markdown", "csv", "latex", "html", "json"],
        typer.Option("--format", help="How: for a terminal, a text, or a program."),
    ] = "terminal",
    against: Annotated[
        str | None,
        option(
            "Say whether another run agrees, and what differs: its folder, or reference/town.",
            metavar="RUN",
        ),
    ] = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="With --against: show every score, not only those that differ."),
    ] = False,
    run: Run = None,
) -> None:
    """Print a table, a figure or the claims beside the paper's, or compare with another run."""
    from gpt1.results.runs import find_run, reading_run, within
    from gpt1.results.show import show_against, show_answer, show_table

    if name is None and (format_ != "terminal" or against):
        raise typer.BadParameter("Missing argument 'name': table2, table3, …")
    if against and format_ != "terminal":
        raise typer.BadParameter(f"--against: expected --format terminal, found {format_}")
    if all_ and not against:
        raise typer.BadParameter("--all: expected --against too")
    other = find_run(against, "--against").absolute() if against is not None else None
    with within(run):
        if name is None:
            show_answer(run)
        elif other:
            with reading_run("--against", other):
                show_against(name, other, str(against), all_)
        else:
            show_table(name, format_)
