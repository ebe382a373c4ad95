"""The loss curves of conf/small.yaml's recipe through the pilots of docs/pilots.csv (written by
benchmarks/pilots.py): what is extrapolated from them, in tables for docs/what_it_takes.md.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from loss_curves import Array, Law, bootstrapped, crossing, interval, residual_deviation
from tabulate import tabulate

from gpt1.results.drawing import NETWORK_TITLES

SHARED = (
    "model.width=128 model.heads=2 model.feed_forward=512 pretrain.batch_size=16"
    " pretrain.warmup_updates=200"
)
RECIPE = {  # of conf/small.yaml, but for updates and seeds: what a curve is drawn through
    "transformer": f"{SHARED} pretrain.learning_rate=3e-3",
    "lstm": f"{SHARED} lstm.units=172 lstm.learning_rate=1e-2",
    "lstm_equal": f"{SHARED} lstm_equal.units=370 lstm_equal.learning_rate=1e-2",
}
FREE = ("pretrain.updates=", "pretrain.seeds=")
SEED_DEVIATION = (
    0.01  # nats a token, one seed. Four Transformers lie from 4.580 to 4.596: .008 (the
)
# range over 2.06); LSTMs of the seeds 0 and 9 .011 and .014 from the mean of four: .012
PROCESSOR = "Intel(R) Xeon(R) Processor"  # whose seconds the curves by time are of
AHEAD = 0.3  # nats
TOKENS_A_WORD = 303_276 / 209_419  # of the two held-out books; words between blanks, by wc -w


NONE = "-"


class Corpus(NamedTuple):
    """Text that anyone may load, as its source counts it: words between blanks, or tokens."""

    name: str
    words: float | None
    tokens: float | None


CORPORA = (
    Corpus("the novels of this page", None, 18_184_488),
    Corpus("[BabyLM](https://babylm.github.io/archive_2023.html), 10 M words", 10e6, None),
    Corpus("[BabyLM](https://babylm.github.io/archive_2023.html), 100 M words", 100e6, None),
    Corpus("[PG-19](https://github.com/google-deepmind/pg19), `train`", 1_973_136_207, None),
    Corpus(
        "[OpenWebText](https://github.com/karpathy/nanoGPT/tree/master/data/openwebtext)",
        None,
        9_035_582_198,
    ),
)


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    aligned = ("left", *["right"] * (len(header) - 1))
    return tabulate(rows, header, "pipe", colalign=aligned, disable_numparse=True)


def pilots() -> pd.DataFrame:
    """The pilots in the order in which they were run; `recipe` where only updates and seeds differ
    from it, `seeds` that a line is the mean of.
    """
    found = pd.read_csv(Path(__file__).with_name("pilots.csv"))
    words = [change.split() for change in found["changes"]]
    found["recipe"] = [
        {word for word in line if not word.startswith(FREE)} == set(RECIPE[network].split())
        for line, network in zip(words, found["network"], strict=True)
    ]
    found["seeds"] = [
        next((word.count(",") + 1 for word in line if word.startswith("pretrain.seeds=")), 1)
        for line in words
    ]
    return found


def points(network: str) -> tuple[Array, Array, Array]:
    """Million tokens, nats a token and number of seeds of the recipe's pilots."""
    found = pilots()
    rows = found[found["recipe"] & (found["network"] == network)]
    tokens, nats, seeds = (
        rows[name].to_numpy(dtype=np.float64) for name in ("tokens", "nats_a_token", "seeds")
    )
    return tokens / 1e6, nats, seeds


@cache
def deviation() -> float:
    """Of a seed, or of what lies off the curves, where that is more."""
    return max(SEED_DEVIATION, residual_deviation([points(network) for network in RECIPE]))


@cache
def laws() -> dict[str, Law]:
    """Each network's curve."""
    return {
        network: bootstrapped(*points(network), deviation(), stream)
        for stream, network in enumerate(RECIPE)
    }


