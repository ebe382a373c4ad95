"""What stands under a table: a line for each sign, a sentence for each thing left out and each way
in which numbers do not compare.
"""

import statistics
from collections.abc import Collection, Sequence

from gpt1.params.schema import Params
from gpt1.results.ablations import (
    AVERAGE,
    AVERAGED,
    AblationScores,
    Transferred,
    paper_row,
    system_title,
)
from gpt1.results.document import LEFT_OUT, number
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.glue import GlueMean
from gpt1.results.paper import (
    FIGURE2_LAYERS,
    FIGURE2_ZERO_SHOT,
    GLUE_ROW,
    GLUE_SCORE,
    GLUE_TASKS,
    NOT_ON_DEV,
    PAPER_LAYERS,
    QNLI_V1_TRAIN_ROWS,
    QNLI_V2_SCORE,
    TABLE5,
    ZERO_SHOT,
    Table,
)
from gpt1.results.scores import LAST_UPDATE, Cell, Measured
from gpt1.results.statistics.estimates import COVERAGE, LEAST_SEEDS
from gpt1.results.training import networks
from gpt1.results.zero_shot import Behaviour
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS

CHANCE, ONE_CLASS, COMPARED = "†", "‡", "¶"
LEGEND = {  # directly under a table's scores, where its signs stand
    CHANCE: (
        "chance level: the mean over the seeds, or a seed, is no better than an answer that looks"
        " at no input"
    ),
    ONE_CLASS: "a seed gives every example the same answer, which is chance level too",
    COMPARED: f"less {QNLI_V2_SCORE}, the paper's model on QNLI v2, not its 88.1 on v1",
}
INTERVALS = (
    f"[low, high]: {COVERAGE:.0%} interval of the mean over the seeds. Its variance is that over"
    " pre-training seeds and that over clusters of examples (of one premise, passage or pair),"
    " crossed, each with Student's t (after Sellam et al. 2022)."
)
ONE_PRETRAINING = "All seeds fine-tune one pre-training, so it says nothing of another."
FEW_SEEDS = f"It takes {LEAST_SEEDS}, for fewer tell too little of the spread over seeds."
NOT_RECOGNISED = "not recognised"  # as encode writes it into task.json
RELEASES = {  # (task, release of its files): what a reader of the table must know
    ("qnli", "v1"): "QNLI: version 1, the paper's",
    ("qnli", "v2"): "QNLI: version 2",
    ("qnli", NOT_RECOGNISED): "QNLI: version not recognised",
    ("story_cloze", "2016"): "Story Cloze: the 2016 set, the paper's",
    (
        "story_cloze",
        "2018",
    ): (
        "Story Cloze: the 2018 set, not the paper's 2016; its test labels are not public, so part"
        " of its validation stories is scored"
    ),
    ("story_cloze", NOT_RECOGNISED): "Story Cloze: neither the whole 2016 nor the whole 2018 set",
}
QQP_NOTE = (
    f"QQP: F1 on dev has no difference from the paper's {GLUE_ROW['QQP', 'f1']}, and no mean beside"
    " a mean of the paper's holds it: F1 rises with the share of duplicates, 37% in GLUE's dev rows"
    " and 14 to 25% in its test server's, as the paper's F1 and accuracy say together, so that one"
    " model has an F1 about 7 to 14 points higher on dev. What compares is accuracy, in Table 4;"
    f" the paper's is {GLUE_ROW['QQP', 'accuracy']}. Differences between systems of this run stand."
)
METRIC_WORDS = {"accuracy": "acc", "f1": "F1", "matthews": "mc", "pearson": "pc", "spearman": "sc"}


def interval_notes(params: Params, seeds: Collection[int]) -> list[str]:
    """How intervals of scores over so many seeds are made, and which of them have none."""
    lines = []
    if any(count >= LEAST_SEEDS for count in seeds):
        alone = len(params.pretrain.seeds) == 1
        lines.append(f"{INTERVALS}{f' {ONE_PRETRAINING}' if alone else ''}")
    if few := sorted({count for count in seeds if count < LEAST_SEEDS}):
        which = f"{' or '.join(map(str, few))} seed{'s' if few[-1] > 1 else ''}"
        lines.append(f"{which}: no interval. {FEW_SEEDS}")
    return lines


def marks(measured: Measured) -> str:
    """The signs behind a score: at chance level by its mean or a seed; and, which is one way to be
    there, a seed of one answer to all.
    """
    return (CHANCE if measured.at_chance or measured.flagged else "") + (
        ONE_CLASS if measured.one_class else ""
    )


