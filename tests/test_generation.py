"""Decoding: token for token what transformers generates from the same weights; cache, windows and
batches change nothing.
"""

import math

import numpy as np
import pytest
import torch

from gpt1.inference.beam import Beam, beam_search
from gpt1.inference.cache import read, window_start
from gpt1.inference.decode import Draw, Limits, draws, filtered, greedy, pick, sampled
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm
from gpt1.params.schema import Model

VOCABULARY, SPECIALS, CONTEXT = 61, 3, 48
STOPS = tuple((token,) for token in range(0, VOCABULARY, 4))
SIZES = Model(
    context=CONTEXT,
    width=32,
    layers=2,
    heads=4,
    feed_forward=128,
    embedding_deviation=0.4,
    weight_deviation=0.25,
    layer_norm_epsilon=1e-5,
)
PROMPTS = [
    np.random.default_rng(number).integers(VOCABULARY, size=1 + number % 5 * 4).tolist()
    for number in range(50)
]


def made(kind, rows=VOCABULARY):
    """A small random network whose biases and gains are random too."""
    generator = torch.Generator().manual_seed(5)
    network = (
        Lstm(SIZES, 40, rows, generator) if kind == "lstm" else Decoder(SIZES, rows, generator)
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.15 * torch.randn(parameter.shape, generator=generator))
    return network.eval()


def limits(tokens, stops=(), forbidden=()):
    return Limits(tokens, stops, forbidden, VOCABULARY)


@pytest.fixture(scope="module")
def decoder():
    return made("transformer")


@pytest.fixture(scope="module")
def theirs(decoder):
    """The same tensors in transformers' OpenAIGPTLMHeadModel."""
    from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    model = OpenAIGPTLMHeadModel(
        OpenAIGPTConfig(
            vocab_size=VOCABULARY,
            n_positions=CONTEXT,
            n_embd=SIZES.width,
            n_layer=SIZES.layers,
            n_head=SIZES.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
        )
    ).eval()
    names = {
        "qkv": "attn.c_attn",
        "projection": "attn.c_proj",
        "attention_norm": "ln_1",
        "expand": "mlp.c_fc",
        "contract": "mlp.c_proj",
        "feed_forward_norm": "ln_2",
    }
    with torch.no_grad():
        model.transformer.tokens_embed.weight.copy_(decoder.tokens)
        model.transformer.positions_embed.weight.copy_(decoder.positions)
        for number, block in enumerate(decoder.blocks):
            for ours, name in names.items():
                part = model.transformer.h[number].get_submodule(name)
                weight = getattr(block, ours).weight
                part.weight.copy_(weight if "norm" in ours else weight.T)
                part.bias.copy_(getattr(block, ours).bias)
    return model


def their_texts(theirs, prompts, **settings):
    """The new tokens of transformers.generate, [texts of each prompt]; prompts of one length go
    together, so that none is padded.
    """
    found = {}
    for length in {len(prompt) for prompt in prompts}:
        numbers = [number for number, prompt in enumerate(prompts) if len(prompt) == length]
        tokens_bt = torch.tensor([prompts[number] for number in numbers])
        texts = theirs.generate(
            tokens_bt,
            attention_mask=torch.ones_like(tokens_bt),
            do_sample=False,
            pad_token_id=1,
            **settings,
        )
        for number, rows in zip(
            numbers,
            texts[:, length:].view(len(numbers), -1, texts.shape[1] - length).tolist(),
            strict=True,
        ):
            found[number] = [cut(row) for row in rows] if "eos_token_id" in settings else rows
    return [found[number] for number in range(len(prompts))]


def cut(ids):
    """What stands up to the first stop, it included: transformers pads after it."""
    ends = [place for place, token in enumerate(ids, start=1) if (token,) in STOPS]
    return ids[: ends[0]] if ends else ids


def plain_log_probabilities(network, text):
    """Of the token after a text, by the network's own forward on the window, in float64 from the
    hidden state on.
    """
    window = text if isinstance(network, Lstm) else text[window_start(len(text), network.context) :]
    with torch.no_grad():
        hidden_d = network(torch.tensor([window]), NO_DROPOUT).hidden_btd[0, -1]
        return (hidden_d @ network.tokens[:VOCABULARY].T).double().log_softmax(0)


