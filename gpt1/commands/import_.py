"""`gpt1 import`."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import argument

EXAMPLES = """
Examples:

    gpt1 import ~/finetune-transformer-lm           the authors' released files, for profile official

    gpt1 import ~/openai-gpt --to data/raw/official  a Hugging Face folder

    gpt1 generate "the town" --weights data/raw/official/weights.safetensors --vocabulary data/raw/official
"""


def import_(
    folder: Annotated[
        Path,
        argument(
            "The authors' folder model (params_shapes.json, …) or a Hugging Face openai-gpt folder."
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(help="Where weights.safetensors, vocab.json, merges.txt and import.json go."),
    ] = Path("data/raw/official"),
) -> None:
    """Import a pre-trained GPT-1: checked by names, shapes, finite values and, for the released
    files, checksums.
    """
    from gpt1.base.errors import UserError
    from gpt1.exchange.incoming import SHAPES, read_authors, read_checkpoint, write_import

    source = folder.expanduser()
    authors = [
        candidate for candidate in (source, source / "model") if (candidate / SHAPES).is_file()
    ]
    if not authors and not (source / "config.json").is_file():
        raise UserError(
            f"{folder}: expected the authors' files ({SHAPES}, params_0.npy, …) or a Hugging Face"
            " openai-gpt folder (config.json, model.safetensors, …), found neither"
        )
    model = read_authors(authors[0]) if authors else read_checkpoint(source)
    write_import(model, to.expanduser())
    sizes = model.sizes
    released = "the released files, byte for byte" if model.released else model.form
    typer.echo(
        f"{to}: {sizes.layers} layers of width {sizes.width}, {sizes.heads} heads, context"
        f" {sizes.context}, {model.vocabulary.size:,} entries; from {released}"
    )
