"""`gpt1 …`: compose params.yaml from a profile, say what a run will take, run the stages, send results to MLflow."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpt1.errors import INTERRUPTED_STATUS, USER_ERROR_STATUS, UserError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown",
                  help="GPT-1 as a pipeline: `gpt1 profile` composes params.yaml, `gpt1 run` runs it, `gpt1 sync` fills MLflow.")

PROFILE_EXAMPLES = """
Examples:

    gpt1 profile small --data ~/corpora               link what ~/corpora holds, leave out what it lacks

    gpt1 profile small finetune.epochs=2              the same data, two epochs

    gpt1 profile small "finetune.seeds=[0,1,2]" tasks.cola.train_rows=1000

    gpt1 profile small --tasks snli,rte               these tasks only, and the books

    gpt1 profile paper                                the paper's sizes, with what lies in data/raw
"""

RUN_EXAMPLES = """
Examples:

    gpt1 run                      everything that is out of date, a stage a core

    gpt1 run finetune@cola        one stage, and what it needs

    gpt1 run encode pretrain      two groups of stages, and what they need

    gpt1 run -j 1                 one stage after the other, each with all cores
"""

PLAN_EXAMPLES = """
Examples:

    gpt1 plan                     params.yaml as it is; gpt1 plan --after sets it beside what a run then took

    gpt1 plan paper --price 2.5 --price "8 x H100=24"

    gpt1 plan small finetune.epochs=2 --json plan.json
"""


@app.command(epilog=PROFILE_EXAMPLES)
def profile(
    name: Annotated[str, typer.Argument(help="A profile in conf/: paper or small.", show_default=False)],
    overrides: Annotated[list[str] | None, typer.Argument(help="What differs, as key=value with dotted keys.", show_default=False)] = None,
    data: Annotated[Path | None, typer.Option(help="A folder with books and task files (layout: data/README.md); linked under data/raw.",
                                              show_default=False)] = None,
    tasks: Annotated[str | None, typer.Option(help="These tasks only, with commas between. Default: all whose data are there.",
                                              show_default=False)] = None,
) -> None:
    """Compose params.yaml from a profile and say which data it will run on."""
    from gpt1.profile import compose_profile

    compose_profile(name, overrides or [], data, None if tasks is None else tasks.replace(",", " ").split())


@app.command(epilog=RUN_EXAMPLES)
def run(
    stages: Annotated[list[str] | None, typer.Argument(help="Stages (finetune@cola) or groups (finetune); all where none is named.",
                                                       show_default=False)] = None,
    lanes: Annotated[int | None, typer.Option("-j", "--lanes", min=1, help="Stages side by side. Default: one a core; one where a GPU or "
                                              "GPT1_PROCESSES is in play.", show_default=False)] = None,
) -> None:
    """Run what is out of date, several stages side by side; each stage's own output goes to data/logs/run/.

    Stages of one kind that train share the cores evenly, unless GPT1_THREADS says otherwise.
    Ctrl-C drops the updates in progress and ends, with checkpoints; a second one ends at once. The same command goes on.
    """
    try:
        from gpt1.runs.run import run_and_show

        run_and_show(stages or [], lanes)
    except KeyboardInterrupt as interrupt:
        print(str(interrupt) or "interrupted: nothing was started", file=sys.stderr)
        sys.exit(INTERRUPTED_STATUS)


@app.command(epilog=PLAN_EXAMPLES)
def plan(
    name: Annotated[str | None, typer.Argument(help="A profile in conf/; params.yaml as it is where none is named.",
                                               show_default=False)] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="What differs, as key=value with dotted keys.", show_default=False)] = None,
    price: Annotated[list[str] | None, typer.Option(metavar="PER_HOUR", show_default=False,
                                                    help="What an hour of every machine costs, or of one: '8 x H100=24'.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it as JSON too.", show_default=False)] = None,
    after: Annotated[bool, typer.Option("--after", help="The last plan of params.yaml beside what its stages took since.")] = False,
    measure: Annotated[bool, typer.Option(help="Measure a few updates of each network here, for about a minute.")] = True,
) -> None:
    """Say what a run will take, here and on machines by name: updates, tokens, time, memory, disk, energy, cost. Runs nothing."""
    from gpt1.plan.show import plan_and_show, show_after

    if after:
        show_after(json)
    else:
        plan_and_show(name, overrides or [], price or [], json, measure)


@app.command()
def sync() -> None:
    """Send finished results that MLflow does not have yet; a second call changes nothing."""
    from gpt1.config import read_params
    from gpt1.tracking import sync as sync_results

    runs = sync_results(read_params())
    print(f"MLflow is up to date: {runs} runs. Look at them with: mlflow ui --backend-store-uri sqlite:///mlflow.db")


@app.command()
def worktrees(
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Remove one of them, or `all`; finished results stay in DVC's cache.",
                                               show_default=False)] = None,
) -> None:
    """List the worktrees in which flows ran a profile, overrides, seeds or tasks of their own, beside the checkout as it is."""
    from gpt1.runs.worktrees import remove_worktrees, show_worktrees

    if remove is None:
        show_worktrees()
    else:
        remove_worktrees(remove)


def main() -> None:
    """Entry point of the console script: a person's mistake ends with one line and status 2."""
    try:
        app()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USER_ERROR_STATUS)


if __name__ == "__main__":
    main()
