"""Table 5 laid out: the paper's rows, ours under them, what each variant loses with its interval;
as a page, as records, as numbers.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder
from gpt1.params.schema import Params
from gpt1.results.ablations import (
    AVERAGED,
    Ablation,
    Result,
    columns_of,
    paper_average,
    paper_row,
    system_title,
    tasks_there,
)
from gpt1.results.answers import FULL
from gpt1.results.bootstrap import Estimate
from gpt1.results.document import LEFT_OUT, Grid
from gpt1.results.notes import (
    CHANCE,
    FEW_SEEDS,
    INTERVALS,
    METRIC_WORDS,
    ONE_CLASS,
    QQP_NOTE,
    legend,
    marks,
)
from gpt1.results.paper import QNLI_V1_TRAIN_ROWS, QNLI_V2_SCORE, TABLE5
from gpt1.results.scores import LAST_UPDATE
from gpt1.results.tables import Page, between, facts
from gpt1.results.words import NONE, alone, large, number, signed, spread
from gpt1.sources.table import is_made_up

AVERAGE = "Avg"
DETAILS = (
    "column",
    "metric",
    "split",
    "weights",
    "examples",
    "majority",
    "one SE of the full model",
    "seeds of each row",
)
CSV_COLUMNS = (
    "table",
    "row",
    "system",
    "variant",
    "source",
    "value",
    "column",
    "task",
    "metric",
    "score",
    "low",
    "high",
    "sd",
    "seeds",
    "scores",
    "split",
    "weights",
    "examples",
    "standard_error",
    "majority",
    "at_chance",
    "flagged_seeds",
    "one_class_seeds",
    "reason",
    "profile",
    "corpus",
    "caption",
)


def page(params: Params, table: Ablation) -> Page:
    """Lay out Table 5. Raises UserError where the files behind its caption are missing or
    broken.
    """
    titles = tuple(TABLE5.columns)
    header = (
        "",
        AVERAGE,
        *(f"{title} ({METRIC_WORDS[metric]})" for title, metric in TABLE5.columns.items()),
    )
    paper = [
        (row.system, *_paper_scores(row.system, table))
        for row in (TABLE5.full, *TABLE5.variants.values())
    ]
    ours = [
        (
            f"{system_title(system)}: this run",
            _value(table.average(system)),
            *(_cell(table.results.get((system, title))) for title in titles),
        )
        for system in table.systems
    ]
    losses = tuple(row for variant in table.systems[1:] for row in _loss_rows(table, variant))
    details = tuple(_details(table, title) for title in titles if (FULL, title) in table.results)
    return Page(
        name=TABLE5.name,
        heading=f"Table 5 of the paper: {TABLE5.title.lower()}",
        facts=caption_facts(params, table),
        header=header,
        paper_rows=tuple(paper),
        our_rows=tuple(ours),
        legend=legend(ours),
        more=tuple(
            grid
            for grid in (
                Grid(("the full model less the row", *header[1:]), losses),
                Grid(DETAILS, details),
            )
            if grid.rows
        ),
        notes=tuple(_notes(params, table)),
    )


def caption_facts(params: Params, table: Ablation) -> tuple[tuple[str, str], ...]:
    """What a reader must know first; the LSTM's pre-training too, where a row needs it. Raises
    UserError.
    """
    rows = facts(params, tasks_there(params), TABLE5.measured)
    rests = [
        variant
        for variant in table.systems[1:]
        if params.variants[variant].network == "lstm"
        and any((variant, title) in table.results for title in TABLE5.columns)
    ]
    if not rests:
        return rows
    path = stage_folder("pretrain", "lstm", "summary.json")
    try:
        summary = read_json(path)
        told = (
            f"one layer of {params.lstm.units:,} units, {large(summary['parameters']['total'])}"
            f" parameters; {summary['updates']:,} updates, {large(summary['tokens'])} tokens;"
            f" held-out perplexity {summary['heldout_perplexity']:.1f} a token,"
            f" {summary['heldout_word_perplexity']:.1f} a word (the paper: one layer of 2,048"
            " units)"
        )
    except FileNotFoundError:
        raise UserError(f"{path} is not there; run dvc repro pretrain@lstm") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: expected numbers for the caption, found something else ({error}); "
            "run dvc repro -f pretrain@lstm"
        ) from None
    place = [name for name, _ in rows].index("Pre-training") + 1
    return (*rows[:place], ("LSTM", told), *rows[place:])


def records(params: Params, table: Ablation, caption: str) -> list[dict[str, Any]]:
    """Every score and every difference, the paper's and ours (these with the caption), as one flat
    record each.
    """
    found: list[dict[str, Any]] = []
    averaged = " ".join(columns_of(title)[0].name for title in table.averaged)
    for row in (TABLE5.full, *TABLE5.variants.values()):
        average = {AVERAGE: paper_average(row, table.averaged)} if averaged else {}
        scores = average | {title: TABLE5.score(row, title) for title in TABLE5.columns}
        found += [
            {
                "row": "paper",
                "system": row.system,
                "source": row.source,
                "value": "score",
                "column": title,
                "metric": TABLE5.columns.get(title, "mean"),
                "task": averaged if title == AVERAGE else columns_of(title)[0].name,
                "score": score,
            }
            for title, score in scores.items()
        ]
    run = {
        "row": "ours",
        "profile": params.profile,
        "corpus": params.clean.corpus_name,
        "caption": caption,
    }
    for system in table.systems:
        ours = run | {"system": system_title(system), "variant": system}
        mean = {"column": AVERAGE, "metric": "mean", "task": averaged}
        for value, estimate in (
            ("score", table.average(system)),
            ("full less variant", table.mean_difference(system, table.averaged)),
        ):
            if estimate:
                found.append(ours | mean | {"value": value} | _numbers(estimate))
        for title, metric in TABLE5.columns.items():
            about = ours | {"column": title, "metric": metric, "task": columns_of(title)[0].name}
            result = table.results.get((system, title))
            found.append(
                about
                | {"value": "score"}
                | (facts_of(result) if result else {"reason": table.absent[system, title]})
            )
            if difference := table.differences.get((system, title)):
                found.append(about | {"value": "full less variant"} | _numbers(difference))
    return [{"table": TABLE5.name} | record for record in found]


def facts_of(result: Result) -> dict[str, Any]:
    """Every fact of a score by name."""
    parts = result.parts
    return _numbers(result.estimate) | {
        "sd": result.deviation,
        "scores": list(result.sample.scores.values()),
        "split": " ".join(part.split for part in parts),
        "weights": parts[0].chosen,
        "examples": result.examples,
        "standard_error": _standard_error(result),
        "majority": _majority(result),
        "at_chance": all(part.at_chance for part in parts),
        "flagged_seeds": _seeds(seed for part in parts for seed in part.flagged),
        "one_class_seeds": _seeds(seed for part in parts for seed in part.one_class),
    }


def metrics(table: Ablation) -> dict[str, Any]:
    """Our numbers for `dvc metrics`: {"table5": {"lstm": {"cola": {"mean": …, "low": …}, "average":
    …}}}.
    """
    rows: dict[str, Any] = {}
    for system in table.systems:
        row: dict[str, Any] = {}
        cells = {
            columns_of(title)[0].name: (result.estimate, table.differences.get((system, title)))
            for title in TABLE5.columns
            if (result := table.results.get((system, title)))
        }
        if average := table.average(system):
            cells["average"] = (average, table.mean_difference(system, table.averaged))
        for key, (estimate, difference) in cells.items():
            row[key] = {
                "mean" if name == "score" else name: round(value, 4)
                for name, value in _numbers(estimate).items()
            }
            if difference:
                row[key] |= {
                    f"full_less_this_{name}": round(value, 4)
                    for name, value in _numbers(difference).items()
                }
        if average:
            row["average"]["tasks"] = len(table.averaged)
        rows[system] = row
    return {TABLE5.name: {system: row for system, row in rows.items() if row}}


def within(estimate: Estimate) -> str:
    """A difference with its interval, signed, and a word where it is of one seed: +14.2 [+10.1,
    +18.0].
    """
    low, high = estimate.interval
    return f"{signed(estimate.value)} [{signed(low)}, {signed(high)}]{alone(estimate.seeds)}"


def _numbers(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval
    return {"score": estimate.value, "low": low, "high": high, "seeds": estimate.seeds}


def _paper_scores(system: str, table: Ablation) -> tuple[str, ...]:
    row = next(row for row in (TABLE5.full, *TABLE5.variants.values()) if row.system == system)
    mean = number(paper_average(row, table.averaged)) if table.averaged else NONE
    return (mean, *(number(TABLE5.score(row, title)) for title in TABLE5.columns))


def _value(estimate: Estimate | None) -> str:
    return f"{number(estimate.value)} {between(estimate)}" if estimate else NONE


def _cell(result: Result | None) -> str:
    if result is None:
        return NONE
    signs = "".join(marks(part) for part in result.parts)
    return spread(result.estimate.value, result.deviation) + "".join(
        sign for sign in (CHANCE, ONE_CLASS) if sign in signs
    )


def _loss_rows(table: Ablation, variant: str) -> list[tuple[str, ...]]:
    """What the whole model has over a variant: ours with its interval, and the paper's under it."""
    mean = table.mean_difference(variant, table.averaged)
    there = [table.differences.get((variant, title)) for title in TABLE5.columns]
    if not any(there):
        return []
    rows = [
        (
            f"{system_title(variant)}: this run",
            *(within(one) if one else NONE for one in (mean, *there)),
        )
    ]
    if row := TABLE5.variants.get(variant):
        average = (
            signed(paper_average(TABLE5.full, table.averaged) - paper_average(row, table.averaged))
            if table.averaged
            else NONE
        )
        rows.append(
            (
                f"{row.system}: the paper",
                average,
                *(
                    signed(TABLE5.score(TABLE5.full, title) - TABLE5.score(row, title))
                    for title in TABLE5.columns
                ),
            )
        )
    return rows


