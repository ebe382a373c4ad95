"""`prompt` and `zero_shot` as stages: a vocabulary of single characters, made snapshots, answers
recomputed by plain forwards.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from made_data import change_json, put_acquired, refused, write_params

from gpt1.base.errors import UserError
from gpt1.base.files import read_json
from gpt1.corpus import encoding
from gpt1.corpus.bpe import Vocabulary
from gpt1.model.networks import describe, make_network
from gpt1.model.weights import save_weights
from gpt1.params.schema import read_params
from gpt1.stages import encode, prompt, zero_shot

pytestmark = pytest.mark.slow

CHARACTERS = "abcdefghijklmnopqrstuvwxyz.,?"
MERGES = [("v", "e"), ("ve", "r"), ("ver", "y</w>"), ("p", "o"), ("n", "e")]
UPDATES = 4
COLA = "".join(
    f"gj04\t{row % 2}\t\tthe {word} sat.\n"
    for row, word in enumerate(["cat", "dog", "bee", "cow", "a", "b"])
)
SST2 = "sentence\tlabel\nso good\t1\nso bad\t0\na fun film\t1\n"
PASSAGE = {
    "file": "f",
    "article": "cats eat and dogs drink.",
    "questions": ["who?", "ab?"],
    "options": [["cat", "dog", "a b c", "d"], ["e", "f", "g", "hij"]],
    "answers": ["A", "C"],
}
DPRD = (
    "Ann paid Bob because she owed him.\nshe\nAnn,Bob\nAnn\n\nHe saw Cy.\nhe\nAl,Cy\nAl\n\n"
    "Al hit Cy so he fell.\nhe\nAl,Cy\nCy\n"
)
FILES = {
    "cola": {"train.tsv": COLA, "dev.tsv": COLA},
    "sst2": {"train.tsv": SST2, "dev.tsv": SST2},
    "race": {
        f"{split}_{level}.jsonl": f"{json.dumps(PASSAGE)}\n"
        for split in ("train", "dev", "test")
        for level in ("middle", "high")
    },
    "dprd": {"test.c.txt": DPRD},
}


@pytest.fixture
def checkout(elsewhere):
    """A folder with tiny parameters, a vocabulary and the four sets' official files."""
    write_params(elsewhere, model__context=40, pretrain__snapshots_per_decade=2, lstm__units=12)
    Vocabulary(CHARACTERS, MERGES).save(Path("data/bpe"), {})
    for name, files in FILES.items():
        put_acquired(name, files)


