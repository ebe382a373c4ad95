"""The claims: computed by hand on made-up answers, and again from the answers of the runs that
ship.
"""

import numpy as np
import pandas as pd
import pytest

from gpt1.results import load
from gpt1.results.claims import claims_of
from gpt1.results.display import claims_table
from gpt1.results.paper import AVERAGE, TABLE5, TABLE5_METRICS, TABLE5_ROWS
from gpt1.results.predictions import COLUMNS, TYPES
from gpt1.results.runs import CLAIMS, SHIPPED, shipped
from gpt1.results.scores import scores_of
from gpt1.results.tables import table_of

ABLATIONS = ("no_pretraining", "lstm", "lstm_equal", "embeddings_only", "no_aux_lm")


def answered(rights, starts=None):
    """Predictions of which so many of 50 are right, by system, task and seed."""
    frames = []
    for (system, task), by_seed in rights.items():
        for seed, right in enumerate(by_seed):
            labels = np.arange(50) % 2
            answers = np.where(np.arange(50) < right, labels, 1 - labels)
            frame = pd.DataFrame({"example": np.arange(50), "label": labels, "answer": answers})
            start = (starts or list(range(len(by_seed))))[seed]
            frames.append(
                frame.assign(
                    task=task,
                    system=system,
                    split="dev",
                    cluster=frame["example"],
                    seed=seed,
                    pretraining_seed=pd.NA if system == "no_pretraining" else start,
                )
            )
    return pd.concat(frames).reindex(columns=COLUMNS).astype(TYPES)


def claims(rights, starts=None):
    nothing = answered({("full", "rte"): [1]}).head(0)
    return claims_of(answered(rights, starts), nothing).set_index("other")


FULL = {("full", "rte"): [40, 41, 42], ("full", "sst2"): [45, 44, 46]}


def with_all(right=20, seeds=3, without=()):
    others = {
        (ablation, task): [right + (seed % 2) for seed in range(seeds)]
        for ablation in ABLATIONS
        if ablation not in without
        for task in ("rte", "sst2")
    }
    return {key: by_seed[:seeds] for key, by_seed in FULL.items()} | others


def test_a_difference_by_hand():
    row = claims(with_all()).loc["no_pretraining"].iloc[0]
    ours = np.array([(40 + 45) / 2, (41 + 44) / 2, (42 + 46) / 2]) * 2
    theirs = np.array([20, 21, 20]) * 2
    assert row["ours"] == pytest.approx(ours.mean())
    assert row["theirs"] == pytest.approx(theirs.mean())
    assert row["difference"] == pytest.approx((ours - theirs).mean())
    assert (row["columns"], row["seeds"]) == ("SST-2, RTE", 3)
    half = 4.302653 * (ours - theirs).std(ddof=1) / np.sqrt(3)
    assert row["high"] - row["difference"] > half, "the examples' error adds to the seeds'"
    paper = TABLE5[["SST-2", "RTE"]].mean(axis=1)
    full, other = (paper[TABLE5_ROWS[one]] for one in ("full", "no_pretraining"))
    assert row["published"] == pytest.approx(full - other)
    assert row["verdict"] == "confirmed"


def test_the_opposite_refutes_and_noise_decides_nothing():
    worse = with_all(45) | {("full", task): [20, 21, 20] for task in ("rte", "sst2")}
    assert set(claims(worse)["verdict"]) == {"refuted", ""}
    even = {("full", "rte"): [20, 40, 30]} | {(one, "rte"): [30, 30, 30] for one in ABLATIONS}
    assert set(claims(even)["verdict"]) == {"undecided", ""}


