"""Table 5, ours under the paper's: every row's scores, and what each variant loses with its
interval; as words and as records.
"""

from typing import Any

from gpt1.params.schema import Params
from gpt1.results.ablations import (
    AVERAGE,
    COLUMNS,
    AblationScores,
    SystemScore,
    ablation,
    columns_of,
    losses_of,
    paper_scores,
    scores_of,
    system_title,
    systems_of,
    tasks_there,
)
from gpt1.results.answers import FULL
from gpt1.results.baselines import what_baselines_are
from gpt1.results.captions import caption_facts, lstm_fact, made_up
from gpt1.results.document import (
    NONE,
    Facts,
    Grid,
    number,
    signed,
    spread,
)
from gpt1.results.formats import (
    ReportContent,
    TablePage,
    estimate_record,
    latex,
    rounded,
    score_record,
    with_interval,
)
from gpt1.results.notes import (
    CHANCE,
    METRIC_WORDS,
    ONE_CLASS,
    ablation_notes,
    legend,
    marks,
)
from gpt1.results.paper import TABLE5
from gpt1.results.records import Record
from gpt1.results.score_pictures import draw_ablation
from gpt1.results.scores import scored_splits
from gpt1.results.table5_baselines import (
    Beside,
    ablation_baselines,
    average_sentences,
    baseline_records,
    baseline_rows,
    baselines_of,
)

NO_BASELINES: Beside = {}
PAPER_ROWS = (TABLE5.full, *TABLE5.variants.values())
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
    "table row system variant source value column task metric score low high sd seeds scores split"
    " weights examples standard_error majority at_chance flagged_seeds one_class_seeds reason"
    " profile corpus caption"
)


def ablation_report(params: Params) -> ReportContent:
    """Table 5. Raises UserError where a result that params.yaml names is missing or broken."""
    table, beside = ablation(params), ablation_baselines(params)
    page = ablation_page(params, table, beside)
    records = ablation_records(params, table, page.caption, beside)
    comparable = not made_up(params, tasks_there(params))
    return ReportContent(
        "table5",
        page.document,
        ablation_metrics(table),
        {"table5": (CSV_COLUMNS, records)},
        {"table5": lambda: draw_ablation(params.profile, table, comparable)},
        records,
        (
            scored
            for task, columns in map(columns_of, TABLE5.columns)
            for systems in (systems_of(params, task.name), baselines_of(params, task.name))
            for scored in scored_splits(columns, systems.values())
        ),
        latex(page),
    )


def ablation_page(
    params: Params, table: AblationScores, beside: Beside = NO_BASELINES
) -> TablePage:
    """Lay out Table 5. Raises UserError where the files behind its caption are missing or
    broken.
    """
    named = [f"{title} ({METRIC_WORDS[metric]})" for title, metric in TABLE5.columns.items()]
    header = (AVERAGE, *named)
    ours = [
        (
            f"{system_title(system)}: this run",
            with_interval(table.average(system), COLUMNS[AVERAGE]),
            *(_score_cell(table.results.get((system, title))) for title in TABLE5.columns),
        )
        for system in table.systems
    ] + baseline_rows(table, beside)
    losses = [row for variant in table.systems[1:] for row in _loss_rows(table, variant)]
    details = [_details(table, title) for title in TABLE5.columns if (FULL, title) in table.results]
    grids = (Grid(("the full model less the row", *header), tuple(losses)),)
    return TablePage(
        name=TABLE5.name,
        heading=f"Table 5 of the paper: {TABLE5.title.lower()}",
        facts=ablation_facts(params, table),
        header=("", *header),
        paper_rows=tuple(
            (row.system, *map(_text, paper_scores(row, table).values())) for row in PAPER_ROWS
        ),
        our_rows=tuple(ours),
        legend=legend(ours),
        more=tuple(grid for grid in (*grids, Grid(DETAILS, tuple(details))) if grid.rows),
        notes=(
            *average_sentences(ablation_records(params, table, "", beside)),
            *what_baselines_are(params, list(beside), "stsb" in params.tasks),
            *ablation_notes(params, table),
        ),
    )


def ablation_facts(params: Params, table: AblationScores) -> Facts:
    """What a reader must know first; an LSTM's pre-training too, where a row needs it. Raises
    UserError.
    """
    facts = list(caption_facts(params, tasks_there(params), TABLE5.measured))
    needed = {
        params.variants[variant].network
        for variant in table.systems[1:]
        if any((variant, title) in table.results for title in TABLE5.columns)
    } - {"transformer"}
    place = [name for name, _ in facts].index("Pre-training") + 1
    facts[place:place] = [lstm_fact(params, network) for network in sorted(needed)]
    return tuple(facts)


