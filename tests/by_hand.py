"""Networks computed by hand in NumPy, float64: what the tests hold torch against."""

import math

import numpy as np


def lstm_states(weights, tokens):
    """Hidden states [t, d] of the LSTM baseline, by the equations of gpt1/model/lstm.py."""
    units = weights["recurrent.weight_hh_l0"].shape[1]
    h, c, hidden = np.zeros(units), np.zeros(units), []
    for token in tokens:
        gates = (
            weights["recurrent.weight_ih_l0"] @ weights["tokens"][token]
            + weights["recurrent.bias_ih_l0"]
            + weights["recurrent.weight_hh_l0"] @ h
            + weights["recurrent.bias_hh_l0"]
        )
        i, f, g, o = gates.reshape(4, units)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        hidden.append(weights["projection.weight"] @ h + weights["projection.bias"])
    return np.array(hidden)


def decoder_states(weights, tokens, heads):
    """Hidden states [t, d] of the decoder, one head at a time: equation 2 and the supplement."""

    def norm(x, place):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * weights[f"{place}.weight"] + weights[f"{place}.bias"]

    def linear(x, place):
        return x @ weights[f"{place}.weight"].T + weights[f"{place}.bias"]

    x, layer = weights["tokens"][tokens] + weights["positions"][: len(tokens)], 0
    while f"blocks.{layer}.qkv.weight" in weights:
        block, mixed = f"blocks.{layer}", []
        parts = (np.split(part, heads, 1) for part in np.split(linear(x, f"{block}.qkv"), 3, 1))
        for q, k, v in zip(*parts, strict=True):
            scores = np.where(np.tri(len(x)) == 1, q @ k.T / math.sqrt(q.shape[1]), -np.inf)
            weights_tt = np.exp(scores - scores.max(1, keepdims=True))
            mixed.append(weights_tt / weights_tt.sum(1, keepdims=True) @ v)
        attended = linear(np.concatenate(mixed, 1), f"{block}.projection")
        n = norm(x + attended, f"{block}.attention_norm")
        inner = linear(n, f"{block}.expand")
        gelu = 0.5 * inner * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        x = norm(n + linear(gelu, f"{block}.contract"), f"{block}.feed_forward_norm")
        layer += 1
    return x


def states(network, tokens):
    """Hidden states [t, d] of either network, from its own weights."""
    weights = {
        name: value.detach().double().numpy() for name, value in network.state_dict().items()
    }
    if "positions" not in weights:
        return lstm_states(weights, tokens)
    return decoder_states(weights, tokens, network.blocks[0].heads)
