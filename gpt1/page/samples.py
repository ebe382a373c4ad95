"""What `generate` left, as the page shows it: prompts and their continuations, scores against references, perplexity."""

from collections.abc import Mapping
from typing import Any

from gpt1.page.cells import Cell, Sheet

TITLES = {"bleu": "BLEU", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "meteor": "METEOR",
          "meteor_exact_stem": "METEOR, exact and stem"}


def scores(samples: Mapping[str, Any]) -> Sheet | None:
    """A row for each way to decode, a column for each score x 100; None where no prompt has a reference."""
    found: dict[str, dict[str, float]] = samples.get("scores", {})
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    if not names:
        return None
    order = [name for name in TITLES if name in names] + [name for name in names if name not in TITLES]
    rows = tuple((Cell(decoding, samples.get("decodings", {}).get(decoding, "")),
                  *(Cell(f"{row[name]:.1f}" if name in row else "-") for name in order)) for decoding, row in found.items())
    return Sheet("Continuations against what the held-out books go on with, × 100",
                 ("decoding", *(TITLES.get(name, name) for name in order)), rows)


def perplexity(samples: Mapping[str, Any]) -> str:
    """Perplexity on whole books in a sentence; '' where it was not measured."""
    told = samples.get("perplexity")
    if not told:
        return ""
    return (f"Perplexity on {told['books']:,} held-out books ({told['tokens']:,} tokens, a sliding window): "
            f"{told['per_token']:,.2f} a token, {told['per_word']:,.2f} a word.")