def ablation_records(
    params: Params, table: AblationScores, caption: str, beside: Beside = NO_BASELINES
) -> list[Record]:
    """Every score and every difference, the paper's, ours (these with the caption) and the
    baselines', as one flat record each.
    """
    about: dict[str, Record] = {
        title: {"table": TABLE5.name, "column": title, "metric": metric, "task": task}
        for title, metric in COLUMNS.items()
        for task in [" ".join(_task_name(one) for one in _columns_behind(table, title))]
    }
    found = [
        about[title]
        | {
            "row": "paper",
            "system": row.system,
            "source": row.source,
            "value": "score",
            "score": score,
        }
        for row in PAPER_ROWS
        for title, score in paper_scores(row, table).items()
        if score is not None
    ]
    run = {"profile": params.profile, "corpus": params.clean.corpus_name}
    for system in table.systems:
        ours = run | {
            "row": "ours",
            "caption": caption,
            "system": system_title(system),
            "variant": system,
        }
        for title, loss in losses_of(table, system).items():
            if title == AVERAGE:
                score = estimate_record(table.average(system), "mean")
            elif result := table.results.get((system, title)):
                score = _score_facts(result, title)
            else:
                score = {"reason": table.absent[system, title]}
            found += [
                ours | about[title] | {"value": value} | facts
                for value, facts in (
                    ("score", score),
                    ("full less variant", estimate_record(loss)),
                )
                if facts
            ]
    return found + baseline_records(run, about, table, beside)


def _columns_behind(table: AblationScores, title: str) -> tuple[str, ...]:
    return table.averaged if title == AVERAGE else (title,)


def _task_name(title: str) -> str:
    return columns_of(title)[0].name


def ablation_metrics(table: AblationScores) -> dict[str, Any]:
    """Our numbers for `dvc metrics`: {"lstm": {"cola": {"mean": …, "low": …}, "average": …}}."""
    rows: dict[str, Any] = {}
    for system in table.systems:
        losses = losses_of(table, system)
        for title, estimate in scores_of(table, system).items():
            if estimate:
                key = "average" if title == AVERAGE else _task_name(title)
                numbers = estimate_record(estimate, COLUMNS[title])
                if title == AVERAGE:
                    numbers["tasks"] = len(table.averaged)
                rows.setdefault(system, {})[key] = rounded(numbers, score="mean") | rounded(
                    estimate_record(losses[title]), "full_less_this_"
                )
    return rows


def _text(score: float | None) -> str:
    return NONE if score is None else number(score)


def _score_facts(result: SystemScore, title: str) -> Record:
    scores = dict(zip(result.seeds, map(float, result.scores.by_seed), strict=True))
    return score_record(result.parts, scores, estimate_record(result.estimate, COLUMNS[title]))


def _score_cell(result: SystemScore | None) -> str:
    if result is None:
        return NONE
    signs = "".join(marks(part) for part in result.parts)
    return spread(float(result.estimate.value), result.estimate.deviation) + "".join(
        sign for sign in (CHANCE, ONE_CLASS) if sign in signs
    )


def _loss_rows(table: AblationScores, variant: str) -> list[tuple[str, ...]]:
    """What the whole model has over a variant: ours with its interval, and the paper's under it."""
    losses = losses_of(table, variant)
    if not any(losses[title] for title in TABLE5.columns):
        return []
    rows = [
        (
            f"{system_title(variant)}: this run",
            *(with_interval(loss, form="+.1f") for loss in losses.values()),
        )
    ]
    if row := TABLE5.variants.get(variant):
        pairs = zip(
            paper_scores(TABLE5.full, table).values(),
            paper_scores(row, table).values(),
            strict=True,
        )
        theirs = (NONE if a is None or b is None else signed(a - b) for a, b in pairs)
        rows.append((f"{row.system}: the paper", *theirs))
    return rows


def _details(table: AblationScores, title: str) -> tuple[str, ...]:
    full = table.results[FULL, title]
    facts = _score_facts(full, title)
    there = [table.results.get((system, title)) for system in table.systems]
    return (
        title,
        METRIC_WORDS[TABLE5.columns[title]],
        facts["split"] if len(full.parts) == 1 else "dev, both",
        facts["weights"],
        f"{facts['examples']:,}",
        f"{facts['majority']:.1f}",
        f"{facts['standard_error']:.1f}",
        " ".join(str(len(found.seeds)) if found else NONE for found in there),
    )
