"""Stage `generate` and `gpt1 generate` on a made vocabulary and random weights: transformers'
generate against our own network, token by token.
"""

import json
from pathlib import Path

import pytest
import torch
from made_data import refused, write_params, write_token_files

from gpt1.base.files import read_json
from gpt1.commands.generate import generate
from gpt1.corpus.bpe import Vocabulary
from gpt1.inference.generation import continue_prompt, load_language_model, readable
from gpt1.model.networks import describe, make_network
from gpt1.model.weights import save_weights
from gpt1.params.schema import read_params
from gpt1.stages import generate as stage

VOCABULARY = Vocabulary(
    "abcdefghijklmnopqrstuvwxyz.,?", [("t", "h"), ("th", "e</w>"), ("e", "r</w>"), ("c", "a")]
)
BOOKS = [
    "the cat sat.\nthe dog ran far, far away. ",
    "what is a bee? it is a small one. the end. ",
    "an owl. ",
]
WEIGHTS = Path("data/pretrain/transformer/seed-0/weights.safetensors")


@pytest.fixture(scope="module")
def ids():
    """Ids of each book; the first two are long, the third is too short for an opening."""
    return [VOCABULARY.encode(text) for text in (BOOKS[0] * 3, BOOKS[1] * 3, BOOKS[2])]


@pytest.fixture
def network(tmp_path, monkeypatch, ids):
    """A folder with parameters, vocabulary, shards and random weights; the Transformer."""
    own = {"prompts": ["The cat", "what is"], "heldout_prompts": 5, "prompt_tokens": 7}
    own |= {"tokens": 6, "samples": 2, "beams": 3}
    section = {f"generate__{name}": value for name, value in own.items()}
    write_params(tmp_path, **section)
    monkeypatch.chdir(tmp_path)
    VOCABULARY.save(Path("data/bpe"), {})
    books = {"train": ids, "heldout": ids}
    write_token_files(Path("data/shard"), books, VOCABULARY.size, VOCABULARY.fingerprint)
    params = read_params()
    about = describe("transformer", params, VOCABULARY.size, VOCABULARY.fingerprint)
    network = make_network(about.kind, params, VOCABULARY.size, torch.Generator().manual_seed(1))
    with torch.no_grad():
        network.tokens.mul_(20)
    save_weights(WEIGHTS, network, about)
    return network.eval()


def change(**values):
    """Other parameters of the section generate."""
    params = read_json(Path("params.yaml"))
    params["generate"] |= values
    Path("params.yaml").write_text(json.dumps(params))


def log_probabilities(network, ids):
    """Of the next token by our own network; the unknown piece, which stands for no text, aside."""
    with torch.no_grad():
        logits_v = (network(torch.tensor([ids])).hidden_btd @ network.tokens.T)[0, -1]
    logits_v[0] = -torch.inf
    return logits_v.log_softmax(0)


def test_greedy_is_our_own_networks_likeliest_token_each_time(network):
    model = load_language_model(WEIGHTS, Path("data/bpe"), "cpu")
    for prompt in ("the cat", "what is a bee"):
        ids = VOCABULARY.encode(prompt)[:8]
        grown = list(ids)
        for _ in range(8):
            grown.append(int(log_probabilities(network, grown).argmax()))
        assert continue_prompt(model, ids, 8, 0, do_sample=False) == [
            readable(VOCABULARY, grown[len(ids) :])
        ]


def test_draws_follow_their_seed(network):
    model, ids = load_language_model(WEIGHTS, Path("data/bpe"), "cpu"), VOCABULARY.encode("the cat")
    drawn = [
        continue_prompt(model, ids, 8, seed, do_sample=True, num_return_sequences=3)
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) > 1


def test_no_text_goes_past_the_context(network):
    model, long = load_language_model(WEIGHTS, Path("data/bpe"), "cpu"), VOCABULARY.encode(BOOKS[0])
    assert len(long) > network.context == 16
    (text,) = continue_prompt(model, long, 100, 0, do_sample=False)
    grown = long[-8:]
    for _ in range(8):
        grown.append(int(log_probabilities(network, grown).argmax()))
    assert text == readable(VOCABULARY, grown[8:])


@pytest.mark.slow
def test_the_stage(network, ids):
    stage.main("0")
    first = Path("data/generate/samples.json").read_bytes()
    stage.main("0")
    assert Path("data/generate/samples.json").read_bytes() == first, "equal runs, equal bytes"
    found = json.loads(first)
    assert [one["origin"] for one in found["prompts"]] == ["params.yaml"] * 2 + [
        "held-out book book 0",
        "held-out book book 1",
    ]
    assert found["prompts"][0]["prompt"] == "the cat"
    assert found["prompts"][0]["reference"] is None
    for one, book in zip(found["prompts"][2:], ids, strict=False):
        whole = readable(VOCABULARY, book)
        assert "".join(whole.split()).startswith(
            "".join((one["prompt"] + one["reference"]).split())
        ), "the book goes on from its opening"
        assert whole.startswith(one["prompt"])
        assert whole[len(one["prompt"])] in " \n", "an opening ends with a word"
        decodings = [sample["decoding"] for sample in one["samples"]]
        assert decodings == ["greedy", "beam", "sampled", "sampled"]


def test_what_the_stage_refuses(network):
    change(prompts=["the", " \n"])
    assert "prompt: expected some text" in refused(stage.main, "0")
    change(prompts=[], heldout_prompts=0)
    stage.main("0")
    assert read_json(Path("data/generate/samples.json"))["prompts"] == []


def test_the_command_goes_on_and_refuses(network, capsys):
    model = load_language_model(WEIGHTS, Path("data/bpe"), "cpu")
    (text,) = continue_prompt(model, VOCABULARY.encode("the cat"), 5, 0)
    generate(["The cat"], tokens=5)
    assert capsys.readouterr().out == f"The cat\n  {text}\n".replace("\n  \n", "\n")
    generate(["The cat", "what is"], tokens=5, samples=3, seed=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.startswith("  ") for line in lines] == [False, True, True, True] * 2
    assert "expected some text to go on with" in refused(generate, [" "])
    assert "run the stage that writes it" in refused(generate, ["a"], weights=Path("no"))
