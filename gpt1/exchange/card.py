"""The model card, README.md of an exported folder: a template, filled with what the files of the
weights' run say. A file that is not there says nothing.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.exchange.incoming import IMPORTED
from gpt1.exchange.metadata import metadata
from gpt1.model.weights import Description
from gpt1.tracking.log import checkout as git_facts

TEMPLATES = Path(__file__).parent / "templates"
RESULT_TABLES = ("table2", "table3", "table4")
COMPOSED_BY = "# Composed by:"  # how params.yaml begins


def model_card(
    weights: Path,
    description: Description,
    tensors: Mapping[str, Tensor],
    task: Mapping[str, Any] | None = None,
    base_model: str | None = None,
) -> str:
    """The card of a language model, or of a task's model with the task.json that is exported with
    it; `base_model`: what it was fine-tuned from, by its name on the hub. Raises UserError where a
    result of the run is damaged.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["large"] = _large
    template = "task_model.md.jinja" if task else "language_model.md.jinja"
    facts = facts_about(weights, *((str(task["task"]), int(task["seed"])) if task else ()))
    return environment.get_template(template).render(
        facts=facts,
        metadata=metadata(facts, str(task["task"]) if task else None, base_model),
        sizes=description.config,
        vocabulary_size=description.vocabulary_size,
        fingerprint=description.vocabulary_fingerprint,
        parameters=sum(tensor.numel() for tensor in tensors.values()),
        **({"task": task, "seed": task["seed"]} if task else {}),
    )


def _large(number: float) -> str:
    """A count that a reader can take in."""
    for unit, name in ((1e9, "G"), (1e6, "M")):
        if number >= unit:
            return f"{number / unit:.2f} G" if name == "G" else f"{number / unit:.1f} M"
    return f"{number:,}"


def facts_about(weights: Path, task: str = "", seed: int | None = None) -> dict[str, Any]:
    """What the run says that weights at data/pretrain/transformer/seed-<n> or
    data/finetune/<group>/<task>/seed-<n> belong to: corpus, training, imported, seed, licences,
    results, composed_by, commit, each empty where its files are not there.

    For a task: its own results and licence alone. For seed-<n>/snapshots/<update>.safetensors
    `snapshot` is the update, and results, which are of the last one, there are none. Weights that
    lie elsewhere have none but those of the import beside them. Raises UserError where a result of
    the run is damaged.
    """
    parents, snapshot = weights.resolve().parents, None
    if parents[0].name == "snapshots" and weights.stem.isdecimal():
        parents, snapshot = parents[1:], int(weights.stem)
    names = ("corpus", "training", "seed", "licences", "results", "composed_by", "commit")
    facts: dict[str, Any] = {name: {} for name in names} | {"snapshot": snapshot}
    facts["imported"] = _json(parents[0] / IMPORTED)
    up = 4 if task else 3
    if len(parents) <= up or parents[up - 1].name != ("finetune" if task else "pretrain"):
        return facts
    data = parents[up]
    try:
        index = _json(data / "shard" / "index.json")
        train = index.get("splits", {}).get("train", {})
        training = _training(data / "pretrain" / "transformer", seed, parents[0])
        if training.get("source") == "official":
            facts["imported"] = _json(data / "acquire" / "weights" / "official" / IMPORTED)
        elif train.get("tokens"):
            facts["corpus"] = {"name": one_line(index["corpus_name"]), "books": len(train["books"])}
            facts["corpus"] |= {name: train[name] for name in ("words", "tokens")}
        if snapshot:
            training = {"of_updates": training.get("updates")}
        return facts | {
            "training": training,
            "seed": _json(parents[0] / "summary.json") if task else {},
            "licences": licences(data, task),
            "results": [] if snapshot else results(data, task),
            "composed_by": composed_by(data.parent / "params.yaml"),
            "commit": commit_of(data.parent),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{data}: a result that the model card tells of cannot be read"
            f" ({type(error).__name__}: {error}); make it again with dvc repro, or export a copy of"
            " the weights that lies elsewhere"
        ) from None


def _training(folder: Path, seed: int | None, weights: Path) -> dict[str, Any]:
    """summary.json of the pre-training at `weights`, or of the one that fine-tuning seed `seed`
    starts from; with its `seed` where there are several.
    """
    seeds = sorted(folder.glob("seed-*"))
    own = weights if seed is None else folder / f"seed-{seed}"
    place = seeds[0] if len(seeds) == 1 else own
    several = {"seed": place.name.removeprefix("seed-")} if len(seeds) > 1 else {}
    return _json(place / "summary.json") | several


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def one_line(text: object) -> str:
    """Text without control characters, in one line, for a page and a terminal."""
    return " ".join(
        "".join(character if character.isprintable() else " " for character in str(text)).split()
    )


def licences(data: Path, task: str) -> list[list[str]]:
    """Source, origin and licence of the corpus and the byte pairs, and of the named task, from what
    `acquire` wrote down.
    """
    wanted = ("corpus/*", "bpe/*", "weights/*", *([f"tasks/{task}"] if task else []))
    found = (
        _json(path)
        for folder in wanted
        for path in sorted((data / "acquire").glob(f"{folder}/manifest.json"))
    )
    return [
        [one_line(one.get(name)) for name in ("source", "origin", "licence")]
        for one in found
        if one
    ]


def results(data: Path, task: str) -> list[dict[str, Any]]:
    """Our scores (x 100) in Tables 2 to 4, of all tasks or of the named one: mean, sample deviation
    and number of seeds.
    """
    import pandas as pd

    paths = [data / "report" / table / "scores.parquet" for table in RESULT_TABLES]
    every = [pd.read_parquet(path) for path in paths if path.is_file()]
    if not every:
        return []
    scores = pd.concat(every)
    ours = scores[(scores["system"] == "full") & (scores["metric"] != "mean")]
    ours = ours[ours["score"].notna() & ((ours["task"] == task) | (task == ""))]
    by = ours.groupby(["column", "task", "metric", "split"], sort=False)
    means = by.agg(
        score=("score", "mean"),
        deviation=("score", "std"),
        seeds=("score", "count"),
        examples=("n", "first"),
        source=("source", "first"),
    ).reset_index()
    means["made_up"] = means.pop("source") == "made up"
    return [{str(key): value for key, value in row.items()} for row in means.to_dict("records")]


def composed_by(path: Path) -> str:
    """The command that composed params.yaml, from its first line; empty where it does not say."""
    try:
        first = path.read_text(encoding="utf-8").partition("\n")[0]
    except (OSError, ValueError):
        return ""
    return one_line(first.removeprefix(COMPOSED_BY)) if first.startswith(COMPOSED_BY) else ""


def commit_of(checkout: Path) -> str:
    """The checkout's commit, with a word where files differ from it; empty where there is none."""
    facts = git_facts(checkout)
    commit = facts["git_commit"].replace("unknown", "")
    return commit + (" with uncommitted changes" if commit and facts["dirty"] == "true" else "")
