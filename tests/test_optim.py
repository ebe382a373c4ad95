"""Schedules by hand; the authors' Adam, decay and clipping against a float64 version of their
formulas.
"""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from made_data import paper

from gpt1.train import optim
from gpt1.train.schedules import schedule

ROOT = Path(__file__).parents[1]


def test_schedules_by_hand():
    for name, x, expected in [
        ("warmup_linear", 0.1, 0.5 * 0.9),
        ("warmup_linear", 0.2, 0.8),
        ("warmup_linear", 0.6, 0.4),
        ("warmup_linear", 1.0, 0.0),
        ("warmup_linear", 1.1, 0.0),  # beyond the end the rate stays
        ("warmup_cosine", 0.1, 0.5),
        ("warmup_cosine", 0.2, 1.0),
        ("warmup_cosine", 0.5, 0.5),
        ("warmup_cosine", 1.0, 0.0),
    ]:
        assert schedule(name, round(10 * x), 10, 0.2) == pytest.approx(expected, abs=1e-12)


def test_papers_pretraining_rate_peaks_after_2000_updates():
    factors = [
        schedule("warmup_cosine", update, 100_000, 2000 / 100_000) for update in range(1, 100_001)
    ]
    assert int(np.argmax(factors)) + 1 == 2000
    assert factors[0] == 1 / 2000
    assert factors[1999] == 1
    assert factors[-1] == 0
    assert np.all(np.diff(factors[1999:]) < 0)


@pytest.fixture
def recipe():
    return paper().finetune.model_copy(
        update={
            "learning_rate": 0.02,
            "weight_decay": 0.1,
            "max_gradient_norm": 1.0,
            "warmup_fraction": 0.3,
        }
    )


def authors_update(values, moments, gradients, recipe, t, updates):
    """One update of the authors' code in float64, in place: clipping, Adam, decoupled decay on
    matrices.
    """
    norm = math.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
    scale = recipe.max_gradient_norm / max(norm, recipe.max_gradient_norm)
    x = t / updates
    factor = (x / recipe.warmup_fraction if x <= recipe.warmup_fraction else 1) * (1 - x)
    rate = recipe.learning_rate * math.sqrt(1 - recipe.beta2**t) / (1 - recipe.beta1**t) * factor
    for name, value in values.items():
        m, v = moments[name]
        gradient = gradients[name] * scale
        m[...] = recipe.beta1 * m + (1 - recipe.beta1) * gradient
        v[...] = recipe.beta2 * v + (1 - recipe.beta2) * gradient**2
        decay = recipe.weight_decay * value if value.ndim > 1 else 0
        value[...] = value - rate * (m / (np.sqrt(v) + recipe.epsilon) + decay)


@pytest.mark.parametrize(
    "scale", [1e-9, 1e-3, 1.0]
)  # at 1e-9 epsilon against sqrt(v) decides, at 1 clipping does
def test_adam_is_the_authors(recipe, scale):
    generator, updates = np.random.default_rng(3), 12
    model = torch.nn.Linear(5, 4).double()
    values = {
        name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()
    }
    moments = {name: (np.zeros_like(value), np.zeros_like(value)) for name, value in values.items()}
    optimizer = optim.adam(model, recipe)
    for t in range(1, updates + 1):
        gradients = {
            name: scale * generator.normal(size=value.shape) for name, value in values.items()
        }
        for name, parameter in model.named_parameters():
            parameter.grad = torch.from_numpy(gradients[name].copy())
        found = optim.gradients_of(model.parameters())
        rates = optim.rates(recipe, t, updates, recipe.warmup_fraction)
        optim.clip_gradients(found, recipe.max_gradient_norm)
        optim.set_rates(optimizer, rates)
        optimizer.step()
        authors_update(values, moments, gradients, recipe, t, updates)
        for name, parameter in model.named_parameters():
            np.testing.assert_allclose(
                parameter.detach().numpy(), values[name], rtol=1e-6, atol=1e-9
            )


@pytest.mark.slow
def test_an_update_does_without_the_compiler():
    """Its import takes as long as torch's own."""
    program = """
import sys, torch
from gpt1.model.networks import make_network
from gpt1.params.schema import read_params
from gpt1.train.optim import adam
params = read_params()
network = make_network("transformer", params, 50, torch.Generator())
optimizer = adam(network, params.finetune)
for parameter in network.parameters():
    parameter.grad = torch.ones_like(parameter)
before = network.tokens.detach().clone()
optimizer.step()
optimizer.zero_grad()
assert not torch.equal(before, network.tokens) and network.tokens.grad is None
print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_clipping_is_the_authors():
    first, second = torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)
    first.grad, second.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    gradients = optim.gradients_of([first, second, torch.zeros(1, requires_grad=True)])
    assert optim.clip_gradients(gradients, 10.0) == 5
    assert first.grad.tolist() == [3, 0]
    assert optim.clip_gradients(gradients, 1.0) == 5
    torch.testing.assert_close(torch.cat([first.grad, second.grad]), torch.tensor([0.6, 0, 0.8]))
