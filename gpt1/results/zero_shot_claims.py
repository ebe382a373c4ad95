"""What the paper says of zero-shot behaviours over pre-training (section 5, Figure 2 right),
against what this run measures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays
from gpt1.params.schema import Params
from gpt1.results.bootstrap import Array, Estimate, Floats, Resample, ScoredRows, mean_of, resample
from gpt1.results.claims import LEAST_RANKED, rank_correlation
from gpt1.results.paper import FIGURE2_ZERO_SHOT, ZERO_SHOT, ZeroShotScale
from gpt1.results.training import networks
from gpt1.results.verdict import (
    POINTS,
    RANKS,
    SCALED,
    SQUARED,
    Claim,
    not_measured,
    order_verdict,
    together,
    verdict,
)
from gpt1.results.zero_shot import Behaviour, answers_folder, behaviours

WHERE = "Figure 2 right, section 5"
TRANSFORMER, LSTM = "transformer", "lstm"
ONE_PRETRAINING = 1  # seed: its snapshots are no further ones


@dataclass(frozen=True, eq=False)
class Followed:
    """One set: each network's scores x 100 by update, in order, all on the same drawn examples."""

    set: str
    examples: int
    made_up: bool
    networks: Mapping[str, Resample]

    @property
    def scale(self) -> ZeroShotScale:
        """The paper's constants of this set."""
        return ZERO_SHOT[self.set]


def zero_shot_claims(params: Params) -> list[Claim]:
    """Claims about zero-shot behaviours. Raises UserError where scores or answers are missing or
    broken.
    """
    followed = _followed(params)
    rising = [_rising(one) for one in followed]
    claims = [claim for pair in rising for claim in pair]
    claims += [
        not_measured(
            f"zero_shot_{name}",
            f"Zero-shot {scale.behaviour} rises over pre-training ({scale.title})",
            WHERE,
            _by_eye(name),
            POINTS,
            f"zero_shot has no row {name} in params.yaml",
        )
        for name, scale in ZERO_SHOT.items()
        if name not in params.zero_shot
    ]
    return [
        *claims,
        _all_sets(followed, rising),
        _ends_above(params, followed),
        _unsteady(params, followed),
    ]


def _followed(params: Params) -> list[Followed]:
    by_set: dict[str, dict[str, Behaviour]] = {}
    for behaviour in behaviours(params):  # has held scores.json against answers.npz
        by_set.setdefault(behaviour.set, {})[behaviour.network] = behaviour
    return [_resampled(params, name, found) for name, found in by_set.items()]


def _resampled(params: Params, name: str, found: Mapping[str, Behaviour]) -> Followed:
    """All snapshots of all networks on the same examples. Raises UserError where two networks did
    not answer the same ones.
    """
    first = next(iter(found.values()))
    labels: Array | None = None
    given: dict[tuple[str, int], Array] = {}
    for network, behaviour in found.items():
        names = [
            f"{name}/{what}" for what in ("labels", *(point.update for point in behaviour.points))
        ]
        answers = read_arrays(answers_folder(params, network) / "answers.npz", names)
        theirs = answers[f"{name}/labels"]
        if labels is not None and not np.array_equal(labels, theirs):
            raise UserError(
                f"data/zero_shot: {name}: expected the same labels for {' and '.join(found)}, found"
                f" others for {network}; run dvc repro -f zero_shot@{network}"
            )
        labels = theirs
        given |= {
            (network, point.update): answers[f"{name}/{point.update}"] for point in behaviour.points
        }
    assert labels is not None
    return Followed(
        name, len(labels), first.made_up, resample(name, [ScoredRows(first.metric, labels, given)])
    )


def _rising(one: Followed) -> tuple[Claim, Claim]:
    """Whether the Transformer's last snapshot is above its first, and whether later snapshots are
    the better ones in general.
    """
    sample = one.networks[TRANSFORMER]
    updates, title = list(sample.scores), f"{one.scale.behaviour} ({one.scale.title})"
    above = (
        f"zero_shot_{one.set}",
        f"Zero-shot {title} rises over pre-training",
        WHERE,
        _by_eye(one.set),
    )
    steady = (f"zero_shot_{one.set}_steadily", f"Zero-shot {title} rises steadily", WHERE, "rises")
    if len(updates) < LEAST_RANKED:
        missing = (
            f"{len(updates)} snapshot{'s' if len(updates) > 1 else ''}; at least {LEAST_RANKED} are"
            " needed"
        )
        return not_measured(*above, POINTS, missing), not_measured(*steady, RANKS, missing)
    gain = Estimate(
        sample.scores[updates[-1]] - sample.scores[updates[0]],
        sample.replicates[updates[-1]] - sample.replicates[updates[0]],
        ONE_PRETRAINING,
    )
    ranks = Estimate(
        float(
            rank_correlation(updates, np.array([[score] for score in sample.scores.values()]))[0]
        ),
        rank_correlation(updates, np.stack(list(sample.replicates.values()))),
        ONE_PRETRAINING,
    )
    basis = (
        f"{one.examples:,} examples, {len(updates)} snapshots, updates {updates[0]:,} to"
        f" {updates[-1]:,}"
    )
    return (
        Claim(
            *above,
            None,
            POINTS,
            gain,
            basis,
            verdict(gain, 1),
            one.made_up,
            f"from {sample.scores[updates[0]]:.1f} to {sample.scores[updates[-1]]:.1f}",
        ),
        Claim(*steady, None, RANKS, ranks, basis, order_verdict(ranks, len(updates)), one.made_up),
    )


