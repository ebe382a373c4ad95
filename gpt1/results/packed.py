"""A packed run (`gpt1 pack`), which has neither data nor weights nor logs: what was answered, from
its predictions; what was measured of it, from its reports.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, sha256_file, stage_folder
from gpt1.params.schema import Params
from gpt1.results.answers import Answers, Array
from gpt1.results.captions import rows_used
from gpt1.results.document import Bullets, read_document
from gpt1.results.page import provenance
from gpt1.results.page.page import gathered
from gpt1.results.paper import TABLE5
from gpt1.results.records import PREDICTIONS, Record, load, read_records
from gpt1.results.rules import Rules
from gpt1.results.runs import RUN
from gpt1.results.verdict import Claim, Effect, PValues

FACT = re.compile(r"\*\*(?P<name>[^*]+)\*\*: (?P<text>.*)")
OF_THE_RUN = ("Corpus", "Model", "Pre-training")  # facts of every caption


def is_packed() -> bool:
    """Whether the current folder is a packed run."""
    return Path(RUN).is_file()


@dataclass(frozen=True)
class PackedAnswers(Answers):
    """A system's answers by the weights that the tables score, of the splits that they score."""

    def labels(self, split: str, subset: str | None) -> tuple[Array, Array]:
        """As of the files that were scored; of whole splits."""
        if subset:
            raise UserError(f"a packed run does not tell which rows of {self.task} are {subset}")
        rows = _rows(self.task, self.system, split, self.seeds[0])
        labels = rows["label"].to_numpy(float)
        whole = self.description["target"] == "class"
        return labels.astype(np.int64) if whole else labels, np.arange(len(labels))

    def clusters(self, split: str) -> Array:
        """Numbers [n], equal for rows that belong together."""
        rows = _rows(self.task, self.system, split, self.seeds[0])
        return np.asarray(rows["cluster"], np.int64)

    def logits(self, seed: int, split: str, weights: str) -> Array:
        """Logits [rows of the split, outputs] by the weights that count there."""
        return np.stack(_rows(self.task, self.system, split, seed)["logits"].to_numpy())


def packed(answers: Answers) -> PackedAnswers:
    """The same of the packed run in the current folder: its splits and their rows as predictions
    have them. Raises UserError where these have nothing of the system.
    """
    there = _groups(Path.cwd())
    splits = {
        split: {"examples": len(_rows(task, system, split, answers.seeds[0])), "labelled": True}
        for task, system, split in there
        if (task, system) == (answers.task, answers.system)
    }
    if not splits:
        raise UserError(
            f"{stage_folder('report', PREDICTIONS)}: expected answers of {answers.system} on"
            f" {answers.task}, found none; have whoever packed this run do so again: gpt1 pack"
        )
    values = {name: getattr(answers, name) for name in answers.__dataclass_fields__}
    return PackedAnswers(
        **values | {"description": {**answers.description, "splits": splits}, "whole": False}
    )


def _rows(task: str, system: str, split: str, seed: int) -> Any:
    """A frame in the split's order. Raises UserError for a seed that is not there."""
    rows = _groups(Path.cwd())[task, system, split]
    found = rows[rows["seed"] == seed].sort_values("example")
    if not len(found):
        raise UserError(f"{PREDICTIONS}: expected seed {seed} of {system} on {task}, found none")
    return found


@lru_cache(maxsize=1)
def _groups(folder: Path) -> Mapping[tuple[str, str, str], Any]:
    """Frames of predictions by task, system and split."""
    return dict(iter(load(folder)[1].groupby(["task", "system", "split"])))


def reported_claims(rules: Rules) -> list[Claim]:
    """The zero-shot claims as they were reported, for a packed run has no zero-shot answers.

    Of the two p-values the smaller one was reported. It is of the claim where the number is on the
    claim's side: all parts are as claimed, or it is above 0; for of a part that is not, and of a
    number below 0, the other is the smaller one.
    """
    records = {one["claim"]: one for one in read_records("claims")}
    return [_reported(rules, key, records[key]) for key in rules.zero_shot]


def _reported(rules: Rules, key: str, record: Record) -> Claim:
    rule, p, effect = rules.zero_shot[key], record["p"], None
    if p is not None:
        least = record["published_value"] - 0.5 if rule.test == "every" else 0
        holds, opposite = (p, 1.0) if record["score"] > least else (1.0, p)
        p_values = PValues(np.asarray(holds), np.asarray(opposite))
        effect = Effect(np.asarray(record["score"]), None, record["seeds"], p_values)
    words = (record["published"], record["published_value"], record["unit"], effect)
    return Claim(key, rule, *words, record["basis"], record["made_up"])


def told_of_packed(params: Params) -> dict[str, Any]:
    """What `gathered` tells of a run, with the machine, the commit and the time that were packed;
    sources and times of single stages were not.
    """
    said = read_json(Path(RUN))["facts"]
    code = [(name, said[name]) for name in ("Commit", "Machine", "Libraries")]
    code += [
        (f"sha256 of {path}", sha256_file(path)) for path in (provenance.PARAMS, provenance.LOCK)
    ]
    lines = [
        line
        for block in read_document(stage_folder("report", TABLE5.name))
        for line in (block.lines if isinstance(block, Bullets) else ())
    ]
    facts = {found["name"]: found["text"] for line in lines if (found := FACT.fullmatch(line))}
    seeds = f"{len(params.finetune.seeds)} seeds a task"
    return gathered(params, None) | {
        "facts": [
            *((name, facts[name]) for name in OF_THE_RUN),
            ("Fine-tuning", f"{seeds}; {rows_used(params, list(params.tasks))}"),
        ],
        "code": code,
        "commands": provenance.commands(said["Commit"]),
        "totals": [said["Time"], f"Memory of the machine: {said['Memory']}."],
        "sources": [],
    }
