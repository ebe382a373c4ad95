"""`gpt1 status`."""

from typing import Annotated

import typer

from gpt1.commands.options import argument, option

EXAMPLES = """
Examples:

    gpt1 status                       the whole graph

    gpt1 status table2                Table 2 and what it needs

    watch -n 5 gpt1 status            a run as it goes

    gpt1 status --json | jq '.would_run | keys'

    gpt1 status --against reference/demo    which results are those of the run that ships with gpt1
"""


def status(
    stages: Annotated[
        list[str] | None,
        argument("Stages (finetune@cola, table2) or groups (finetune); all where none is named."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For a program.")] = False,
    against: Annotated[
        str | None,
        option(
            "Instead: which results, parameters, code and data differ from another run's, by dvc.lock:"
            " that of a git revision, a folder, a worktree, or reference/demo.",
            metavar="REV|RUN",
        ),
    ] = None,
) -> None:
    """Say what is current, what would run and why, what runs now and how far it is, what failed.
    Runs nothing.
    """
    if against is not None:
        from gpt1.pipeline.differences import show_differences
        from gpt1.results.against import lock_of

        show_differences(lock_of(against), against, stages or [], json)
        return
    from gpt1.pipeline.status_report import status_and_show

    status_and_show(stages or [], json)
