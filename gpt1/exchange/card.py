"""The model card, README.md of an exported folder: from a template and what the run's files say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from gpt1.exchange.facts import Facts, facts_about
from gpt1.model.weights import Description

TEMPLATES = Path(__file__).parent / "templates"


def language_model(weights: Path, description: Description, tensors: Mapping[str, Tensor]) -> str:
    """The card of a language model."""
    return _rendered("language_model.md.jinja", facts_about(weights), description, tensors, {})


def task_model(
    weights: Path,
    description: Description,
    tensors: Mapping[str, Tensor],
    task: Mapping[str, Any],
    seed: int,
) -> str:
    """The card of a task's model; `task` is the task.json that is exported with it."""
    facts = facts_about(weights, str(task["task"]), seed)
    return _rendered(
        "task_model.md.jinja", facts, description, tensors, {"task": task, "seed": seed}
    )


def _rendered(
    template: str,
    facts: Facts,
    description: Description,
    tensors: Mapping[str, Tensor],
    more: dict[str, Any],
) -> str:
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
    sizes = description.config
    return environment.get_template(template).render(
        facts=facts,
        sizes=sizes,
        vocabulary_size=description.vocabulary_size,
        fingerprint=description.vocabulary_fingerprint,
        parameters=sum(tensor.numel() for tensor in tensors.values()),
        **more,
    )


def _large(number: float) -> str:
    """A count that a reader can take in."""
    return (
        f"{number / 1e9:.2f} G"
        if number >= 1e9
        else f"{number / 1e6:.1f} M"
        if number >= 1e6
        else f"{number:,}"
    )
