"""`gpt1 generate`: a pre-trained Transformer goes on with texts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gpt1.commands.options import OF_THE_FIRST, VOCABULARY, first_weights, option, refuse_elsewhere

EXAMPLES = """
Examples:

    gpt1 generate "She opened the door and"

    gpt1 generate "It was late." --top-p 0.95 --samples 3 --seed 1

    gpt1 generate "It was late." "He said" --beams 4 --json
"""


def generate(
    prompts: Annotated[list[str], typer.Argument(help="Texts to go on with.", show_default=False)],
    weights: Annotated[
        Path | None,
        option(f"A Transformer's weights: pre-trained, a snapshot, or imported. {OF_THE_FIRST}"),
    ] = None,
    vocabulary: Annotated[
        Path, typer.Option(help="The folder of the vocabulary they were trained with.")
    ] = VOCABULARY,
    tokens: Annotated[int, typer.Option(min=1, help="New tokens, at most.")] = 40,
    beams: Annotated[int, typer.Option(min=1, help="Beam search with so many beams; 1: none.")] = 1,
    length_penalty: Annotated[
        float, typer.Option(help="Of beam search: a text's log-probability / length ^ this.")
    ] = 1.0,
    temperature: Annotated[
        float | None, option("Draw each token, from logits / this.", min=1e-3)
    ] = None,
    top_k: Annotated[int | None, option("Draw among the so many likeliest.", min=1)] = None,
    top_p: Annotated[
        float | None,
        option("Draw among the likeliest that make up this share.", min=1e-9, max=1.0),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Texts for each prompt.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of what is drawn.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a prompt.")] = False,
) -> None:
    """Go on with texts by a pre-trained Transformer: the likeliest token each time, by beam search,
    or drawn.

    Drawn where --temperature, --top-k, --top-p or several --samples ask for it. Texts are lower
    case, words with blanks between, as the model reads and writes them; none goes past its context.
    """
    import json
    import sys

    from gpt1.base.errors import UserError
    from gpt1.base.terminal import plain
    from gpt1.inference.generation import encode_prompt, go_on, load_language_model
    from gpt1.train import launch

    asked = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    how: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if beams > 1 and (how or samples > beams):
        raise UserError(
            "expected --beams alone, with --samples of at most as many: beam search draws nothing;"
            " leave the others out"
        )
    if weights is None:
        refuse_elsewhere("gpt1 generate")
    draw = beams == 1 and (bool(how) or samples > 1)
    how |= {"do_sample": draw, "num_beams": beams, "num_return_sequences": samples}
    if beams > 1:
        how["length_penalty"] = length_penalty
    machine = launch.read_machine()
    launch.prepare(machine)
    model = load_language_model(weights or first_weights(), vocabulary, machine.device)
    for number, prompt in enumerate(prompts):
        texts = go_on(model, encode_prompt(model.vocabulary, prompt), tokens, seed, **how)
        if as_json:
            record = {"prompt": prompt, "texts": texts}
            print(json.dumps(record, ensure_ascii=sys.stdout.isatty()))
            continue
        typer.echo(("\n" if number else "") + typer.style(plain(prompt), bold=True))
        for text in texts:
            typer.echo(f"  {plain(text)}".replace("\n", "\n  "))
