"""`gpt1 run`."""

import gc
import sys
from typing import Annotated

from gpt1.base.errors import INTERRUPTED_STATUS
from gpt1.commands.options import argument, option

EXAMPLES = """
Examples:

    gpt1 run                      all that is out of date, a stage a core

    gpt1 run table2               what Table 2 needs, and no more

    gpt1 run finetune@cola        one stage, and what it needs

    gpt1 run encode pretrain      two groups of stages, and what they need

    gpt1 run -j 1                 one after the other, each with all cores
"""


def run(
    stages: Annotated[
        list[str] | None,
        argument("Stages (finetune@cola, table2) or groups (finetune); all where none is named."),
    ] = None,
    lanes: Annotated[
        int | None,
        option(
            "Stages side by side. Default: one a core; one where a GPU or "
            "GPT1_PROCESSES is in play.",
            "-j",
            "--lanes",
            min=1,
        ),
    ] = None,
) -> None:
    """Run what is out of date, several stages side by side; each stage's own output goes to
    data/logs/run/.

    Stages of one kind that train share the cores evenly, unless GPT1_THREADS says otherwise. Ctrl-C
    drops the updates in progress and ends, with checkpoints; a second one ends at once. The same
    command goes on.
    """
    try:
        from gpt1.pipeline.run import run_and_show

        run_and_show(stages or [], lanes)
    except KeyboardInterrupt as interrupt:
        print(str(interrupt) or "interrupted: nothing was started", file=sys.stderr, flush=True)
        # or else Python would look through all of DVC's objects and torch's, for seconds, before
        # the prompt is back
        gc.freeze()
        sys.exit(INTERRUPTED_STATUS)
