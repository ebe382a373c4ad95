"""`gpt1 export`: a language model or a fine-tuned task model as a Hugging Face folder."""

from pathlib import Path
from typing import Annotated

import typer

from gpt1.base.errors import UserError
from gpt1.commands.options import OF_THE_FIRST, argument, first_weights, option

EXAMPLES = """
Examples:

    gpt1 export ~/my-gpt                     the pre-trained Transformer of this run

    gpt1 export ~/my-cola --task cola        the seed of CoLA that is best on validation, with its classes

    gpt1 export ~/openai-gpt --weights data/raw/official/weights.safetensors --vocabulary data/raw/official
"""


def export(
    folder: Annotated[
        Path,
        argument("A new folder, or one of an earlier export, which is replaced."),
    ],
    weights: Annotated[Path | None, option(f"Weights of a language model. {OF_THE_FIRST}")] = None,
    vocabulary: Annotated[
        Path | None,
        option(
            "The folder of its vocab.json and merges.txt. Default: data/bpe; for a task, "
            "that of its own run."
        ),
    ] = None,
    task: Annotated[
        Path | None,
        option(
            "A fine-tuned task in place of the language model: its name, or its folder under "
            "data/finetune."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        option("Which seed of the task. Default: the best on validation."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Say what was written as JSON.")] = False,
) -> None:
    """Export a model for `transformers`: weights, config, tokenizer, the code of its classes,
    checksums and a model card.
    """
    from gpt1.base.terminal import print_json
    from gpt1.exchange.outgoing import (
        chosen_task,
        export_language_model,
        export_task_model,
        read_outgoing,
    )

    target = folder.expanduser()
    if task is None:
        if seed is not None:
            raise UserError(
                "--seed is for a task's model; name the task by --task, or leave --seed out"
            )
        model = read_outgoing(
            (weights or first_weights()).expanduser(), vocabulary or Path("data/bpe")
        )
        files = export_language_model(model, target)
    else:
        chosen = chosen_task(task.expanduser(), seed)
        model = read_outgoing(chosen.weights, vocabulary or chosen.vocabulary)
        files = export_task_model(model, chosen.about, chosen.seed, target)
    if json:
        print_json({"folder": str(folder), "kind": model.description.kind, "files": files})
    else:
        what = f"{model.description.kind}{f', seed {chosen.seed}' if task else ''}"
        typer.echo(
            f"{folder}: {what}, {len(files)} files ({', '.join(files)}); README.md says how to use"
            " them"
        )
