"""`gpt1 predict`: what a fine-tuned model answers, to one example on the command line or many on
standard input.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from gpt1.commands.options import Seed, Task, option

if TYPE_CHECKING:
    from gpt1.inference.saved import Answer

EXAMPLES = """
Examples:

    gpt1 predict rte --first "A cat sleeps on the mat." --second "An animal sleeps."

    gpt1 predict sst2 --first "A splendid book." --json

    gpt1 predict story_cloze --first "Ann lost her keys. She looked everywhere. …" --choice "She found them." --choice "She flew away."

    gpt1 predict mrpc --seed 1 < pairs.tsv            a pair a line, with a tab between; an answer a line

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

    from gpt1.base.files import stage_folder
    from gpt1.inference.fields import example_from_line, make_example
    from gpt1.inference.finished import finished
    from gpt1.inference.saved import load_model
    from gpt1.params.schema import read_params

    done = finished(read_params(), task)
    given = first is not None or second is not None or bool(choice)
    example = (
        make_example(done.task, first, second, choice or [], "the options") if given else None
    )  # before the weights are read
    if not given and sys.stdin.isatty():
        print("an example a line, fields with tabs between; Ctrl-D ends", file=sys.stderr)
    model = load_model(done.weights(seed), stage_folder("bpe"))
    lines = (
        (f"line {number}", line.rstrip("\r\n")) for number, line in enumerate(sys.stdin, start=1)
    )
    examples = (
        [example]
        if example
        else (example_from_line(done.task, line, where) for where, line in lines if line.strip())
    )
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
