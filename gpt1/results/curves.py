"""Schedules of the learning rate, pre-training curves and parameters by component, of every network
of the run.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpt1.base.files import write_json
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import Finetune, Params
from gpt1.results.drawing import NETWORK_TITLES, write_pictures
from gpt1.results.formats import grid
from gpt1.results.training import SMOOTHING, Trained, networks, read_training, smoothed
from gpt1.results.training_pictures import (
    Rates,
    in_order,
    learning_rates,
    parameters,
    pretraining_curves,
)
from gpt1.tasks.table import TASKS

NONE = "-"


def write(params: Params, folder: Path) -> str:
    """Fill `folder` with pictures, tables and numbers; returns the page. Raises UserError where
    results are missing or broken.
    """
    if params.pretrain.source == "official":
        return without_pretraining(params, folder)
    trained = [read_training(network) for network in networks(params)]
    updates = trained[0].updates
    before, after = pretraining_rates(params, updates), finetuning_rates(params)
    counts = {one.network: one.parameters for one in trained}
    write_pictures(folder, "learning-rate", lambda: learning_rates(before, updates, after))
    write_pictures(
        folder,
        "pretraining",
        lambda: pretraining_curves(trained, params.pretrain.max_gradient_norm),
    )
    write_pictures(folder, "parameters", lambda: parameters(counts))
    with (folder / "parameters.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("network", "component", "parameters", "share"))
        writer.writerows(
            (network, name, count, f"{count / parts['total']:.6f}")
            for network, parts in counts.items()
            for name, count in (*in_order(parts), ("total", parts["total"]))
        )
    write_json(folder / "metrics.json", {"curves": metrics(trained)})
    text = page(params, trained, before, after)
    (folder / "curves.md").write_text(text, encoding="utf-8")
    return text


def without_pretraining(params: Params, folder: Path) -> str:
    """The page of a run on imported weights: fine-tuning's rates, and that there is no curve."""
    rates = [
        f"{one.label[0].upper()}{one.label[1:]}: {one.name}, highest {one.peak:.3g}, warm-up over"
        f" {100 * one.warmup:g} % of updates."
        for one in finetuning_rates(params)
    ]
    text = (
        "\n\n".join(
            [
                "# Learning rates, pre-training and parameters",
                f"Profile {params.profile}: imported weights, so no pre-training and no curve of"
                " one.",
                "## Learning rate",
                _bullets(rates),
            ]
        )
        + "\n"
    )
    write_json(folder / "metrics.json", {"curves": {}})
    (folder / "curves.md").write_text(text, encoding="utf-8")
    return text


def pretraining_rates(params: Params, updates: int) -> Rates:
    """Pre-training's schedule over so many updates."""
    recipe = params.pretrain
    return Rates(
        "pre-training", recipe.learning_rate, recipe.schedule, recipe.warmup_updates / updates
    )


def finetuning_rates(params: Params) -> list[Rates]:
    """Fine-tuning's schedules: that of the section, then each other one with the tasks whose rows
    ask for it.
    """

    def of(recipe: Finetune) -> tuple[Any, ...]:
        return recipe.learning_rate, recipe.schedule, recipe.warmup_fraction

    found: dict[tuple[Any, ...], list[str]] = {of(params.finetune): []}
    for task in params.tasks:
        found.setdefault(of(finetune_recipe(params, task)), []).append(TASKS[task].title)
    usual, *others = found
    return [
        Rates("fine-tuning", *usual),
        *(Rates(", ".join(found[other]), *other) for other in others),
    ]


def last_training_loss(trained: Trained) -> float:
    """Training loss at the end, in nats a token: the mean over the updates within SMOOTHING of the
    last.
    """
    return float(smoothed(trained.at, trained.loss, trained.at[-1:])[0])


def metrics(trained: Sequence[Trained]) -> dict[str, Any]:
    """Numbers for `dvc metrics`, by network."""
    return {
        one.network: {
            "updates": one.updates,
            "tokens": one.tokens,
            "training_loss": round(last_training_loss(one), 4),
            "heldout_loss": round(float(one.heldout_loss[-1]), 4),
            "heldout_perplexity": round(one.heldout_perplexity, 4),
            "heldout_word_perplexity": round(one.heldout_word_perplexity, 4),
            "parameters": dict(one.parameters),
        }
        for one in trained
    }


def page(params: Params, trained: Sequence[Trained], before: Rates, after: Sequence[Rates]) -> str:
    """Pictures, tables and notes as markdown."""
    peak = max(1, params.pretrain.warmup_updates)
    rates = [
        f"Pre-training: {before.name}, {trained[0].updates:,} updates, warm-up"
        f" {params.pretrain.warmup_updates:,} ({100 * before.warmup:.3g} %),"
        f" {before.at([peak], trained[0].updates)[0]:.3g} at update {peak:,}."
    ]
    rates += [
        f"{one.label[0].upper()}{one.label[1:]}: {one.name}, highest {one.peak:.3g}, warm-up over"
        f" {100 * one.warmup:g} % of updates"
        + (
            f"; in a run of fewer than {1 / one.warmup:,.0f} updates the first is past it."
            if one.warmup
            else "."
        )
        for one in after
    ]
    drawn = [
        (
            "Training loss: faint, logged updates; the line, the mean over the updates within a"
            f" factor of {SMOOTHING:g} of each. Held out: whole books that training never reads."
            " Perplexity is e to the loss."
        ),
        f"Gradient norm: global, before it is clipped at {params.pretrain.max_gradient_norm:g}.",
    ]
    if "lstm" not in networks(params):
        drawn.append("Left out: the LSTM, which no variant of params.yaml asks for.")
    parts = [
        "# Learning rates, pre-training and parameters",
        f"Profile {params.profile}; pre-trained on {params.clean.corpus_name}.",
        "## Learning rate",
        "![learning rates](learning-rate.svg)",
        _bullets(rates),
        "## Pre-training",
        "![pre-training curves](pretraining.svg)",
        _training_table(trained),
        _bullets(drawn),
        "## Parameters by component",
        "![parameters by component](parameters.svg)",
        _parameter_table({one.network: one.parameters for one in trained}),
        _bullets(
            [
                "The output layer is the token embeddings again (tied), so it has no parameters of"
                " its own; special symbols and the classifier come with fine-tuning."
            ]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _training_table(trained: Sequence[Trained]) -> str:
    header = (
        "",
        "updates",
        "tokens",
        "training loss",
        "held-out loss",
        "perplexity a token",
        "perplexity a word",
    )
    return grid(
        header,
        [
            (
                NETWORK_TITLES[one.network],
                f"{one.updates:,}",
                f"{one.tokens:,}",
                f"{last_training_loss(one):.3f}",
                f"{one.heldout_loss[-1]:.3f}",
                f"{one.heldout_perplexity:.2f}",
                f"{one.heldout_word_perplexity:.2f}",
            )
            for one in trained
        ],
    )


def _parameter_table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Components in rows, networks in columns with each share; the total last."""
    names = dict.fromkeys(name for parts in counts.values() for name, _ in in_order(parts))
    header = [
        "component",
        *(text for network in counts for text in (NETWORK_TITLES[network], "share")),
    ]
    rows = [
        [
            name.replace("_", " "),
            *(
                text
                for parts in counts.values()
                for text in (
                    (f"{parts[name]:,}", f"{100 * parts[name] / parts['total']:.1f} %")
                    if name in parts
                    else (NONE, NONE)
                )
            ),
        ]
        for name in (*names, "total")
    ]
    return grid(header, rows)


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
