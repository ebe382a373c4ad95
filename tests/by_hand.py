"""Networks computed by hand in NumPy, float64, one token after another: what the tests hold torch
against.
"""

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