def legend(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A line for each sign that stands behind a cell of the rows."""
    return tuple(
        f"{sign} {words}."
        for sign, words in LEGEND.items()
        if any(sign in cell for row in rows for cell in row)
    )


def table_notes(
    params: Params, table: Table, cells: Sequence[Cell], glue: GlueMean | None
) -> list[str]:
    """The notes under a table, in the order in which a reader wants them."""
    comparable = any(cell.difference is not None for cell in cells)
    there = [(cell, cell.measured) for cell in cells if cell.measured]
    lines = [
        (
            "ours: mean ± sample standard deviation over the seeds. one SE: sampling error of one"
            " run's score on so many examples. majority: the score of the best answer that looks at"
            " no input."
        ),
        *interval_notes(params, [len(measured.scores) for _, measured in there]),
    ]
    if dev := [
        cell.title for cell, measured in there if cell.first and measured.chosen == LAST_UPDATE
    ]:
        lines.append(
            f"dev ({', '.join(dev)}): the labels of test are not public, so these are dev numbers"
            " at the last update, chosen on nothing. They stand beside the paper's test-server"
            " numbers and compare with them only roughly. best evaluation: the mean of each seed's"
            " best evaluation, selected on the same rows that it is measured on, so too good."
        )
    if any(measured.chosen != LAST_UPDATE for _, measured in there):
        lines.append("test: with the weights that scored best on dev.")
    limit = f"{params.report.chance_standard_errors:g}"
    if chance := [
        _flag(cell, measured, measured.flagged)
        for cell, measured in there
        if CHANCE in marks(measured)
    ]:
        lines.append(
            f"{CHANCE} chance level, that is below or within {limit} standard errors of the"
            f" majority: {'; '.join(chance)}."
        )
    if constant := [
        _flag(cell, measured, measured.one_class) for cell, measured in there if measured.one_class
    ]:
        lines.append(f"{ONE_CLASS} the same answer to every example: {'; '.join(constant)}.")
    if comparable and any((cell.title, cell.metric) == NOT_ON_DEV for cell, _ in there):
        lines.append(QQP_NOTE)
    if any(cell.compared not in (None, cell.published) for cell, _ in there):
        unknown = any(cell.task == "qnli" and cell.release == NOT_RECOGNISED for cell, _ in there)
        which = (
            "these files' rows are of neither version of QNLI, and v2 is likelier:"
            if unknown
            else "these files are QNLI v2, drawn anew after the paper;"
        )
        lines.append(
            f"{COMPARED} {which} the paper's model scores {QNLI_V2_SCORE} on it (Devlin et al."
            " 2019), and the difference is from that. 88.1 is on v1."
        )
    if comparable and (
        named := [
            RELEASES[cell.task, cell.release]
            for cell, _ in there
            if (cell.task, cell.release) in RELEASES
        ]
    ):
        lines.append(f"{'; '.join(named)}.")
    if partial := [
        f"{cell.title} ({cell.lacking})" for cell in cells if cell.first and cell.lacking
    ]:
        lines.append(f"Not scored: {', '.join(partial)}.")
    if out := [
        cell.title for cell in cells if cell.first and not cell.measured and not cell.lacking
    ]:
        lines.append(
            f"{LEFT_OUT}{', '.join(out)}, not among the tasks of params.yaml (gpt1 profile says how"
            " to get them)."
        )
    if table.name == "table4":
        lines.append(_glue_note(glue))
        if glue and glue.flagged:
            lines.append(
                f"{CHANCE} at the mean over GLUE's tasks: runs at chance level or with one answer"
                f" to everything are in it, of {', '.join(glue.flagged)}."
            )
    lines.append(
        "Sources: "
        + "; ".join(
            f"{row.system}: {row.source.replace(';', ',')}" for row in (*table.others, table.model)
        )
        + "."
    )
    return lines


def _flag(cell: Cell, measured: Measured, seeds: Sequence[int]) -> str:
    """Which seeds of a column are flagged, and the mean without any flagged one."""
    sound = [value for seed, value in measured.scores.items() if seed not in measured.flagged]
    name = f"{cell.title} {METRIC_WORDS[cell.metric]}"
    which = (
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}" if seeds else "the mean"
    )
    return f"{name}, {which} of {len(measured.scores)}" + (
        f" (mean of the others {number(statistics.fmean(sound))})" if sound else ""
    )


def _glue_note(glue: GlueMean | None) -> str:
    if glue is None:
        return "GLUE: none of its nine tasks is there."
    if glue.complete:
        return (
            "GLUE: the mean over its nine tasks, two metrics of a task averaged first, QQP by"
            " accuracy alone."
        )
    missing = ", ".join(task for task in GLUE_TASKS if task not in glue.tasks)
    return (
        f"GLUE {len(glue.tasks)} of 9: not the GLUE score, which is over nine, but the mean over"
        f" the {len(glue.tasks)} tasks that are there ({', '.join(glue.tasks)}), two metrics of a"
        f" task averaged first, QQP by accuracy alone; {missing} left out. The paper's model on the"
        f" same: {glue.published:.1f}; its GLUE score, over nine, is {GLUE_SCORE}, with WNLI"
        f" {GLUE_ROW['WNLI', 'accuracy']}."
    )


def ablation_notes(params: Params, table: AblationScores) -> list[str]:
    """The notes under Table 5, in the order in which a reader wants them."""
    lines = [
        (
            "ours: mean ± sample standard deviation over the seeds; each score's interval stands in"
            " table5.csv."
        ),
        *interval_notes(params, [len(one.seeds) for one in table.results.values()]),
        (
            "Differences are paired: the same clusters of examples and seeds for both systems. In"
            " an interval the variance between seeds is pooled with that of the other columns"
            " where they are alike."
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
    chance = (
        f"chance level, that is below or within {params.report.chance_standard_errors:g}"
        " standard errors of the majority, for the mean or a seed"
    )
    for sign, words in (
        (CHANCE, chance),
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


def _average_note(table: AblationScores) -> str:
    titles = table.averaged
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


def layer_notes(params: Params, curves: Sequence[Transferred]) -> list[str]:
    """The notes under Figure 2, left."""
    lines = []
    if curves:
        seeds = "; ".join(f"{curve.title} {', '.join(map(str, curve.seeds))}" for curve in curves)
        lines.append(
            f"Ours: mean over the seeds that every number of layers has ({seeds}); the band is"
            " its interval. 0 layers: the embeddings only. All layers: the ordinary fine-tuning,"
            " not trained again."
        )
        lines += interval_notes(params, [len(curve.seeds) for curve in curves])
        if alone := [curve.title for curve in curves if len(curve.seeds) == 1]:
            lines.append(
                f"{' and '.join(alone)}: one seed, so that a dip or a peak at one number of layers"
                " may be that seed's own; transfer.<task>.seeds of params.yaml asks for more."
            )
        lines += [
            "Scored as in the tables: test with the weights chosen on dev where test labels are"
            " public, else dev at the last update. The paper draws training scores too; fine-tuning"
            " keeps its answers to dev and test only, so they are not here."
        ]
        compared = [curve for curve in curves if curve.task in FIGURE2_LAYERS and not curve.made_up]
        if compared:
            ends = "; ".join(
                f"{curve.title}"
                f" {' to '.join(f'{score:.0f}' for _, score in FIGURE2_LAYERS[curve.task])}"
                for curve in compared
            )
            lines.append(
                f"The paper's curve: only its ends at 0 and {PAPER_LAYERS} layers, on dev,"
                f" read off by eye within 2 points ({ends}), joined by a straight line."
            )
    if made_up := [curve.title for curve in curves if curve.made_up]:
        lines.append(
            f"{', '.join(made_up)}: made up, in the official file formats; the paper's curve is"
            " left out, for nothing compares."
        )
    if missing := [TASKS[task].title for task in FIGURE2_LAYERS if task not in params.transfer]:
        lines.append(
            f"{LEFT_OUT}{' and '.join(missing)}, which {'have' if len(missing) > 1 else 'has'} no"
            " row in transfer of params.yaml."
        )
    return lines


def zero_shot_notes(params: Params, found: Sequence[Behaviour]) -> list[str]:
    """The notes under Figure 2, right."""
    lines = []
    own = {one.set: one for one in found if one.network == "transformer"}
    if found:
        scales = "; ".join(
            f"{one.scale.behaviour}: {one.scale.title}, {one.metric}, {one.examples:,} examples,"
            f" {one.scale.random:g} to {one.scale.state_of_the_art:g} ({one.scale.source})"
            for one in own.values()
        )
        lines += [
            (
                "Relative task performance: (score − random) / (single-model state of the art"
                " before the paper − random); in brackets the score × 100. From random to state of"
                f" the art: {scales}."
            ),
            (
                "The bands here are one standard error of the examples, so that eight curves do not"
                " hide one another, and no 95% interval: analytic for accuracies, a seeded"
                " bootstrap for Matthews correlation. One pre-training a network, so they say"
                " nothing of other seeds."
            ),
        ]
        lines += [
            f"{NETWORK_TITLES[one.network]}, {one.scale.title}: {note}"
            for one in found
            for note in one.notes
        ]
        if real := [one for one in own.values() if not one.made_up]:
            ends = ", ".join(f"{one.scale.title} {FIGURE2_ZERO_SHOT[one.set]:.2f}" for one in real)
            lines.append(
                "The paper's marks at the right edge: where its Transformer ends, after about a"
                f" million updates, read off by eye ({ends})."
            )
    if made_up := [one.scale.title for one in own.values() if one.made_up]:
        lines.append(
            f"{', '.join(made_up)}: made up, in the official file formats. The state of the art is"
            " that of the real sets and means nothing here: 1 is no goal, only the scale of the"
            " axis; the paper's marks are left out."
        )
    if missing := [
        scale.title for name, scale in ZERO_SHOT.items() if name not in params.zero_shot
    ]:
        lines.append(
            f"{LEFT_OUT}{', '.join(missing)}, which {'have' if len(missing) > 1 else 'has'} no row"
            " in zero_shot of params.yaml."
        )
    if found and "lstm" not in networks(params):
        lines.append(f"{LEFT_OUT}the LSTM, which no variant of params.yaml asks for.")
    return lines
