"""What stands under a table: a sentence for each sign, each thing left out, each way in which the numbers do not compare."""

import statistics
from collections.abc import Sequence

from gpt1.config import Params
from gpt1.report.paper import GLUE_ROW, GLUE_SCORE, GLUE_TASKS, QNLI_V2_SCORE, Table
from gpt1.report.scores import LAST_UPDATE, Cell, GlueMean, Measured

NONE = "-"
CHANCE, ONE_CLASS, COMPARED, PART = "†", "‡", "¶", "§"
NOT_RECOGNISED = "not recognised"  # as encode writes it into task.json
RELEASES = {  # (task, release of its files): what a reader of the table must know
    ("qnli", "v1"): "QNLI: version 1, the paper's",
    ("qnli", "v2"): "QNLI: version 2",
    ("qnli", NOT_RECOGNISED): "QNLI: version not recognised",
    ("story_cloze", "2016"): "Story Cloze: the 2016 set, the paper's",
    ("story_cloze", "2018"): "Story Cloze: the 2018 set, not the paper's 2016; its test labels are not public, so part of its validation "
                             "stories is scored",
    ("story_cloze", NOT_RECOGNISED): "Story Cloze: neither the whole 2016 nor the whole 2018 set",
}
METRIC_WORDS = {"accuracy": "acc", "f1": "F1", "matthews": "mc", "pearson": "pc", "spearman": "sc"}


def marks(measured: Measured) -> str:
    """The signs that stand behind a flagged score."""
    return (CHANCE if measured.at_chance or any(seed not in measured.one_class for seed in measured.flagged) else "") + (
        ONE_CLASS if measured.one_class else "")


def notes(params: Params, table: Table, cells: Sequence[Cell], glue: GlueMean | None, comparable: bool) -> list[str]:
    """The notes under a table, in the order in which a reader wants them; `comparable`: the tasks are the paper's, not all made up."""
    there = [(cell, cell.measured) for cell in cells if cell.measured]
    lines = ["ours: mean ± sample standard deviation over the seeds. one SE: sampling error of one run's score on so many examples. "
             "majority: the score of the best answer that looks at no input."]
    if dev := [cell.title for cell, measured in there if cell.first and measured.chosen == LAST_UPDATE]:
        lines.append(f"dev ({', '.join(dev)}): the labels of test are not public, so these are dev numbers at the last update, chosen on "
                     "nothing. They stand beside the paper's test-server numbers and compare with them only roughly. best evaluation: the "
                     "mean of each seed's best evaluation, selected on the same rows that it is measured on, so too good.")
    if any(measured.chosen != LAST_UPDATE for _, measured in there):
        lines.append("test: with the weights that scored best on dev.")
    limit = f"{params.report.chance_standard_errors:g}"
    if chance := [_flag(cell, measured, [seed for seed in measured.flagged if seed not in measured.one_class] if measured.one_class
                        else measured.flagged) for cell, measured in there if CHANCE in marks(measured)]:
        lines.append(f"{CHANCE} chance level, that is below or within {limit} standard errors of the majority: {'; '.join(chance)}.")
    if constant := [_flag(cell, measured, measured.one_class) for cell, measured in there if measured.one_class]:
        lines.append(f"{ONE_CLASS} the same answer to every example: {'; '.join(constant)}.")
    if comparable and any(cell.compared != cell.published for cell, _ in there):
        unknown = any(cell.task == "qnli" and cell.release == NOT_RECOGNISED for cell, _ in there)
        which = ("these files' rows are of neither version of QNLI, and v2 is likelier:" if unknown
                 else "these files are QNLI v2, drawn anew after the paper;")
        lines.append(f"{COMPARED} {which} the paper's model scores {QNLI_V2_SCORE} on it (Devlin et al. 2019), and the difference is from "
                     "that. 88.1 is on v1.")
    if comparable and (named := [RELEASES[cell.task, cell.release] for cell, _ in there if (cell.task, cell.release) in RELEASES]):
        lines.append(f"{'; '.join(named)}.")
    if partial := [f"{cell.title} ({cell.lacking})" for cell in cells if cell.first and cell.lacking]:
        lines.append(f"Not scored: {', '.join(partial)}.")
    if out := [cell.title for cell in cells if cell.first and not cell.measured and not cell.lacking]:
        lines.append(f"Left out: {', '.join(out)}, not among the tasks of params.yaml (gpt1 profile says how to get them).")
    if table.name == "table4":
        lines.append(_glue_note(glue))
        if glue and glue.flagged:
            lines.append(f"{CHANCE} at the mean over GLUE's tasks: runs at chance level or with one answer to everything are in it, "
                         f"of {', '.join(glue.flagged)}.")
    lines.append("Sources: " + "; ".join(f"{row.system}: {row.source.replace(';', ',')}" for row in (*table.others, table.model)) + ".")
    return lines


def _flag(cell: Cell, measured: Measured, seeds: Sequence[int]) -> str:
    """Which seeds of a column are flagged, and the mean without any flagged one."""
    sound = [value for seed, value in measured.scores.items() if seed not in measured.flagged]
    name = f"{cell.title} {METRIC_WORDS[cell.metric]}"
    which = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}" if seeds else "the mean"
    return f"{name}, {which} of {len(measured.scores)}" + (f" (mean of the others {statistics.fmean(sound):.1f})" if sound else "")


def _glue_note(glue: GlueMean | None) -> str:
    if glue is None:
        return "GLUE: none of its nine tasks is there."
    if glue.complete:
        return "GLUE: the mean over its nine tasks, two metrics of a task averaged first."
    missing = ", ".join(task for task in GLUE_TASKS if task not in glue.tasks)
    return (f"{PART} not the GLUE score, which is the mean over nine tasks: the mean over the {len(glue.tasks)} tasks that are there "
            f"({', '.join(glue.tasks)}), two metrics of a task averaged first; {missing} left out. The paper's model on the same tasks: "
            f"{glue.published:.1f}, on all nine {GLUE_SCORE} with WNLI {GLUE_ROW['WNLI', 'accuracy']}.")
