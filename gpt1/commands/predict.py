"""`gpt1 predict`."""

from pathlib import Path
from typing import Annotated

from gpt1.base.errors import UserError
from gpt1.commands.options import VOCABULARY, Run, Seed, Task, Vocabulary, argument, option

EXAMPLES = """
Examples:

    gpt1 predict qnli --run reference/town --first "Who in Ada's family was moneyed?" --second "Ada's aunt was poor, not wealthy."

    gpt1 predict story_cloze --first "Ann lost her keys. She looked everywhere. …" --choice "She found them." --choice "She flew away."

    gpt1 predict rte data/acquire/tasks/rte/dev.tsv              a file with labels: the task's score

    gpt1 predict sst2 reviews.csv --out answers.csv              columns first (and label); answers as TSV, CSV or JSONL

    gpt1 predict sst2 --weights model/weights.safetensors --vocabulary model/bpe --first "A splendid book."
"""


def predict(
    task: Task,
    file: Annotated[
        Path | None,
        argument(
            "A file of the task: official, a Hugging Face export, or TSV, CSV or JSONL with"
            " columns first, second, choices (CSV: choice1, choice2, …) and perhaps label."
        ),
    ] = None,
    first: Annotated[
        str | None, option("The text; of a pair the first (premise, question, passage, story).")
    ] = None,
    second: Annotated[
        str | None, option("The second text of a pair (hypothesis); RACE: the question.")
    ] = None,
    choice: Annotated[
        list[str] | None, option("A choice, once for each, in order (RACE, Story Cloze).")
    ] = None,
    seed: Seed = None,
    weights: Annotated[
        Path | None,
        option("Weights of a fine-tuned model of that task. Default: those in data/finetune."),
    ] = None,
    vocabulary: Vocabulary = VOCABULARY,
    out: Annotated[
        Path | None,
        option(
            "Where a file's answers go (.tsv, .csv, .jsonl). Default: TASK-FILE.predictions.tsv."
        ),
    ] = None,
    run: Run = None,
) -> None:
    """Answer one example, as JSON, or a file of examples, with a fine-tuned model. For a file
    with labels it prints the task's score.

    The weights are those of the update that was best on dev. An answer never
    depends on the other rows.
    """
    import json
    import sys

    from tqdm import tqdm

    from gpt1.inference import prediction
    from gpt1.inference.finetuned import finetuned_task
    from gpt1.inference.saved import example_of, load_model
    from gpt1.results.runs import within
    from gpt1.tasks.definitions import TASKS

    if task not in TASKS:
        raise UserError(f"expected one of the tasks {', '.join(TASKS)}; found {task}")
    fields = {"first": first, "second": second, "choices": choice or None}
    if (file is None) is not any(fields.values()):
        raise UserError("expected either a file or --first TEXT; see gpt1 predict --help")
    if file is None:  # before the weights are read
        example = example_of(TASKS[task], fields, "the options")
    else:
        target = out or Path(f"{task}-{file.stem}.predictions.tsv")
        if target.suffix not in prediction.WRITERS or target.resolve() == file.resolve():
            raise UserError(
                f"{target}: expected a name that ends with {', '.join(prediction.WRITERS)} and is"
                " not the file's own; name one with --out"
            )
        rows = prediction.read_file(file, TASKS[task])
    with within(run):
        if weights is None:
            weights = finetuned_task(task).weights(seed)
        model = load_model(weights, vocabulary)
    if model.task.name != task:
        raise UserError(f"{weights}: expected weights of {task}, found those of {model.task.name}")
    if file is None:
        print(json.dumps(model.answer(example), indent=1))
        return
    bar = tqdm(rows.examples.items(), unit="row", leave=False, disable=None)
    answers = {row: model.answer(example) for row, example in bar}
    prediction.write_answers(target, model.task, answers)
    scores = prediction.scores(model.task, rows, answers) if rows.labelled else {}
    print(f"{model.task.title}, {weights.parent.name}: {len(answers)} rows answered in {target}")
    for metric, value in scores.items():
        print(
            f"{metric} {value['score']:.1f} ± {value['standard_error']:.1f} (one standard error);"
            f" a constant answer {value['majority']:.1f}"
        )
    if unlabelled := len(answers) - len(rows.labelled):
        print(f"{unlabelled} rows not scored: no label in a column label", file=sys.stderr)
    for reason, count in rows.left_out.items():
        print(f"{count} rows left out: {reason}", file=sys.stderr)
