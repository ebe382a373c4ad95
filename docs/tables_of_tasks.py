"""The page of tasks: what gpt1/tasks/definitions.py and gpt1/sources/definitions.py know."""

import re

from gpt1.estimate import OFFICIAL
from gpt1.sources.definitions import SOURCES, Source
from gpt1.tasks.definitions import DPRD, TASKS, Task

EVALUATED = {  # rows of dev and of a test set with labels, 0 for none, in the same releases
    "snli": (9_842, 9_824),
    "mnli": (9_815, 9_832),
    "qnli": (5_463, 0),
    "rte": (277, 0),
    "scitail": (1_304, 2_126),
    "race": (4_887, 4_934),
    "story_cloze": (374, 1_871),
    "mrpc": (408, 1_725),
    "qqp": (40_430, 0),
    "stsb": (1_500, 1_379),
    "sst2": (872, 0),
    "cola": (1_043, 0),
}


def tasks() -> str:
    """Return a table of all tasks, then a section on each: its files and how to get them."""
    head = (
        "| task | input | metric | in Table | rows to train on | dev | labelled test"
        " |\n|---|---|---|---|---:|---:|---:|"
    )
    return "\n".join([head, *map(_line, TASKS.values()), "", *map(_section, TASKS.values())])


def sources() -> str:
    """Return a section on each source that is no task."""
    return "\n".join(_source(source, source.name) for source in [*SOURCES.values(), DPRD.source])


def _line(task: Task) -> str:
    rows = (OFFICIAL.get(task.name, (0,))[0], *EVALUATED.get(task.name, (0, 0)))
    sizes = [f"{number:,}" if number else "-" for number in rows]
    metric = task.metric + (f" (and {task.second_metric})" if task.second_metric else "")
    table = ", ".join(dict.fromkeys(column.table.removeprefix("table") for column in task.columns))
    return (
        f"| [{task.title}](#{task.title.lower().replace(' ', '-')}) | {task.kind.replace('_', ' ')} | {metric} |"
        f" {table} | {' | '.join(sizes)} |"
    )


def _section(task: Task) -> str:
    """Return the section of a task: its source and its answers, with an export's integers."""
    answers = [f"`{name}`" for name in task.labels]
    if len(task.integers) == len(answers):
        answers = [f"{n} {name}" for n, name in enumerate(answers, task.first_integer)]
    if task.target == "score":
        answers = ["a score from 0 to 5, learned as shares of six classes"]
    return f"{_source(task.source, task.title)}- Answers: {', '.join(answers)}.\n"


def _source(source: Source, title: str) -> str:
    forms = []
    for layout in source.layouts:
        if not layout.exported:
            more = f"; perhaps {_files(source, layout.optional)}" if layout.optional else ""
            forms.append(_files(source, layout.required) + more)
    if source.every:
        forms.append(f"{', '.join(f'`{every}`' for every in source.every)}, in any sub-folders")
    if any(layout.exported for layout in source.layouts):
        forms.append("an export")
    folders = ", ".join(f"`{name}`" for name in source.folders)
    return (
        f"### {title}\n\n- Files: {'; **or** '.join(forms)}.\n- Folders"
        f" that `--data` finds: {folders}.\n- From: {_linked('; '.join(filter(None, (source.origin, source.how_to_get))))}.\n- Licence:"
        f" {source.licence}.\n"
    )


def _files(source: Source, names: tuple[str, ...]) -> str:
    return ", ".join(f"`{source.official(name)}`" for name in names)


def _linked(text: str) -> str:
    """Make links of addresses."""
    return re.sub(r"http[^\s(),;]+", r"<\g<0>>", text)