def _all_sets(followed: Sequence[Followed], rising: Sequence[tuple[Claim, Claim]]) -> Claim:
    """On how many of the four sets both are so: the last snapshot above the first, and later
    snapshots the better ones.
    """
    about = (
        "zero_shot_all",
        "Zero-shot performance rises steadily on all four behaviours",
        WHERE,
        "4 of 4",
    )
    unit = "sets that rise steadily"
    pairs = [(one, gain, ranks) for one, (gain, ranks) in zip(followed, rising, strict=True)]
    counted = [
        (one, gain.estimate, ranks.estimate)
        for one, gain, ranks in pairs
        if gain.estimate and ranks.estimate
    ]
    if not counted:
        return not_measured(*about, unit, "no set with enough snapshots")
    count = Estimate(
        sum(gain.value > 0 and ranks.value > 0 for _, gain, ranks in counted),
        np.sum(
            [(gain.replicates > 0) & (ranks.replicates > 0) for _, gain, ranks in counted], axis=0
        ).astype(np.float64),
        ONE_PRETRAINING,
    )
    names = ", ".join(one.scale.title for one, _, _ in counted)
    rest = (
        ""
        if len(counted) == len(ZERO_SHOT)
        else f"; {len(counted)} of {len(ZERO_SHOT)} sets are there"
    )
    return Claim(
        *about,
        len(ZERO_SHOT),
        unit,
        count,
        f"{names}{rest}",
        together([claim.verdict for pair in rising for claim in pair if claim.estimate]),
        any(one.made_up for one, _, _ in counted),
        f"of {len(counted)}",
    )


def _ends_above(params: Params, followed: Sequence[Followed]) -> Claim:
    about = (
        "zero_shot_above_lstm",
        "The Transformer's zero-shot performance ends above the LSTM's",
        WHERE,
        "above, by eye",
    )
    if missing := _no_lstm(params, followed, 1):
        return not_measured(*about, SCALED, missing)
    lasts = [_relative(one, one.networks[TRANSFORMER], [_shared(one)[-1]]) for one in followed]
    others = [_relative(one, one.networks[LSTM], [_shared(one)[-1]]) for one in followed]
    gap = mean_of(
        [
            Estimate(float(ours[0, 0] - theirs[0, 0]), ours[0, 1:] - theirs[0, 1:], ONE_PRETRAINING)
            for ours, theirs in zip(lasts, others, strict=True)
        ]
    )
    return Claim(
        *about,
        None,
        SCALED,
        gap,
        _basis(followed),
        verdict(gap, 1),
        any(one.made_up for one in followed),
    )


def _unsteady(params: Params, followed: Sequence[Followed]) -> Claim:
    """Compares variances, not deviations: what drawing examples again adds to both takes no part in
    their difference.
    """
    about = (
        "zero_shot_lstm_variance",
        "The LSTM's zero-shot performance varies more over pre-training",
        WHERE,
        "higher variance",
    )
    if missing := _no_lstm(params, followed, LEAST_RANKED):
        return not_measured(*about, SQUARED, missing)
    ours, theirs = (
        np.mean(
            [
                unsteadiness(
                    np.log(_shared(one)), _relative(one, one.networks[network], _shared(one))
                )
                for one in followed
            ],
            axis=0,
        )
        for network in (TRANSFORMER, LSTM)
    )
    gap = Estimate(float(theirs[0] - ours[0]), theirs[1:] - ours[1:], ONE_PRETRAINING)
    return Claim(
        *about,
        None,
        SQUARED,
        gap,
        _basis(followed),
        verdict(gap, 1),
        any(one.made_up for one in followed),
        f"LSTM {theirs[0]:.1f}, Transformer {ours[0]:.1f}",
    )


def unsteadiness(at: Floats, values_nr: Floats) -> Floats:
    """Variance [r] of values [n, r], n > 2, about the straight line between both neighbours, at
    rising places [n].

    Gasser, Sroka and Jennen-Steinmetz 1986: a curve's slow rise adds next to nothing to it, and
    independent noise counts in full.
    """
    share_m = (at[2:] - at[1:-1]) / (at[2:] - at[:-2])
    left_m, right_m = share_m[:, None], 1 - share_m[:, None]
    residuals_mr = left_m * values_nr[:-2] + right_m * values_nr[2:] - values_nr[1:-1]
    return np.asarray((residuals_mr**2 / (left_m**2 + right_m**2 + 1)).mean(axis=0))


def _relative(one: Followed, sample: Resample, updates: Sequence[int]) -> Floats:
    """Relative performance x 100 at updates, [updates, 1 + replicates]: the first of a row is that
    on the examples as they are.
    """
    scores = np.stack(
        [np.concatenate([[sample.scores[update]], sample.replicates[update]]) for update in updates]
    )
    return np.asarray(
        100 * (scores - one.scale.random) / (one.scale.state_of_the_art - one.scale.random)
    )


def _shared(one: Followed) -> list[int]:
    """The updates at which both networks have a snapshot."""
    return [
        update for update in one.networks[TRANSFORMER].scores if update in one.networks[LSTM].scores
    ]


def _no_lstm(params: Params, followed: Sequence[Followed], least: int) -> str:
    """What is missing for a comparison of the networks; empty where nothing is."""
    if not followed:
        return "zero_shot has no row in params.yaml"
    if LSTM not in networks(params):
        return "no variant in params.yaml has the network lstm"
    return (
        ""
        if all(len(_shared(one)) >= least for one in followed)
        else f"fewer than {least} snapshots at the same updates"
    )


def _basis(followed: Sequence[Followed]) -> str:
    return (
        f"{', '.join(one.scale.title for one in followed)},"
        f" {sum(one.examples for one in followed):,} examples, {len(_shared(followed[0]))}"
        " snapshots"
    )


def _by_eye(name: str) -> str:
    return f"ends at {FIGURE2_ZERO_SHOT[name]:.2f} relative, by eye"
