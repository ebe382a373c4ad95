"""A run that was packed without data, weights and logs: what was answered in it gives the verdicts
that it reported.
"""

from pathlib import Path

import numpy as np
import pytest

from gpt1.params.schema import Params, validate
from gpt1.params.sections import Baselines
from gpt1.params.yaml import read_yaml
from gpt1.results import answers
from gpt1.results.ablations import ablation
from gpt1.results.baselines import TITLES
from gpt1.results.claims import ablation_claims, transfer_claims
from gpt1.results.records import load, read_records
from gpt1.results.rules import read_rules
from gpt1.results.runs import SHIPPED, shipped
from gpt1.results.verdict import judged
from gpt1.tasks.table import TASKS


def known(values: dict) -> dict:
    """Parameters of a packed run, without those that are no more."""
    there = {name: values[name] for name in Params.model_fields}
    baselines = {name: values["baselines"][name] for name in Baselines.model_fields}
    systems = [one for one in baselines["systems"] if one in TITLES]
    return there | {"baselines": baselines | {"systems": systems}}


@pytest.mark.parametrize("run", shipped())
def test_the_verdicts_of_a_shipped_run_follow_from_its_answers(run, monkeypatch):
    monkeypatch.chdir(SHIPPED.parent / run)
    groups = dict(iter(load(Path.cwd())[1].groupby(["task", "system", "split", "seed"])))

    class PackedAnswers(answers.Answers):
        def column(self, split: str, seed: int, name: str):
            rows = groups[self.task, self.system, split, seed]
            return np.stack(rows.sort_values("example")[name].to_numpy())

        def labels(self, split, subset):
            assert subset is None
            labels = self.column(split, self.seeds[0], "label")
            kind = np.int64 if self.description["target"] == "class" else float
            return labels.astype(kind), np.arange(len(labels))

        def clusters(self, split):
            return self.column(split, self.seeds[0], "cluster")

        def logits(self, seed, split, weights):
            return self.column(split, seed, "logits")  # by the weights that count there

    def packed(params, task, folder, recipe, stage, system):
        splits = {split: {"labelled": True} for name, _, split, _ in groups if name == task}
        told = {"target": TASKS[task].target, "splits": splits}
        starts = {seed: answers.pretraining_seed(params, seed) for seed in recipe.seeds}
        starts = starts if recipe.transfer != "none" else dict.fromkeys(starts)
        return PackedAnswers(task, told, folder, folder, recipe.seeds, stage, system, starts)

    monkeypatch.setattr(answers, "_answers", packed)
    params, rules = validate(known(read_yaml(Path("params.yaml")))), read_rules()
    of_table5 = ablation_claims(rules, params, ablation(params))
    claims = judged(rules, [*of_table5, *transfer_claims(rules, params)])
    reported = {one["claim"]: one["verdict"] for one in read_records("claims")}
    assert len(claims) >= 10
    assert {one.key: one.verdict for one in claims}.items() <= reported.items()
