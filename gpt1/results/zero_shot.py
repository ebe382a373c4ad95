"""Zero-shot scores over pre-training (paper, section 5, Figure 2 right), on the figure's scale: 0
is random, 1 the state of the art.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import read_arrays, read_json, stage_folder
from gpt1.params.recipes import pretraining_seed
from gpt1.params.schema import NetworkName, Params
from gpt1.results.paper import ZERO_SHOT, ZeroShotScale
from gpt1.results.training import networks
from gpt1.sources.table import is_made_up
from gpt1.tasks.metrics import score, standard_error

NETWORKS: tuple[NetworkName, ...] = ("transformer", "lstm")  # of the figure
AGREE = 1e-3  # scores.json may round; a larger difference means answers of another run


@dataclass(frozen=True)
class Point:
    """The score of one snapshot, and its sampling error (one standard error of the examples); both
    x 100.
    """

    update: int
    score: float
    standard_error: float


@dataclass(frozen=True)
class Behaviour:
    """One network on one zero-shot set, snapshot after snapshot."""

    network: str
    set: str
    metric: str
    split: str
    examples: int
    made_up: bool
    notes: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def scale(self) -> ZeroShotScale:
        """The paper's constants of this set."""
        return ZERO_SHOT[self.set]


def normalised(value: float, scale: ZeroShotScale) -> float:
    """Relative task performance of a score x 100: 0 for random, 1 for the state of the art (Figure
    2, right).
    """
    return (value - scale.random) / (scale.state_of_the_art - scale.random)


def normalised_error(error: float, scale: ZeroShotScale) -> float:
    """A standard error x 100 on that scale."""
    return error / (scale.state_of_the_art - scale.random)


def behaviours(params: Params, seed: int | None = None) -> list[Behaviour]:
    """Every set of params.zero_shot by every network of the figure that the run has, of one
    pre-training: the first, which alone is shown, or that of a seed. Raises UserError where scores
    are missing or broken.
    """
    if not params.zero_shot:
        return []
    given = pretraining_seed(params) if seed is None else seed
    return [one for network in networks_shown(params) for one in _read(params, network, given)]


def networks_shown(params: Params) -> list[NetworkName]:
    """The networks of the figure that the run has."""
    return [network for network in NETWORKS if network in networks(params)]


def answers_folder(network: str, seed: int) -> Path:
    """Where the answers by a pre-training of a network lie."""
    return stage_folder("zero_shot", network, f"seed-{seed}")


def _read(params: Params, network: str, seed: int) -> list[Behaviour]:
    folder, again = answers_folder(network, seed), f"run dvc repro -f zero_shot@{network}"
    path = folder / "scores.json"
    try:
        found = read_json(path)
        missing = [name for name in params.zero_shot if name not in found["sets"]]
        if missing:
            raise UserError(
                f"{path}: expected the sets {', '.join(params.zero_shot)}, found no"
                f" {', '.join(missing)}; {again}"
            )
        updates = [int(snapshot["update"]) for snapshot in found["snapshots"]]
        if (
            not updates
            or updates[0] < 1
            or any(one >= other for one, other in itertools.pairwise(updates))
        ):
            raise ValueError("no snapshots, or snapshots out of order")
        names = [f"{name}/{what}" for name in params.zero_shot for what in ("labels", *updates)]
        answers = read_arrays(folder / "answers.npz", names)
        return [
            _behaviour(params, network, name, found, answers)
            for name in sorted(params.zero_shot, key=list(ZERO_SHOT).index)
        ]
    except FileNotFoundError as error:
        raise UserError(
            f"{error.filename} is not there; run dvc repro zero_shot@{network}"
        ) from None
    except KeyError as error:
        raise UserError(
            f"{folder}: expected scores.json and answers.npz to tell of the same sets and"
            f" snapshots, found no {error}; {again}"
        ) from None
    except (OSError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{folder}: scores.json and answers.npz cannot be read ({error}); {again}"
        ) from None


def _behaviour(
    params: Params, network: str, name: str, found: Mapping[str, Any], answers: Mapping[str, Any]
) -> Behaviour:
    """Raises KeyError or ValueError where the two files do not tell of the same answers."""
    about, labels = found["sets"][name], answers[f"{name}/labels"]
    if labels.shape != (about["examples"],):
        raise ValueError(
            f"{name}: {about['examples']} examples in scores.json, labels of shape {labels.shape}"
        )
    points = []
    for snapshot in found["snapshots"]:
        update, given = int(snapshot["update"]), answers[f"{name}/{snapshot['update']}"]
        value = score(about["metric"], labels, given)
        if not math.isclose(value, snapshot["scores"][name], abs_tol=AGREE):
            raise ValueError(
                f"{name} at update {update}: {snapshot['scores'][name]} in scores.json, {value:.4f}"
                " by the answers"
            )
        points.append(
            Point(update, 100 * value, 100 * standard_error(about["metric"], labels, given))
        )
    source = params.sources.get(name)
    return Behaviour(
        network,
        name,
        about["metric"],
        str(about.get("split", "")),
        len(labels),
        source is not None and is_made_up(source.folder),
        tuple(map(str, about["notes"])),
        tuple(points),
    )
