"""Schedules of the learning rate, pre-training curves and parameters by component, of every network
of the run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import Finetune, Params
from gpt1.results.document import (
    LEFT_OUT,
    NONE,
    Block,
    Bullets,
    Grid,
    Heading,
    Paragraph,
    Picture,
)
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.formats import ReportContent
from gpt1.results.training import (
    SMOOTHING,
    Trained,
    first_of_several,
    networks,
    read_training,
    smoothed,
)
from gpt1.results.training_pictures import (
    RateSchedule,
    in_order,
    learning_rates,
    parameters,
    pretraining_curves,
)
from gpt1.tasks.table import TASKS

TITLE = "Learning rates, pre-training and parameters"


def curves_report(params: Params) -> ReportContent:
    """Learning rates, pre-training curves and parameters. Raises UserError where results are
    missing or broken.
    """
    if params.pretrain.source == "official":
        return without_pretraining(params)
    trained = [read_training(params, network) for network in networks(params)]
    updates = trained[0].updates
    before, after = pretraining_rates(params, updates), finetuning_rates(params)
    counts = {one.network: one.parameters for one in trained}
    shares = [
        {
            "network": network,
            "component": name,
            "parameters": count,
            "share": f"{count / parts['total']:.6f}",
        }
        for network, parts in counts.items()
        for name, count in (*in_order(parts), ("total", parts["total"]))
    ]
    clipped_at = params.pretrain.max_gradient_norm
    return ReportContent(
        "curves",
        curves_document(params, trained, before, after),
        curves_metrics(trained),
        {"parameters": ("network component parameters share", shares)},
        {
            "learning-rate": lambda: learning_rates(before, updates, after),
            "pretraining": lambda: pretraining_curves(trained, clipped_at),
            "parameters": lambda: parameters(counts),
        },
    )


def without_pretraining(params: Params) -> ReportContent:
    """The report of a run on imported weights: fine-tuning's rates, and that there is no curve."""
    told = f"Profile {params.profile}: imported weights, so no pre-training and no curve of one."
    document: list[Block] = [
        Heading(1, TITLE),
        Paragraph(told),
        Heading(2, "Learning rate"),
        Bullets(tuple(f"{_rate_line(one)}." for one in finetuning_rates(params))),
    ]
    return ReportContent("curves", document, {})


def _rate_line(one: RateSchedule) -> str:
    return (
        f"{one.label[0].upper()}{one.label[1:]}: {one.name}, highest {one.peak:.3g}, warm-up over"
        f" {100 * one.warmup:g} % of updates"
    )


def pretraining_rates(params: Params, updates: int) -> RateSchedule:
    """Pre-training's schedule over so many updates."""
    recipe = params.pretrain
    return RateSchedule(
        "pre-training", recipe.learning_rate, recipe.schedule, recipe.warmup_updates / updates
    )


def finetuning_rates(params: Params) -> list[RateSchedule]:
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
        RateSchedule("fine-tuning", *usual),
        *(RateSchedule(", ".join(found[other]), *other) for other in others),
    ]


def last_training_loss(trained: Trained) -> float:
    """Training loss at the end, in nats a token: the mean over the updates within SMOOTHING of the
    last.
    """
    return float(smoothed(trained.at, trained.loss, trained.at[-1:])[0])


def curves_metrics(trained: Sequence[Trained]) -> dict[str, Any]:
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


def curves_document(
    params: Params, trained: Sequence[Trained], before: RateSchedule, after: Sequence[RateSchedule]
) -> list[Block]:
    """Pictures, tables and notes."""
    peak = max(1, params.pretrain.warmup_updates)
    rates = [
        f"Pre-training: {before.name}, {trained[0].updates:,} updates, warm-up"
        f" {params.pretrain.warmup_updates:,} ({100 * before.warmup:.3g} %),"
        f" {before.at([peak], trained[0].updates)[0]:.3g} at update {peak:,}."
    ]
    rates += [
        f"Pre-training of the {NETWORK_TITLES[network]}: the same schedule, highest {own:.3g}."
        for network in networks(params)
        if network != "transformer" and (own := getattr(params, network).learning_rate)
    ]
    rates += [
        _rate_line(one)
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
    if one := first_of_several(params):
        drawn.append(f"Curves and numbers of {one}.")
    if "lstm" not in networks(params):
        drawn.append(f"{LEFT_OUT}the LSTM, which no variant of params.yaml asks for.")
    return [
        Heading(1, TITLE),
        Paragraph(f"Profile {params.profile}; pre-trained on {params.clean.corpus_name}."),
        Heading(2, "Learning rate"),
        Picture("learning-rate.svg", "learning rates"),
        Bullets(tuple(rates)),
        Heading(2, "Pre-training"),
        Picture("pretraining.svg", "pre-training curves"),
        _training_table(trained),
        Bullets(tuple(drawn)),
        Heading(2, "Parameters by component"),
        Picture("parameters.svg", "parameters by component"),
        _parameter_table({one.network: one.parameters for one in trained}),
        Bullets(
            (
                "The output layer is the token embeddings again (tied), so it has no parameters of"
                " its own; special symbols and the classifier come with fine-tuning.",
            )
        ),
    ]


def _training_table(trained: Sequence[Trained]) -> Grid:
    header = (
        "",
        "updates",
        "tokens",
        "training loss",
        "held-out loss",
        "perplexity a token",
        "perplexity a word",
    )
    return Grid(
        header,
        tuple(
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
        ),
    )


def _parameter_table(counts: Mapping[str, Mapping[str, int]]) -> Grid:
    """Components in rows, networks in columns with each share; the total last."""
    names = dict.fromkeys(name for parts in counts.values() for name, _ in in_order(parts))
    header = (
        "component",
        *(text for network in counts for text in (NETWORK_TITLES[network], "share")),
    )
    rows = tuple(
        (
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
        )
        for name in (*names, "total")
    )
    return Grid(header, rows)
