"""What a run cannot show, from its parameters and results: warnings that come first in an article,
and the section of all limits.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpt1.params.schema import Params
from gpt1.results.baselines import BEATEN
from gpt1.results.captions import made_up
from gpt1.results.document import counted
from gpt1.results.paper import CORPUS, PAPER_LAYERS
from gpt1.results.statistics.estimates import LEAST_SEEDS
from gpt1.results.training import networks
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS

BOOKSCORPUS = "BooksCorpus"


def warnings(params: Params, told: Mapping[str, Any]) -> Iterator[str]:
    """What a reader must know before any number."""
    if told["all_made_up"]:
        yield (
            "The corpus and every task of this run are made up, in the file formats of the real"
            " ones. The run shows what this software learns and measures at this size. It cannot"
            " show whether the paper's results hold: no score and no size is compared with the"
            " paper's, and a verdict below is about made-up text."
        )
    elif told["made_up"]:
        yield (
            f"Made up, in the file formats of the real ones: {_invented(params)}. What is said of"
            " these tasks is not about the paper's data, and no score on them is compared."
        )
    seeds = len(params.pretrain.seeds)
    if params.pretrain.source != "train":
        yield (
            "Nothing was pre-trained in this run: it is about one set of imported weights, and says"
            " nothing about what another pre-training would give."
        )
    elif seeds < LEAST_SEEDS:
        yield (
            f"This run has {counted(seeds, 'pre-training')} of each network. Under {LEAST_SEEDS}"
            " nothing can be said about what other pre-trainings would give: there is no interval"
            " over their seeds, and every claim is undecided."
        )


def limit_lines(params: Params, told: Mapping[str, Any]) -> Iterator[str]:
    """Everything that this run's numbers do not carry, a line each."""
    yield from warnings(params, told)
    if told["made_up"]:
        yield (
            "Made-up tasks turn on what words mean, by construction: that pre-training helps there"
            " tests the software, not the thesis that more than the meaning of words is"
            " transferred."
        )
    if higher := [line for line in told["found"] if BEATEN in line]:
        yield (
            f"{' '.join(higher)} On these columns the score is no evidence for a Transformer, or"
            " for a network at all."
        )
    if params.clean.corpus_name != BOOKSCORPUS:
        yield (
            f"The corpus is {params.clean.corpus_name}, not {CORPUS}. What holds on one corpus need"
            " not on another."
        )
    if params.model.layers < PAPER_LAYERS:
        model = dict(told["facts"]).get("Model", "")
        yield f"The network is smaller: {model}. What holds at one size need not at another."
    if any(not getattr(params, network).learning_rate for network in networks(params)[1:]):
        yield (
            "Every LSTM is pre-trained and fine-tuned by the Transformer's settings. Its distance"
            " from the Transformer includes what settings of its own would have won."
        )
    yield (
        "Zero-shot behaviours and single tasks are exploratory: their tests are not corrected for"
        " one another, so that of twenty true nulls one is expected to look like a finding."
    )
    if not told["all_made_up"]:
        yield (
            "Scores on dev sets stand beside the paper's of the GLUE test server; they differ in"
            " rows, and for QQP in class balance."
        )
    yield (
        f"One implementation on {_machine(told)}: on other processors sums round differently, and"
        " scores differ within what other seeds would give."
    )
    yield (
        "Overlap between corpus and task texts is counted by runs of"
        f" {counted(params.contamination.ngram, 'word')} only; nearer paraphrases are not seen."
    )
    for title, what in told["left_out"]:
        yield f"{title}: {what}"


def _invented(params: Params) -> str:
    names = made_up(params, list(params.tasks))
    more = [
        name.upper()
        for name in params.zero_shot
        if name not in TASKS and is_made_up(params.sources[name].folder)
    ]
    return ", ".join([*names, *more])


def _machine(told: Mapping[str, Any]) -> str:
    return str(dict(told["code"])["Machine"]).partition(";")[0]
