"""The rules that are fixed before a run: what may stand in the file, and what its hash holds to."""

import json
from pathlib import Path

import pytest

from gpt1.base.errors import UserError
from gpt1.params.yaml import read_yaml
from gpt1.results.paper import TABLE5, ZERO_SHOT
from gpt1.results.rules import RULES, read_rules, rules_hash


def changed(tmp_path: Path, section: str, key: str, **values: object) -> Path:
    """The rules with other values of one claim (or of the whole file), written by another hand."""
    rules = read_yaml(RULES)
    (rules[section][key] if key else rules).update(values)
    (path := tmp_path / "rules.yaml").write_text(json.dumps(rules))
    return path


def test_the_rules_name_columns_tasks_and_behaviours_of_the_paper() -> None:
    rules = read_rules()
    assert set(rules.columns["all"]) == set(TABLE5.columns)
    assert all(set(titles) <= set(TABLE5.columns) for titles in rules.columns.values())
    larger, smaller = rules.columns["larger"], rules.columns["smaller"]
    assert sorted(larger + smaller) == sorted(TABLE5.columns)
    assert {one.behaviour for one in rules.zero_shot.values()} == {"all", *ZERO_SHOT}
    assert {one.task for one in rules.layers.values()} == {"mnli", "race"}
    systems = {one for rule in rules.table5.values() for one in (rule.system, *rule.less)}
    assert systems == {"full", "embeddings_only", "lstm_equal", *TABLE5.variants}


def test_three_claims_are_primary_and_the_others_exploratory() -> None:
    rules = read_rules()
    assert set(rules.primary) == {"pretraining_helps", "lstm_below", "layers_beat_embeddings"}
    assert len(rules.exploratory) == len(rules.keys) - 3
    assert not set(rules.exploratory) & set(rules.primary)


def test_the_hash_is_of_what_the_rules_say_not_of_how_they_are_written(tmp_path: Path) -> None:
    assert rules_hash(changed(tmp_path, "", "")) == rules_hash()
    others = {
        rules_hash(changed(tmp_path, "", "", level=0.01)),
        rules_hash(changed(tmp_path, "", "", primary=["pretraining_helps"])),
        rules_hash(changed(tmp_path, "table5", "aux_lm_smaller", margin=2.0)),
        rules_hash(changed(tmp_path, "layers", "transfer_race", task="mnli")),
    }
    assert len(others | {rules_hash()}) == 5


@pytest.mark.parametrize(
    ("section", "key", "values", "told"),
    [
        ("table5", "lstm_size", {"margin": None}, "expected a margin for the tests size"),
        ("table5", "lstm_below", {"margin": 1.0}, "expected a margin for the tests size"),
        ("table5", "lstm_below", {"columns": "most"}, "table5.lstm_below.columns: expected one of"),
        ("table5", "lstm_below", {"test": "every"}, "table5.lstm_below.test: expected above"),
        ("table5", "lstm_only_mrpc", {"opposite": ["SNLI"]}, "expected some of the columns all"),
        ("layers", "transfer_mnli", {"tasks": "mnli"}, "unknown key layers.transfer_mnli.tasks"),
        ("", "", {"least_seeds": 2}, "least_seeds: found 2"),
        ("", "", {"primary": ["transfer_mnli"]}, "expected claims of table5, found transfer_mnli"),
    ],
)
def test_rules_that_do_not_fit_are_refused_in_a_line(
    tmp_path: Path, section: str, key: str, values: dict[str, object], told: str
) -> None:
    with pytest.raises(UserError, match=told) as caught:
        read_rules(changed(tmp_path, section, key, **values))
    assert str(caught.value).startswith("rules.yaml: ")
    assert "\n" not in str(caught.value)
