"""Equations 1, 4 and 5 by hand and against numpy, and the soft labels of STS-B."""

import math

import numpy as np
import pytest
import torch

from gpt1.train import losses


def test_language_model_is_a_mean_over_real_tokens_of_each_sequence():
    generator = np.random.default_rng(0)
    hidden, embeddings = generator.normal(size=(3, 5, 4)), generator.normal(size=(7, 4))
    targets, lengths = generator.integers(0, 7, size=(3, 5)), [5, 2, 1]
    expected = []
    for n, length in enumerate(lengths):
        logits = hidden[n, :length] @ embeddings.T
        logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        expected.append(-np.mean([logs[t, targets[n, t]] for t in range(length)]))
    found = losses.language_model(
        torch.from_numpy(hidden).float(),
        torch.from_numpy(embeddings).float(),
        torch.from_numpy(targets),
        losses.computed_targets(torch.tensor(lengths), 5, torch.device("cpu")),
    )
    np.testing.assert_allclose(found.losses_n.numpy(), expected, rtol=1e-5)
    assert found.mean.item() == pytest.approx(np.mean(expected), rel=1e-5)


@pytest.mark.parametrize(
    "blocks",
    [(2, 0, 20, 1), (5, 0, 7, 1), (1, 40, 16, 4), losses.BLOCKS["cpu"], losses.OTHER_BLOCKS],
)
def test_the_softmax_in_blocks_is_torchs_with_its_gradients(blocks, monkeypatch):
    monkeypatch.setitem(losses.BLOCKS, "cpu", losses.SoftmaxBlocks(*blocks))
    generator = torch.Generator().manual_seed(0)
    hidden, embeddings = (
        torch.randn(count, 4, generator=generator, requires_grad=True) for count in (11, 7)
    )
    targets, weights = (
        torch.randint(0, 7, (11,), generator=generator),
        torch.rand(11, generator=generator),
    )
    total, found = losses.tied_softmax(hidden, embeddings, targets, weights)
    expected = torch.nn.functional.cross_entropy(hidden @ embeddings.T, targets, reduction="none")
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(total, (expected * weights).sum())
    gradients = torch.autograd.grad(3 * total, (hidden, embeddings))
    torch.testing.assert_close(
        gradients, torch.autograd.grad(3 * (expected * weights).sum(), (hidden, embeddings))
    )


def test_classification_by_hand():
    found = losses.classification(
        torch.tensor([[0.0, math.log(3)], [0.0, 0.0]]), torch.tensor([1, 0])
    )
    torch.testing.assert_close(found, torch.tensor([-math.log(3 / 4), math.log(2)]))


def test_soft_labels():
    for score, expected in [
        (0.0, [1, 0, 0, 0, 0, 0]),
        (5.0, [0, 0, 0, 0, 0, 1]),
        (3.0, [0, 0, 0, 1, 0, 0]),
        (3.2, [0, 0, 0, 0.8, 0.2, 0]),
        (0.5, [0.5, 0.5, 0, 0, 0, 0]),
        (4.75, [0, 0, 0, 0, 0.25, 0.75]),
    ]:
        torch.testing.assert_close(
            losses.score_distribution(torch.tensor([score]), 6),
            torch.tensor([expected], dtype=torch.float32),
        )


def test_equation_5():
    assert losses.finetune(torch.tensor([1.0, 3.0]), torch.tensor(6.0), 0.5).item() == 2 + 0.5 * 6
