"""`gpt1 import`: weights and vocabulary of the authors' released files, or of a Hugging Face
folder, into our own files.
"""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import argument, option

EXAMPLES = """
Examples:

    gpt1 import ~/finetune-transformer-lm           the authors' released files, for profile official

    gpt1 import ~/openai-gpt --to data/raw/official  a Hugging Face folder

    gpt1 generate --weights data/raw/official/weights.safetensors --vocabulary data/raw/official --prompt "the town"
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
    heads: Annotated[
        int | None,
        option(
            "Attention heads, which the authors' files do not say. Default: 64 units each.", min=1
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Say what was imported as JSON.")] = False,
) -> None:
    """Import a pre-trained GPT-1: checked by names, shapes, finite values and, for the released
    files, checksums.
    """
    from gpt1.base.terminal import print_json
    from gpt1.exchange.incoming import write_import
    from gpt1.exchange.read import read_model

    found = read_model(folder.expanduser(), heads)
    about = write_import(found, to.expanduser())
    if json:
        print_json(dict(sorted((about | {"folder": str(to)}).items())))
        return
    sizes = found.sizes
    typer.echo(
        f"{to}: {sizes.layers} layers of width {sizes.width}, {sizes.heads} heads, context"
        f" {sizes.context}, {about['parameters']:,} parameters, {found.vocabulary.size:,} entries;"
        f" from {len(found.files)} files ({found.form})"
    )
    if found.form == "authors":
        typer.echo(
            "the released files, byte for byte"
            if about["released"]
            else "in the released files' form, but not the released files"
        )
