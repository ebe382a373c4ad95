"""Scores of texts by sacrebleu, rouge-score and nltk."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

ROUGE = ("rouge1", "rouge2", "rougeL")


class _NoSynonyms:
    """Replaces WordNet: METEOR matches words and stems alone."""

    def synsets(self, _word: str) -> list[Any]:
        return []


def score(texts: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Compute corpus BLEU (lower case), and means of ROUGE-1, -2 and -L (F measure, stems) and
    METEOR (words, stems), x 100.
    """
    from nltk.translate.meteor_score import meteor_score
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU

    # force: no warning of text that is tokenised already
    bleu = BLEU(lowercase=True, force=True).corpus_score(list(texts), [list(references)]).score
    scorer = RougeScorer(list(ROUGE), use_stemmer=True)
    pairs = list(zip(texts, references, strict=True))
    rouge = [scorer.score(reference, text) for text, reference in pairs]
    meteor: Any = [
        meteor_score([reference.split()], text.split(), wordnet=_NoSynonyms())
        for text, reference in pairs
    ]
    values = {"bleu": float(bleu), "meteor_exact_stem": 100 * mean(meteor)}
    values |= {name: 100 * mean(measures[name].fmeasure for measures in rouge) for name in ROUGE}
    return {name: round(value, 6) for name, value in values.items()}
