"""`gpt1 register`."""

from typing import Annotated

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 register                 the best seed of every finished task

    gpt1 register rte mrpc        of these tasks

    mlflow models serve -m models:/gpt1-demo-rte@best --env-manager local --host 127.0.0.1 --port 5001
"""


def register(
    tasks: Annotated[
        list[str] | None, argument("Tasks; all that are finished where none is named.")
    ] = None,
) -> None:
    """Enter the best seed of each task in MLflow's registry, alias `best`; a second call changes
    nothing.

    Names are gpt1-PROFILE-TASK. The registry keeps a copy of the weights (470 MB a task at the
    paper's size), their vocabulary and the code that answers.
    """
    from gpt1.inference.registered import register as register_models
    from gpt1.inference.registered import serve_command
    from gpt1.params.schema import read_params
    from gpt1.results.runs import NAMES, freshness

    state = freshness()
    outdated, notice = state.outdated, state.line(NAMES)
    registered = register_models(read_params(), tasks or [], outdated, notice)
    for version in registered:
        print(
            f"{version.name} version {version.version}: seed {version.seed},"
            f" {'new' if version.new else 'there already'}"
        )
    print(f"Serve one: {serve_command(registered[0].name)}")
