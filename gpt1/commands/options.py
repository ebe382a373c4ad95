"""Options of several commands."""

from pathlib import Path
from typing import Annotated, Any

import typer

VOCABULARY = Path("data/bpe")


def option(text: str, *names: str, **more: Any) -> Any:
    """An option that may be left out."""
    return typer.Option(*names, help=text, show_default=False, **more)


def argument(text: str) -> Any:
    """An argument."""
    return typer.Argument(help=text, show_default=False)


Vocabulary = Annotated[
    Path, typer.Option(help="The folder of the vocabulary they were trained with.")
]
Task = Annotated[str, argument("A task of params.yaml that is fine-tuned.")]
Seed = Annotated[int | None, option("The seed whose model answers. Default: the best on dev.")]
Run = Annotated[
    str | None,
    option(
        "Another run: its folder, or reference/town, which ships with gpt1.",
        "--run",
        metavar="RUN",
    ),
]
Overrides = Annotated[list[str] | None, argument("What differs, as key=value with dotted keys.")]
OF_THE_FIRST = "Default: this run's, of its first pre-training."


def first_weights() -> Path:
    """Return the pre-trained weights of the first of pretrain.seeds."""
    from gpt1.params.recipes import pretraining_of
    from gpt1.params.schema import read_params

    return pretraining_of(read_params(), "transformer") / "weights.safetensors"