def plain_sum(network, prompt, ids):
    """The log-probability of new tokens after a prompt."""
    text, total = list(prompt), 0.0
    for token in ids:
        total += float(plain_log_probabilities(network, text)[token])
        text.append(token)
    return total


def plain_greedy(network, prompt, tokens):
    """One prompt, no cache."""
    text = list(prompt)
    for _ in range(tokens):
        text.append(int(plain_log_probabilities(network, text).argmax()))
    return text[len(prompt) :]


@pytest.mark.slow
def test_greedy_is_transformers_token_for_token(decoder, theirs):
    texts = greedy(decoder, PROMPTS, limits(24))
    assert [[list(text.ids)] for text in texts] == their_texts(theirs, PROMPTS, max_new_tokens=24)
    assert len({text.ids for text in texts}) > 25, "texts that are all alike would show nothing"


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.5])
def test_beam_search_is_transformers_token_for_token(decoder, theirs, penalty):
    """With stop symbols, so that texts of many lengths compete."""
    ours = beam_search(decoder, PROMPTS, limits(14, stops=STOPS), Beam(4, penalty, 2))
    wanted = their_texts(
        theirs,
        PROMPTS,
        max_new_tokens=14,
        num_beams=4,
        num_return_sequences=2,
        length_penalty=penalty,
        eos_token_id=[token for (token,) in STOPS],
    )
    assert [[list(sample.ids) for sample in found] for found in ours] == wanted
    assert all(sample.stopped == (sample.ids[-1:] in STOPS) for found in ours for sample in found)
    assert len({len(sample.ids) for found in ours for sample in found}) > 2, (
        "texts of one length show nothing"
    )
    for prompt, found in list(zip(PROMPTS, ours, strict=True))[:5]:
        assert found[0].log_probability == pytest.approx(
            plain_sum(decoder, prompt, found[0].ids), abs=1e-4
        )


def test_a_wider_beam_is_exhaustive_search(decoder):
    """With as many beams as there are texts of two tokens, the best of three tokens is the best
    there is.
    """
    small = Limits(3, (), tuple(range(4, VOCABULARY)), VOCABULARY)  # four tokens are left
    best = beam_search(decoder, [[9, 2]], small, Beam(16, 1.0, 1))[0][0]
    scores = {}
    for a in range(4):
        for b in range(4):
            for c in range(4):
                scores[a, b, c] = plain_sum(decoder, [9, 2], (a, b, c))
    assert best.ids == max(scores, key=lambda ids: scores[ids])
    assert best.log_probability == pytest.approx(max(scores.values()), abs=1e-4)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_the_cache_changes_nothing_within_the_context_and_past_it(kind):
    """States after each token are those of the network's own forward, and so are the texts; prompts
    shorter and longer than the context.
    """
    network = made(kind)
    prompts = [PROMPTS[3], list(range(CONTEXT - 1)), [*range(40)] * 2, [5] * CONTEXT]
    with torch.inference_mode():
        reading = read(network, prompts, 200)
        for number in range(60):
            for row, text in enumerate(reading.texts if number % 3 == 0 else []):
                plain = plain_log_probabilities(network, text)
                found = (
                    (reading.hidden_bd[row] @ network.tokens[:VOCABULARY].T).double().log_softmax(0)
                )
                assert (found - plain).abs().max() < 1e-4, f"row {row}, {number} tokens on"
            reading.append(torch.tensor([number, 3 * number, 7, 11 * number]) % VOCABULARY)
            if number == 30:
                reading.keep([3, 1, 2, 1])
    texts = greedy(network, prompts, limits(40))
    assert [list(text.ids) for text in texts] == [
        plain_greedy(network, prompt, 40) for prompt in prompts
    ]


