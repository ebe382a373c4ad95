"""`gpt1 generate`: a pre-trained model goes on with texts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gpt1.base.errors import UserError, not_utf8
from gpt1.commands.options import (
    OF_THE_FIRST,
    VOCABULARY,
    first_weights,
    option,
    refuse_elsewhere,
)

EXAMPLES = """
Examples:

    gpt1 generate --prompt "She opened the door and"

    gpt1 generate --prompt "It was late." --top-p 0.95 --samples 3 --seed 1

    gpt1 generate --prompts openings.txt --beams 4 --stop . --json

    gpt1 generate --prompts openings.txt --references endings.txt

    gpt1 generate --perplexity chapter.txt --json
"""


def generate(
    prompt: Annotated[
        list[str] | None,
        option("A text to go on with; once for each.", metavar="TEXT"),
    ] = None,
    prompts: Annotated[
        Path | None,
        option("A file with a prompt a line; - for standard input."),
    ] = None,
    weights: Annotated[
        Path | None,
        option(f"A language model's weights: pre-trained, a snapshot, or imported. {OF_THE_FIRST}"),
    ] = None,
    vocabulary: Annotated[
        Path, typer.Option(help="The folder of the vocabulary they were trained with.")
    ] = VOCABULARY,
    tokens: Annotated[int, typer.Option(min=1, help="New tokens, at most.")] = 40,
    stop: Annotated[
        list[str] | None,
        option(
            "End a text after this one, which stays in it; \\n: the end of a "
            "line. May be given more than once.",
            metavar="TEXT",
        ),
    ] = None,
    beams: Annotated[int, typer.Option(min=1, help="Beam search with so many beams; 1: none.")] = 1,
    length_penalty: Annotated[
        float,
        typer.Option(help="Of beam search: log-probability / new tokens ^ this is a text's score."),
    ] = 1.0,
    temperature: Annotated[
        float | None,
        option("Draw each token, from logits / this. 0: the likeliest.", min=0.0),
    ] = None,
    top_k: Annotated[
        int | None,
        option("Draw among the so many likeliest.", min=1),
    ] = None,
    top_p: Annotated[
        float | None,
        option("Draw among the likeliest that make up this share.", min=1e-9, max=1.0),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, help="Texts for each prompt; of beam search the best.")
    ] = 1,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**63 - 1,
            help="A drawn text depends on it, its prompt's number and its own.",
        ),
    ] = 0,
    references: Annotated[
        Path | None,
        option("A file with a reference a line (several: tabs between): scores."),
    ] = None,
    wordnet: Annotated[
        Path | None,
        option("WordNet's files, for METEOR with synonyms. Default: those of wordnet-base."),
    ] = None,
    perplexity: Annotated[
        Path | None,
        option("A text file: how well the model foretells it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Go on with texts by a pre-trained model, score them against references, measure the
    perplexity of a text.

    The likeliest token each time, unless --beams is more than 1, or --temperature, --top-k, --top-p
    or several --samples ask to draw. Texts are lower case, words with blanks between, as the model
    reads and writes them. Past the context its window slides in steps of half of it.
    """
    from gpt1.inference.loading import load_language_model
    from gpt1.inference.request import Way, choose_way, go_on, read_lines, scored, text_perplexity
    from gpt1.train import launch

    weights = weights or first_weights()
    refuse_absent(weights, vocabulary)
    texts = [*(prompt or []), *(read_lines(prompts, read_text(prompts)) if prompts else [])]
    if not texts and perplexity is None:
        raise UserError(
            "expected --prompt TEXT, --prompts FILE or --perplexity FILE, found none; see gpt1"
            " generate --help"
        )
    if references and not texts:
        raise UserError("expected prompts beside --references, found none; add --prompts FILE")
    way = Way(
        choose_way(beams, length_penalty, temperature, top_k, top_p, samples, seed),
        tokens,
        tuple(stop or ()),
    )
    own = read_lines(references, read_text(references), len(texts)) if references else []
    measured = read_text(perplexity) if perplexity else None
    machine = launch.read_machine()
    launch.prepare(machine)
    model = load_language_model(weights, vocabulary, machine.device)
    found: dict[str, Any] = {"prompts": go_on(model, texts, way)}
    if references:
        found |= scored(model, found["prompts"], own, wordnet)
    if measured is not None:
        found["perplexity"] = text_perplexity(model, measured)
    show(found, as_json)


def refuse_absent(weights: Path, vocabulary: Path) -> None:
    """Raises UserError where this is no project folder, or nothing has been trained in it yet, and
    no other weights are named.
    """
    own = [
        path
        for path, usual in ((weights, first_weights()), (vocabulary, VOCABULARY))
        if path == usual and not path.exists()
    ]
    if own:
        refuse_elsewhere("gpt1 generate")
        raise UserError(
            f"no model has been trained here yet ({own[0]} is not there): gpt1 run"
            " pretrain makes one; or name another by --weights FILE --vocabulary FOLDER"
        )


def read_text(path: Path) -> str:
    """A file's text, or standard input's. Raises UserError where it cannot be read, or is no
    UTF-8.
    """
    import io
    import sys

    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return io.StringIO(data.decode("utf-8-sig"), newline=None).read()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected UTF-8, found {not_utf8(error)}; save it so") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error}); expected a text file in UTF-8") from None


def show(found: dict[str, Any], as_json: bool) -> None:
    """Print the texts, scores and perplexity, as JSON or for a person."""
    import json
    import sys

    from gpt1.base.terminal import plain

    if as_json:
        print(json.dumps(found, ensure_ascii=sys.stdout.isatty()))
        return
    for number, answer in enumerate(found["prompts"]):
        typer.echo(("\n" if number else "") + typer.style(plain(answer["prompt"]), bold=True))
        for sample in answer["samples"]:
            typer.echo(f"  {plain(sample['text'])}".replace("\n", "\n  "))
    for name, value in found.get("scores", {}).items():
        signature = found["signatures"]["rouge" if name.startswith("rouge") else name]
        typer.echo(f"{name} {value:.2f}  ({signature})")
    for note in found.get("notes", []):
        typer.echo(note, err=True)
    if "perplexity" in found:
        line = (
            "perplexity {per_token:.2f} for each token, {per_word:.2f} for each word; loss"
            " {loss:.4f} nats a token ({tokens:,} tokens foretold, {words:,} words)"
        )
        typer.echo(line.format(**found["perplexity"]))
