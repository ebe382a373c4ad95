"""How results become MLflow's runs; imported only by what talks to MLflow."""

import os
from pathlib import Path

from gpt1.base.files import sha256_file, stage_folder
from gpt1.params.schema import Params
from gpt1.tracking.connection import COMPLETE, Connection
from gpt1.tracking.datasets import data_sets, source_fingerprints
from gpt1.tracking.log import FLOW_RUN_URL, tokens_by_update
from gpt1.tracking.models import MODELS, log_models, log_zero_shot
from gpt1.tracking.names import group_of
from gpt1.tracking.pages import group_page, parent_page, run_page
from gpt1.tracking.results import FinishedRun, Group
from gpt1.tracking.views import view_tag, views

NOTE = "mlflow.note.content"
MACHINE = {"cpu", "cores", "gpu", "python", "torch", "git_commit", "dirty"}  # also on the parent
COUNTS = {  # last numbers that are words of a run: a bar of one count tells nobody anything
    f"final/{key}": key
    for key in (
        "updates",
        "tokens",
        "train_tokens",
        "heldout_tokens",
        "vocabulary_size",
        "best_update",
        "skipped_updates",
    )
} | {"final/parameters.total": "parameters"}


class MLflow(Connection):
    """MLflow brought up to date with results."""

    def __init__(self, params: Params, began: float | None = None) -> None:
        super().__init__(params, began)
        self.headlines: dict[str, float] = dict(self.parent.data.metrics)
        self.machines: dict[str, set[str]] = {}
        self.written = 0  # results that it did not have, or not whole
        self.ended: dict[tuple[str, str | None], float] = {}
        self.pretrained: dict[str, str] = {}

    def project(self, result: FinishedRun) -> str:
        """Bring the run of a finished result up to date, sending nothing where it already is;
        returns its id.
        """
        run = self.run(result.stage, result.name, result.fingerprint, result.digest, result.began)
        run_id = str(run.info.run_id)
        end = None
        if result.began is not None:
            end = max((float(point["time"]) for point in result.points), default=result.began)
            group = (result.stage, group_of(result.stage, result.name))
            self.ended[group] = max(end, self.ended.get(group, 0.0))
        for key in result.tags.keys() & MACHINE:
            self.machines.setdefault(key, set()).add(result.tags[key])
        last = {"time": result.time, "update": 0}
        told = [run.data.tags.get(key) == result.digest for key in (COMPLETE, MODELS)]
        inputs = [] if all(told) else data_sets(self.params, result.stage, result.name)
        if run.data.tags.get(COMPLETE) != result.digest:
            counts = {
                COUNTS[key]: f"{value:.0f}" for key, value in result.final.items() if key in COUNTS
            }
            measures = {
                key: value
                for key, value in result.final.items()
                if key not in COUNTS and not key.startswith("final/parameters.")
            }
            self.send(
                run_id,
                [*result.points, last | measures],
                self.sent(run),
                tokens_by_update(result.points),
            )
            self._log_artifacts(run_id, result)
            if inputs:
                self.client.log_inputs(run_id, datasets=inputs)
            page = run_page(result.stage, result.name, result.final, result.folder.as_posix())
            self.tag(run, result.tags | counts | {NOTE: page})
            self.client.set_terminated(
                run_id, "FINISHED", end_time=None if end is None else int(end * 1000)
            )
            self.client.set_tag(run_id, COMPLETE, result.digest)
            self.written += 1
        if result.stage == "pretrain":
            self.pretrained[result.name] = run_id
        if run.data.tags.get(MODELS) != result.digest:
            if result.stage == "zero_shot":
                pretraining = self.pretrained.get(result.name, "")
                there = log_zero_shot(self.client, run, pretraining, result, inputs)
            else:
                there = log_models(self.client, run, result, inputs)
            if there:
                self.client.set_tag(run_id, MODELS, result.digest)
        news = dict(result.headline.items() - self.headlines.items())
        self.send(self.parent_id, [last | news], set(), {})
        self.headlines |= news
        return run_id

    def _log_artifacts(self, run_id: str, result: FinishedRun) -> None:
        """Files of a result; those of the report on the parent too."""
        for path in result.artifacts:
            self.client.log_artifact(run_id, str(path))
            if result.stage == "report":
                self.client.log_artifact(self.parent_id, str(path), result.name)

    def project_group(self, group: Group) -> None:
        """Tell the run above a task's seeds what they give together; where an earlier set of
        parameters made them it has no such run.
        """
        for run in self.find(self.group(group.stage, group.name)):
            if run.data.tags.get(COMPLETE) != group.digest:
                self.send(run.info.run_id, group.points, set(), {})
                ended = self.ended.get((group.stage, group.name), float(group.points[0]["time"]))
                self.client.set_terminated(
                    run.info.run_id,
                    "FINISHED",
                    end_time=max(int(1000 * ended), run.info.start_time),
                )
                page = group_page(group.stage, group.name, group.points, group.folder.as_posix())
                self.tag(run, {NOTE: page, COMPLETE: group.digest})

    def finish(self) -> None:
        """Bring the parent's page, tags, time and report up to date."""
        info, there = self.parent.info, self.parent.data.tags
        last = int(1000 * max(self.ended.values(), default=0))
        if last > info.start_time and last != info.end_time:
            self.client.set_terminated(self.parent_id, "FINISHED", end_time=last)
        wanted = {key: ", ".join(sorted(values)) for key, values in self.machines.items()}
        wanted |= {f"data.{name}": digest for name, digest in source_fingerprints().items()}
        url = os.environ.get(FLOW_RUN_URL) or there.get("flow_run")
        if url:
            wanted["flow_run"] = url
        wanted[NOTE] = parent_page(self.params, url)
        page = stage_folder("report", "index.html")
        for key, path in (("dvc_lock", Path("dvc.lock")), ("gpt1.results.page", page)):
            if path.is_file():
                wanted[key] = sha256_file(path)[:16]
        if "gpt1.results.page" in dict(wanted.items() - there.items()):
            self.client.log_artifact(self.parent_id, str(page))
        self.tag(self.parent, wanted)
        there = self.client.get_experiment(self.experiment_id).tags
        for key, value in map(view_tag, views(self.params.tasks)):
            if key not in there:  # a person may have changed it
                self.client.set_experiment_tag(self.experiment_id, key, value)
