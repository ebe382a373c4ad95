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


def test_paper_profile_says_what_the_paper_says():
    params = validate(PAPER)
    model, tuning, training = params.model, params.finetune, params.pretrain
    assert (model.layers, model.width, model.heads, model.context) == (12, 768, 12, 512)
    assert (tuning.lambda_lm, tuning.learning_rate) == (0.5, 6.25e-5)
    assert (tuning.batch_size, tuning.epochs) == (32, 3)
    assert (training.learning_rate, training.batch_size, training.epochs) == (2.5e-4, 64, 100)
    assert len(params.tasks) == 12


@pytest.mark.parametrize(
    ("dotted", "value", "line"),
    [
        ("finetune.lamda_lm", 0.5, "unknown key finetune.lamda_lm .*mean finetune.lambda_lm"),
        ("variants", {}, "unknown key variants .*compose the file anew with gpt1 profile"),
        ("tasks.cola.finetune", {"epoch": 5}, "unknown key tasks.*mean tasks.cola.finetune.epochs"),
        ("ablations.lstm.networks", "lstm", "unknown key ablations.*mean ablations.lstm.network"),
        ("finetune.epochs", None, "finetune.epochs is missing"),
        ("finetune.epochs", "3", "finetune.epochs: found '3', expected a valid integer"),
        ("finetune.epochs", 0, "finetune.epochs: found 0, expected greater than 0"),
        ("model", [1], r"model: found \[1\], expected an object"),
        ("model.heads", 5, "model.heads 5 must divide model.width 768"),
        ("finetune.transfer", 13, "finetune.transfer: expected all, none, 0, .*, 12; found 13"),
        ("pretrain.updates", 10, "either pretrain.epochs or pretrain.updates"),
        ("pretrain.precision", "fp16", "pretrain.precision: found 'fp16', expected 'bf16' or"),
        ("pretrain.learning_rate", float("nan"), "pretrain.learning_rate: found nan"),
        ("sources.cola", None, "sources: expected cola, which this run needs; found none"),
        ("ablations.lstm.network", "gru", "ablations.lstm.network: found 'gru', expected 'transf"),
        ("ablations.no_aux_lm.tasks", {"cola": "qa"}, "found cola: qa"),
        ("transfer.mnli.layers", [0, 13], "transfer.mnli.layers: expected 0, 1, 2, "),
        ("transfer.imdb", {"group": "nli", "layers": None}, "transfer.imdb: expected snli: nli"),
        ("networks.pretrain", ["transformer"], "networks.zero_shot: .* found lstm"),
        ("finetune.seeds", [0, 0], "finetune.seeds: expected each seed once"),
        ("ablations.no_pretraining.finetune", {"dropout": 0.0}, "expected none; found all"),
        ("tasks.cola.finetune", {"transfer": 99}, "tasks.cola.finetune.transfer: .* found 99"),
        ("town", {"seed": 0, "books": 1, "page": 1}, "unknown key town.page .*mean town.pages"),
    ],
)
def test_a_wrong_value_is_one_line(dotted, value, line):
    with pytest.raises(UserError, match=rf"^params.yaml: .*{line}"):
        validate(changed(dotted, value))


def test_no_key_has_a_default():
    """It would decide what the file does not say, where DVC does not look."""
    for section, values in PAPER.items():
        if isinstance(values, dict) and not all(isinstance(one, dict) for one in values.values()):
            for key in values:
                with pytest.raises(UserError, match=f"{section}.{key} is missing"):
                    validate(changed(f"{section}.{key}", None))


def with_ablation(finetune, network="transformer"):
    return changed(
        "ablations.mine", {"network": network, "finetune": finetune, "tasks": {"cola": "glue"}}
    )


def test_a_ablation_overrides_its_task_and_that_the_section():
    values = with_ablation({"dropout": 0.0})
    values["tasks"]["cola"]["finetune"] = {"epochs": 7, "dropout": 0.5}
    recipe = finetune_recipe(validate(values), "cola", "mine")
    assert (recipe.dropout, recipe.epochs, recipe.lambda_lm) == (0.0, 7, 0.5)


def test_of_an_lstm_no_single_layers_are_transferred():
    with pytest.raises(UserError, match=r"mine\.finetune\.transfer: expected all, none; found 2"):
        validate(with_ablation({"transfer": 2}, "lstm"))


def test_layers_of_a_transfer():
    assert transferred_layers(validate(PAPER), "mnli") == tuple(range(13))
    some = validate(changed("transfer.mnli.layers", [6, 0, 6]))
    assert transferred_layers(some, "mnli") == (0, 6)


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


def test_what_is_written_is_read_back_and_dvc_changes_one_line_of_it(tmp_path):
    path, values = tmp_path / "params.yaml", compose("demo", [])
    texts = ["Who came first?", "a: b", "it's, so", "[x]", "null", "x" * 99]
    values["generate"]["prompts"] = texts
    write_yaml(path, values, "gpt1 profile demo")
    assert read_yaml(path) == values
    before = path.read_text().splitlines()
    apply_overrides(path, ["finetune.learning_rate=1e-5"])
    values["finetune"]["learning_rate"] = 1e-5
    assert read_yaml(path) == load_yaml(path) == values
    both = zip(before, path.read_text().splitlines(), strict=True)
    changed = [now for old, now in both if old != now]
    assert [line.split("#")[0].rstrip() for line in changed] == ["  learning_rate: 1e-05"]


def with_seeds(pretrained, finetuned):
    values = changed("pretrain.seeds", pretrained)
    values["finetune"]["seeds"] = finetuned
    return values


@pytest.mark.parametrize(
    ("pretrained", "starts"), [([0, 1], ["seed-0", "seed-1"]), ([7], ["seed-7", "seed-7"])]
)
def test_a_finetuning_seed_has_a_pretraining_to_start_from(pretrained, starts):
    params = validate(with_seeds(pretrained, [0, 1]))
    assert [pretraining_of(params, "lstm", seed).name for seed in (0, 1)] == starts


@pytest.mark.parametrize(
    ("pretrained", "line"),
    [([0, 1], r"finetune.seeds: .* \[0, 1\]"), ([], r"pretrain.seeds: found \[\], ")],
)
def test_a_finetuning_seed_without_a_pretraining_is_refused(pretrained, line):
    with pytest.raises(UserError, match=line):
        validate(with_seeds(pretrained, [0, 1, 2]))
