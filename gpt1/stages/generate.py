"""`generate`: the pre-trained Transformer goes on with prompts and with openings of held-out books;
its held-out perplexity.

Writes samples.json, for the report, and samples.md, for reading.
"""

import math
import sys
from typing import Any, NamedTuple

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder, write_json, writing, writing_folder
from gpt1.corpus.shards import Shards
from gpt1.inference.beam import Beam, beam_search
from gpt1.inference.decode import Draw, Limits, Sample, greedy, sampled
from gpt1.inference.loading import LanguageModel, load_language_model
from gpt1.inference.perplexity import foretold, log_probabilities
from gpt1.inference.scores import score
from gpt1.inference.texts import never_generated, readable, whole_words
from gpt1.params.schema import Generate, Params, read_params
from gpt1.train import launch

DIGITS = 6  # of what is written: the last ones differ from one kind of core to another


class Prompt(NamedTuple):
    """Where a prompt comes from, its ids, and what really follows it (none where nobody knows)."""

    origin: str
    ids: list[int]
    reference: list[int]


def book_tokens(shards: Shards, book: dict[str, Any], count: int) -> list[int]:
    """The first `count` ids of a held-out book, or all where it has fewer."""
    type_ = np.dtype(shards.index["dtype"]).newbyteorder("<")
    path, offset = shards.folder / "heldout.bin", book["offset"] * type_.itemsize
    ids: list[int] = np.fromfile(
        path, type_, count=min(count, book["tokens"]), offset=offset
    ).tolist()
    return ids