def test_a_claim_against_two_lstms_needs_both():
    mixed = with_all() | {("lstm_equal", task): [49, 50, 49] for task in ("rte", "sst2")}
    found = claims(mixed)
    assert list(found.loc[["lstm", "lstm_equal"], "verdict"]) == ["undecided"] * 2
    assert found.loc["lstm", "p"] == found.loc["lstm_equal", "p"], "the larger"
    found = claims(with_all(without=("lstm_equal", "no_pretraining")))
    shown = claims_table(found.reset_index()).set_axis(found.index)
    assert list(shown.loc["lstm", ["verdict", "p"]]) == ["no verdict: no lstm_equal", "–"]
    assert set(shown.loc[["lstm_equal", "no_pretraining"], "verdict"]) == {"not run"}
    assert found.loc["embeddings_only", "verdict"] == "confirmed"


def test_seeds_are_pre_trainings():
    found = claims(with_all(), starts=[0, 0, 0])
    row = found.loc["lstm"]
    assert (row["seeds"], row["verdict"]) == (1, "one pre-training: no verdict")
    assert np.isnan(row["low"])
    assert row["difference"] == pytest.approx(claims(with_all()).loc["lstm", "difference"])
    found = claims(with_all(), starts=[0, 0, 1])
    assert set(found["seeds"].dropna()) == {2}


def test_a_seed_that_one_side_lacks_does_not_count():
    short = with_all() | {("lstm", task): [20, 21] for task in ("rte", "sst2")}
    found = claims(short)
    assert found.loc["lstm", "seeds"] == 2
    assert found.loc["lstm", "ours"] == pytest.approx(((40 + 45) / 2 + (41 + 44) / 2) / 2 * 2)


def test_means_of_the_claims_are_those_of_table_5():
    rights = with_all()
    del rights["lstm", "rte"]  # so that every mean is over SST-2 alone
    table = table_of(scores_of(answered(rights), "table5"), "table5")[AVERAGE]
    found = claims(rights)
    row = found.loc["no_pretraining"].iloc[0]
    assert row["ours"] == pytest.approx(table["this run: full"])
    assert row["theirs"] == pytest.approx(table["this run: no pre-training"])
    assert table["Transformer w/ aux LM (full)"] == 91.3, "the paper's over the same"
    for text in claims_table(found.reset_index())["this run"].head(4):
        ours, theirs, difference = (
            float(one) for one in text.replace(" − ", " = ").replace("−", "-").split(" = ")
        )
        assert difference == pytest.approx(ours - theirs), "as a reader subtracts"


def test_a_row_that_somebody_adds_moves_no_mean_and_no_claim():
    """Of an ablation, or of a system of ours, on fewer tasks."""
    added = with_all() | {("no_dropout", "rte"): [1, 2, 3]}
    del added["embeddings_only", "sst2"]
    before, after = (
        table_of(scores_of(answered(rights), "table5"), "table5")[AVERAGE]
        for rights in (with_all(), added)
    )
    kept = [name for name in before.index if not name.startswith(("±", "this run: embeddings"))]
    assert after[kept].equals(before[kept])
    assert after[["this run: no_dropout", "this run: embeddings alone"]].isna().all()
    changed = claims(added).compare(claims(with_all()), result_names=("after", "before"))
    assert set(changed.index) <= {"embeddings_only", "no_pretraining"}
    assert claims(added).loc["embeddings_only", "verdict"] == "no verdict: fewer tasks"


@pytest.mark.slow
@pytest.mark.parametrize("run", shipped())
def test_claims_of_a_shipped_run_follow_from_its_answers(run):
    _, predictions = load(run)
    folder = SHIPPED.parent / run / "data/report"
    kept = pd.read_parquet(folder / "claims" / CLAIMS)
    glue = predictions["task"].isin({one.lower().replace("-", "") for one in TABLE5_METRICS})
    layers = predictions["system"].str.startswith("layers-")
    moved = predictions["task"].isin(predictions[layers]["task"].unique())
    figure2 = predictions[(layers | (predictions["system"] == "full")) & moved]
    found = claims_of(predictions[glue & ~layers], figure2)
    ours = kept["claim"] != "zero_shot"  # whose answers the run did not keep
    pd.testing.assert_frame_equal(found[ours], kept[ours], check_dtype=False, rtol=1e-9)
