"""What the paper says of its ablations and of layer transfer (section 5, Table 5, Figure 2 left),
against what this run measures, by rules.yaml. Verdicts come last, over all claims: verdict.judged.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from gpt1.params.recipes import is_ablated
from gpt1.params.schema import Params
from gpt1.results.ablations import (
    AblationScores,
    SystemScore,
    by_layers,
    columns_of,
    paper_average,
    paper_row,
    system_title,
)
from gpt1.results.answers import FULL
from gpt1.results.captions import made_up
from gpt1.results.document import NONE, counted
from gpt1.results.paper import FIGURE2_LAYERS, MNLI_TRANSFER_GAIN
from gpt1.results.rules import LayersRule, Rules, Table5Rule
from gpt1.results.scores import common_seeds, on_seeds
from gpt1.results.statistics.estimates import cautious, estimate
from gpt1.results.statistics.jackknife import Floats, JackknifeScores, less
from gpt1.results.verdict import (
    COLUMNS,
    POINTS,
    RANKS,
    Claim,
    Effect,
    above,
    agreed,
    at_most,
    count_of,
    effect_of,
    of_pretrainings,
    rises,
    size,
)


def ablation_claims(rules: Rules, params: Params, table: AblationScores) -> list[Claim]:
    """Claims about Table 5."""
    return [_about_table5(rules, params, table, key, rule) for key, rule in rules.table5.items()]


def table5_effects(rules: Rules, key: str, table: AblationScores) -> dict[str, Effect]:
    """What Table 5 shows of a claim, by the system that is to be the worse, over those of its
    columns that are there; of none where too few are, or share no seed.
    """
    found = {less: _effect(rules, key, table, less) for less in rules.table5[key].less}
    there = {less: effect for less, effect in found.items() if effect}
    return there if len(there) == len(found) else {}


def _effect(rules: Rules, key: str, table: AblationScores, less: str) -> Effect | None:
    rule = rules.table5[key]
    there = columns_there(rules, rule, table)
    if rule.test == "every":
        if len(there) < 2 or not set(rule.opposite) <= set(there):
            return None
        parts = {title: table.mean_difference(less, [title], rule.system) for title in there}
        found = [(-1 if title in rule.opposite else 1, one) for title, one in parts.items() if one]
        return count_of(
            [sign * one.value > 0 for sign, one in found],
            [above(one, sign) for sign, one in found],
            min(one.seeds for _, one in found),
        )
    whole = table.mean_difference(less, there, rule.system)
    if whole is None:
        return None
    if rule.test == "above":
        return effect_of(whole, above(cautious(whole) if key in rules.primary else whole))
    assert rule.margin is not None
    if rule.test == "at_most":
        return effect_of(whole, at_most(whole, rule.margin))
    published = _published(rule, there)
    assert published is not None
    return effect_of(whole, size(whole, published, rule.margin))


def columns_there(rules: Rules, rule: Table5Rule, table: AblationScores) -> list[str]:
    """Those of a claim's columns in which all of its systems are scored, by a common seed."""
    there = []
    for title in rules.columns[rule.columns]:
        scored = [table.results.get((system, title)) for system in (rule.system, *rule.less)]
        if all(scored) and common_seeds(one.seeds for one in scored if one):
            there.append(title)
    return there


def _about_table5(
    rules: Rules, params: Params, table: AblationScores, key: str, rule: Table5Rule
) -> Claim:
    wanted, there = rules.columns[rule.columns], columns_there(rules, rule, table)
    effects = table5_effects(rules, key, table)
    effect = agreed(list(effects.values())) if effects else None
    published = _published(rule, there if effect else wanted)
    unit, told, detail = POINTS, NONE if published is None else f"{published:+.1f}", ""
    if rule.test == "every":
        unit, published = COLUMNS, len(there if effect else wanted)
        told, detail = f"{published} of {published}", f"of {len(there)}"
    if effect is None:
        missing = _missing(params, rule, wanted)
        return Claim(key, rule, told, None, unit, None, missing)
    pretrainings = len(params.pretrain.seeds)
    each = {system_title(less): of_pretrainings(one, pretrainings) for less, one in effects.items()}
    names = "" if len(there) == len(wanted) else f" ({', '.join(there)} of {len(wanted)})"
    examples = sum(table.results[FULL, title].examples for title in there)
    return Claim(
        key,
        rule,
        told,
        published,
        unit,
        of_pretrainings(effect, pretrainings),
        amount_of(len(there), effect.seeds, examples, pretrainings) + names,
        bool(made_up(params, _tasks(there))),
        detail,
        each if len(each) > 1 else {},
    )


