"""`gpt1 …`: compose params.yaml from a profile, link the data it names, send results to MLflow."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpt1.errors import USER_ERROR_STATUS, UserError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown",
                  help="GPT-1 as a pipeline: `gpt1 profile` composes params.yaml, `dvc repro` runs it, `gpt1 sync` fills MLflow.")

PROFILE_EXAMPLES = """
Examples:

    gpt1 profile small --data ~/corpora               link what ~/corpora holds, leave out what it lacks

    gpt1 profile small finetune.epochs=2              the same data, two epochs

    gpt1 profile small "finetune.seeds=[0,1,2]" tasks.cola.train_rows=1000

    gpt1 profile paper                                the paper's sizes, with what lies in data/raw
"""


@app.command(epilog=PROFILE_EXAMPLES)
def profile(
    name: Annotated[str, typer.Argument(help="A profile in conf/: paper or small.", show_default=False)],
    overrides: Annotated[list[str] | None, typer.Argument(help="What differs, as key=value with dotted keys.", show_default=False)] = None,
    data: Annotated[Path | None, typer.Option(help="A folder with books and task files (layout: data/README.md); linked under data/raw.",
                                              show_default=False)] = None,
) -> None:
    """Compose params.yaml from a profile and say which data it will run on."""
    from gpt1.profile import compose_profile

    compose_profile(name, overrides or [], data)


@app.command()
def sync() -> None:
    """Send finished results that MLflow does not have yet; a second call changes nothing."""
    from gpt1.config import read_params
    from gpt1.tracking import sync as sync_results

    runs = sync_results(read_params())
    print(f"MLflow is up to date: {runs} runs. Look at them with: mlflow ui --backend-store-uri sqlite:///mlflow.db")


def main() -> None:
    """Entry point of the console script: a person's mistake ends with one line and status 2."""
    try:
        app()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USER_ERROR_STATUS)
