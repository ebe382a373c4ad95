"""params.yaml: every wrong key or value is one line that names it, and says what was expected."""

from copy import deepcopy
from pathlib import Path

import pytest
from dvc.utils.hydra import apply_overrides
from dvc.utils.serialize import load_yaml

from gpt1.base.errors import UserError
from gpt1.params.profile import compose
from gpt1.params.recipes import finetune_recipe, pretraining_of, transferred_layers
from gpt1.params.schema import read_params, validate
from gpt1.params.yaml import read_yaml, write_yaml

PAPER = read_yaml(Path(__file__).parents[1] / "conf" / "paper.yaml")


def changed(dotted, value):
    values = deepcopy(PAPER)
    *parents, last = dotted.split(".")
    section = values
    for parent in parents:
        section = section[parent]
    if value is None:
        del section[last]
    else:
        section[last] = value
    return values


def test_paper_profile_is_complete_and_says_what_the_paper_says():
    params = validate(PAPER)
    assert (params.model.layers, params.model.width, params.model.heads, params.model.context) == (
        12,
        768,
        12,
        512,
    )
    tuning = params.finetune
    assert (tuning.lambda_lm, tuning.learning_rate, tuning.batch_size, tuning.epochs) == (
        0.5,
        6.25e-5,
        32,
        3,
    )
    assert (params.pretrain.learning_rate, params.pretrain.batch_size, params.pretrain.epochs) == (
        2.5e-4,
        64,
        100,
    )
    assert len(params.tasks) == 12


def test_a_wrong_value_is_one_line():
    for dotted, value, line in [
        (
            "finetune.lamda_lm",
            0.5,
            "unknown key finetune.lamda_lm (found 0.5); did you mean finetune.lambda_lm?",
        ),
        ("finetune.epochs", None, "finetune.epochs is missing"),
        ("finetune.epochs", "3", "finetune.epochs: found '3', expected a valid integer"),
        ("finetune.epochs", 0, "finetune.epochs: found 0, expected greater than 0"),
        ("model.heads", 5, "model.heads 5 must divide model.width 768"),
        (
            "finetune.transfer",
            13,
            "finetune.transfer: expected all, none, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12; found 13",
        ),
        ("pretrain.updates", 10, "give either pretrain.epochs or pretrain.updates a number"),
        (
            "pretrain.precision",
            "fp16",
            "pretrain.precision: found 'fp16', expected 'bf16' or 'fp32'",
        ),
        ("pretrain.learning_rate", float("nan"), "pretrain.learning_rate: found nan, expected"),
        (
            "tasks.cola.finetune",
            {"epoch": 5},
            (
                "unknown key tasks.cola.finetune.epoch (found 5); did you mean"
                " tasks.cola.finetune.epochs?"
            ),
        ),
        ("sources.cola", None, "a source that is needed: expected books, "),
        (
            "variants.lstm.networks",
            "lstm",
            (
                "unknown key variants.lstm.networks (found 'lstm'); did you mean"
                " variants.lstm.network?"
            ),
        ),
        (
            "variants.lstm.network",
            "gru",
            "variants.lstm.network: found 'gru', expected 'transformer', 'lstm' or 'lstm_equal'",
        ),
        (
            "transfer.mnli.layers",
            [0, 13],
            "transfer.mnli.layers: expected 0, 1, 2, ",
        ),
        (
            "transfer.imdb",
            {"group": "nli", "layers": None},
            "transfer.imdb: expected snli: nli, ",
        ),
        (
            "networks.pretrain",
            ["transformer"],
            "networks.zero_shot: expected transformer; found lstm",
        ),
        (
            "variants.no_aux_lm.tasks",
            {"cola": "qa"},
            "found cola: qa",
        ),
        ("model", [1], "model: found [1], expected an object"),
    ]:
        with pytest.raises(UserError) as caught:
            validate(changed(dotted, value))
        assert line in str(caught.value)
        assert str(caught.value).startswith("params.yaml: ")
        assert "\n" not in str(caught.value)


