"""What a run could confirm, before it is run: of every primary claim the smallest true effect."""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from gpt1.params.recipes import finetune_recipe, is_ablated, pretraining_seeds_behind
from gpt1.params.schema import Params
from gpt1.pipeline.plan.facts import task_size
from gpt1.results.ablations import columns_of
from gpt1.results.answers import FULL, read_answers
from gpt1.results.paper import TABLE5
from gpt1.results.rules import Rules, Table5Rule
from gpt1.results.spreads import REAL, TOWN, Spread, spread_in
from gpt1.results.statistics.power import POWER, Design, smallest_effect
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import Column, Task, scored_split

MOST_POINTS = 100.0  # that two systems can differ by
REAL_ROWS = {"mnli": 3.0}  # of a cluster: MNLI has three hypotheses for each premise


class Detectable(NamedTuple):
    """A claim by its statement: the smallest true effect, points (infinite: nothing can be
    confirmed), pre-training seeds behind it, its tasks, and of how many systems each is to be so
    much worse.
    """

    statement: str
    effect: float
    seeds: int
    tasks: tuple[Design, ...]
    systems: int = 1


def detectable_effects(
    params: Params, rules: Rules, fresh: Collection[str] = ()
) -> list[Detectable]:
    """Of every primary claim, by the columns that the run has; `fresh` are the stages whose outputs
    are those of `params`, where rows and clusters are counted.
    """
    return [_detectable(params, rules, rules.table5[key], fresh) for key in rules.primary]


def _detectable(
    params: Params, rules: Rules, rule: Table5Rule, fresh: Collection[str]
) -> Detectable:
    variants = [system for system in (rule.system, *rule.less) if system != FULL]
    there = {
        title: columns_of(title)
        for title in TABLE5.columns
        if columns_of(title)[0].name in params.tasks
        and all(is_ablated(params, variant, columns_of(title)[0].name) for variant in variants)
    }
    wanted = [title for title in rules.columns[rule.columns] if title in there]
    if not wanted:
        return Detectable(rule.statement, math.inf, 0, ())
    tasks = tuple(design(params, *there[title], fresh) for title in wanted)
    spreads = [spread_of(params, there[title][0].name) for title in wanted]
    names = [there[title][0].name for title in wanted]
    seeds, systems = _pretrainings(params, names, variants), len(rule.less)
    effect = smallest_effect(
        tasks,
        seeds,
        math.sqrt(np.mean([spread.deviation**2 for spread in spreads])),
        others=len(there) - len(wanted),
        shared=float(np.mean([spread.shared for spread in spreads])),
        claims=len(rules.primary),
        power=1
        - (1 - POWER) / systems,  # of each, so that all are shown, however they hang together
    )
    return Detectable(rule.statement, effect, seeds, tasks, systems)


def _pretrainings(params: Params, tasks: Sequence[str], variants: Sequence[str]) -> int:
    """Pre-trainings behind the seeds that all fine-tunings of a claim have."""
    if params.pretrain.source != "train":
        return 1
    recipes = [
        finetune_recipe(params, task, variant) for task in tasks for variant in (None, *variants)
    ]
    common = set.intersection(*(set(recipe.seeds) for recipe in recipes))
    return len(pretraining_seeds_behind(params, sorted(common)))


def spread_of(params: Params, task: str) -> Spread:
    """What is taken for granted of a task."""
    return spread_in(TOWN if is_made_up(params.sources[task].folder) else REAL)


def design(params: Params, task: Task, columns: Sequence[Column], fresh: Collection[str]) -> Design:
    """The rows that the columns score and their clusters: counted where the task is encoded, else
    what is known of it.
    """
    spread = spread_of(params, task.name)
    if f"encode@{task.name}" in fresh:
        answers = read_answers(params, task.name)
        splits = answers.description["splits"]
        names = [scored_split(column, splits) for column in columns]
        return Design(
            sum(splits[name]["examples"] for name in names),
            sum(len(np.unique(answers.clusters(name))) for name in names),
            spread.disagreement,
        )
    size = task_size(task.name, params, fresh)
    rows = size.dev + size.labelled if len(columns) > 1 else size.labelled or size.dev
    made_up = is_made_up(params.sources[task.name].folder)
    known = spread.rows_of_a_cluster if made_up else REAL_ROWS
    return Design(rows, max(2, round(rows / known.get(task.name, 1.0))), spread.disagreement)


def lines_of(found: Sequence[Detectable], params: Params, least_seeds: int) -> list[str]:
    """The same as lines of text, and what was taken for granted."""
    lines = [
        "",
        f"What it could confirm: the true effect that {100 * POWER:.0f} % of such runs would, at"
        f" 5 % over the {len(found)} primary claims together (gpt1/results/rules.yaml)",
    ]
    for one in found:
        if not one.tasks:
            words = "not measured by this run"
        elif one.seeds < least_seeds:
            words = (
                f"nothing can be confirmed: it takes fine-tunings from {least_seeds} pre-trainings,"
                f" this run has {one.seeds} (pretrain.seeds, finetune.seeds)"
            )
        elif one.effect > MOST_POINTS:
            words = f"nothing can be confirmed by {one.seeds} pre-trainings and these rows"
        else:
            rows = sum(task.rows for task in one.tasks)
            clusters = sum(task.clusters for task in one.tasks)
            words = (
                f"from {one.effect:.1f} points on, by {one.seeds} pre-trainings and {rows:,} rows"
                f" in {clusters:,} clusters of {len(one.tasks)} tasks"
                + (f", against each of {one.systems} systems" if one.systems > 1 else "")
            )
        lines.append(f"  {one.statement}: {words}")
    if all(one.effect == math.inf for one in found):
        return lines
    made_up = {is_made_up(params.sources[name].folder) for name in params.tasks}
    runs = [TOWN] * (True in made_up) + [REAL] * (False in made_up)
    assumed = [
        f"{'made-up' if run == TOWN else 'real'} text, as measured on {run}: seeds move a task's"
        f" difference by {spread.deviation:.1f} points ({spread.shared:.0%} of the variance common"
        f" to all tasks), {spread.disagreement:.0%} of rows one of two systems alone gets right"
        for run, spread in ((run, spread_in(run)) for run in runs)
    ]
    return [
        *lines,
        f"  taken for granted of {'; of '.join(assumed)}; rows of a cluster come out alike",
    ]
