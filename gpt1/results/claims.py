"""Tests of what the paper says of its ablations (section 5, Table 5, Figure 2)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from gpt1.results.intervals import LEVEL, deviation_of, holm, margin, p_value
from gpt1.results.paper import TABLE5_ROWS, paper_means
from gpt1.results.scores import resampled_scores_of
from gpt1.results.tables import FULL, ScoredColumn, averaged, columns_of, common_titles

START, END = "first snapshot", "last snapshot"
TABLE5, FIGURE2 = tuple(averaged()), columns_of("figure2")
LARGER = ("QQP", "MNLI", "QNLI")  # over 100,000 rows to train on
CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"
FIELDS = ["claim", "statement", "primary", "system", "other", "columns", "seeds", "ours", "theirs"]
FIELDS += ["difference", "low", "high", "published", "p", "verdict"]


@dataclass(frozen=True)
class Claim:
    """The claim that `system` scores higher than each of `others`, {system: statement}."""

    key: str
    system: str
    others: Mapping[str, str]
    columns: Sequence[ScoredColumn] = TABLE5  # on the mean over these
    primary: bool = False


LSTMS = {"lstm": "Better than the LSTM", "lstm_equal": "… and an equal-size LSTM"}  # than both
CLAIMS = (
    Claim("pretraining_helps", FULL, {"no_pretraining": "Pre-training helps"}, primary=True),
    Claim("beats_lstm", FULL, LSTMS, primary=True),
    Claim("layers_help", FULL, {"embeddings_only": "Layers beat embeddings"}, primary=True),
    Claim(
        "aux_lm_larger",
        FULL,
        {"no_aux_lm": "Auxiliary LM, larger sets"},
        [column for column in TABLE5 if column.title in LARGER],
    ),
    Claim(
        "aux_lm_smaller",
        FULL,
        {"no_aux_lm": "Auxiliary LM, smaller sets"},
        [column for column in TABLE5 if column.title not in LARGER],
    ),
    Claim("embeddings_help", "embeddings_only", {"no_pretraining": "Embeddings alone help"}),
    Claim(
        "more_layers",
        FULL,
        {"layers-0": "All layers beat 0 layers"},
        [column for column in FIGURE2 if column.parts and column.title in ("MNLI-m", "RACE")],
    ),
    Claim(
        "zero_shot",
        END,
        {START: "Zero-shot scores rise"},
        [column for column in FIGURE2 if not column.parts],  # zero-shot sets
    ),
)


def claims_of(ablations: pd.DataFrame, figure2: pd.DataFrame) -> pd.DataFrame:
    """Return one row per comparison, from the predictions of Table 5 and Figure 2. `ours` and
    `theirs` are means over the columns that the paper's own systems have, `low` and `high` the 95 %
    interval of their difference. `p` is adjusted by Holm's method over the three claims. A verdict
    needs two pre-training seeds and every system.
    """
    predictions = pd.concat([ablations, *_figure2(figure2)], ignore_index=True)
    predictions_by_task = dict(list(predictions.groupby(["system", "task"], sort=False)))

    @cache
    def resampled(system: str, column: ScoredColumn) -> pd.DataFrame:
        rows = predictions_by_task.get((system, column.task))
        scores = pd.DataFrame() if rows is None else resampled_scores_of(rows, column)[0]
        if scores.empty:
            return scores
        seeded = scores.reset_index()
        seeded["seed"] = seeded["seed"].fillna(seeded["pretraining_seed"])  # of a snapshot
        return seeded.set_index("seed")

    tasks = {column.task: column.title for column in TABLE5}
    common = common_titles(ablations.assign(column=ablations["task"].map(tasks)))
    left_out = [column for column in TABLE5 if column.title not in common]
    rows = []
    for claim in CLAIMS:
        columns = [column for column in claim.columns if column not in left_out]
        for other, statement in claim.others.items():
            comparison = difference(resampled, claim.system, other, columns)
            about = {
                "claim": claim.key,
                "statement": statement,
                "primary": claim.primary,
                "system": claim.system,
                "other": other,
                "published": _published(claim.system, other, comparison["columns"]),
                "verdict": "",
            }
            rows.append(about | comparison)
    frame = pd.DataFrame(rows).reindex(columns=FIELDS).astype({"seeds": "Int64"})
    primary = frame[frame["primary"]]
    by_claim = primary.groupby("claim", sort=False)
    raw = by_claim["p"].agg(lambda p: p.max(skipna=False))  # one against two LSTMs needs both
    adjusted = pd.Series(holm(raw.fillna(1.0).to_numpy(np.float64)), raw.index)
    frame["p"] = frame["claim"].map(adjusted.where(raw.notna())).where(frame["low"].notna())
    for key, comparisons in by_claim:
        measured = comparisons.index[comparisons["difference"].notna()]
        frame.loc[measured, "verdict"] = _verdict(comparisons, float(adjusted[key]), len(common))
    return frame


def difference(
    resampled: Callable[[str, ScoredColumn], pd.DataFrame],
    system: str,
    other: str,
    columns: Sequence[ScoredColumn],
) -> dict[str, Any]:
    """Compute the mean of `system` minus `other` over common columns and seeds, with its 95 %
    interval; only `columns` where nothing is common. `resampled` gives scores by fine-tuning seed:
    of all examples, then of each resample.
    """
    both = {column: (resampled(system, column), resampled(other, column)) for column in columns}
    pairs = {column: pair for column, pair in both.items() if not (pair[0].empty or pair[1].empty)}
    result: dict[str, Any] = {"columns": ", ".join(column.title for column in pairs)}
    every = [set(scores.index) for pair in pairs.values() for scores in pair]
    seeds = sorted(set.intersection(*every)) if every else []
    if not seeds:
        return result
    sides = list(zip(*pairs.values(), strict=True))
    start = sides[0][0].loc[seeds, "pretraining_seed"]  # the other's may be of another network
    # [t columns, s pre-trainings, d draws], the first of which is all examples
    ours_tsd, theirs_tsd = (
        np.stack(
            [
                scores.loc[seeds]
                .drop(columns="pretraining_seed")
                .groupby(start, dropna=False)
                .mean()
                for scores in side
            ]
        )
        for side in sides
    )
    ours, theirs, each_tsd = ours_tsd.mean(axis=0), theirs_tsd.mean(axis=0), ours_tsd - theirs_tsd
    each, count = ours - theirs, ours.shape[0]
    value, deviation = each[:, 0].mean(), deviation_of(each_tsd[..., 0]) if count > 1 else np.nan
    error = each[:, 1:].mean(axis=0).std(ddof=1)
    half = margin(LEVEL, deviation, count, error)
    return result | {
        "seeds": count,
        "ours": ours[:, 0].mean(),
        "theirs": theirs[:, 0].mean(),
        "difference": value,
        "low": value - half,
        "high": value + half,
        "p": p_value(value, deviation, count, error),
    }


def _verdict(rows: pd.DataFrame, p: float, tasks: int) -> str:
    if (rows["seeds"] < 2).any():
        return "one pre-training: no verdict"
    for absent in rows.loc[rows["difference"].isna(), "other"]:
        return f"no verdict: no {absent}"
    if (rows["columns"].str.count(", ") + 1 < tasks).any():
        return "no verdict: fewer tasks"
    signs = set(np.sign(rows["difference"]))
    if p > LEVEL or len(signs) > 1:
        return UNDECIDED
    return CONFIRMED if signs == {1.0} else REFUTED


def _figure2(predictions: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield layer transfer, then the first and last snapshot as two systems."""
    zero_shot = predictions["update"].notna()
    tasks = predictions.loc[predictions["system"] == "layers-0", "task"].unique()
    yield predictions[~zero_shot & predictions["task"].isin(tasks)]
    snapshots = predictions[zero_shot & (predictions["system"] == "transformer")]
    updates = snapshots["update"]
    if updates.nunique() > 1:
        yield snapshots[updates == updates.min()].assign(system=START)
        yield snapshots[updates == updates.max()].assign(system=END)


def _published(system: str, other: str, titles: str) -> float:
    if not titles or not {system, other} <= TABLE5_ROWS.keys():
        return np.nan
    means = paper_means(titles.split(", "))
    return float(means[TABLE5_ROWS[system]] - means[TABLE5_ROWS[other]])
