"""What the networks are to beat in Table 5: its rows, and which systems are below it on average."""

from collections.abc import Iterator, Mapping, Sequence

from gpt1.params.schema import Params
from gpt1.results.ablations import (
    AVERAGE,
    COLUMNS,
    AblationScores,
    SystemScore,
    columns_of,
    common_on,
    scored,
    system_title,
)
from gpt1.results.answers import Answers, baseline_answers
from gpt1.results.baselines import (
    BASELINE,
    BY_POINT,
    LEAD,
    SYSTEMS,
    TITLES,
    baselines_there,
    is_shown,
    lead,
)
from gpt1.results.document import NONE, number
from gpt1.results.formats import bracketed, ends, estimate_record, score_record
from gpt1.results.notes import marks
from gpt1.results.paper import TABLE5
from gpt1.results.records import Record
from gpt1.results.statistics.estimates import CrossedEstimate, estimate

Beside = Mapping[str, Mapping[str, SystemScore]]  # by baseline and column


def baselines_of(params: Params, task: str) -> dict[str, Answers]:
    """The answers of the systems of params.baselines to a task; none where the stage has not
    run.
    """
    systems = params.baselines.systems if baselines_there() and task in params.tasks else ()
    return {system: baseline_answers(params, task, system) for system in systems}


def ablation_baselines(params: Params) -> Beside:
    """The baselines on the rows of Table 5. Raises UserError where answers are missing or
    broken.
    """
    found: dict[str, dict[str, SystemScore]] = {}
    for title, metric in TABLE5.columns.items():
        task, columns = columns_of(title)
        answers = baselines_of(params, task.name)
        errors = params.report.chance_standard_errors
        for system, score in scored(columns, metric, answers, errors).items():
            found.setdefault(system, {})[title] = score
    return found


def averaged(table: AblationScores, columns: Mapping[str, SystemScore]) -> CrossedEstimate | None:
    """A baseline's mean over the averaged columns."""
    titles = table.averaged
    if not titles or not set(titles) <= columns.keys():
        return None
    return estimate([columns[title].scores for title in titles])


def leads(
    table: AblationScores, columns: Mapping[str, SystemScore], system: str
) -> dict[str, CrossedEstimate]:
    """What a system of ours has over a baseline, by column and on average."""
    found = {
        title: lead([own.scores], [columns[title].scores])
        for title in TABLE5.columns
        if title in columns and (own := table.results.get((system, title)))
    }
    titles = [title for title in table.averaged if title in found]
    ours = common_on([table.results[system, title] for title in titles]) if titles else []
    if ours and len(titles) == len(table.averaged):
        mean = lead(ours, [columns[title].scores for title in titles])
        return {AVERAGE: mean} | found
    return found


def baseline_rows(table: AblationScores, beside: Beside) -> list[tuple[str, ...]]:
    """Of each baseline a row: its mean with the interval over examples, and its scores with
    marks.
    """
    rows = []
    for system, columns in beside.items():
        mean = averaged(table, columns)
        interval = bracketed(ends(mean, "mean", examples_alone=True))
        scores = (
            number(float(one.estimate.value))
            + "".join(dict.fromkeys("".join(map(marks, one.parts))))
            if (one := columns.get(title))
            else NONE
            for title in TABLE5.columns
        )
        rows.append(
            (TITLES[system], f"{number(float(mean.value))} {interval}" if mean else NONE, *scores)
        )
    return rows


def baseline_records(
    run: Record, about: Mapping[str, Record], table: AblationScores, beside: Beside
) -> list[Record]:
    """Every score of the baselines as one flat record, and each system of ours less each."""
    records: list[Record] = []
    for system, columns in beside.items():
        for title, column in about.items():
            told = run | column | {"row": BASELINE, "system": system, "value": "score"}
            if title == AVERAGE:
                mean = estimate_record(averaged(table, columns), "mean", examples_alone=True)
                records += [told | mean] if mean else []
            elif one := columns.get(title):
                interval = estimate_record(one.estimate, COLUMNS[title], examples_alone=True)
                scores = dict(zip(one.seeds, map(float, one.scores.by_seed), strict=True))
                records.append(told | score_record(one.parts, scores, interval))
        for variant in table.systems:
            of = run | {"row": LEAD, "system": system, "variant": variant, "value": LEAD}
            records += [
                of | about[title] | estimate_record(found)
                for title, found in leads(table, columns, variant).items()
            ]
    return records


def average_sentences(records: Sequence[Record]) -> Iterator[str]:
    """Of each baseline which systems of Table 5 are below it on average; of records of Table 5."""
    means = [one for one in records if one["column"] == AVERAGE and one.get("score") is not None]
    scores = {one["system"]: one["score"] for one in means if one["row"] == BASELINE}
    for system, score in scores.items():
        below = [
            one
            for one in means
            if one["row"] == LEAD and one["system"] == system and one["score"] < 0
        ]
        parts = [
            f"{', '.join(system_title(one['variant']) for one in those)}{how}"
            for how, those in (
                ("", [one for one in below if is_shown(one)]),
                (f" ({BY_POINT})", [one for one in below if not is_shown(one)]),
            )
            if those
        ]
        if parts:
            tasks = len(below[0]["task"].split())
            yield (
                f"{SYSTEMS[system]} {number(score)} on average over {tasks} columns of Table 5,"
                f" higher than {'; '.join(parts)}."
            )
