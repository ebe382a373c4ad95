"""What a person asks for in one go: texts to go on with in one way, their scores, the perplexity of
a text; answered as plain values.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import LINE_END, UNKNOWN, WORD_END, Vocabulary
from gpt1.corpus.words import NEWLINE, Cleaner
from gpt1.inference import beam
from gpt1.inference.beam import Beam
from gpt1.inference.decode import Draw, Limits
from gpt1.inference.loading import LanguageModel
from gpt1.inference.perplexity import log_probabilities, perplexities
from gpt1.inference.scores import NO_WORDNET, find_wordnet, score

WINDOWS_AT_ONCE = 8


class Way(NamedTuple):
    """How to go on: a Draw, a Beam, or neither (the likeliest token each time); new tokens at most;
    texts that end one.
    """

    how: Draw | Beam | None
    tokens: int
    stops: tuple[str, ...]


def choose_way(
    beams: int,
    length_penalty: float,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    samples: int,
    seed: int,
) -> Draw | Beam | None:
    """Beam search for two beams or more; drawn where temperature, top_k, top_p or several samples
    are asked for; else the likeliest.

    Raises UserError for what does not go together.
    """
    drawn = {"temperature": temperature, "top-k": top_k, "top-p": top_p}
    for name, value in ({"length-penalty": length_penalty} | drawn).items():
        if value is not None and not math.isfinite(value):
            raise UserError(f"--{name}: expected a number that is finite, found another")
    asked_to_draw = [name for name, value in drawn.items() if value is not None]
    if beams > 1:
        if asked_to_draw:
            raise UserError(
                f"expected either --beams or --{asked_to_draw[0]}, found both: beam search draws"
                " nothing; leave one out"
            )
        if samples > beams:
            raise UserError(
                f"expected --samples of at most --beams {beams}, found {samples}: beam search has"
                " no more; raise --beams"
            )
        return Beam(beams, length_penalty, samples)
    if temperature == 0 or not (asked_to_draw or samples > 1):
        if samples > 1 or len(asked_to_draw) > 1:
            raise UserError(
                "expected a temperature above 0 for several samples, --top-k or --top-p, found 0:"
                " the likeliest text is one; leave --temperature out for 1"
            )
        return None
    return Draw(
        1.0 if temperature is None else temperature,
        top_k,
        1.0 if top_p is None else top_p,
        seed,
        samples,
    )


def read_lines(path: Path, text: str, wanted: int | None = None) -> list[str]:
    """The lines of a file's text. Raises UserError for an empty line, or where there are others
    than `wanted` lines.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    if empty := [number for number, line in enumerate(lines, start=1) if not line.strip()]:
        raise UserError(
            f"{path}, line {empty[0]}: expected a text in each line, found an empty one; take"
            " it out"
        )
    if not lines or len(lines) != (wanted or len(lines)):
        raise UserError(
            f"{path}: expected {wanted or 'one or more'} lines, one for each prompt, found"
            f" {len(lines)}"
        )
    return lines


def encode_prompts(
    model: LanguageModel, prompts: Sequence[str], name: str = "prompt"
) -> list[list[int]]:
    """Ids of each prompt. Raises UserError for one of which cleaning leaves nothing."""
    found = [model.vocabulary.encode(prompt) for prompt in prompts]
    if empty := [number for number, ids in enumerate(found, start=1) if not ids]:
        raise UserError(
            f"{name} {empty[0]}: expected some text, found {prompts[empty[0] - 1]!r}: the model"
            " goes on with something"
        )
    return found