def with_variant(finetune, network="transformer"):
    return changed(
        "variants.mine", {"network": network, "finetune": finetune, "tasks": {"cola": "glue"}}
    )


def test_a_variant_overrides_its_task_and_that_the_section():
    values = with_variant({"dropout": 0.0})
    values["tasks"]["cola"]["finetune"] = {"epochs": 7, "dropout": 0.5}
    recipe = finetune_recipe(validate(values), "cola", "mine")
    assert (recipe.dropout, recipe.epochs, recipe.lambda_lm) == (0.0, 7, 0.5)


def test_a_wrong_variant_is_one_line():
    for finetune, network, line in [
        (
            {"transfer": 2},
            "lstm",
            ("variants.mine.finetune.transfer: expected all, none; found 2"),
        ),
    ]:
        with pytest.raises(UserError) as caught:
            validate(with_variant(finetune, network))
        assert line in str(caught.value)


def test_layers_of_a_transfer():
    assert transferred_layers(validate(PAPER), "mnli") == tuple(range(13))
    assert transferred_layers(validate(changed("transfer.mnli.layers", [6, 0, 6])), "mnli") == (
        0,
        6,
    )


def test_a_file_that_is_no_mapping(tmp_path):
    for text, line in [
        ("model: [", "is not YAML"),
        ("a: 1\na: 2\n", "is not YAML"),
        ("a: &x [*x]\n", "is not YAML: Circular"),
        ("", "found None, expected an object"),
        ("- 1\n", r"found \[1\], expected an object"),
    ]:
        (tmp_path / "params.yaml").write_text(text)
        with pytest.raises(UserError, match=line):
            read_params(tmp_path / "params.yaml")


def test_written_texts_read_back_the_same_also_after_dvc(tmp_path):
    for text in ["Who came first?", "a: b", "it's, so", "[x]", "null", "x" * 99]:
        path, values = tmp_path / "params.yaml", compose("demo", [])
        values["generate"]["prompts"] = [text, "and so on"]
        write_yaml(path, values, "")
        assert read_yaml(path) == values
        apply_overrides(path, ["generate.seed=1"])
        values["generate"]["seed"] = 1
        assert read_yaml(path) == load_yaml(path) == values


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "paper"])
def test_dvc_exp_run_changes_one_line_of_written_parameters(tmp_path, name):
    path = tmp_path / "params.yaml"
    write_yaml(path, values := compose(name, []), f"gpt1 profile {name}")
    assert read_yaml(path) == values
    before = path.read_text().splitlines()
    apply_overrides(path, ["finetune.learning_rate=1e-5"])
    after = path.read_text().splitlines()
    assert len(before) == len(after)
    changed = [now for old, now in zip(before, after, strict=True) if old != now]
    assert [line.split("#")[0].rstrip() for line in changed] == ["  learning_rate: 1e-05"]


def test_a_finetuning_seed_has_a_pretraining_to_start_from():
    for pretrained, finetuned, task, line in [
        ([0, 1], [0, 1], {}, ""),
        ([7], [0, 1, 2], {}, ""),
        ([0, 1], [0, 1, 2], {}, "finetune.seeds: expected some of pretrain.seeds [0, 1]"),
        ([], [0], {}, "pretrain.seeds: found [], "),
    ]:
        values = deepcopy(PAPER)
        values["pretrain"]["seeds"], values["finetune"]["seeds"] = pretrained, finetuned
        values["tasks"]["cola"]["finetune"] = task
        if not line:
            params = validate(values)
            starts = [pretraining_of(params, "lstm", seed).name for seed in finetuned]
            several = len(pretrained) > 1
            assert starts == [f"seed-{seed if several else pretrained[0]}" for seed in finetuned]
            return
        with pytest.raises(UserError) as refused:
            validate(values)
        assert line in str(refused.value)
