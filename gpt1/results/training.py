"""What pre-training left of each network: its curve, its length, its parameters by component."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpt1.base.errors import UserError
from gpt1.base.files import parse_json, read_json
from gpt1.params.recipes import pretraining_of
from gpt1.params.schema import NetworkName, Params

Floats = npt.NDArray[np.float64]
SMOOTHING = (
    1.25  # a smoothed point is the mean over the updates within this factor of it, either way
)


@dataclass(frozen=True)
class Trained:
    """One network's pre-training. The training points [n] and held-out points [m] are in order of
    update; losses are nats a token.
    """

    network: str
    updates: int
    tokens: int
    parameters: Mapping[str, int]  # by component, `total` among them
    heldout_perplexity: float
    heldout_word_perplexity: float
    at: Floats
    loss: Floats
    gradient_norm: Floats
    heldout_at: Floats
    heldout_loss: Floats

    @property
    def tokens_an_update(self) -> float:
        """Tokens that one update reads."""
        return self.tokens / self.updates


def networks(params: Params) -> tuple[NetworkName, ...]:
    """The networks of a run's reports: the Transformer, and each LSTM that a variant is of."""
    return (
        "transformer",
        *sorted({variant.network for variant in params.variants.values()} - {"transformer"}),
    )


def first_of_several(params: Params) -> str:
    """Which pre-training speaks where one alone is shown, in words; empty where there is one."""
    first, *others = params.pretrain.seeds
    return f"pre-training seed {first}, the first of {len(others) + 1}" if others else ""


def read_training(params: Params, network: NetworkName) -> Trained:
    """Read the first pre-training of a network. Raises UserError where its curve or summary is
    missing or broken.
    """
    folder = pretraining_of(params, network)
    summary, points = (
        _summary(folder / "summary.json", network),
        _points(folder / "curve.jsonl", network),
    )
    try:
        training = [point for point in points if "loss" in point]
        heldout = [point for point in points if "heldout_loss" in point]
        if not training or not heldout:
            raise ValueError(
                "no point of the training loss" if not training else "no point of the held-out loss"
            )
        at, loss, norm = (
            np.array([point[name] for point in training], np.float64)
            for name in ("update", "loss", "gradient_norm")
        )
        heldout_at, heldout_loss = (
            np.array([point[name] for point in heldout], np.float64)
            for name in ("update", "heldout_loss")
        )
        if (
            not all(np.isfinite(values).all() for values in (loss, norm, heldout_loss))
            or (np.diff(at) <= 0).any()
            or at[0] < 1
        ):
            raise ValueError("a value that is not finite, or updates out of order")
        parameters = {str(name): int(count) for name, count in summary["parameters"].items()}
        if sum(parameters.values()) != 2 * parameters["total"]:
            raise ValueError("parameters whose sum is not their total")
        return Trained(
            network,
            int(summary["updates"]),
            int(summary["tokens"]),
            parameters,
            float(summary["heldout_perplexity"]),
            float(summary["heldout_word_perplexity"]),
            at,
            loss,
            norm,
            heldout_at,
            heldout_loss,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problem = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"{folder}: expected the curve and the summary of a pre-training, found {problem}; "
            f"run dvc repro -f pretrain@{network}"
        ) from None


def smoothed(at: Floats, values: Floats, wanted: Floats) -> Floats:
    """Means [w] of values [n] over the updates within a factor SMOOTHING of each wanted update [w];
    `at` [n] rises.
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first, last = (
        np.searchsorted(at, wanted / SMOOTHING, "left"),
        np.searchsorted(at, wanted * SMOOTHING, "right"),
    )
    return np.asarray((sums[last] - sums[first]) / (last - first))


def thinned(at: Floats, points: int) -> npt.NDArray[np.int64]:
    """Which of the updates [n] to draw: all, or at most so many points evenly over their logarithm,
    the first and the last among them.
    """
    if len(at) <= points:
        return np.arange(len(at))
    wanted = np.geomspace(at[0], at[-1], points)
    return np.unique(np.clip(np.searchsorted(at, wanted), 0, len(at) - 1))


def _summary(path: Path, network: str) -> Mapping[str, Any]:
    try:
        summary = read_json(path)
    except FileNotFoundError:
        raise UserError(f"{path} is not there; run dvc repro pretrain@{network}") from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({error}); run dvc repro -f pretrain@{network}"
        ) from None
    if not isinstance(summary, dict):
        raise UserError(
            f"{path}: expected an object, found {type(summary).__name__}; run dvc repro -f"
            f" pretrain@{network}"
        )
    return summary


def _points(path: Path, network: str) -> list[dict[str, float]]:
    points = []
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            point = parse_json(line)
            if not isinstance(point, dict):
                raise ValueError(f"line {number}: expected an object, found {type(point).__name__}")
            points.append(point)
    except FileNotFoundError:
        raise UserError(f"{path} is not there; run dvc repro pretrain@{network}") from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} cannot be read ({error}); run dvc repro -f pretrain@{network}"
        ) from None
    return points
