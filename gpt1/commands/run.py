"""`gpt1 run`."""

import sys
from typing import Annotated

from gpt1.commands.options import argument, option

EXAMPLES = """
Examples:

    gpt1 run                      all that is out of date, side by side

    gpt1 run table2               what Table 2 needs, and no more

    gpt1 run finetune@cola        one stage, and what it needs

    gpt1 run -j 1                 one after the other, each with all cores
"""


def run(
    stages: Annotated[
        list[str] | None,
        argument("Stages (finetune@cola, table2) or groups (finetune). Default: all."),
    ] = None,
    lanes: Annotated[
        int | None,
        option(
            "How many stages run at once. Default: as many as cores and memory allow.",
            "-j",
            "--lanes",
            min=1,
        ),
    ] = None,
) -> None:
    """Run the stages that are out of date as a Prefect flow, several at once. What a stage prints
    goes to data/logs/run/.

    Ctrl-C ends the run: a pre-training saves a checkpoint, a fine-tuning keeps its finished seeds. A
    second Ctrl-C ends it at once. The same command continues the run.
    """
    from flows.run import run_here

    sys.exit(run_here(stages or [], lanes))
