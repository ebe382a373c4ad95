"""The verbs ablation and transfer on tiny made data: what each ablation takes from pre-training, and
that nothing is computed twice.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from made_data import VOCABULARY, json_lines, write_params, write_task

from gpt1.model.networks import describe, make_network
from gpt1.model.weights import read_weights, save_weights
from gpt1.params.recipes import finetune_recipe
from gpt1.params.schema import read_params
from gpt1.train import finetuning_data
from gpt1.train.engine import Engine
from gpt1.train.finetuning import logits_of
from gpt1.train.finetuning_data import make_classifier, read_task
from gpt1.train.loop import Stop
from gpt1.train.objectives import Finetuning

pytestmark = pytest.mark.slow

ABLATIONS = ("no_pretraining", "no_aux_lm", "lstm", "no_dropout")


@pytest.fixture(autouse=True)
def _folder(elsewhere):
    """Tiny parameters with every ablation on CoLA, a fourth one added, and a transfer of CoLA;
    weights of both networks.
    """
    write_params(
        elsewhere,
        lstm__units=20,
        ablations__no_dropout={"network": "transformer", "finetune": {"dropout": 0.0}},
        finetune__seeds=[0],
        transfer__cola={"group": "glue", "layers": None},
        **{f"ablation__{ablation}-cola": True for ablation in ABLATIONS},
    )
    for network in ("transformer", "lstm"):
        params = read_params()
        model = make_network(network, params, VOCABULARY, torch.Generator().manual_seed(7))
        save_weights(weights_of(network), model, describe(network, params, VOCABULARY, "f" * 16))


def weights_of(network):
    return Path("data/pretrain", network, "seed-0", "weights.safetensors")


def arrays(folder):
    with np.load(folder / "seed-0/logits.npz", allow_pickle=False) as logits:
        return {name: logits[name] for name in logits.files}


def test_each_ablation_writes_what_the_report_reads(run_here):
    write_task("cola")
    run_here("finetune", "cola")
    full = arrays(Path("data/finetune/glue/cola"))
    for ablation in ABLATIONS:
        run_here("ablation", ablation, "cola")
        out = Path("data/ablation", f"{ablation}-cola")
        assert sorted(path.name for path in (out / "seed-0").iterdir()) == [
            "curve.jsonl",
            "logits.npz",
            "summary.json",
        ], "no weights are kept"
        found = arrays(out)
        assert {name: value.shape for name, value in found.items()} == {
            name: value.shape for name, value in full.items()
        }
        assert any(not np.array_equal(found[name], full[name]) for name in full), (
            f"{ablation} changes nothing"
        )
    assert "lm_loss" not in json_lines("data/ablation/no_aux_lm-cola/seed-0/curve.jsonl")[0]
    assert "lm_loss" in json_lines("data/ablation/lstm-cola/seed-0/curve.jsonl")[0], (
        "the LSTM has the auxiliary language model"
    )
    assert not list(Path("data/checkpoints").glob("*/")), "what was kept goes away at the end"


def test_no_pretraining_reads_no_weights(run_here):
    write_task("cola")
    weights_of("transformer").unlink()
    run_here("ablation", "no_pretraining", "cola")
    assert Path("data/ablation/no_pretraining-cola/seed-0/summary.json").exists()


def test_transfer_runs_every_number_of_layers_but_the_last(run_here):
    write_task("cola")
    run_here("transfer", "cola")
    out = Path("data/transfer/cola")
    assert sorted(path.name for path in out.iterdir()) == ["layers-0", "layers-1"]
    one, other = arrays(out / "layers-0"), arrays(out / "layers-1")
    assert any(not np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_so_many_layers_come_from_pretraining_and_no_more(layers):
    params, about = read_params(), {"outputs": 2, "combine": "single"}
    wanted, recipe = (
        describe("transformer", params, VOCABULARY, "f" * 16),
        finetune_recipe(params, "cola"),
    )

    def start(transfer, **changes):
        moved = recipe.model_copy(update={"transfer": transfer, **changes})
        return make_classifier(
            params, moved, about, wanted, weights_of("transformer"), 3
        ).state_dict()

    _, pretrained = read_weights(weights_of("transformer"))
    fresh, found = start("none"), start(layers)
    for name, value in found.items():
        inner = name.removeprefix("decoder.")
        if inner == "tokens":
            assert torch.equal(value[:VOCABULARY], pretrained[inner])
            assert torch.equal(value[VOCABULARY:], fresh[name][VOCABULARY:]), (
                "special symbols are always fresh"
            )
            continue
        comes = inner == "positions" or (
            inner.startswith("blocks.") and int(inner.split(".")[1]) < layers
        )
        assert torch.equal(value, pretrained[inner] if comes else fresh[name]), name

    halved = start(layers, symbol_deviation=recipe.symbol_deviation / 2)
    for name, value in found.items():
        expected = value.clone()
        if name.endswith("tokens"):
            expected[VOCABULARY:] /= 2
        assert torch.equal(halved[name], expected), name


def test_the_weights_kept_give_the_logits_kept(run_here, tmp_path):
    """The logits that selected the model are kept as they were, not computed again."""
    write_task("cola")
    write_params(tmp_path, finetune__seeds=[0], finetune__precision="fp32", finetune__epochs=3)
    run_here("finetune", "cola")
    folder, params = Path("data/finetune/glue/cola"), read_params()
    about, task = read_task(Path("data/encode/glue/cola"), params)
    wanted = describe("transformer", params, VOCABULARY, "f" * 16)
    recipe = finetune_recipe(params, "cola")
    classifier = make_classifier(params, recipe, about, wanted, weights_of("transformer"), 0)
    classifier.load_state_dict(read_weights(folder / "seed-0/weights.safetensors")[1])
    objective = Finetuning(classifier, 0.0, 0.0, recipe.precision)
    engine = Engine(objective, recipe)
    for split in ("dev", "test"):
        again = logits_of(engine, objective, task.splits[split], 100, Stop())
        np.testing.assert_allclose(arrays(folder)[f"{split}/best"], again, atol=1e-6)


def test_a_finished_part_is_not_run_again(run_here, monkeypatch):
    """A transfer that fails in its second part keeps the first."""
    write_task("cola")
    real, calls = finetuning_data.finetune_seed, []

    def failing(*arguments):
        calls.append(arguments[0].what)
        if len(calls) == 2:
            raise KeyboardInterrupt("stopped")
        return real(*arguments)

    monkeypatch.setattr(finetuning_data, "finetune_seed", failing)
    with pytest.raises(SystemExit):
        run_here("transfer", "cola")
    assert not Path("data/transfer/cola").exists()
    run_here("transfer", "cola")
    assert calls == [
        "transfer cola/layers-0/seed-0",
        "transfer cola/layers-1/seed-0",
        "transfer cola/layers-1/seed-0",
    ]
