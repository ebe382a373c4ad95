"""Texts that a Transformer continues, by transformers' own `generate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import UNKNOWN, WORD_END, Vocabulary
from gpt1.corpus.shards import Shards
from gpt1.inference.loading import read_saved
from gpt1.inference.openai_gpt import language_model
from gpt1.params.schema import Generate


class LanguageModel(NamedTuple):
    """transformers' OpenAIGPTLMHeadModel and the vocabulary of its rows."""

    network: Any
    vocabulary: Vocabulary


def load_language_model(weights: Path, vocabulary_folder: Path, device: str) -> LanguageModel:
    """Load a pre-trained Transformer. Raises UserError."""
    saved = read_saved(
        weights,
        vocabulary_folder,
        "transformer",
        "a pre-trained Transformer (gpt1 predict takes a task's; transformers has no such LSTM)",
    )
    return LanguageModel(language_model(saved).to(device).eval(), saved.vocabulary)


def continue_prompt(
    model: LanguageModel, prompt: Sequence[int], tokens: int, seed: int, **how: Any
) -> list[str]:
    """Return texts of at most `tokens` new tokens that `generate`, with the arguments `how`, makes
    after a prompt. Both fit the context; a longer prompt keeps its last half context.
    """
    import torch
    from transformers import set_seed

    context = model.network.config.n_positions
    room = context - min(tokens, context // 2)
    ids = torch.tensor([list(prompt)[-room:]], device=model.network.device)
    set_seed(seed)
    sequences = model.network.generate(
        ids,
        max_new_tokens=min(tokens, context - ids.shape[1]),
        suppress_tokens=[model.vocabulary.pieces.index(UNKNOWN)],
        pad_token_id=0,  # pads what ended early; nothing does, for no symbol ends a text
        eos_token_id=None,
        **how,
    )
    return [readable(model.vocabulary, row[ids.shape[1] :].tolist()) for row in sequences]


def readable(vocabulary: Vocabulary, ids: Sequence[int]) -> str:
    """Return words with blanks between, and line breaks."""
    lines = (" ".join(line.split()) for line in vocabulary.decode(ids).split("\n"))
    return "\n".join(lines).strip("\n")


def encode_prompt(vocabulary: Vocabulary, prompt: str) -> list[int]:
    """Return the ids of a prompt. Raises UserError where it has none."""
    ids = vocabulary.encode(prompt)
    if not ids:
        raise UserError(f"prompt: expected some text to go on with, found {prompt!r}")
    return ids


def whole_words(vocabulary: Vocabulary, ids: list[int]) -> list[int]:
    """Return the ids up to the last that ends a word, if one does."""
    ends = [end for end, id_ in enumerate(ids, 1) if vocabulary.pieces[id_].endswith(WORD_END)]
    return ids[: ends[-1]] if ends else ids


def openings(
    vocabulary: Vocabulary, shards: Shards, section: Generate
) -> list[tuple[str, list[int], str]]:
    """Return names, first ids and the text that follows, of evenly spread held-out books."""
    books = shards.index["splits"]["heldout"]["books"]
    long = [book for book in books if book["tokens"] > section.prompt_tokens]
    count, texts = min(section.heldout_prompts, len(long)), []
    for book in (long[number * len(long) // count] for number in range(count)):
        tokens = min(section.prompt_tokens + section.tokens, book["tokens"])
        ids = shards.windows("heldout", np.array([book["offset"]]), tokens - 1)[0].tolist()
        prompt = whole_words(vocabulary, ids[: section.prompt_tokens])
        follows = whole_words(vocabulary, ids[len(prompt) : len(prompt) + section.tokens])
        texts.append((f"held-out book {book['name']}", prompt, readable(vocabulary, follows)))
    return texts


def decodings(section: Generate) -> dict[str, dict[str, Any]]:
    """Return arguments of `generate` for each kind of sample."""
    return {
        "greedy": {"do_sample": False},
        "beam": {
            "do_sample": False,
            "num_beams": section.beams,
            "length_penalty": section.length_penalty,
        },
        "sampled": {
            "do_sample": True,
            "temperature": section.temperature,
            "top_k": section.top_k or 0,
            "top_p": section.top_p,
            "num_return_sequences": section.samples,
        },
    }


def make_samples(model: LanguageModel, shards: Shards, section: Generate) -> dict[str, Any]:
    """Return prompts with their samples, and how a book's opening goes on. Raises UserError."""
    vocabulary, ways = model.vocabulary, decodings(section)
    own = [("params.yaml", encode_prompt(vocabulary, text), "") for text in section.prompts]
    prompts = own + openings(vocabulary, shards, section)
    texts: list[dict[str, Any]] = [
        {
            "origin": origin,
            "prompt": readable(vocabulary, ids),
            "reference": reference or None,
            "samples": [
                {"decoding": name, "text": text}
                for name, how in ways.items()
                for text in continue_prompt(model, ids, section.tokens, section.seed, **how)
            ],
        }
        for origin, ids, reference in prompts
    ]
    return {"tokens": section.tokens, "decodings": ways, "prompts": texts}
