"""What the paper says of its ablations and of layer transfer (section 5, Table 5, Figure 2 left),
against what this run measures.
"""

from collections.abc import Sequence

import numpy as np

from gpt1.params.recipes import is_ablated
from gpt1.params.schema import Params
from gpt1.results.ablations import (
    AVERAGED,
    AblationScores,
    by_layers,
    columns_of,
    difference,
    paper_average,
)
from gpt1.results.answers import FULL
from gpt1.results.bootstrap import Estimate, Floats
from gpt1.results.captions import made_up
from gpt1.results.document import NONE
from gpt1.results.paper import FIGURE2_LAYERS, MNLI_TRANSFER_GAIN, TABLE5
from gpt1.results.verdict import (
    POINTS,
    RANKS,
    Claim,
    not_measured,
    order_verdict,
    size_verdict,
    together,
    verdict,
)
from gpt1.tasks.table import TASKS

ALL = tuple(TABLE5.columns)
LARGER = ("QQP", "MNLI", "QNLI")  # over 100,000 rows to train on
SMALLER = tuple(title for title in ALL if title not in LARGER)
TABLE5_CLAIM = "Table 5, section 5"
LSTM_BETTER = ("MRPC",)
TRANSFER_TASKS = ("mnli", "race")
LEAST_RANKED = 4  # of three points one order in six rises by chance, of four one in twenty-four


def ablation_claims(params: Params, table: AblationScores) -> list[Claim]:
    """Claims about Table 5, in the paper's order."""
    larger, smaller = (", ".join(titles) for titles in (LARGER, SMALLER))
    about = (
        ("pretraining_helps", "Pre-training helps", "no_pretraining", ALL, 1),
        (
            "pretraining_size",
            "Pre-training helps by about 15 points on average",
            "no_pretraining",
            AVERAGED,
            None,
        ),
        (
            "aux_lm_larger",
            f"The auxiliary objective helps on the larger data sets ({larger})",
            "no_aux_lm",
            LARGER,
            1,
        ),
        (
            "aux_lm_smaller",
            f"The auxiliary objective does not help on the smaller data sets ({smaller})",
            "no_aux_lm",
            SMALLER,
            -1,
        ),
        ("lstm_below", "The Transformer is better than the LSTM", "lstm", ALL, 1),
        ("lstm_size", "The LSTM loses 5.6 points on average", "lstm", AVERAGED, None),
    )
    return [*(_average(params, table, *one) for one in about), _lstm_only(params, table)]


def _average(
    params: Params,
    table: AblationScores,
    key: str,
    statement: str,
    variant: str,
    titles: Sequence[str],
    direction: int | None,
) -> Claim:
    """A claim about the mean of the whole model less a variant over columns, on those of them that
    are there; without a direction it is one about the size.
    """
    there = [title for title in titles if (variant, title) in table.differences]
    estimate = table.mean_difference(variant, titles)
    published = _published(variant, there or titles)
    about = (key, statement, TABLE5_CLAIM, f"{published:+.1f}")
    if estimate is None:
        return not_measured(*about, POINTS, _missing(params, variant, titles))
    invented = bool(made_up(params, _tasks(there)))
    return Claim(
        *about,
        published,
        POINTS,
        estimate,
        _basis(table, variant, there, titles if direction else ALL),
        verdict(estimate, direction) if direction else size_verdict(estimate, published, invented),
        invented,
    )


def _lstm_only(params: Params, table: AblationScores) -> Claim:
    key, where = "lstm_only_mrpc", TABLE5_CLAIM
    statement, unit = "The LSTM is better on MRPC only", "columns where the LSTM is better"
    there = {
        title: table.differences["lstm", title]
        for title in ALL
        if ("lstm", title) in table.differences
    }
    if not set(LSTM_BETTER) <= there.keys() or len(there) == 1:
        return not_measured(key, statement, where, "1 (MRPC)", unit, _missing(params, "lstm", ALL))
    better = [title for title, estimate in there.items() if estimate.value < 0]
    count = Estimate(
        len(better),
        np.sum([estimate.replicates < 0 for estimate in there.values()], axis=0).astype(np.float64),
        min(estimate.seeds for estimate in there.values()),
    )
    parts = [
        verdict(estimate, -1 if title in LSTM_BETTER else 1) for title, estimate in there.items()
    ]
    return Claim(
        key,
        statement,
        where,
        "1 (MRPC)",
        1,
        unit,
        count,
        _basis(table, "lstm", list(there), ALL),
        together(parts),
        bool(made_up(params, _tasks(list(there)))),
        ", ".join(better) or "none",
    )


def _published(variant: str, titles: Sequence[str]) -> float:
    """The paper's whole model less its variant, averaged over columns; over all of them as
    printed.
    """
    return paper_average(TABLE5.full, titles) - paper_average(TABLE5.variants[variant], titles)


def _missing(params: Params, variant: str, titles: Sequence[str]) -> str:
    names = _tasks(titles)
    if variant not in params.variants:
        return f"variants has no row {variant} in params.yaml"
    absent = [name for name in names if name not in params.tasks]
    if absent and (
        len(absent) == len(names) or any(is_ablated(params, variant, name) for name in names)
    ):
        return f"{', '.join(absent)} not among the tasks of params.yaml"
    return f"stages.ablate has too few rows of {variant} in params.yaml (of {', '.join(names)})"


