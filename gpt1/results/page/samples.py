"""What `generate` left, as the page shows it: prompts and their continuations, scores against
references, perplexity.
"""

from collections.abc import Mapping
from typing import Any

from gpt1.results.page.cells import Cell, Sheet

TITLES = {
    "bleu": "BLEU",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "meteor_exact_stem": "METEOR, exact and stem",
}


def scores(samples: Mapping[str, Any]) -> Sheet | None:
    """A row for each way to decode, a column for each score x 100; None where no prompt has a
    reference.
    """
    found: dict[str, dict[str, float]] = samples.get("scores", {})
    names = list(dict.fromkeys(name for row in found.values() for name in row))
    if not names:
        return None
    order = [name for name in TITLES if name in names] + [
        name for name in names if name not in TITLES
    ]
    rows = tuple(
        (
            Cell(decoding, samples.get("decodings", {}).get(decoding, "")),
            *(Cell(f"{row[name]:.1f}" if name in row else "-") for name in order),
        )
        for decoding, row in found.items()
    )
    return Sheet(
        "Continuations against what the held-out books go on with, × 100",
        ("decoding", *(TITLES.get(name, name) for name in order)),
        rows,
    )


def perplexity(samples: Mapping[str, Any], trained: Mapping[str, Any]) -> str:
    """Perplexity as `generate` sees text, and how it differs from that of pre-training's summary;
    '' where it was not measured.
    """
    told = samples.get("perplexity")
    if not told:
        return ""
    other = trained.get(samples.get("network", ""), {}).get("heldout_perplexity")
    beside = (
        f" That is another measure than pre-training's {other:,.2f}, which is over all held-out"
        " tokens in windows side by side: a token at a window's beginning has little before it to"
        " go by."
        if other
        else ""
    )
    return (
        "Perplexity as text is generated, with a window that slides, on the openings of"
        f" {told['books']:,} held-out books ({told['tokens']:,} tokens): {told['per_token']:,.2f} a"
        f" token, {told['per_word']:,.2f} a word.{beside}"
    )