def _published(rule: Table5Rule, titles: Sequence[str]) -> float | None:
    """The paper's difference, averaged over columns; None where it has no such row. Of several
    systems the first is the paper's.
    """
    rows = paper_row(rule.system), paper_row(rule.less[0])
    if rows[0] is None or rows[1] is None:
        return None
    return paper_average(rows[0], titles) - paper_average(rows[1], titles)


def _missing(params: Params, rule: Table5Rule, titles: Sequence[str]) -> str:
    """What params.yaml lacks for a claim, in words."""
    names, variants = _tasks(titles), [one for one in (rule.system, *rule.less) if one != FULL]
    if absent := [one for one in variants if one not in params.variants]:
        return f"variants has no row {' or '.join(absent)} in params.yaml"
    absent = [name for name in names if name not in params.tasks]
    rows = any(is_ablated(params, one, name) for one in variants for name in names)
    if absent and (len(absent) == len(names) or rows):
        return f"{', '.join(absent)} not among the tasks of params.yaml"
    few = " or ".join(variants)
    return f"stages.ablate has too few rows of {few} in params.yaml (of {', '.join(names)})"


def _tasks(titles: Sequence[str]) -> list[str]:
    return [columns_of(title)[0].name for title in titles]


def amount_of(tasks: int, seeds: int, examples: int, pretrainings: int) -> str:
    """How much a number rests on, in words."""
    of = f" of {counted(pretrainings, 'pre-training')}" if pretrainings < seeds else ""
    return f"{counted(tasks, 'task')}, {counted(seeds, 'seed')}{of}, {counted(examples, 'example')}"


def transfer_claims(rules: Rules, params: Params) -> list[Claim]:
    """Claims about layer transfer. Raises UserError where results are missing or broken."""
    tasks = dict.fromkeys(rule.task for rule in rules.layers.values())
    results = {task: by_layers(params, task) for task in tasks if task in params.transfer}
    return [
        _about_layers(rules, params, key, rule, results.get(rule.task, {}))
        for key, rule in rules.layers.items()
    ]


def layers_effect(
    rule: LayersRule, scores: Mapping[int, JackknifeScores]
) -> tuple[Effect, Floats | None]:
    """What scores by the number of layers, ascending and of the same seeds, show of a claim; of an
    order, the share of orders that rise so.
    """
    if rule.test == "rises":
        return rises(np.stack([one.by_seed for one in scores.values()]))
    whole = estimate([less(list(scores.values())[-1], scores[0])])
    if rule.test == "above":
        return effect_of(whole, above(whole)), None
    assert rule.margin is not None
    return effect_of(whole, size(whole, MNLI_TRANSFER_GAIN, rule.margin)), None


def _about_layers(
    rules: Rules, params: Params, key: str, rule: LayersRule, points: Mapping[int, SystemScore]
) -> Claim:
    (_, least), *_, (_, most) = FIGURE2_LAYERS[rule.task]
    told, published, unit = {
        "above": (f"about {most - least:+.0f}, by eye", most - least, POINTS),
        "size": (f"{MNLI_TRANSFER_GAIN:+.0f}", MNLI_TRANSFER_GAIN, POINTS),
        "rises": ("rises", None, RANKS),
    }[rule.test]
    missing = ""
    if not points:
        missing = f"transfer has no row {rule.task} in params.yaml"
    elif rule.test != "rises" and 0 not in points:
        missing = f"transfer.{rule.task}.layers has no 0"
    elif rule.test == "rises" and len(points) < rules.least_points:
        missing = f"{len(points)} numbers of layers; an order needs at least {rules.least_points}"
    if missing:
        return Claim(key, rule, told, None, unit, None, missing)
    seeds = common_seeds(one.seeds for one in points.values())
    scores = {layers: on_seeds(one.scores, one.seeds, seeds) for layers, one in points.items()}
    effect, share = layers_effect(rule, scores)
    detail = "" if share is None else f"{share:.0%} of orders rise so"
    layers = ", ".join(map(str, points))
    pretrainings, examples = len(params.pretrain.seeds), points[params.model.layers].examples
    amount = amount_of(1, effect.seeds, examples, pretrainings)
    basis = f"{amount}, layers {layers} of {params.model.layers}"
    return Claim(
        key,
        rule,
        told,
        published,
        unit,
        of_pretrainings(effect, pretrainings),
        basis,
        bool(made_up(params, [rule.task])),
        detail,
    )
