"""The LSTM baseline: its size, its arithmetic against NumPy in float64, what it may see, and that
it serves wherever the decoder does.
"""

import numpy as np
import pytest
import torch
from by_hand import states
from made_data import paper, seeded, tiny_sizes
from torch.nn import functional as F

from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.model.lstm import Lstm
from gpt1.model.networks import describe, make_network, parameters_by_component
from gpt1.model.weights import read_weights, save_weights, transfer_weights
from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.train.batches import Batch
from gpt1.train.objectives import Finetuning, Pretraining

TINY = tiny_sizes(context=12, deviation=0.3)
ROWS, UNITS = 20, 24


def networks():
    return [Decoder(TINY, ROWS, seeded()), Lstm(TINY, UNITS, ROWS, seeded())]


@pytest.fixture
def lstm():
    return Lstm(TINY, UNITS, ROWS, seeded())


def test_parameters_at_the_papers_size():
    with torch.device("meta"):
        parts = parameters_by_component(make_network("lstm", paper(), 40478, torch.Generator()))
    recurrent = 4 * 2048 * (768 + 2048) + 2 * 4 * 2048
    assert parts == {
        "token_embeddings": 31_087_104,
        "recurrent": recurrent,
        "projection": 2048 * 768 + 768,
        "total": 31_087_104 + recurrent + 2048 * 768 + 768,
    }


def test_one_has_the_papers_share_of_parameters_and_one_as_many_as_the_transformer():
    for profile in ["paper", "small", "demo"]:
        params = validate(compose(profile, ()))
        bodies = {}
        for name in ("transformer", "lstm", "lstm_equal"):
            with torch.device("meta"):
                parts = parameters_by_component(make_network(name, params, 10, torch.Generator()))
            bodies[name] = parts["total"] - sum(
                count for part, count in parts.items() if part.endswith("_embeddings")
            )
        assert bodies["lstm"] / bodies["transformer"] == pytest.approx(0.29, rel=0.02)
        assert bodies["lstm_equal"] / bodies["transformer"] == pytest.approx(1, rel=0.02)


def test_the_start_is_drawn_as_the_decoders_and_by_its_generator():
    sizes = TINY.model_copy(
        update={"width": 64, "embedding_deviation": 0.02, "weight_deviation": 0.05}
    )
    one, same, other = (Lstm(sizes, 128, 500, seeded(seed)) for seed in (1, 1, 2))
    assert one.tokens.std().item() == pytest.approx(0.02, rel=0.05)
    for matrix in (one.recurrent.weight_ih_l0, one.recurrent.weight_hh_l0, one.projection.weight):
        assert matrix.std().item() == pytest.approx(0.05, rel=0.05)
    bias = one.recurrent.bias_ih_l0 + one.recurrent.bias_hh_l0
    forget_gate = torch.cat([torch.zeros(128), torch.ones(128), torch.zeros(256)])
    assert torch.equal(bias, forget_gate), "only the forget gate starts open"
    assert all(map(torch.equal, one.parameters(), same.parameters()))
    assert not torch.equal(one.recurrent.weight_hh_l0, other.recurrent.weight_hh_l0)


def test_arithmetic_against_numpy(lstm):
    tokens = [3, 19, 0, 7, 7, 1, 12]
    found = lstm(torch.tensor([tokens])).hidden_btd[0].detach().numpy()
    np.testing.assert_allclose(found, states(lstm, tokens), atol=1e-5)


@pytest.mark.parametrize("network", networks(), ids=["transformer", "lstm"])
def test_a_tokens_loss_has_no_gradient_to_a_later_position(network):
    tokens_bt, place = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8]]), 4
    hidden_btd, embeddings = network(tokens_bt)
    loss = F.cross_entropy(
        F.linear(hidden_btd[0, place], embeddings.tokens_vd.detach())[None], torch.tensor([9])
    )
    loss.backward()
    seen = network.tokens.grad.abs().sum(1) > 0
    assert seen[1 : place + 2].all(), "every token up to the position counts"
    assert not seen[place + 2 :].any(), "no later one does"


@pytest.mark.parametrize("network", networks(), ids=["transformer", "lstm"])
def test_both_orders_of_a_similarity_give_equal_logits(network):
    classifier = Classifier(network, Head(16, 3, "sum", 0.3, seeded(3)))
    pairs_bkt = torch.tensor(
        [[[1, 4, 5, 18, 6, 19], [1, 6, 18, 4, 5, 19]], [[1, 7, 18, 8, 19, 0], [1, 8, 18, 7, 19, 0]]]
    )
    logits_bo = classifier(pairs_bkt).logits_bo
    torch.testing.assert_close(logits_bo, classifier(pairs_bkt.flip(1)).logits_bo)


@pytest.mark.parametrize("network", networks(), ids=["transformer", "lstm"])
def test_the_classifier_reads_extract_whatever_the_padding(network):
    classifier = Classifier(network, Head(16, 2, "single", 0.3, seeded(3)))
    short = torch.tensor([[[1, 4, 5, 19]]])
    beside_a_longer = torch.tensor([[[1, 4, 5, 19, 7, 7]], [[1, 4, 5, 6, 7, 19]]])
    logits_bo = classifier(beside_a_longer).logits_bo[:1]
    torch.testing.assert_close(classifier(short).logits_bo, logits_bo)


def test_losses_learn_and_dropout_is_seeded(lstm):
    windows_bt = torch.randint(0, ROWS, (4, 9), generator=seeded(5))
    pretraining, losses = Pretraining(lstm, "fp32"), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(pretraining(windows_bt, 0.5)["loss"])
    assert losses[0] == losses[1] != losses[2]
    batch = Batch(torch.tensor([[[1, 4, 5, 19]]]), torch.tensor([[4]]), torch.tensor([1]))
    classifier = Classifier(lstm, Head(16, 2, "single", 0.3, seeded(3)))
    Finetuning(classifier, 0.0, 0.5, "fp32")(batch, 0.0)["loss"].backward()
    for name, parameter in lstm.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("name", ["lstm", "lstm_equal"])
def test_weights_say_how_many_units_they_have(name, tmp_path):
    units = paper().lstm.model_copy(update={"units": UNITS})
    params = paper().model_copy(update={"model": TINY, name: units})
    saved, path = Lstm(TINY, UNITS, ROWS - 3, seeded(1)), tmp_path / "weights.safetensors"
    wanted = describe(name, params, ROWS - 3, "abc")
    save_weights(path, saved, wanted)
    assert read_weights(path)[0].config["lstm_units"] == UNITS
    network, fresh = (Lstm(TINY, UNITS, ROWS, seeded(2)) for _ in range(2))
    transfer_weights(path, wanted, network, "all")
    assert torch.equal(network.tokens, torch.cat([saved.tokens, fresh.tokens[-3:]]))
    found = network.state_dict()
    for part, value in saved.state_dict().items():
        assert part == "tokens" or torch.equal(found[part], value), part
