"""What a flow shows on Prefect's pages: tables and figures, progress, the way to MLflow's pages.
Nothing here ever stops a run.
"""

import base64
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)

from gpt1.base.files import read_json, stage_folder
from gpt1.tracking.log import RUNS

PICTURE = re.compile(r"!\[([^]]*)\]\(([\w.-]+)\)")


@contextmanager
def shown_or_not(what: str) -> Iterator[None]:
    """Where Prefect cannot take something, the stage goes on; a line in the log says what is not
    shown.
    """
    try:
        yield
    except Exception as error:  # no server, an old one, a full disk
        get_run_logger().warning(
            "%s is not shown on Prefect's page: %s",
            what,
            str(error).splitlines()[0] if str(error) else error,
        )


class ProgressArtifact:
    """A bar on the page of a run, made when there is something to show, brought up to date at most
    every so many seconds.
    """

    def __init__(self, what: str, every_seconds: float) -> None:
        self.what, self.every_seconds, self.shown_at = what, every_seconds, float("-inf")
        self.id: UUID | None = None

    def show(self, fraction: float, words: str) -> None:
        """Set the bar; its end is always shown."""
        if fraction < 1 and time.monotonic() - self.shown_at < self.every_seconds:
            return
        self.shown_at = time.monotonic()
        with shown_or_not(f"the progress of {self.what}"):
            if self.id is None:
                self.id = create_progress_artifact(100 * fraction, description=words)  # type: ignore[assignment]
            else:
                update_progress_artifact(self.id, 100 * fraction, description=words)


def publish(name: str) -> None:
    """Show a table or figure, with its pictures in it; for any other stage nothing."""
    folder = stage_folder("report", name)
    if (folder / f"{name}.md").is_file():
        with shown_or_not(name):
            create_markdown_artifact(
                key=name, markdown=with_pictures(folder, name), description=f"{folder}/{name}.md"
            )


def with_pictures(folder: Path, name: str) -> str:
    """A report as one text: each picture that it names, and one of its own name that it does not,
    as data within it.
    """
    text = (folder / f"{name}.md").read_text(encoding="utf-8")
    if not PICTURE.search(text) and (folder / f"{name}.svg").is_file():
        text += f"\n\n![{name}]({name}.svg)\n"
    return PICTURE.sub(lambda found: f"![{found[1]}]({inline(folder / found[2])})", text)


def inline(picture: Path) -> str:
    """A picture as a data address; as PNG where there is one, for it is shown alike everywhere."""
    drawn = next((path for path in (picture.with_suffix(".png"), picture) if path.is_file()), None)
    if drawn is None:
        return str(picture)
    kind = "image/svg+xml" if drawn.suffix == ".svg" else "image/png"
    return f"data:{kind};base64,{base64.b64encode(drawn.read_bytes()).decode()}"


def link_mlflow() -> None:
    """Show the way to MLflow's pages: the run of this set of parameters, and the run of each of its
    parts.
    """
    with shown_or_not("the way to MLflow"):
        found = read_json(RUNS)
        base = os.environ.get("GPT1_MLFLOW_URL") or os.environ.get("MLFLOW_TRACKING_URI", "")
        there = base.startswith("http")
        pages = f"{base.rstrip('/')}/#/experiments/{found['experiment']}/runs"
        lines = [] if there else ["`make serve` shows these runs on MLflow's pages.", ""]
        for name, run in {"all of it": found["all"], **found["runs"]}.items():
            lines.append(f"- [{name}]({pages}/{run})" if there else f"- {name}: `{run}`")
        create_markdown_artifact(
            key="mlflow",
            markdown="\n".join(["# Runs in MLflow", "", *lines]),
            description="runs in MLflow",
        )