def openings(model: LanguageModel, shards: Shards, section: Generate) -> list[Prompt]:
    """Openings of held-out books, evenly spread over those that are long enough, each cut after a
    word, and what follows it.
    """
    books = [
        book
        for book in shards.index["splits"]["heldout"]["books"]
        if book["tokens"] > section.prompt_tokens
    ]
    count = min(section.heldout_prompts, len(books))
    found = []
    for book in (books[number * len(books) // count] for number in range(count)):
        ids = book_tokens(shards, book, section.prompt_tokens + section.tokens)
        opening = whole_words(model.vocabulary, ids[: section.prompt_tokens])
        reference = whole_words(model.vocabulary, ids[len(opening) : len(opening) + section.tokens])
        found.append(Prompt(f"held-out book {book['name']}", opening, reference))
    return found


def own_prompts(model: LanguageModel, section: Generate) -> list[Prompt]:
    """The prompts of params.yaml. Raises UserError for one of which nothing is left by cleaning."""
    found = [Prompt("params.yaml", model.vocabulary.encode(text), []) for text in section.prompts]
    if empty := [
        text for text, prompt in zip(section.prompts, found, strict=True) if not prompt.ids
    ]:
        raise UserError(
            f"generate.prompts: expected texts, found {empty[0]!r}, which is empty; take it out of"
            " params.yaml"
        )
    return found


def heldout_perplexity(
    model: LanguageModel, shards: Shards, section: Generate, rows_at_once: int
) -> dict[str, Any]:
    """Loss and perplexities on the openings of all held-out books, an equal share of
    perplexity_tokens each; which they are.
    """
    books = shards.index["splits"]["heldout"]["books"]
    share = max(2, section.perplexity_tokens // max(1, len(books)))
    texts = [ids for book in books if len(ids := book_tokens(shards, book, share)) > 1]
    if not texts:
        raise UserError(
            f"{shards.folder}: expected held-out books of two tokens or more, found none; raise"
            " shard.heldout_fraction"
        )
    scores = [
        log_probabilities(model.network, ids, model.vocabulary.size, rows_at_once) for ids in texts
    ]
    found = foretold(np.concatenate(scores), shards.words_per_token("heldout"))
    if not math.isfinite(found.loss):
        raise UserError(
            f"the weights give a held-out loss of {found.loss}: pre-training has diverged; lower"
            " pretrain.learning_rate in params.yaml"
        )
    return {"split": "heldout", "books": len(texts)} | {
        name: round(value, DIGITS) if isinstance(value, float) else value
        for name, value in found._asdict().items()
    }


def decodings(section: Generate) -> dict[str, str]:
    """How each kind of sample is made, in words."""
    return {
        "greedy": "the likeliest token each time",
        "beam": f"{section.beams} beams, length penalty {section.length_penalty}",
        "sampled": (
            f"temperature {section.temperature}, top-k {section.top_k or 'all'}, top-p"
            f" {section.top_p}, seed {section.seed}"
        ),
    }


def decode(
    model: LanguageModel, prompts: list[Prompt], section: Generate
) -> dict[str, list[list[Sample]]]:
    """The samples of each prompt, by decoding."""
    ids = [prompt.ids for prompt in prompts]
    limits = Limits(section.tokens, (), never_generated(model.vocabulary), model.vocabulary.size)
    draw = Draw(section.temperature, section.top_k, section.top_p, section.seed, section.samples)
    return {
        "greedy": [[sample] for sample in greedy(model.network, ids, limits)],
        "beam": beam_search(
            model.network, ids, limits, Beam(section.beams, section.length_penalty, 1)
        ),
        "sampled": sampled(model.network, ids, limits, draw),
    }


def score_samples(
    model: LanguageModel, prompts: list[Prompt], samples: dict[str, list[list[Sample]]]
) -> dict[str, Any]:
    """BLEU, ROUGE and METEOR (words and stems) of each decoding against what the books go on with,
    and the signatures.
    """
    known = [number for number, prompt in enumerate(prompts) if prompt.reference]
    scores: dict[str, dict[str, float]] = {}
    signatures: dict[str, str] = {}
    for name, of_prompts in samples.items() if known else ():
        pairs = [
            (
                readable(model.vocabulary, sample.ids),
                [readable(model.vocabulary, prompts[number].reference)],
            )
            for number in known
            for sample in of_prompts[number]
        ]
        found = score([text for text, _ in pairs], [references for _, references in pairs], None)
        scores[name] = {
            score_name: round(value, DIGITS) for score_name, value in found.values.items()
        }
        signatures = found.signatures
    return {"scores": scores, "signatures": signatures}


def as_json(
    model: LanguageModel, prompts: list[Prompt], samples: dict[str, list[list[Sample]]]
) -> list[dict[str, Any]]:
    """Every prompt with its samples, as text."""
    return [
        {
            "origin": prompt.origin,
            "prompt": readable(model.vocabulary, prompt.ids),
            "prompt_tokens": len(prompt.ids),
            "reference": readable(model.vocabulary, prompt.reference) or None,
            "samples": [
                {
                    "decoding": name,
                    "text": readable(model.vocabulary, sample.ids),
                    "tokens": len(sample.ids),
                    "log_probability": round(sample.log_probability, DIGITS),
                    "stopped": sample.stopped,
                }
                for name, of_prompts in samples.items()
                for sample in of_prompts[number]
            ],
        }
        for number, prompt in enumerate(prompts)
    ]


def as_markdown(about: dict[str, Any]) -> str:
    """The same for reading: texts stand in fences, as they are."""
    heldout = about["perplexity"]
    lines = [
        "# Samples",
        "",
        *(f"- {name}: {words}" for name, words in about["decodings"].items()),
        "",
        (
            f"Held-out perplexity {heldout['per_token']:.2f} for each token,"
            f" {heldout['per_word']:.2f} for each word ({heldout['tokens']:,} tokens of"
            f" {heldout['books']} books)."
        ),
    ]
    for prompt in about["prompts"]:
        texts = [("prompt", prompt["prompt"])] + (
            [("the book", prompt["reference"])] if prompt["reference"] else []
        )
        texts += [(sample["decoding"], sample["text"]) for sample in prompt["samples"]]
        lines += ["", f"## {prompt['origin']}"]
        for name, text in texts:
            lines += ["", f"{name}:", "", "~~~~text", text, "~~~~"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Load weights and vocabulary, measure perplexity, go on with every prompt in every way, score,
    write.
    """
    params: Params = read_params()
    machine, section = launch.read_machine(), params.generate
    launch.prepare(machine)
    model = load_language_model(
        stage_folder("pretrain", "transformer", "weights.safetensors"),
        stage_folder("bpe"),
        machine.device,
    )
    shards = Shards.open(stage_folder("shard"))
    if shards.index["vocabulary_fingerprint"] != model.vocabulary.fingerprint:
        raise UserError(
            f"{shards.folder}: expected tokens of the vocabulary {model.vocabulary.fingerprint},"
            f" found {shards.index['vocabulary_fingerprint']}; run dvc repro"
        )
    perplexity = heldout_perplexity(
        model, shards, section, machine.micro_batch_for(model.network.context)
    )
    prompts = own_prompts(model, section) + openings(model, shards, section)
    samples = decode(model, prompts, section)
    about = {
        "network": "transformer",
        "tokens": section.tokens,
        "decodings": decodings(section),
        "perplexity": perplexity,
        "prompts": as_json(model, prompts, samples),
        **score_samples(model, prompts, samples),
    }
    with writing_folder(stage_folder("generate")) as folder:
        write_json(folder / "samples.json", about)
        with writing(folder / "samples.md") as file:
            file.write(as_markdown(about))
    print(
        f"held-out perplexity {perplexity['per_token']:.2f} for each token,"
        f" {perplexity['per_word']:.2f} for each word;"
        f" {sum(len(one['samples']) for one in about['prompts'])} samples of {len(prompts)}"
        " prompts",
        file=sys.stderr,
    )