def test_windows_slide_in_steps_of_half_a_context():
    starts = [window_start(length, 8) for length in range(1, 22)]
    assert starts == [0] * 8 + [4] * 4 + [8] * 4 + [12] * 4 + [16]
    for context in (8, 9, 512):
        seen = [length - window_start(length, context) for length in range(1, 5 * context)]
        assert max(seen) == context
        assert min(seen[context:]) > context // 2


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_a_text_does_not_depend_on_the_batch(kind):
    network, draw = made(kind), Draw(1.0, 20, 0.9, 3, 2)
    together = sampled(network, PROMPTS[:20], limits(24, stops=STOPS[:1]), draw)
    first = sampled(network, PROMPTS[:3], limits(24, stops=STOPS[:1]), draw)
    assert [[sample.ids for sample in one] for one in together[:3]] == [
        [sample.ids for sample in one] for one in first
    ]
    more = sampled(network, PROMPTS[:3], limits(24, stops=STOPS[:1]), draw._replace(samples=19))
    assert [sample.ids for sample in more[2]][:2] == [sample.ids for sample in first[2]]
    assert len({sample.ids for sample in more[2]}) > 15
    other = sampled(network, PROMPTS[:3], limits(24, stops=STOPS[:1]), draw._replace(seed=4))
    assert [sample.ids for sample in other[0]] != [sample.ids for sample in first[0]]
    beams = [
        beam_search(network, prompts, limits(12), Beam(3, 1.0, 3))
        for prompts in (PROMPTS[:9], PROMPTS[:9][::-1])
    ]
    assert [[sample.ids for sample in one] for one in beams[0]] == [
        [sample.ids for sample in one] for one in beams[1][::-1]
    ]


def test_a_sample_is_drawn_by_the_numbers_of_its_prompt_and_its_place(decoder):
    """Sample 2 of prompt 1, drawn again from plain forwards."""
    found, text = (
        sampled(decoder, PROMPTS[:2], limits(8), Draw(0.8, 30, 0.9, 6, 3))[1][2],
        list(PROMPTS[1]),
    )
    for uniform in draws(6, 1, 2, 8):
        kept_bv = filtered(plain_log_probabilities(decoder, text)[None], 0.8, 30, 0.9)
        text.append(int(pick(kept_bv, torch.tensor([uniform]))))
    assert list(found.ids) == text[len(PROMPTS[1]) :]
    assert found.log_probability == pytest.approx(
        plain_sum(decoder, PROMPTS[1], found.ids), abs=1e-4
    ), "before temperature and filters"


def test_only_the_vocabulary_is_generated():
    """Rows of special symbols (a fine-tuned network has them) and forbidden ids never come, however
    likely.
    """
    network = made("transformer", VOCABULARY + SPECIALS)
    with torch.no_grad():
        network.tokens[VOCABULARY:] *= 100
        network.tokens[0] *= 30
    free, kept = limits(30), limits(30, forbidden=(0,))
    draw = Draw(1.5, None, 1.0, 0, 4)
    found = {
        token
        for samples in sampled(network, PROMPTS[:8], free, draw)
        for sample in samples
        for token in sample.ids
    }
    assert 0 in found
    assert max(found) < VOCABULARY
    for texts in (
        [[one] for one in greedy(network, PROMPTS[:8], kept)],
        sampled(network, PROMPTS[:8], kept, draw),
        beam_search(network, PROMPTS[:8], kept, Beam(3, 1.0, 3)),
    ):
        assert 0 not in {token for samples in texts for sample in samples for token in sample.ids}
        assert all(math.isfinite(sample.log_probability) for samples in texts for sample in samples)


def test_a_stop_of_several_tokens_ends_a_text(decoder):
    free = greedy(decoder, PROMPTS[:6], limits(30))
    stop = free[4].ids[10:12]
    ended = greedy(decoder, PROMPTS[:6], limits(30, stops=(stop,)))[4]
    first = next(place for place in range(30) if free[4].ids[place : place + 2] == stop)
    assert ended.ids == free[4].ids[: first + 2]
    assert ended.stopped
    assert not free[4].stopped
    assert ended.log_probability == pytest.approx(
        plain_sum(decoder, PROMPTS[4], ended.ids), abs=1e-4
    )


def test_an_empty_prompt_is_refused(decoder):
    with pytest.raises(ValueError, match="one token or more"):
        greedy(decoder, [[1], []], limits(3))
