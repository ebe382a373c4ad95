"""`gpt1 generate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gpt1.commands.options import (
    OF_THE_FIRST,
    VOCABULARY,
    Run,
    Vocabulary,
    argument,
    first_weights,
    option,
)

EXAMPLES = """
Examples:

    gpt1 generate "The town was quiet and" --run reference/town

    gpt1 generate "It was late." --top-p 0.95 --samples 3 --seed 1

    gpt1 generate "It was late." "He said" --beams 4
"""


def generate(
    prompts: Annotated[list[str], argument("Texts to continue.")],
    weights: Annotated[
        Path | None,
        option(f"A Transformer's weights: pre-trained, a snapshot, or imported. {OF_THE_FIRST}"),
    ] = None,
    vocabulary: Vocabulary = VOCABULARY,
    tokens: Annotated[int, typer.Option(min=1, help="New tokens, at most.")] = 40,
    beams: Annotated[int, typer.Option(min=1, help="Beam search with so many beams; 1: none.")] = 1,
    temperature: Annotated[
        float | None, option("Divide logits by this and sample.", min=1e-3)
    ] = None,
    top_k: Annotated[int | None, option("Sample among this many likeliest tokens.", min=1)] = None,
    top_p: Annotated[
        float | None,
        option("Sample among the likeliest that make up this share.", min=1e-9, max=1.0),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Texts for each prompt.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the sampling.")] = 0,
    run: Run = None,
) -> None:
    """Continue texts with a pre-trained Transformer: by the likeliest token, by beam search, or by
    sampling.

    It samples if --temperature, --top-k, --top-p or several --samples are given. With --beams, several
    --samples are the best beams. Texts are lower case, with a blank between words, as the model reads
    and writes them; none exceeds its context.
    """
    from gpt1.base.errors import plain
    from gpt1.inference.generation import continue_prompt, encode_prompt, load_language_model
    from gpt1.results.runs import within
    from gpt1.train import launch

    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    sampling: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if sampling or (samples > 1 and beams == 1):  # without top_k transformers samples among 50
        sampling = {"do_sample": True, "top_k": 0} | sampling
    machine = launch.read_machine()
    launch.prepare(machine)
    with within(run):
        model = load_language_model(weights or first_weights(), vocabulary, machine.device)
    for prompt in prompts:
        ids = encode_prompt(model.vocabulary, prompt)
        counts = {"num_beams": max(beams, samples if beams > 1 else 1)}
        texts = continue_prompt(
            model, ids, tokens, seed, num_return_sequences=samples, **counts, **sampling
        )
        typer.echo(typer.style(plain(prompt), bold=True))
        for text in texts:
            typer.echo(f"  {plain(text)}".replace("\n", "\n  "))