def _tasks(titles: Sequence[str]) -> list[str]:
    return [columns_of(title)[0].name for title in titles]


def _basis(table: AblationScores, variant: str, there: Sequence[str], wanted: Sequence[str]) -> str:
    """Tasks, seeds and examples behind a difference; which tasks, where some are missing."""
    seeds = sorted(
        {
            len(
                table.results[FULL, title].sample.scores.keys()
                & table.results[variant, title].sample.scores.keys()
            )
            for title in there
        }
    )
    names = (
        ""
        if len(there) == len(wanted)
        else f" ({', '.join(there)} of {len(wanted)}; the paper's number over the same)"
    )
    return (
        amount_of(len(there), seeds, sum(table.results[FULL, title].examples for title in there))
        + names
    )


def amount_of(tasks: int, seeds: Sequence[int], examples: int) -> str:
    """How much a number rests on, in words."""
    return (
        f"{tasks} task{'s' if tasks > 1 else ''}, {' to '.join(map(str, seeds))}"
        f" seed{'s' if seeds[-1] > 1 else ''}, {examples:,} examples"
    )


def transfer_claims(params: Params) -> list[Claim]:
    """Claims about layer transfer, for MNLI and RACE and whatever further task the run has. Raises
    UserError.
    """
    return [
        claim
        for task in dict.fromkeys((*TRANSFER_TASKS, *params.transfer))
        for claim in _transfer(params, task)
    ]


def _transfer(params: Params, task: str) -> list[Claim]:
    title, where = (
        TASKS[task].title,
        "Figure 2 left, section 5" if task in TRANSFER_TASKS else "not in the paper",
    )
    gain = (
        FIGURE2_LAYERS[task][-1][1] - FIGURE2_LAYERS[task][0][1] if task in FIGURE2_LAYERS else None
    )
    told = f"about {gain:+.0f}, by eye" if gain is not None else NONE
    whole = (
        "transfer_" + task,
        f"All layers are better than the embeddings alone on {title}",
        where,
    )
    each = (f"transfer_{task}_each", f"The more layers are transferred, the better {title}", where)
    size = ("transfer_mnli_size", "All layers bring up to 9 points on MNLI", "section 5")
    most = f"{MNLI_TRANSFER_GAIN:+.0f}"
    if task not in params.transfer:
        missing = f"transfer has no row {task} in params.yaml"
        return [
            not_measured(*whole, told, POINTS, missing),
            not_measured(*each, "rises", RANKS, missing),
            *([not_measured(*size, most, POINTS, missing)] if task == "mnli" else []),
        ]
    results = by_layers(params, task)
    layers, all_layers = list(results), results[params.model.layers]
    basis = (
        f"{amount_of(1, [len(all_layers.sample.scores)], all_layers.examples)}, layers"
        f" {', '.join(map(str, layers))} of {params.model.layers}"
    )
    invented = bool(made_up(params, [task]))
    if len(layers) >= LEAST_RANKED:
        steady = Estimate(
            float(
                rank_correlation(
                    layers, np.array([[result.estimate.value] for result in results.values()])
                )[0]
            ),
            rank_correlation(
                layers, np.stack([result.estimate.replicates for result in results.values()])
            ),
            min(result.estimate.seeds for result in results.values()),
        )
        second = Claim(
            *each,
            "rises",
            None,
            RANKS,
            steady,
            basis,
            order_verdict(steady, len(layers)),
            invented,
        )
    else:
        second = not_measured(
            *each,
            "rises",
            RANKS,
            f"{len(layers)} numbers of layers; a rank correlation needs at least {LEAST_RANKED}",
        )
    if 0 not in results:
        missing = f"transfer.{task}.layers has no 0"
        return [
            not_measured(*whole, told, POINTS, missing),
            second,
            *([not_measured(*size, most, POINTS, missing)] if task == "mnli" else []),
        ]
    effect = difference(task, all_layers.sample, results[0].sample, f"transfer@{task}")
    return [
        Claim(*whole, told, gain, POINTS, effect, basis, verdict(effect, 1), invented),
        second,
        *(
            [
                Claim(
                    *size,
                    most,
                    MNLI_TRANSFER_GAIN,
                    POINTS,
                    effect,
                    basis,
                    size_verdict(effect, MNLI_TRANSFER_GAIN, invented),
                    invented,
                )
            ]
            if task == "mnli"
            else []
        ),
    ]


def rank_correlation(at: Sequence[float], values_nr: Floats) -> Floats:
    """Spearman's correlation [r] of values [n, r] with the rising places [n] that they were
    measured at; 0 for values all alike.
    """
    from scipy.stats import rankdata

    ranks_nr = rankdata(values_nr, axis=0) - (len(at) + 1) / 2
    places_n = rankdata(at) - (len(at) + 1) / 2
    below_r = np.sqrt((ranks_nr**2).sum(axis=0) * (places_n**2).sum())
    return np.asarray(
        np.divide(places_n @ ranks_nr, below_r, out=np.zeros(values_nr.shape[1]), where=below_r > 0)
    )
