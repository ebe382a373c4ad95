"""`gpt1 export`."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.commands.options import (
    OF_THE_FIRST,
    VOCABULARY,
    Vocabulary,
    argument,
    first_weights,
    option,
)

EXAMPLES = """
Examples:

    gpt1 export ~/my-gpt                     the pre-trained Transformer of this run

    gpt1 export ~/my-cola --task cola        CoLA's best seed on dev, with its classes

    gpt1 export ~/openai-gpt --weights data/raw/official/weights.safetensors --vocabulary data/raw/official
"""


def export(
    folder: Annotated[Path, argument("A new folder.")],
    weights: Annotated[Path | None, option(f"Weights of a language model. {OF_THE_FIRST}")] = None,
    vocabulary: Vocabulary = VOCABULARY,
    task: Annotated[str | None, option("A fine-tuned task in place of the language model.")] = None,
    seed: Annotated[int | None, option("Which seed of the task. Default: the best on dev.")] = None,
) -> None:
    """Export a model for `transformers`: weights, config, tokenizer, the code of its classes and a
    model card.
    """
    from gpt1.base.errors import UserError
    from gpt1.exchange.outgoing import chosen_task, export_language_model, export_task_model

    target = folder.expanduser()
    if task is None and seed is None:
        files = export_language_model(weights or first_weights(), vocabulary, target)
    elif task is None or weights is not None:
        raise UserError("expected --weights, or --task with or without --seed, found others")
    else:
        files = export_task_model(*chosen_task(task, seed), target)
    typer.echo(f"{folder}: {', '.join(files)}; README.md says how to use them")
