"""`gpt1 table`."""

from typing import Annotated, Literal

import typer

EXAMPLES = """
Examples:

    gpt1 table table2                     Table 2, ours beside the paper's

    gpt1 table claims | less              the paper's claims, with verdicts

    gpt1 table table4 --format latex > table4.tex

    gpt1 table table2 --against small     another run: a worktree or folder

    gpt1 table table2 --against HEAD~1    the run whose dvc.lock that commit has

    gpt1 table table5 --json | jq .metrics
"""


def table(
    name: Annotated[
        Literal["table2", "table3", "table4", "table5", "figure2", "claims", "curves"],
        typer.Argument(help="Which: table2 … table5, figure2, claims, curves.", show_default=False),
    ],
    format_: Annotated[
        Literal["terminal", "markdown", "csv", "latex", "json"],
        typer.Option("--format", help="How: for a terminal, or a file of the report as it is."),
    ] = "terminal",
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REV|FOLDER",
            help="Show what differs from a git revision, or from the run in a "
            "folder or worktree, instead.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For a program; as --format json.")] = False,
) -> None:
    """Print a table, figure or page of the report, ours beside the paper's, or what differs from
    another run.
    """
    from gpt1.pipeline.status.made_with import changed_since
    from gpt1.results.terminal.table import show_table

    show_table(name, "json" if json else format_, against, changed_since(name))
