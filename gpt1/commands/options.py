"""What several commands ask for in the same words; help tells no default of what has none."""

from typing import Annotated, Any

import typer


def option(text: str, *names: str, **more: Any) -> Any:
    """An option that may be left out."""
    return typer.Option(*names, help=text, show_default=False, **more)


def argument(text: str) -> Any:
    """An argument."""
    return typer.Argument(help=text, show_default=False)


Task = Annotated[str, argument("A task of params.yaml that is fine-tuned.")]
Seed = Annotated[
    int | None,
    option("The seed whose model answers. Default: the best on the development split."),
]
