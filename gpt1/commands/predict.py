"""`gpt1 predict`: what a fine-tuned model answers, to one example on the command line or many on
standard input.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpt1.base.errors import UserError
from gpt1.commands.options import VOCABULARY, Seed, Task, option, refuse_elsewhere

if TYPE_CHECKING:
    from gpt1.inference.saved import Answer

EXAMPLES = """
Examples:

    gpt1 predict rte --first "A cat sleeps on the mat." --second "An animal sleeps."

    gpt1 predict sst2 --first "A splendid book." --json

    gpt1 predict story_cloze --first "Ann lost her keys. She looked everywhere. …" --choice "She found them." --choice "She flew away."

    gpt1 predict mrpc --seed 1 < pairs.tsv            a pair a line, with a tab between; an answer a line

    gpt1 predict sst2 --weights model/weights.safetensors --vocabulary model/bpe --first "A splendid book."     a model from elsewhere

    gpt1 predict race --json < questions.jsonl        {"first": passage, "second": question, "choices": [four answers]} a line
"""


def predict(
    task: Task,
    first: Annotated[
        str | None,
        option("The text; of a pair the first (premise, question, passage, story)."),
    ] = None,
    second: Annotated[
        str | None,
        option("The second text of a pair (hypothesis); RACE: the question."),
    ] = None,
    choice: Annotated[
        list[str] | None,
        option("A choice, once for each, in order (RACE, Story Cloze)."),
    ] = None,
    seed: Seed = None,
    weights: Annotated[
        Path | None,
        option("Weights of a fine-tuned model of that task. Default: those in data/finetune."),
    ] = None,
    vocabulary: Annotated[
        Path, typer.Option(help="The folder of the vocabulary they were trained with.")
    ] = VOCABULARY,
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON object a line, as a served model gives it.")
    ] = False,
) -> None:
    """Answer sentences with a fine-tuned model: from the options, or from standard input, an
    example a line.

    A line holds the fields with tabs between (first, second, choices), or is a JSON object with
    these names. The weights are those of the update that was best on the development split. An
    answer never depends on the other lines.
    """
    import json
    import sys

    from gpt1.inference.fields import examples_from_lines, make_example
    from gpt1.inference.finished import chosen
    from gpt1.inference.saved import load_model

    if weights is None:
        refuse_elsewhere("gpt1 predict")
    kind, path = chosen(task, seed, weights)
    given = first is not None or second is not None or bool(choice)
    example = (
        make_example(kind, first, second, choice or [], "the options") if given else None
    )  # before the weights are read
    if not given and sys.stdin.isatty():
        print("an example a line, fields with tabs between; Ctrl-D ends", file=sys.stderr)
    model = load_model(path, vocabulary)
    if model.task != kind:
        raise UserError(f"{path}: expected weights of {task}, found those of {model.task.name}")
    examples = [example] if example else examples_from_lines(kind, sys.stdin.buffer)
    for one in examples:
        found = model.answer(one)
        print(
            (
                json.dumps(found.record(), ensure_ascii=sys.stdout.isatty())
                if as_json
                else answer_line(found)
            ),
            flush=True,
        )


def answer_line(found: "Answer") -> str:
    """An answer as a line for a person: the label or score, the text chosen, the probabilities."""
    from gpt1.base.terminal import plain

    said = f"{found.score:.3f}" if found.score is not None else str(found.label)
    chosen = "  " + " ".join(plain(found.choice).split()) if found.choice else ""
    return (
        f"{said}{chosen} "
        f" ({', '.join(f'{name} {value:.3f}' for name, value in found.probabilities.items())})"
    )
