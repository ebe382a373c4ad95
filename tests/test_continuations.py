"""Log-probabilities of continuations by both networks: against float64 arithmetic, plain forwards,
and other ways of batching.
"""

import math

import numpy as np
import pytest
import torch
from by_hand import lstm_states
from made_prompts import SIZES, prompts_of

from gpt1.inference.continuations import log_probabilities
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm

UNITS, ROWS = 20, 30
NEAR = 1e-4  # of sums down to -40 in float32, added up in other orders


def network(kind, rows=ROWS):
    """A small random network whose biases and gains are random too."""
    generator = torch.Generator().manual_seed(3)
    made = (
        Lstm(SIZES, UNITS, rows, generator) if kind == "lstm" else Decoder(SIZES, rows, generator)
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return made


def random_prompts(n, k, seed):
    """Prompts of all lengths, some without a prefix and some whose continuations are one token."""
    draw = np.random.default_rng(seed)
    made = []
    for number in range(n):
        prefix = draw.integers(ROWS, size=draw.integers(1, 14) if number % 4 else 0).tolist()
        uncounted = [int(draw.integers(0 if prefix else 1, 3)) for _ in range(k)]
        longest = 1 if number % 7 == 1 else 8
        continuations = [
            draw.integers(ROWS, size=skipped + draw.integers(1, longest + 1)).tolist()
            for skipped in uncounted
        ]
        made.append((prefix, continuations, uncounted))
    return made


def sums(model, made, batch_tokens=100, vocabulary=ROWS):
    return log_probabilities(model, prompts_of(made), vocabulary, batch_tokens)


def numpy_states(model, tokens):
    """Hidden states of one sequence in float64, an implementation of its own: post-norm decoder, or
    LSTM with a projection.
    """
    weights = {name: value.detach().double().numpy() for name, value in model.state_dict().items()}
    if isinstance(model, Lstm):
        return lstm_states(weights, tokens)
    x = weights["tokens"][tokens]

    def linear(name, value):
        return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name, value):
        spread = np.sqrt(value.var(axis=1, keepdims=True) + SIZES.layer_norm_epsilon)
        return (value - value.mean(axis=1, keepdims=True)) / spread * weights[
            f"{name}.weight"
        ] + weights[f"{name}.bias"]

    x = x + weights["positions"][: len(tokens)]
    for layer in range(SIZES.layers):
        at = f"blocks.{layer}"
        q, k, v = (
            part.reshape(len(tokens), SIZES.heads, -1).transpose(1, 0, 2)
            for part in np.split(linear(f"{at}.qkv", x), 3, axis=1)
        )
        logits = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2])
        seen = np.exp(logits - logits.max(axis=2, keepdims=True)) * np.tri(len(tokens))
        mixed = (seen / seen.sum(axis=2, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape)
        n = norm(f"{at}.attention_norm", x + linear(f"{at}.projection", mixed))
        inner = linear(f"{at}.expand", n)
        gelu = inner / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        x = norm(f"{at}.feed_forward_norm", n + linear(f"{at}.contract", gelu))
    return x


def numpy_sums(model, made):
    """Each continuation by itself after its whole prefix, in float64."""
    embeddings, found = model.tokens.detach().double().numpy(), []
    for prefix, continuations, uncounted in made:
        for ids, skipped in zip(continuations, uncounted, strict=True):
            text = [*prefix, *ids]
            logits = numpy_states(model, text) @ embeddings.T
            logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            found.append(
                sum(
                    logs[place - 1, text[place]]
                    for place in range(len(prefix) + skipped, len(text))
                )
            )
    return np.array(found).reshape(len(made), -1)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_log_probabilities_are_those_of_float64_arithmetic(kind, k):
    model, made = network(kind), random_prompts(24, k, seed=k)
    found = sums(model, made)
    assert found.std() > 1, "made-up weights that tell texts apart"
    np.testing.assert_allclose(found, numpy_sums(model, made), rtol=0, atol=NEAR)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_batch_padding_and_order_change_nothing(kind):
    model, made = network(kind), random_prompts(40, 3, seed=9)
    expected = sums(model, made)
    for batch_tokens in (1, 64, 100_000):
        np.testing.assert_allclose(sums(model, made, batch_tokens), expected, rtol=0, atol=NEAR)
    order = np.random.default_rng(1).permutation(len(made))
    np.testing.assert_allclose(
        sums(model, [made[row] for row in order]), expected[order], rtol=0, atol=NEAR
    )
    longer = [*made, ([1] * 13, [[2] * 11] * 3, [0] * 3)]  # stretches every row of its batch
    np.testing.assert_allclose(sums(model, longer, 100_000)[:-1], expected, rtol=0, atol=NEAR)
    unshared = [
        (prefix, [ids], [skipped])
        for prefix, continuations, counts in made
        for ids, skipped in zip(continuations, counts, strict=True)
    ]
    np.testing.assert_allclose(sums(model, unshared).reshape(-1, 3), expected, rtol=0, atol=NEAR)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_a_plain_forward_gives_the_same(kind):
    model, made = network(kind), random_prompts(16, 2, seed=4)
    for (prefix, continuations, uncounted), found in zip(made, sums(model, made), strict=True):
        for ids, skipped, sum_ in zip(continuations, uncounted, found, strict=True):
            text = torch.tensor([[*prefix, *ids]])
            logs = (model(text).hidden_btd[0] @ model.tokens.T).log_softmax(1).detach()
            first = len(prefix) + skipped
            assert sum_ == pytest.approx(
                logs[first - 1 : -1].gather(1, text[0, first:, None]).sum().item(), abs=NEAR
            )


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_softmax_over_the_vocabulary_alone(kind):
    """The probabilities of all next tokens sum to 1, special rows left out."""
    vocabulary = ROWS - 3
    found = sums(
        network(kind),
        [([5, 6, 7], [[token] for token in range(vocabulary)], [0] * vocabulary)],
        vocabulary=vocabulary,
    )
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
