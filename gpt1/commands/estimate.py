"""`gpt1 estimate`."""

from typing import Annotated

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 estimate                 params.yaml as it is

    gpt1 estimate paper

    gpt1 estimate small finetune.epochs=2
"""


def estimate(
    name: Annotated[
        str | None, argument("A profile in conf/; params.yaml as it is where none is named.")
    ] = None,
    overrides: Annotated[
        list[str] | None, argument("What differs, as key=value with dotted keys.")
    ] = None,
) -> None:
    """Say what a run will take: updates, tokens, operations, hours on some GPUs, and room on the
    disk. Runs nothing.
    """
    from gpt1.estimate import show
    from gpt1.params.profile import requested
    from gpt1.params.schema import read_params, validate

    show(validate(requested(name, overrides or [])) if name else read_params())
