"""What the pre-trained Transformer makes of prompts and of openings of held-out books, beside its
held-out perplexity.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from gpt1.base.errors import UserError
from gpt1.corpus.shards import Shards
from gpt1.inference.beam import Beam, go_on
from gpt1.inference.decode import Draw, Limits, Sample
from gpt1.inference.loading import LanguageModel
from gpt1.inference.perplexity import log_probabilities, perplexities
from gpt1.inference.request import encode_prompts, never_generated, readable, whole_words
from gpt1.inference.scores import score
from gpt1.params.schema import Generate

DIGITS = 6  # of what is written: the last ones differ from one kind of core to another


class SamplePrompt(NamedTuple):
    """Where a prompt comes from, its ids, and what really follows it (none where nobody knows)."""

    origin: str
    ids: list[int]
    reference: list[int]


def rounded(values: dict[str, Any]) -> dict[str, Any]:
    """The same values as they are written."""
    return {
        name: round(value, DIGITS) if isinstance(value, float) else value
        for name, value in values.items()
    }


def book_tokens(shards: Shards, book: dict[str, Any], count: int) -> list[int]:
    """The first `count` ids of a held-out book, or all where it has fewer."""
    type_ = np.dtype(shards.index["dtype"]).newbyteorder("<")
    path, offset = shards.folder / "heldout.bin", book["offset"] * type_.itemsize
    ids: list[int] = np.fromfile(
        path, type_, count=min(count, book["tokens"]), offset=offset
    ).tolist()
    return ids


def openings(model: LanguageModel, shards: Shards, section: Generate) -> list[SamplePrompt]:
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
        found.append(SamplePrompt(f"held-out book {book['name']}", opening, reference))
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
    found = perplexities(np.concatenate(scores), shards.words_per_token("heldout"))
    if not math.isfinite(found.loss):
        raise UserError(
            f"the weights give a held-out loss of {found.loss}: pre-training has diverged; lower"
            " pretrain.learning_rate in params.yaml"
        )
    return {"split": "heldout", "books": len(texts)} | rounded(found._asdict())


def decodings(section: Generate) -> dict[str, tuple[Draw | Beam | None, str]]:
    """How each kind of sample is made, for the decoder and in words."""
    temperature, top_k = section.temperature, section.top_k
    top_p, seed = section.top_p, section.seed
    return {
        "greedy": (None, "the likeliest token each time"),
        "beam": (
            Beam(section.beams, section.length_penalty, 1),
            f"{section.beams} beams, length penalty {section.length_penalty}",
        ),
        "sampled": (
            Draw(temperature, top_k, top_p, seed, section.samples),
            f"temperature {temperature}, top-k {top_k or 'all'}, top-p {top_p}, seed {seed}",
        ),
    }


def score_samples(
    model: LanguageModel, prompts: list[SamplePrompt], samples: dict[str, list[list[Sample]]]
) -> dict[str, Any]:
    """BLEU, ROUGE and METEOR (words and stems) of each decoding against what the books go on with,
    and the signatures.
    """
    about: dict[str, Any] = {"scores": {}, "signatures": {}}
    for name, of_prompts in samples.items():
        pairs = [
            (readable(model.vocabulary, sample.ids), [readable(model.vocabulary, prompt.reference)])
            for prompt, found in zip(prompts, of_prompts, strict=True)
            if prompt.reference
            for sample in found
        ]
        if pairs:
            texts, references = zip(*pairs, strict=True)
            values, about["signatures"] = score(texts, references, None)
            about["scores"][name] = rounded(values)
    return about


def make_samples(
    model: LanguageModel, shards: Shards, section: Generate, rows_at_once: int
) -> dict[str, Any]:
    """Everything that stage `generate` writes: perplexity, every prompt with its samples as text,
    their scores.

    Raises UserError where the shards are of another vocabulary, a prompt is empty, or no number
    comes out.
    """
    vocabulary = model.vocabulary
    if shards.index["vocabulary_fingerprint"] != vocabulary.fingerprint:
        raise UserError(
            f"{shards.folder}: expected tokens of the vocabulary {vocabulary.fingerprint},"
            f" found {shards.index['vocabulary_fingerprint']}; run dvc repro"
        )
    perplexity = heldout_perplexity(model, shards, section, rows_at_once)
    own = encode_prompts(model, section.prompts, "generate.prompts in params.yaml, number")
    prompts = [SamplePrompt("params.yaml", ids, []) for ids in own] + openings(
        model, shards, section
    )
    limits = Limits(section.tokens, (), never_generated(vocabulary), vocabulary.size)
    ways = decodings(section)
    samples = {
        name: go_on(model.network, [prompt.ids for prompt in prompts], limits, how)
        for name, (how, _) in ways.items()
    }
    texts = [
        {
            "origin": prompt.origin,
            "prompt": readable(vocabulary, prompt.ids),
            "prompt_tokens": len(prompt.ids),
            "reference": readable(vocabulary, prompt.reference) or None,
            "samples": [
                {
                    "decoding": name,
                    "text": readable(vocabulary, sample.ids),
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
    return {
        "network": "transformer",
        "tokens": section.tokens,
        "decodings": {name: words for name, (_, words) in ways.items()},
        "perplexity": perplexity,
        "prompts": texts,
        **score_samples(model, prompts, samples),
    }


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
