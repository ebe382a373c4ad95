"""`gpt1 estimate`."""

from pathlib import Path
from typing import Annotated

from gpt1.commands.options import Overrides, argument

EXAMPLES = """
Examples:

    gpt1 estimate                 what gpt1 run would train now

    gpt1 estimate paper

    gpt1 estimate small finetune.epochs=2
"""


def estimate(
    name: Annotated[
        str | None,
        argument("A profile in conf/. Default: what is out of date now."),
    ] = None,
    overrides: Overrides = None,
) -> None:
    """Say what a run will take: updates, tokens, operations, hours on some GPUs, and room on the
    disk. Runs nothing.
    """
    from gpt1.estimate import lines
    from gpt1.params.profile import requested
    from gpt1.params.schema import read_params, validate

    params = validate(requested(name, overrides or [])) if name else read_params()
    outdated = None
    if not name and Path("dvc.yaml").is_file():
        from flows.graph import read_graph

        outdated = [stage for stage, about in read_graph([]).items() if about.outdated]
    print(*lines(params, outdated), sep="\n")
