"""`gpt1 export`: a language model or a fine-tuned task model as a Hugging Face folder."""

import re
from pathlib import Path
from typing import Annotated

import typer

from gpt1.base.errors import UserError
from gpt1.commands.options import OF_THE_FIRST, argument, first_weights, option

EXAMPLES = """
Examples:

    gpt1 export ~/my-gpt                     the pre-trained Transformer of this run

    gpt1 export ~/my-gpt --snapshots         and every snapshot beside it, as revisions for the hub

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
    base_model: Annotated[
        str | None,
        option(
            "For the card of a task's model: what it was fine-tuned from, as NAME/MODEL on the hub."
        ),
    ] = None,
    snapshots: Annotated[
        bool,
        typer.Option(
            "--snapshots",
            help="Also each snapshot of the pre-training, in a folder step-N, to be uploaded as a "
            "revision of this name.",
        ),
    ] = False,
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

    target, steps = folder.expanduser(), list[Path]()
    if task is None:
        if seed is not None or base_model:
            name = "--base-model" if base_model else "--seed"
            raise UserError(
                f"{name} is for a task's model; name the task by --task, or leave it out"
            )
        pieces = vocabulary or Path("data/bpe")
        model = read_outgoing((weights or first_weights()).expanduser(), pieces)
        steps += model.weights.parent.glob("snapshots/*.safetensors") if snapshots else ()
        if snapshots and not steps:
            raise UserError(
                f"{model.weights.parent / 'snapshots'}: expected the snapshots of a pre-training,"
                " found none; leave --snapshots out"
            )
        each = (read_outgoing(path, pieces) for path in sorted(steps))
        files = export_language_model(model, target, each)
    else:
        if snapshots:
            raise UserError("--snapshots are of a pre-training; leave --task or --snapshots out")
        if base_model and not re.fullmatch(r"[\w.-]+/[\w.-]+", base_model):
            raise UserError(
                f"--base-model: expected NAME/MODEL as on the hub, found {base_model!r}; the model"
                " has to lie there"
            )
        chosen = chosen_task(task.expanduser(), seed)
        model = read_outgoing(chosen.weights, vocabulary or chosen.vocabulary)
        files = export_task_model(model, chosen.about, chosen.seed, target, base_model)
    if json:
        print_json(
            {"folder": str(folder), "kind": model.description.kind, "files": files}
            | ({"snapshots": [f"step-{int(path.stem)}" for path in sorted(steps)]} if steps else {})
        )
    else:
        what = f"{model.description.kind}{f', seed {chosen.seed}' if task else ''}"
        typer.echo(
            f"{folder}: {what}, {len(files)} files ({', '.join(files)})"
            f"{f' and {len(steps)} snapshots in step-N' if steps else ''}; README.md says how to use"
            " them"
        )
