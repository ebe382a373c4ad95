"""Stage `generate` and `gpt1 generate`, on a made vocabulary of single characters and random
weights.
"""

import functools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from made_data import write_params

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.commands.generate import generate, show
from gpt1.corpus import words
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.shards import SplitWriter, write_index
from gpt1.inference import scores
from gpt1.inference.loading import threads_for
from gpt1.inference.request import readable, stop_ids, whole_words
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.networks import describe, make_network
from gpt1.model.weights import save_weights
from gpt1.params.schema import read_params
from gpt1.stages import generate as stage

VOCABULARY = Vocabulary(
    "abcdefghijklmnopqrstuvwxyz.,?", [("t", "h"), ("th", "e</w>"), ("e", "r</w>"), ("c", "a")]
)
ENGLISH = functools.cache(
    words._english_tokenizers
)  # the very same, made once: a second for each vocabulary else
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
def checkout(tmp_path, monkeypatch, ids):
    """A folder with parameters, vocabulary, shards and random weights of both networks."""
    own = {
        "prompts": ["The cat", "what is"],
        "heldout_prompts": 5,
        "prompt_tokens": 14,
        "tokens": 12,
        "samples": 2,
        "beams": 3,
        "perplexity_tokens": 120,
    }
    write_params(
        tmp_path,
        **{f"generate__{name}": value for name, value in own.items()},
        lstm__units=12,
        lstm_equal__units=14,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(words, "_english_tokenizers", ENGLISH)
    VOCABULARY.save(Path("data/bpe"), {})
    folder = Path("data/shard")
    folder.mkdir(parents=True)
    splits = {}
    for split in ("train", "heldout"):
        writer = SplitWriter(folder / f"{split}.bin")
        for number, book in enumerate(ids):
            writer.begin(f"book {number}")
            writer.append(np.array(book, dtype=np.uint16), words=len(book) // 3)
        splits[split] = writer.close()
    write_index(folder, splits, VOCABULARY.size, VOCABULARY.fingerprint, "made")
    params = read_params()
    for name in ("transformer", "lstm_equal", "lstm"):
        network = make_network(name, params, VOCABULARY.size, torch.Generator().manual_seed(1))
        with torch.no_grad():
            network.tokens.mul_(20)
        save_weights(
            Path("data/pretrain", name, "seed-0", "weights.safetensors"),
            network,
            describe(name, params, VOCABULARY.size, VOCABULARY.fingerprint),
        )
    return network


def change(**values):
    """Other parameters of the section generate."""
    params = read_json(Path("params.yaml"))
    params["generate"] |= values
    Path("params.yaml").write_text(json.dumps(params))


def test_a_small_network_keeps_to_one_thread_and_a_file_does_not_steer_the_terminal(capsys):
    assert [threads_for(count, 64) for count in (1_100_000, 7_999_999, 8_000_000, 116_534_784)] == [
        1,
        1,
        2,
        15,
    ]
    assert threads_for(116_534_784, 4) == 4
    show({"prompts": [{"prompt": "\x1b[2Ja", "samples": [{"text": "b\x07\nc\u202e"}]}]}, False)
    assert capsys.readouterr().out == "[2Ja\n  b\n  c\n"


def refused(function, **arguments):
    with pytest.raises(UserError) as error:
        function(**arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_stage(checkout, ids):
    stage.main("0")
    files = {path.name: path.read_bytes() for path in Path("data/generate").iterdir()}
    stage.main("0")
    assert {path.name: path.read_bytes() for path in Path("data/generate").iterdir()} == files, (
        "equal runs write equal bytes"
    )
    found = json.loads(files["samples.json"])
    assert [one["origin"] for one in found["prompts"]] == ["params.yaml"] * 2 + [
        "held-out book book 0",
        "held-out book book 1",
    ]
    assert found["prompts"][0]["prompt"] == "the cat"
    assert found["prompts"][0]["reference"] is None
    for one, book in zip(found["prompts"][2:], ids, strict=False):
        assert 0 < one["prompt_tokens"] <= 14
        whole = readable(VOCABULARY, book)
        assert "".join(whole.split()).startswith(
            "".join((one["prompt"] + one["reference"]).split())
        ), "the book goes on from its opening"
        assert whole.startswith(one["prompt"])
        assert whole[len(one["prompt"])] in " \n", "an opening ends with a word"
        assert [sample["decoding"] for sample in one["samples"]] == [
            "greedy",
            "beam",
            "sampled",
            "sampled",
        ]
    texts = [
        sample["text"]
        for one in found["prompts"][2:]
        for sample in one["samples"]
        if sample["decoding"] == "sampled"
    ]
    references = [[one["reference"]] for one in found["prompts"][2:] for _ in range(2)]
    assert found["scores"]["sampled"] == pytest.approx(
        scores.score(texts, references, None).values, abs=1e-5
    )
    assert set(found["signatures"]) == {"bleu", "rouge", "meteor_exact_stem"}
    for one in found["prompts"]:
        for sample in one["samples"]:
            assert sample["text"] in files["samples.md"].decode()
            assert sample["log_probability"] < 0


def test_the_stages_perplexity_is_that_of_plain_forwards(checkout, ids):
    """The openings of 40 tokens of each book, in a context of 16."""
    stage.main("0")
    params = read_params()
    network = make_network("transformer", params, VOCABULARY.size, torch.Generator().manual_seed(1))
    nats = []
    with torch.no_grad():
        network.tokens.mul_(20)
        for book in (book[:40] for book in ids):
            for place in range(1, len(book)):
                start = max(0, math.ceil((place - 16) / 8)) * 8
                hidden_d = network(torch.tensor([book[start:place]]), NO_DROPOUT).hidden_btd[0, -1]
                nats.append(
                    -float((hidden_d @ network.tokens.T).double().log_softmax(0)[book[place]])
                )
    found = read_json(Path("data/generate/samples.json"))["perplexity"]
    words = sum(len(book) // 3 for book in ids) / sum(map(len, ids))
    assert (found["tokens"], found["books"]) == (len(nats), 3)
    assert found["loss"] == pytest.approx(np.mean(nats), abs=1e-4)
    assert found["per_word"] == pytest.approx(math.exp(np.mean(nats) / words), rel=1e-3)


def test_what_the_stage_refuses(checkout):
    change(prompts=["the", " \n"])
    assert "generate.prompts in params.yaml, number 2: expected some text" in refused(
        stage.main, seed="0"
    )
    change(prompts=[], heldout_prompts=0)
    stage.main("0")
    assert read_json(Path("data/generate/samples.json"))["prompts"] == []
    index = read_json(Path("data/shard/index.json"))
    Path("data/shard/index.json").write_text(
        json.dumps(index | {"vocabulary_fingerprint": "0" * 16})
    )
    assert "expected tokens of the vocabulary" in refused(stage.main, seed="0")


def test_the_command_goes_on(checkout, capsys):
    generate(prompt=["The cat", "what is a"], tokens=9, as_json=True)
    plain = json.loads(capsys.readouterr().out)["prompts"]
    generate(prompt=["what is a"], tokens=9, temperature=0.0)
    assert capsys.readouterr().out == f"what is a\n  {plain[1]['samples'][0]['text']}\n".replace(
        "\n  \n", "\n"
    )
    assert [len(one["samples"][0]["ids"]) for one in plain] == [9, 9]
    stop = VOCABULARY.decode(plain[0]["samples"][0]["ids"][2:3]).strip()
    Path("p.txt").write_text("the cat\nwhat is a\n")
    Path("r.txt").write_text("The dog\tan owl\nwhat?\n")
    generate(
        prompts=Path("p.txt"),
        references=Path("r.txt"),
        tokens=9,
        samples=3,
        top_k=5,
        seed=1,
        stop=["\\n", stop],
        as_json=True,
    )
    scored = json.loads(capsys.readouterr().out)
    assert [len(one["samples"]) for one in scored["prompts"]] == [3, 3]
    pairs = [
        (sample["text"], own)
        for one, own in zip(scored["prompts"], [["the dog", "an owl"], ["what ?"]], strict=True)
        for sample in one["samples"]
    ]
    wanted = scores.score(
        [text for text, _ in pairs], [own for _, own in pairs], scores.find_wordnet(None)
    )
    assert (scored["scores"], scored["signatures"]) == (wanted.values, wanted.signatures)
    Path("t.txt").write_text("the cat. what is\na dog?")
    for network in ("lstm", "lstm_equal"):
        weights = Path("data/pretrain", network, "seed-0", "weights.safetensors")
        generate(perplexity=Path("t.txt"), weights=weights)
        assert ", 8 words)" in capsys.readouterr().out, "a line break is no word"


@pytest.mark.slow
def test_what_the_command_refuses(checkout):
    Path("empty.txt").write_text("the\n\ncat\n")
    Path("one.txt").write_text("the\n")
    assert "expected --prompt TEXT" in refused(generate)
    assert "line 2: expected a text in each line" in refused(generate, prompts=Path("empty.txt"))
    assert "expected 2 lines, one for each prompt, found 1" in refused(
        generate, prompt=["a", "b"], references=Path("one.txt")
    )
    assert "no.txt cannot be read" in refused(generate, prompts=Path("no.txt"))
    assert "beam search draws nothing" in refused(generate, prompt=["a"], beams=2, temperature=1.0)
    assert "at most --beams 2" in refused(generate, prompt=["a"], beams=2, samples=3)
    assert "a temperature above 0" in refused(generate, prompt=["a"], temperature=0.0, samples=2)
    assert "prompt 2: expected some text" in refused(generate, prompt=["a", " "])
    assert "run the stage that writes it" in refused(
        generate, prompt=["a"], weights=Path("no.safetensors")
    )
    Vocabulary("ab", []).save(Path("other"), {})
    assert "expected weights trained with the vocabulary in other (6 entries" in refused(
        generate, prompt=["a"], vocabulary=Path("other")
    )
    assert "--top-p: expected a number that is finite" in refused(
        generate, prompt=["a"], top_p=math.nan
    )
    params = read_params()
    description = describe("transformer", params, VOCABULARY.size, VOCABULARY.fingerprint)
    task = make_network("transformer", params, VOCABULARY.size, torch.Generator())
    save_weights(Path("task.safetensors"), task, replace(description, kind="transformer for rte"))
    assert "gpt1 predict for a task's model" in refused(
        generate, prompt=["a"], weights=Path("task.safetensors")
    )
    with torch.no_grad():
        task.tokens.fill_(math.nan)
    save_weights(Path("spoiled.safetensors"), task, description)
    for beams in (1, 2):
        assert "no finite probabilities" in refused(
            generate, prompt=["a"], weights=Path("spoiled.safetensors"), beams=beams
        )


def test_texts_for_a_person():
    line_end = VOCABULARY.size - 1
    ids = [*VOCABULARY.encode("the cat"), line_end, *VOCABULARY.encode("the")]
    assert readable(VOCABULARY, ids) == "the cat\nthe"
    steering = Vocabulary("a\x1b\u202e", [])
    assert readable(steering, [1, 2, 3, 4]) == "aa"
    assert stop_ids(VOCABULARY, "\\n") == stop_ids(VOCABULARY, "\n") == (line_end,)
    half = VOCABULARY.encode("the bee")
    assert whole_words(VOCABULARY, half[:-1]) == VOCABULARY.encode("the")
    assert whole_words(VOCABULARY, half[1:-1]) == half[1:-1], "where no word ends, all of it"