def random_network(name, params, vocabulary_size, seed):
    made = make_network(name, params, vocabulary_size, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        made.tokens.mul_(20)
    return made


def write_snapshots(network, seed=0):
    """Random snapshots of a pre-training of UPDATES updates: 1, 3 and 4."""
    params, vocabulary = read_params(), Vocabulary.load(Path("data/bpe"))
    folder = Path("data/pretrain", network, f"seed-{seed}")
    about = describe(network, params, vocabulary.size, vocabulary.fingerprint)
    for update in (1, 3, UPDATES):
        made = random_network(network, params, vocabulary.size, update + 100 * seed)
        save_weights(folder / "snapshots" / f"{update:08d}.safetensors", made, about)
    (folder / "summary.json").write_text(json.dumps({"updates": UPDATES}))


def make_prompts():
    for name in FILES:
        prompt.main(name)


def test_prompts_by_hand(checkout):
    make_prompts()
    vocabulary = Vocabulary.load(Path("data/bpe"))

    def parts(name, split):
        arrays = np.load(f"data/prompt/{name}/{split}.npz", allow_pickle=False)
        return [
            vocabulary.decode(arrays["tokens"][start:end].tolist()).strip()
            for start, end in zip(arrays["offsets"][:-1], arrays["offsets"][1:], strict=True)
        ]

    assert parts("cola", "dev")[:2] == ["", "the cat sat ."]
    assert parts("sst2", "dev")[:3] == ["so good very", "negative", "positive"]
    assert parts("race", "test")[:5] == [
        "cats eat and dogs drink . who ?",
        "cat",
        "dog",
        "a b c",
        "d",
    ]
    assert parts("dprd", "test")[:3] == ["ann paid bob because", "ann owed him .", "bob owed him ."]
    assert parts("dprd", "test")[3:6] == ["", "al saw cy .", "cy saw cy ."]
    with np.load("data/prompt/dprd/test.npz", allow_pickle=False) as arrays:
        assert arrays["uncounted"].tolist() == [[3, 3], [2, 2], [2, 2]]
        assert arrays["labels"].tolist() == [0, 0, 1]
    about = read_json(Path("data/prompt/sst2/set.json"))
    assert about["notes"] == [
        "negative is 7 pieces: ne g a t i v e</w>",
        "positive is 7 pieces: po s i t i v e</w>",
    ]
    assert {
        name: read_json(Path("data/prompt", name, "set.json"))["scored_split"] for name in FILES
    } == {"cola": "dev", "sst2": "dev", "race": "test", "dprd": "test"}


def test_a_set_and_the_task_of_its_name_are_encoded_side_by_side(checkout, monkeypatch):
    """As in a run: neither may take away what the other's tasks have finished."""
    mapped = encoding.mapped

    def with_the_other(name, *arguments):
        for one in mapped(name, *arguments):
            yield one
            if not Path("data/prompt").exists():
                Path("data/prompt").mkdir()
                prompt.main("cola")

    monkeypatch.setattr(encoding, "mapped", with_the_other)
    monkeypatch.setenv("GPT1_TEXT_TASKS", "2")
    encode.main("cola")
    assert Path("data/encode/glue/cola/task.json").is_file()
    assert Path("data/prompt/cola/set.json").is_file()


def test_clusters_are_twins_and_passages_of_the_rows_asked(checkout):
    twin = "Ann paid Bob because he had worked.\nhe\nBob,Ann\nBob\n"
    put_acquired("dprd", {"test.c.txt": f"{DPRD}\n{twin}"})
    nothing_to_score = "gj04\t1\t\ta\n"
    put_acquired("cola", {"train.tsv": COLA, "dev.tsv": nothing_to_score + COLA})
    make_prompts()
    found = {
        (path.parent.name, split): clusters.tolist()
        for path in Path("data/prompt").glob("*/clusters.npz")
        for split, clusters in np.load(path, allow_pickle=False).items()
    }
    assert found == {
        ("cola", "train"): [*range(6)],
        ("cola", "dev"): [*range(6)],
        ("sst2", "dev"): [0, 1, 2],
        ("race", "test"): [0, 0, 0, 0],
        ("dprd", "test"): [0, 1, 2, 0],
    }


@pytest.mark.parametrize("network", ["transformer", "lstm"])
def test_every_snapshot_answers_every_set(checkout, network):
    make_prompts()
    write_snapshots(network)
    zero_shot.main(network, "0")
    folder = Path("data/zero_shot", network, "seed-0")
    found = read_json(folder / "scores.json")
    places = [(one["update"], one["tokens"]) for one in found["snapshots"]]
    assert places == [(1, 160), (3, 480), (4, 640)]  # 4 windows of 40 an update
    sets = {name: (one["examples"], one["random"]) for name, one in found["sets"].items()}
    assert sets == {"cola": (6, 0.0), "sst2": (3, 0.5), "race": (4, 0.25), "dprd": (3, 0.5)}
    with np.load(folder / "answers.npz", allow_pickle=False) as arrays:
        answers = {name: arrays[name] for name in arrays.files}
    for one in found["snapshots"]:
        for name in ("sst2", "race", "dprd"):
            right = answers[f"{name}/{one['update']}"] == answers[f"{name}/labels"]
            assert one["scores"][name] == pytest.approx(right.mean())
    params, vocabulary = read_params(), Vocabulary.load(Path("data/bpe"))
    model = random_network(network, params, vocabulary.size, UPDATES).eval()

    def mean(before, after):
        """The mean log-probability of the tokens of `after`, by a plain forward."""
        ids, first = vocabulary.encode(f"{before} {after}"), len(vocabulary.encode(before)) or 1
        logs = (model(torch.tensor([ids])).hidden_btd[0] @ model.tokens.T).log_softmax(1).detach()
        return float(np.mean([logs[place - 1, ids[place]] for place in range(first, len(ids))]))

    race = [
        np.argmax([mean(f"{PASSAGE['article']} {question}", option) for option in options])
        for question, options in zip(PASSAGE["questions"], PASSAGE["options"], strict=True)
    ]
    assert answers[f"race/{UPDATES}"].tolist() == race * 2
    dprd = [
        int(mean(f"{before} {two}", rest) > mean(f"{before} {one}", rest))
        for before, one, two, rest in [
            ("ann paid bob because", "ann", "bob", "owed him."),
            ("", "al", "cy", "saw cy."),
            ("al hit cy so", "al", "cy", "fell."),
        ]
    ]
    assert answers[f"dprd/{UPDATES}"].tolist() == dprd


def test_sets_that_are_not_asked_for(checkout):
    change_json("params.yaml", zero_shot={})
    assert "found dprd" in refused(prompt.main, "dprd")
    zero_shot.main("lstm", "0")
    assert read_json(Path("data/zero_shot/lstm/seed-0/scores.json")) == {
        "network": "lstm",
        "sets": {},
        "snapshots": [],
    }


def test_rows_are_a_subset_that_notes_tell_of(checkout):
    rows = {"cola": {"train_rows": 4, "rows": 5}, "race": {"train_rows": 4, "rows": 2}}
    change_json("params.yaml", zero_shot=rows)
    prompt.main("cola")
    prompt.main("race")
    about = read_json(Path("data/prompt/cola/set.json"))
    assert {split: counts["examples"] for split, counts in about["splits"].items()} == {
        "train": 4,
        "dev": 5,
    }
    assert read_json(Path("data/prompt/race/set.json"))["notes"] == ["2 of 4 test rows"]


@pytest.mark.parametrize(
    ("name", "file", "old", "new", "expected"),
    [
        (
            "sst2",
            "dev.tsv",
            "\t1\n",
            "\t0\n",
            (
                "set sst2: expected dev examples of both classes .* found none that is positive"
                " among 3"
            ),
        ),
        (
            "cola",
            "train.tsv",
            "\t1\t",
            "\t0\t",
            "expected train examples of both classes .* found none that is acceptable",
        ),
        (
            "dprd",
            "test.c.txt",
            "Al,Cy",
            "Al and Cy",
            "2 of 3 rows cannot be read .not two candidates 2.* the first is row 6",
        ),
    ],
)
def test_files_that_no_score_can_come_from(checkout, name, file, old, new, expected):
    put_acquired(name, {file: FILES[name][file].replace(old, new)})
    with pytest.raises(UserError, match=expected):
        prompt.main(name)
    assert not Path("data/prompt", name).exists()


def test_missing_inputs(checkout):
    line = "data/prompt/cola/set.json: expected JSON, found none"
    assert line in refused(zero_shot.main, "lstm", "0")
    make_prompts()
    assert "data/pretrain/lstm/seed-0/summary.json: expected" in refused(
        zero_shot.main, "lstm", "0"
    )
    assert not Path("data/zero_shot").exists(), "nothing half-done is left"


def test_each_pretraining_answers(checkout):
    make_prompts()
    pretrain = read_json(Path("params.yaml"))["pretrain"]
    change_json("params.yaml", pretrain=pretrain | {"seeds": [0, 1]})
    write_snapshots("lstm", 1)
    said = refused(zero_shot.main, "lstm", "0")
    assert "seed-0/summary.json" in said
    assert "run dvc repro pretrain@lstm-0" in said
    zero_shot.main("lstm", "1")
    assert read_json(Path("data/zero_shot/lstm/seed-1/scores.json"))["network"] == "lstm"