def speeds() -> dict[str, float]:
    """Million tokens a minute of one core of PROCESSOR."""
    found = pilots()
    rows = found[found["recipe"] & (found["processor"] == PROCESSOR)].groupby("network")
    speed = rows["tokens"].sum() / 1e6 / (rows["processor_seconds"].sum() / 60)
    return {network: float(speed[network]) for network in RECIPE}


def crossings(ahead: float, by_time: bool) -> dict[str, Array]:
    """By LSTM, the million tokens, or the minutes, from which on the Transformer is so far ahead."""
    law, speed = laws(), speeds()
    return {
        other: crossing(
            law["transformer"],
            law[other],
            ahead,
            (speed["transformer"], speed[other]) if by_time else (1, 1),
        )
        for other in RECIPE
        if other != "transformer"
    }


def curves_table() -> str:
    """What was measured of the recipe, and the parameters of each curve."""
    lengths = sorted({round(length, 1) for name in RECIPE for length in points(name)[0]})
    rows = []
    for network, law in laws().items():
        tokens, nats, seeds = points(network)
        means = []
        for length in lengths:
            here = np.round(tokens, 1) == length
            means.append(
                f"{np.average(nats[here], weights=seeds[here]):.3f}" if here.any() else NONE
            )
        floor, exponent = _text(law.floor, ".2f"), _text(law.exponent, ".2f")
        rows.append((NETWORK_TITLES[network], *means, floor, exponent))
    return grid(("", *(f"{length:g} M" for length in lengths), "floor", "exponent"), rows)


def foretold_table() -> str:
    """What the curves through all shorter lengths say of the longest, beside what it came to."""
    rows = []
    for stream, network in enumerate(RECIPE):
        tokens, nats, seeds = points(network)
        longest = tokens.max()
        less = tokens < longest
        law = bootstrapped(tokens[less], nats[less], seeds[less], deviation(), stream)
        came = np.average(nats[~less], weights=seeds[~less])
        said = _text(law.at(longest)[:, 0], ".3f")
        rows.append((NETWORK_TITLES[network], f"{longest:.1f}", said, f"{came:.3f}"))
    return grid(("", "M tokens", "by the shorter ones", "came out"), rows)


def crossings_table() -> str:
    """Where the Transformer meets the LSTMs, and where it is ahead."""
    tokens, minutes = crossings(0, by_time=False), crossings(0, by_time=True)
    rows = [
        (f"meets the {NETWORK_TITLES[other]}", _text(tokens[other]), _text(minutes[other]))
        for other in tokens
    ]
    far, long = (np.maximum(*crossings(AHEAD, by_time).values()) for by_time in (False, True))
    rows.append((f"is {AHEAD:g} nats ahead of both", _text(far), _text(long)))
    return grid(("the Transformer", "M tokens", "minutes of one core"), rows)


def more_text_table() -> str:
    """To which loss each corpus would bring the networks, each token read once."""
    law, hour = laws(), 60 * speeds()["transformer"]
    rows = []
    for corpus in CORPORA:
        tokens = (corpus.tokens or (corpus.words or 0) * TOKENS_A_WORD) / 1e6
        nats = [_text(law[network].at(tokens)[:, 0], ".2f") for network in RECIPE]
        words = NONE if corpus.words is None else f"{corpus.words / 1e6:,.0f}"
        rows.append((corpus.name, words, f"{tokens:,.0f}", *nats, f"{tokens / hour:,.1f}"))
    titles = (NETWORK_TITLES[network] for network in RECIPE)
    return grid(("", "M words", "M tokens", *titles, "hours of one core, Transformer"), rows)


def _text(values: Array, form: str = "") -> str:
    """An estimate and its interval."""
    estimate, low, high = (
        "∞" if np.isinf(value) else f"{value:{form}}" if form else _rounded(value)
        for value in interval(values)
    )
    return f"{estimate} [{low}, {high}]"


def _rounded(value: float) -> str:
    """Two digits of what is told no better, three below 100."""
    return f"{value:.1f}" if value < 100 else f"{float(f'{value:.2g}'):,.0f}"
