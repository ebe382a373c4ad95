"""`gpt1 doctor`."""

from typing import Annotated

import typer

EXAMPLES = """
Examples:

    gpt1 doctor                       some seconds; status 1 where there is work

    gpt1 doctor && gpt1 run

    gpt1 doctor --json | jq '.findings[] | select(.state == "do")'
"""


def doctor(json: Annotated[bool, typer.Option("--json", help="For a program.")] = False) -> None:
    """Examine this machine and folder for what a run would trip over, each with what to do;
    changes nothing.
    """
    from gpt1.pipeline.doctor.doctor import doctor_and_show

    if not doctor_and_show(json):
        raise typer.Exit(1)