def go_on(model: LanguageModel, prompts: Sequence[str], way: Way) -> list[dict[str, Any]]:
    """Each prompt as the model saw it and its samples: text, ids, log_probability (nats), stopped.
    Raises UserError for an empty one.
    """
    ids = encode_prompts(model, prompts)
    stops = {stop: stop_ids(model.vocabulary, stop) for stop in way.stops}
    if empty := [stop for stop, found in stops.items() if not found]:
        raise UserError(
            f"--stop: expected a text, or \\n for the end of a line, found {empty[0]!r}"
        )
    limits = Limits(
        way.tokens, tuple(stops.values()), never_generated(model.vocabulary), model.vocabulary.size
    )
    samples = beam.go_on(model.network, ids, limits, way.how)
    if not all(found and math.isfinite(found[0].log_probability) for found in samples):
        raise UserError(
            "the weights give no finite probabilities: pre-training has diverged; take those of an"
            " earlier snapshot"
        )
    return [
        {
            "prompt": readable(model.vocabulary, prompt),
            "prompt_tokens": len(prompt),
            "samples": [
                {
                    "text": readable(model.vocabulary, sample.ids),
                    "ids": list(sample.ids),
                    "log_probability": sample.log_probability,
                    "stopped": sample.stopped,
                }
                for sample in found
            ],
        }
        for prompt, found in zip(ids, samples, strict=True)
    ]


def scored(
    model: LanguageModel,
    answers: Sequence[dict[str, Any]],
    references: Sequence[str],
    wordnet: Path | None,
) -> dict[str, Any]:
    """Scores of the samples against the references, one or more a prompt with tabs between, cleaned
    as prompts are; a note on METEOR.

    Raises UserError where `wordnet` lacks WordNet's files.
    """
    cleaned = [
        [readable(model.vocabulary, model.vocabulary.encode(one)) for one in line.split("\t")]
        for line in references
    ]
    folder = find_wordnet(wordnet)
    pairs = [
        (sample["text"], own)
        for answer, own in zip(answers, cleaned, strict=True)
        for sample in answer["samples"]
    ]
    found = score([text for text, _ in pairs], [own for _, own in pairs], folder)
    return {
        "scores": found.values,
        "signatures": found.signatures,
        "notes": [] if folder else [NO_WORDNET],
    }


def text_perplexity(model: LanguageModel, text: str) -> dict[str, Any]:
    """Loss (nats a token), perplexity for each token and each word (line breaks are none), tokens
    and words of a text.

    Raises UserError where it has fewer than two tokens, or no word.
    """
    words = Cleaner().words(text)
    ids, counted = model.vocabulary.encode_words(words), sum(word != NEWLINE for word in words)
    if len(ids) < 2 or not counted:
        raise UserError(
            f"expected a text of two tokens or more with words in it, found {len(ids)} tokens,"
            f" {counted} words"
        )
    found = perplexities(
        log_probabilities(model.network, ids, model.vocabulary.size, WINDOWS_AT_ONCE),
        counted / len(ids),
    )
    return {**found._asdict(), "words": counted}


def readable(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """Words with blanks between and line breaks where the text has them; nothing that could steer a
    terminal.
    """
    lines = (" ".join(line.split()) for line in vocabulary.decode(ids).split("\n"))
    return "".join(
        character
        for character in "\n".join(lines).strip("\n")
        if character.isprintable() or character == "\n"
    )


def whole_words(vocabulary: Vocabulary, ids: Sequence[int]) -> list[int]:
    """The ids up to the last that ends a word; all where none does."""
    ends = [
        place for place, id_ in enumerate(ids, start=1) if vocabulary.pieces[id_].endswith(WORD_END)
    ]
    return list(ids[: ends[-1]] if ends else ids)


def never_generated(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Ids of the vocabulary that stand for no text: the unknown piece."""
    return (vocabulary.pieces.index(UNKNOWN),)


def stop_ids(vocabulary: Vocabulary, text: str) -> tuple[int, ...]:
    """The run of ids of a stop: `\\\\n` or a line break is the line's end, all else is encoded as
    text. () where nothing is left of it.
    """
    if text in ("\n", "\\n"):
        return (vocabulary.pieces.index(LINE_END),)
    return tuple(vocabulary.encode(text))
