"""What lies in result files and logs, told to MLflow. The files come first; MLflow never stops or
slows a run.

One experiment a profile, one parent run a set of parameters, one run a stage's fingerprint; nothing
is sent twice. MLFLOW_TRACKING_URI says where to (environment or .env; without it `mlflow.db` here),
GPT1_MLFLOW=off sends nothing. `python -m gpt1.tracking.sync` is the process that sends the growing
log of the stage that started it.
"""

import os
import select
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpt1.base.errors import UserError
from gpt1.base.files import (
    DATA,
    LOGS,
    fingerprint,
    looks,
    parse_json,
    read_json,
    sha256_file,
    stage_folder,
    write_json,
)
from gpt1.params.schema import Params, validate
from gpt1.tracking.address import (
    prepare_mlflow,
    problem,
    refuse_broken_sqlite,
    sqlite_file,
    switched_off,
    tracking_uri,
    warn,
)
from gpt1.tracking.log import (
    FLOW_RUN_URL,
    RUNS,
    Point,
    log_path,
    machine_path,
    machine_points,
    objects,
    tags,
    tokens_by_update,
)
from gpt1.tracking.results import finished_groups, finished_results

if TYPE_CHECKING:
    from gpt1.tracking.runs import MLflow

SEND_EVERY_SECONDS = 10.0
RETRY_SECONDS = 60.0
TOLD = ("pretrain", "finetune", "ablate", "transfer", "zero_shot")  # stages, beside reports
STATUSES = {"finished": "FINISHED", "failed": "FAILED"}  # anything else was interrupted: KILLED


def open_mlflow(params: Params, began: float | None) -> "MLflow":
    """MLflow, imported only now; `began` says when the first run of these parameters did, if that
    is known.

    Raises whatever MLflow raises, and OSError for a broken database.
    """
    refuse_broken_sqlite(tracking_uri())
    prepare_mlflow()
    from gpt1.tracking.runs import MLflow

    return MLflow(params, began)


class Synced(NamedTuple):
    """How many results MLflow holds of those under data/, and how many of them it had not."""

    held: int
    written: int


def sync(params: Params) -> Synced:
    """Tell MLflow all finished results under data/ that it does not have; returns how many.

    Where MLflow is a file that, as the results, looks as the last call left it, nothing more is
    done. Raises UserError, one line, where MLflow cannot be reached or is broken.
    """
    if switched_off():
        return Synced(0, 0)
    seen = results_look(params)
    with suppress(OSError, ValueError, KeyError, TypeError):
        last = read_json(RUNS)
        if last["looks"] == [seen, database_looks()] and all(last["looks"]):
            return Synced(len(last["runs"]), 0)
    try:
        results, groups = list(finished_results(params)), list(finished_groups(params))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"a result under {DATA}/ cannot be read ({error}); make it again with dvc repro"
        ) from None
    if not results:
        return Synced(0, 0)
    began = [result.began for result in results if result.began is not None]
    runs = {}
    try:
        mlflow = open_mlflow(params, min(began, default=None))
        for result in results:
            with mlflow.locked():
                runs[f"{result.stage} {result.name}"] = mlflow.project(result)
        for group in groups:
            with mlflow.locked():
                mlflow.project_group(group)
        with mlflow.locked():
            mlflow.finish()
        write_json(
            RUNS,
            {
                "experiment": mlflow.experiment_id,
                "all": mlflow.parent_id,
                "runs": runs,
                "looks": [seen, database_looks()],
            },
        )
    except Exception as error:
        raise UserError(
            f"{problem(error)}; the results are safe in {DATA}/, and gpt1 sync can be called again"
        ) from None
    return Synced(len(results), mlflow.written)


