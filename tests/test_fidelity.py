"""Numbers of the authors' own code against the production functions: encoding, forward pass,
losses, gradients, updates.

If a change to the mathematics was meant, it is a departure from the authors' code: say so in the
README before touching these tests.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.params import schema, yaml
from gpt1.train import optim
from gpt1.train.batches import Batch
from gpt1.train.objectives import Finetuning

ROOT = Path(__file__).parents[1]
GOLDEN = Path(os.environ.get("GPT1_GOLDEN", Path(__file__).parent / "golden"))
PARTS = {
    "attn/c_attn": "qkv",
    "attn/c_proj": "projection",
    "ln_1": "attention_norm",
    "mlp/c_fc": "expand",
    "mlp/c_proj": "contract",
    "ln_2": "feed_forward_norm",
}
LOSS_TOLERANCE = LOGIT_TOLERANCE = WEIGHT_TOLERANCE = 5e-5
GRADIENT_TOLERANCE = 1e-4  # of the larger of 1e-3 and the tensor's largest element
NOISE = 1e-6  # a gradient below it is rounding, of which Adam makes a whole step

pytestmark = pytest.mark.golden


def ours(name, tensors, rows):
    """The tensor that stands for the authors' variable `name`, in their layout, taken from a
    mapping of ours by name.
    """
    name = name.removeprefix("model/")
    if name == "we":
        tokens, positions = tensors["decoder.tokens"], tensors["decoder.positions"]
        assert len(tokens) == rows
        return torch.cat([tokens, positions])
    if name.startswith("clf/"):
        return (
            tensors["head.linear.weight"].T if name.endswith("w") else tensors["head.linear.bias"]
        )
    layer, part, kind = (
        name[1:].partition("/")[0],
        name.partition("/")[2].rpartition("/")[0],
        name[-1],
    )
    place = f"decoder.blocks.{layer}.{PARTS[part]}"
    return (
        tensors[f"{place}.weight"].T[None]
        if kind == "w"
        else tensors[f"{place}.{'weight' if kind == 'g' else 'bias'}"]
    )


def build(arrays, settings, names):
    """The production model with the golden weights in it, and the recipe that the golden settings
    describe.
    """
    sizes = schema.Model(
        context=settings["n_ctx"],
        width=settings["n_embd"],
        layers=settings["n_layer"],
        heads=settings["n_head"],
        feed_forward=4 * settings["n_embd"],
        embedding_deviation=0.02,
        weight_deviation=0.02,
        layer_norm_epsilon=1e-5,
    )
    generator = torch.Generator().manual_seed(0)
    rows = settings["n_vocab"] + settings["n_special"]
    model = Classifier(
        Decoder(sizes, rows, generator),
        Head(sizes.width, arrays["0/x"].shape[1], "choose", 0.02, generator),
    )
    with torch.no_grad():
        for name in names:
            value = torch.from_numpy(arrays[f"init/{name}"])
            if name == "model/we":
                model.decoder.tokens.copy_(value[:rows])
                model.decoder.positions.copy_(value[rows:])
            else:
                ours(name, dict(model.state_dict()), rows).copy_(value)
    paper = yaml.read_yaml(ROOT / "conf/paper.yaml")["finetune"]
    recipe = schema.Finetune.model_validate(
        paper
        | {
            "learning_rate": float(settings["lr"]),
            "schedule": settings["schedule"],
            "warmup_fraction": float(settings["lr_warmup"]),
            "weight_decay": float(settings["l2"]),
            "max_gradient_norm": float(settings["max_grad_norm"]),
            "beta1": settings["b1"],
            "beta2": settings["b2"],
            "epsilon": settings["e"],
            "lambda_lm": float(settings["lm_coef"]),
            "dropout": 0.0,
            "classifier_dropout": 0.0,
            "precision": "fp32",
        },
        strict=False,
    )
    assert set(paper) == set(recipe.model_dump())
    return model, recipe, rows


def near(found, expected, tolerance, what):
    found = found.detach().double().cpu().numpy()
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, expected {expected.shape}"
    worst = float(np.max(np.abs(found - expected), initial=0.0))
    assert worst <= tolerance, (
        f"{what}: off by {worst:.2e}, at most {tolerance:.2e} allowed; see the docstring of this"
        " file"
    )


def without_mean(logits):
    return logits - logits.mean(1, keepdims=True)


def compare_updates(path, device="cpu"):
    """Run every update of a golden file through the production functions; AssertionError at the
    first number that is off.
    """
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    settings, names = json.loads(str(arrays["config"])), json.loads(str(arrays["names"]))
    model, recipe, rows = build(arrays, settings, names)
    model.to(device)
    objective = Finetuning(model, recipe.classifier_dropout, recipe.lambda_lm, "fp32")
    optimizer = optim.adam(objective, recipe)
    updates = sorted({int(name.split("/")[0]) for name in arrays if name.split("/")[0].isdigit()})
    assert updates == list(range(len(updates)))
    loud = {name: np.ones(arrays[f"init/{name}"].shape, dtype=bool) for name in names}
    for t in updates:
        batch = Batch(
            torch.from_numpy(arrays[f"{t}/x"]).long(),
            torch.from_numpy(arrays[f"{t}/mask"].sum(-1)).long(),
            torch.from_numpy(arrays[f"{t}/y"]).long(),
        ).to(torch.device(device))
        parts = objective.parts(batch)
        near(
            without_mean(parts.logits_bo),
            without_mean(arrays[f"{t}/clf_logits"].astype(np.float64)),
            LOGIT_TOLERANCE,
            f"{t} logits",
        )
        near(
            parts.task_losses_b, arrays[f"{t}/clf_losses"], LOSS_TOLERANCE, f"{t} classifier losses"
        )
        near(
            parts.lm_loss.losses_n,
            arrays[f"{t}/lm_losses"],
            LOSS_TOLERANCE,
            f"{t} language-model losses",
        )
        optimizer.zero_grad()
        objective(batch)["loss"].backward()
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        for name in names:
            expected = arrays[f"{t}/grad/{name}"]
            near(
                ours(name, gradients, rows),
                expected,
                GRADIENT_TOLERANCE * max(1e-3, np.abs(expected).max()),
                f"{t} gradient of {name}",
            )
            loud[name] &= np.abs(expected) > NOISE
        found = optim.gradients_of(model.parameters())
        optim.clip_gradients(found, recipe.max_gradient_norm)
        optim.set_rates(
            optimizer, optim.rates(recipe, t + 1, settings["updates_total"], recipe.warmup_fraction)
        )
        optimizer.step()
        for name in names:
            near(
                ours(name, dict(model.state_dict()), rows)[torch.from_numpy(loud[name])],
                arrays[f"{t}/after/{name}"][loud[name]],
                WEIGHT_TOLERANCE,
                f"{name} after update {t}",
            )
    assert all(mask.mean() > 0.25 for name, mask in loud.items() if name.endswith("/w")), (
        "hardly any weight was compared"
    )


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.npz")), ids=lambda path: path.name)
def test_updates_are_the_authors(path):
    compare_updates(path)


def test_there_is_something_to_compare():
    assert any(GOLDEN.glob("*.npz")), f"no *.npz in {GOLDEN}"
