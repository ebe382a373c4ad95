"""What several commands ask for in the same words; help tells no default of what has none."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gpt1.base.errors import UserError
from gpt1.base.files import DATA

VOCABULARY = Path("data/bpe")


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
Run = Annotated[
    str | None,
    option(
        "Of another run: the folder of a checkout or of a packed run, or reference/town, which"
        " ships with gpt1.",
        "--run",
        metavar="RUN",
    ),
]
OF_THE_FIRST = (
    "Default: data/pretrain/transformer/seed-N/weights.safetensors, N the first of pretrain.seeds in"
    " params.yaml."
)


def refuse_elsewhere(command: str) -> None:
    """Raises UserError where this is no project folder, and so has no models of its own."""
    if not (Path("dvc.yaml").is_file() or Path(DATA).is_dir()):
        raise UserError(
            f"{Path.cwd()} is no project folder, which has its models in {DATA}: call {command} in"
            " one (the root of a clone), or name a model by --weights FILE"
            " --vocabulary FOLDER"
        )


def first_weights() -> Path:
    """The pre-trained weights that speak where one alone can: of the first of pretrain.seeds."""
    from gpt1.params.recipes import pretraining_of
    from gpt1.params.schema import PARAMS, read_params

    if not PARAMS.is_file():
        return Path("data/pretrain/transformer/seed-0/weights.safetensors")
    return pretraining_of(read_params(), "transformer") / "weights.safetensors"
