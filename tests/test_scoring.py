"""Perplexity against plain forwards and by hand; BLEU, ROUGE and METEOR equal to the libraries
called directly.
"""

import math
import shutil

import nltk.translate.meteor_score as nltk_meteor
import numpy as np
import pytest
import sacrebleu
import torch
from rouge_score.rouge_scorer import RougeScorer

from gpt1.base.errors import UserError
from gpt1.inference import scores
from gpt1.inference.cache import window_start
from gpt1.inference.perplexity import log_probabilities, perplexities, windows
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm
from gpt1.params.schema import Model

SIZES = Model(
    context=10,
    width=16,
    layers=2,
    heads=2,
    feed_forward=32,
    embedding_deviation=0.5,
    weight_deviation=0.3,
    layer_norm_epsilon=1e-5,
)
ROWS = 23
TEXTS = [
    "the cat sat on the mat .",
    "a dog ran quickly over the hills and far away",
    "nothing at all",
]
REFERENCES = [
    ["the cat sat upon the rug .", "cats sit on mats ."],
    ["the hound ran very fast over hills", "a dog ran"],
    ["something else"],
]


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
@pytest.mark.parametrize("length", [1, 2, 10, 11, 12, 16, 37])
def test_every_token_is_foretold_from_its_window(kind, length):
    """Each by a plain forward of its own, from what generation would see there."""
    generator = torch.Generator().manual_seed(2)
    network = (
        Lstm(SIZES, 12, ROWS + 2, generator)
        if kind == "lstm"
        else Decoder(SIZES, ROWS + 2, generator)
    ).eval()
    ids = np.random.default_rng(length).integers(ROWS, size=length).tolist()
    wanted = []
    for place in range(1, length):
        seen = ids[:place] if kind == "lstm" else ids[window_start(place, SIZES.context) : place]
        with torch.no_grad():
            hidden_d = network(torch.tensor([seen]), NO_DROPOUT).hidden_btd[0, -1]
            wanted.append(
                float((hidden_d @ network.tokens[:ROWS].T).double().log_softmax(0)[ids[place]])
            )
    for rows_at_once in (1, 3):
        np.testing.assert_allclose(
            log_probabilities(network, ids, ROWS, rows_at_once), wanted, atol=2e-5
        )


def test_windows_foretell_each_token_once():
    for context in (8, 9, 512):
        for length in (2, context, context + 1, context + 2, 3 * context + 5):
            cut = windows(length, context)
            assert [place for one in cut for place in range(one.first, one.stop + 1)] == list(
                range(1, length)
            )
            assert all(one.stop - one.start <= context for one in cut)


def test_perplexity_by_hand():
    """Four tokens of probability 1/2, 1/4, 1/8, 1/8, which make two words: 2^(9/4) a token, 2^(9/2)
    a word.
    """
    found = perplexities(np.log([1 / 2, 1 / 4, 1 / 8, 1 / 8]), 0.5)
    assert found.tokens == 4
    assert found.loss == pytest.approx(9 / 4 * math.log(2))
    assert (found.per_token, found.per_word) == pytest.approx((2**2.25, 2**4.5))
    with pytest.raises(ValueError, match="0 tokens"):
        perplexities(np.zeros(0), 0.5)


def test_scores_are_the_libraries():
    found = scores.score(TEXTS, REFERENCES, None)
    streams = [
        [own[0] for own in REFERENCES],
        [own[1] if len(own) > 1 else None for own in REFERENCES],
    ]
    assert found.values["bleu"] == sacrebleu.corpus_bleu(TEXTS, streams, lowercase=True).score
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    for name in ("rouge1", "rouge2", "rougeL"):
        best = [
            max(scorer.score(one, text)[name].fmeasure for one in own)
            for text, own in zip(TEXTS, REFERENCES, strict=True)
        ]
        assert found.values[name] == pytest.approx(100 * np.mean(best))
    assert set(found.values) == {"bleu", "rouge1", "rouge2", "rougeL", "meteor_exact_stem"}
    assert "version:2" in found.signatures["bleu"]
    assert "case:lc" in found.signatures["bleu"]
    assert "synonyms:no" in found.signatures["meteor_exact_stem"]


def test_meteor_of_words_and_stems_by_hand():
    """`cats` and `cat` meet by their stem; one chunk. P = R = 1, and a penalty of 0.5 / 3^3 for one
    chunk of three words.
    """
    assert scores.meteor(["the cats sleep"], [["the cat sleeps"]], None).values[
        "meteor_exact_stem"
    ] == pytest.approx(100 * (1 - 0.5 / 27))
    assert scores.meteor(["no word"], [["of all that"]], None).values["meteor_exact_stem"] == 0


def made_wordnet(folder):
    """WordNet's files with two nouns of one meaning, auto and car (stemming leaves them alone: nltk
    looks up stems), without lexnames.
    """
    folder.mkdir()
    licence = "  1 WordNet 3.0 Copyright 2006 by Princeton University.\n"
    for part in ("noun", "verb", "adj", "adv"):
        meaning = (
            f"{len(licence):08d} 06 n 02 car 0 auto 0 000 | a motor vehicle\n"
            if part == "noun"
            else ""
        )
        (folder / f"data.{part}").write_text(licence + meaning)
        (folder / f"index.{part}").write_text(
            licence
            + "".join(
                f"{word} n 1 0 1 0 {len(licence):08d}\n" for word in ("auto", "car") if meaning
            )
        )
        (folder / f"{part}.exc").write_text("")
    return folder


def test_meteor_with_synonyms_of_a_folder(tmp_path):
    folder = made_wordnet(tmp_path / "dict")
    assert scores.find_wordnet(folder) == folder
    found = scores.score(["my car stops"], [["my auto stops"]], folder)
    opened = scores.open_wordnet(folder)
    assert found.values["meteor"] == 100 * nltk_meteor.single_meteor_score(
        ["my", "auto", "stops"], ["my", "car", "stops"], wordnet=opened
    )
    assert found.values["meteor"] == pytest.approx(100 * (1 - 0.5 / 27))
    assert found.values["meteor_exact_stem"] < found.values["meteor"]
    assert "synonyms:WordNet 3.0" in found.signatures["meteor"]


def test_a_folder_without_wordnet_is_one_line(tmp_path):
    folder = made_wordnet(tmp_path / "dict")
    (folder / "index.verb").unlink()
    with pytest.raises(UserError, match=r"index\.verb; name the folder"):
        scores.find_wordnet(folder)
    shutil.rmtree(folder)


def test_texts_without_references_are_refused():
    with pytest.raises(ValueError, match="2 texts and 1 with"):
        scores.score(["a", "b"], [["a"], []], None)