def _details(table: Ablation, title: str) -> tuple[str, ...]:
    full = table.results[FULL, title]
    seeds = [
        str(len(found.sample.scores)) if (found := table.results.get((system, title))) else NONE
        for system in table.systems
    ]
    return (
        title,
        METRIC_WORDS[TABLE5.columns[title]],
        full.parts[0].split if len(full.parts) == 1 else "dev, both",
        full.parts[0].chosen,
        f"{full.examples:,}",
        f"{_majority(full):.1f}",
        f"{_standard_error(full):.1f}",
        " ".join(seeds),
    )


def _standard_error(result: Result) -> float:
    """Of a mean of parts whose rows are drawn apart."""
    return float(sum(part.standard_error**2 for part in result.parts) ** 0.5 / len(result.parts))


def _majority(result: Result) -> float:
    return sum(part.majority for part in result.parts) / len(result.parts)


def _seeds(seeds: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(seeds))


def _notes(params: Params, table: Ablation) -> list[str]:
    """The notes under Table 5, in the order in which a reader wants them."""
    lines = [
        (
            "ours: mean ± sample standard deviation over the seeds; each score's interval stands in"
            " table5.csv."
        ),
        (
            f"{INTERVALS} Differences are paired: the same examples and seeds for both systems, on"
            f" the seeds that both have. {FEW_SEEDS}"
        ),
        _average_note(table),
        (
            "MNLI: the mean of matched and mismatched, as the paper's 81.8 is the mean of 82.1 and"
            " 81.4."
        ),
    ]
    there = table.results.values()
    if any(part.chosen == LAST_UPDATE for result in there for part in result.parts):
        lines.append(
            "dev: the labels of test are not public, so these are dev numbers at the last update,"
            " chosen on nothing; they stand beside the paper's test-server numbers and compare with"
            " them only roughly."
        )
    if any(part.chosen != LAST_UPDATE for result in there for part in result.parts):
        lines.append("test: with the weights that scored best on dev.")
    for sign, words in (
        (
            CHANCE,
            (
                f"chance level, that is below or within {params.report.chance_standard_errors:g}"
                " standard errors of the majority, for the mean or a seed"
            ),
        ),
        (ONE_CLASS, "a seed gives the same answer to every example"),
    ):
        if cells := [
            f"{system_title(system)} on {title}"
            for (system, title), result in table.results.items()
            if any(sign in marks(part) for part in result.parts)
        ]:
            lines.append(f"{sign} {words}: {'; '.join(cells)}.")
    reasons: dict[str, list[str]] = {}
    for (system, title), reason in table.absent.items():
        where = title if "task" in reason else f"{title} of {system_title(system)}"
        reasons.setdefault(reason, []).append(where)
    if reasons:
        left = "; ".join(
            f"{', '.join(dict.fromkeys(cells))} ({reason})" for reason, cells in reasons.items()
        )
        lines.append(f"{LEFT_OUT}{left}; gpt1 profile says how to get what is missing.")
    if others := [system for system in table.systems if paper_row(system) is None]:
        lines.append(f"Not in the paper: {', '.join(others)}.")
    if "qqp" in params.tasks and not is_made_up(params.sources["qqp"].folder):
        lines.append(QQP_NOTE)
    if "qnli" in params.tasks:
        lines.append(
            f"QNLI: the paper's rows are on version 1 ({QNLI_V1_TRAIN_ROWS:,} rows to train on); on"
            f" version 2, drawn anew after it, the paper's full model scores {QNLI_V2_SCORE}"
            " (Devlin et al. 2019)."
        )
    lines.append(f"Source of the paper's rows: {TABLE5.full.source}.")
    return lines


def _average_note(table: Ablation) -> str:
    titles: Sequence[str] = table.averaged
    if not titles:
        return f"{AVERAGE}: no column has a score in every row, so there is none."
    rest = ", ".join(title for title in AVERAGED if title not in titles)
    printed = ", ".join(map(number, TABLE5.printed_means.values()))
    return (
        f"{AVERAGE}: the mean over {len(titles)} of eight columns ({', '.join(titles)}), in the"
        " paper's rows as in ours: without QQP, whose F1 on dev compares with no number of the"
        " paper"
        + (f", and without {rest}, which not every row of ours has" if rest else "")
        + f". Over all eight the paper prints {printed}."
    )