def results_look(params: Params) -> str:
    """What stands for all that is told, by the looks of its files: results, their logs, where they
    are from; the parameters, the flow run, this code.
    """
    folders = [place for stage in TOLD for place in (stage_folder(stage), LOGS / stage)]
    reports = sorted(stage_folder("report").glob("*/"))
    sources = sorted(stage_folder("acquire").glob("*/*/manifest.json"))
    files = [*folders, *reports, *sources, "dvc.lock", Path(__file__).parent]
    page = stage_folder("report", "index.html")  # which is written anew again and again
    return fingerprint(
        [
            looks(list(map(str, files))),
            sha256_file(page) if page.is_file() else "",
            params.model_dump(mode="json"),
            os.environ.get(FLOW_RUN_URL),
        ]
    )


def database_looks() -> str:
    """What stands for MLflow's database; nothing where it is not a file that is there."""
    path = sqlite_file(tracking_uri())
    return looks([str(path)]) if path is not None and path.is_file() else ""


def follow() -> None:
    """Send a growing log to MLflow until the stage that started this process closes the pipe or
    ends.
    """
    # Ctrl-C is the stage's; this process ends when its pipe does
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(10)
    pipe = os.fdopen(0, "rb", buffering=0)
    request = parse_json(pipe.readline())
    sender = LogSender(
        request["stage"], request["name"], validate(request["params"]), request["fingerprint"]
    )
    ended, warned, works = False, False, True
    while works or not ended:
        try:
            sender.send_news()
            works = True
            if ended:
                sender.finish()
                return
        except Exception as error:
            works = False
            sender.mlflow = None  # opened again, it says what it has got
            if not warned:
                warn(
                    f"{problem(error)}; the run goes on, its curve is in {sender.path},"
                    " and gpt1 sync sends it later"
                )
                print("warned", flush=True)
            warned = True
        wait = SEND_EVERY_SECONDS if works else RETRY_SECONDS
        ended = ended or bool(select.select([pipe], [], [], wait)[0])


class LogSender:
    """Sends what was added to a log since the last time; opens MLflow when it is first needed."""

    def __init__(self, stage: str, name: str, params: Params, mark: str) -> None:
        self.stage, self.name, self.params, self.mark = stage, name, params, mark
        self.path = log_path(stage, name)
        self.lines_read: Counter[Path] = Counter()
        self.began = 0.0
        self.pending: list[Point] = []
        self.tokens: dict[int, float] = {}
        self.mlflow: MLflow | None = None
        self.run_id = ""

    def _new_lines(self, path: Path) -> list[dict[str, Any]]:
        """The objects added to a growing file since the last time, of whole lines."""
        lines = path.read_bytes().splitlines(keepends=True)[self.lines_read[path] :]
        whole = [line for line in lines if line.endswith(b"\n")]
        self.lines_read[path] += len(whole)
        return list(objects(whole))

    def send_news(self) -> None:
        """Read new whole lines and send them. Raises whatever MLflow raises; what was not sent is
        kept.
        """
        lines = self._new_lines(self.path)
        self.began = next((line["time"] for line in lines if "update" not in line), self.began)
        news = [line for line in lines if "update" in line]
        self.tokens |= tokens_by_update(news)
        self.pending += news
        if (machine := machine_path(self.stage, self.name)).is_file():
            self.pending += machine_points(self._new_lines(machine), self.began)
        sent = set()
        if self.mlflow is None:  # afterwards the log holds no point twice
            mlflow = open_mlflow(self.params, self.began or None)
            with mlflow.locked():
                run = mlflow.run(self.stage, self.name, self.mark, "", self.began or None)
            sent, self.run_id = mlflow.sent(run), run.info.run_id
            mlflow.client.update_run(self.run_id, "RUNNING")
            self.mlflow = mlflow
        self.mlflow.send(self.run_id, self.pending, sent, self.tokens)
        self.pending = []

    def finish(self) -> None:
        """Tell MLflow how the run ended; a stage that died without a word was killed."""
        assert self.mlflow is not None
        facts = tags(self.path)
        for key, value in facts.items():
            self.mlflow.client.set_tag(self.run_id, key, value)
        status = STATUSES.get(facts.get("status", ""), "KILLED")
        self.mlflow.client.set_terminated(self.run_id, status)


if __name__ == "__main__":
    follow()
