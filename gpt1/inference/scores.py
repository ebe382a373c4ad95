"""Texts against references: BLEU by sacrebleu, ROUGE by rouge-score, METEOR by nltk, each x 100
with a signature.

Texts and references are words with blanks between, as `vocabulary.decode` gives them: let
references go through the same cleaning.
"""

import io
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from gpt1.base.errors import UserError

WORDNET_FOLDER = Path("/usr/share/wordnet")  # of Debian's package wordnet-base
WORDNET_FILES = tuple(
    name
    for part in ("noun", "verb", "adj", "adv")
    for name in (f"data.{part}", f"index.{part}", f"{part}.exc")
)
NO_WORDNET = (
    f"METEOR with synonyms is left out: no WordNet files in {WORDNET_FOLDER}; apt-get install"
    " wordnet-base, or name their folder (--wordnet)"
)
ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")


class Scores(NamedTuple):
    """Values x 100 by name, and what exactly each was computed by."""

    values: dict[str, float]
    signatures: dict[str, str]


class NoSynonyms:
    """Stands for WordNet where METEOR is to match words and stems alone."""

    def synsets(self, _word: str) -> list[Any]:
        """No word has any."""
        return []


def score(
    texts: Sequence[str], references: Sequence[Sequence[str]], wordnet: Path | None
) -> Scores:
    """Every score of `texts` against each one's references (one or more); METEOR with synonyms only
    where WordNet's folder is given.

    Raises ValueError where there is no text, or not a reference for each.
    """
    if not texts or len(texts) != len(references) or not all(references):
        raise ValueError(
            f"expected a reference or more for each text, found {len(texts)} texts and "
            f"{sum(map(bool, references))} with references"
        )
    parts = [bleu(texts, references), rouge(texts, references), meteor(texts, references, None)]
    parts += [] if wordnet is None else [meteor(texts, references, wordnet)]
    return Scores(
        {name: value for part in parts for name, value in part.values.items()},
        {name: value for part in parts for name, value in part.signatures.items()},
    )


def bleu(texts: Sequence[str], references: Sequence[Sequence[str]]) -> Scores:
    """Corpus BLEU, lower case."""
    from sacrebleu.metrics.bleu import BLEU

    streams: Any = [
        [own[place] if place < len(own) else None for own in references]
        for place in range(max(map(len, references)))
    ]
    metric = BLEU(lowercase=True, force=True)  # force: no warning of text that is tokenised already
    value = float(metric.corpus_score(list(texts), streams).score)
    return Scores({"bleu": value}, {"bleu": str(metric.get_signature())})


def rouge(texts: Sequence[str], references: Sequence[Sequence[str]]) -> Scores:
    """ROUGE-1, -2 and -L: the F measure against the best reference of each text, their mean."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(list(ROUGE_TYPES), use_stemmer=True)
    found = [
        scorer.score_multi(list(own), text) for text, own in zip(texts, references, strict=True)
    ]
    signature = (
        "measure:f1|average:mean of texts|references:best|stemmer:porter|version:rouge-score"
        f" {version('rouge-score')}"
    )
    return Scores(
        {name: 100 * sum(one[name].fmeasure for one in found) / len(found) for name in ROUGE_TYPES},
        {"rouge": signature},
    )


def meteor(
    texts: Sequence[str], references: Sequence[Sequence[str]], wordnet: Path | None
) -> Scores:
    """METEOR, the mean of the texts: `meteor_exact_stem` matches words and stems, `meteor` synonyms
    of WordNet too.
    """
    from nltk.translate.meteor_score import meteor_score

    synonyms: Any = NoSynonyms() if wordnet is None else open_wordnet(wordnet)
    values = [
        meteor_score([one.split() for one in own], text.split(), wordnet=synonyms)
        for text, own in zip(texts, references, strict=True)
    ]
    name, told = (
        ("meteor_exact_stem", "no")
        if wordnet is None
        else ("meteor", f"WordNet {synonyms.get_version()}")
    )
    signature = (
        "average:mean of"
        f" texts|references:best|case:lc|tok:blanks|stemmer:porter|synonyms:{told}|version:nltk"
        f" {version('nltk')}"
    )
    return Scores({name: 100 * sum(values) / len(values)}, {name: signature})


def find_wordnet(folder: Path | None) -> Path | None:
    """The folder with WordNet's files: the one given, or Debian's, or None. Raises UserError where
    the one given lacks any of them.
    """
    where = folder or WORDNET_FOLDER
    missing = [name for name in WORDNET_FILES if not (where / name).is_file()]
    if missing and folder is not None:
        raise UserError(
            f"{folder}: expected WordNet's files {', '.join(WORDNET_FILES)}, found no {missing[0]};"
            " name the folder `dict` of WordNet 3, or apt-get install wordnet-base, which puts"
            f" them in {WORDNET_FOLDER}"
        )
    return None if missing else where


def open_wordnet(folder: Path) -> Any:
    """nltk's reader of WordNet's files in `folder`."""
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        """English words and synonyms: without `lexnames` (fields of meaning), which Debian leaves
        out, or a map to others.
        """

        def open(self, file: str) -> Any:
            if file == "lexnames" and not (folder / file).is_file():
                return io.StringIO(
                    "".join(f"{number:02d}\tfield.{number}\t0\n" for number in range(45))
                )
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """None: there are no other languages."""

    root = str(folder.resolve())
    if root not in nltk.data.path:  # it opens no file elsewhere
        nltk.data.path.append(root)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The multilingual functions")
        return Reader(nltk.data.FileSystemPathPointer(root), omw_reader=None)
