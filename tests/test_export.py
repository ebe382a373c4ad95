"""Exports: what transformers makes of the folder, the same ids, the way back bit for bit, and a
task's own loader.
"""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from hypothesis import given, strategies
from made_models import SIZES, paragraphs, run_example, saved_model, vocabulary

from gpt1.base.errors import UserError
from gpt1.base.files import sha256_file
from gpt1.exchange.incoming import write_import
from gpt1.exchange.layout import our_shapes, to_ours, to_theirs
from gpt1.exchange.outgoing import export_language_model, read_outgoing
from gpt1.exchange.read import read_model
from gpt1.exchange.tokenizer_files import raw_text_pipeline
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder
from gpt1.model.weights import Description, read_weights, save_weights

VOCABULARY, RAW_TEXT = vocabulary(), raw_text_pipeline()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    return folder, saved_model(folder)


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    target = tmp_path_factory.mktemp("exported") / "gpt"
    export_language_model(read_outgoing(model[0] / "weights.safetensors", model[0]), target)
    return target


@pytest.fixture(scope="module")
def tokenizer(exported):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(exported), trust_remote_code=True)


def test_names_and_layout_go_both_ways():
    decoder = Decoder(SIZES, 50, torch.Generator().manual_seed(0))
    state = decoder.state_dict()
    assert our_shapes(SIZES, 50) == {name: tuple(tensor.shape) for name, tensor in state.items()}
    back = to_ours(to_theirs(state, SIZES.layers), SIZES.layers)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)


def test_the_same_ids_on_500_paragraphs(tokenizer):
    texts = paragraphs(500)
    wrong = [text for text in texts if tokenizer(text).input_ids != VOCABULARY.encode(text)]
    assert not wrong, f"{len(wrong)} of {len(texts)} texts differ, first {wrong[0]!r}"


def test_line_breaks_come_back_and_end_texts_for_those_who_ask(tokenizer):
    ids = tokenizer("the lamp\nis lit").input_ids
    assert tokenizer.decode(ids, skip_special_tokens=True).split("\n")[0] == "the lamp"
    assert tokenizer.decode(ids).count("\n") == 1
    assert tokenizer.eos_token_id == VOCABULARY.encode("a\nb")[1]


WITHOUT_CODE = {  # what tokenizers alone can do, and what it cannot
    True: [
        "It's the dogs' bowl--isn't it?",
        "“Quoted,” she said — ‘nested’…",
        "Tabs\tand  double   spaces\n\n\nand new\n lines ",
        "price: $3,000.50 (approx.) [sic] {x|y} a_b__c ~~~ ***!!",
        "Mr. Smith of the U.S. paid US$5 at 10a.m., 3km from St. John's.End",
        "I can't've; you shouldn't. 'Tis so, rock'n'roll, o'clock... C++ :-) Ph.D.",
        "ﬁne ｗｉｄｅ！ & AT&T &amp; co, x=y, 5^3, e.g. this, 20%. 'Cause! ‘em.",
        "<b>bold</b> &amp; co",
        "&amp; &quot;a&quot; &amp; b",
        "<unk> _start_ and\u00a0then\u200bno É\u0301",
    ],
    False: ["cafÃ©", "&eacute;", "ΟΔΟΣ"],
}


@pytest.mark.parametrize("exact", WITHOUT_CODE)
def test_ids_without_our_code_are_the_same_but_for_repairs_of_ftfy(exported, exact):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(exported), trust_remote_code=False)
    for text in WITHOUT_CODE[exact]:
        assert (tokenizer(text).input_ids == VOCABULARY.encode(text)) is exact, text


@given(strategies.text())
def test_no_text_stops_the_tokenizer_without_our_code(text):
    """A blank put in at an end of the text did: tokenizers panicked."""
    normalizer, pre_tokenizer = RAW_TEXT
    words = pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))
    assert "".join(word for word, _ in words).split() or not any(map(str.isalnum, text))


@pytest.mark.slow
def test_transformers_own_tokenizer_gives_other_ids(exported):
    from transformers import OpenAIGPTTokenizer

    tokenizer = OpenAIGPTTokenizer.from_pretrained(str(exported))
    differ = sum(tokenizer(text).input_ids != VOCABULARY.encode(text) for text in paragraphs(100))
    assert differ > 50, "the card says that they differ on many texts"


@pytest.mark.slow
def test_the_cards_example_runs_in_the_folder(exported):
    assert "generated_text" in run_example(exported)


@pytest.mark.slow
def test_the_same_logits_on_50_texts(model, exported, tokenizer):
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(str(exported)).eval()
    assert theirs.lm_head.weight is theirs.transformer.tokens_embed.weight, "the softmax is tied"
    for text in paragraphs(50):
        tokens_bt = torch.tensor([tokenizer(text).input_ids[: SIZES.context] or [0]])
        with torch.inference_mode():
            hidden_btd, embeddings = model[1](tokens_bt, NO_DROPOUT)
            logits_btv = hidden_btd @ embeddings.tokens_vd.T
            assert torch.allclose(theirs(tokens_bt).logits, logits_btv, rtol=0, atol=1e-5), text


def test_the_way_back_is_bit_for_bit(model, exported, tmp_path):
    about = write_import(read_model(exported, None), tmp_path / "back")
    (description, tensors), (found_description, found) = (
        read_weights(folder / "weights.safetensors") for folder in (model[0], tmp_path / "back")
    )
    assert found_description == description
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / "back" / name).read_bytes() == (model[0] / name).read_bytes()
    assert about["files"]["model.safetensors"]["sha256"] == sha256_file(
        exported / "model.safetensors"
    )


def test_the_manifest_has_every_file(exported):
    about = json.loads((exported / "export.json").read_text())
    assert set(about["files"]) == {path.name for path in exported.iterdir()} - {"export.json"}
    assert all(
        row == {"bytes": (exported / name).stat().st_size, "sha256": sha256_file(exported / name)}
        for name, row in about["files"].items()
    )


def test_equal_weights_give_an_equal_folder(model, exported, tmp_path):
    for _ in range(2):  # the second replaces the first
        export_language_model(
            read_outgoing(model[0] / "weights.safetensors", model[0]), tmp_path / "again"
        )
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == {
        path.name: path.read_bytes() for path in exported.iterdir()
    }


def test_the_card_of_weights_from_nowhere_claims_nothing(exported):
    card = (exported / "README.md").read_text()
    assert card.startswith("---\nlanguage: en\n")
    assert "were not exported from the folder of a run" in card
    assert "No table of this run is there" in card
    assert "gives **other ids on many texts**" in card


def test_a_card_of_imported_weights_says_whence(model, tmp_path):
    run_with_results(tmp_path / "data", "cola")
    weights, official = (
        tmp_path / "data/pretrain/transformer/seed-0/weights.safetensors",
        tmp_path / "data/acquire/weights/official",
    )
    weights.write_bytes((model[0] / "weights.safetensors").read_bytes())
    (weights.parent / "summary.json").write_text(
        json.dumps(
            {
                "updates": 0,
                "tokens": 0,
                "source": "official",
                "heldout_perplexity": 18.4,
                "heldout_word_perplexity": 30.0,
            }
        )
    )
    official.mkdir(parents=True)
    (official / "import.json").write_text(
        json.dumps(
            {"form": "authors", "released": True, "files": {"params_0.npy": {"sha256": 64 * "a"}}}
        )
    )
    export_language_model(read_outgoing(weights, model[0]), tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text()
    assert "imported from the authors' released files (`params_0.npy` sha256 aaaaaaaaaaaa…)" in card
    assert "perplexity **18.40** a token" in card
    data = checked_card(tmp_path / "out")
    assert (data.license, data.base_model) == ("mit", "openai-community/openai-gpt")
    assert "Pre-trained on" not in card


def run_with_results(data, name):
    """The files of a run that a card is made from."""
    (data / "shard").mkdir(parents=True)
    (data / "shard/index.json").write_text(
        json.dumps(
            {
                "corpus_name": "ten \x1b[31mbooks",
                "splits": {"train": {"tokens": 5_000_000, "words": 4_000_000, "books": [{}] * 9}},
            }
        )
    )
    (data / "pretrain/transformer/seed-0").mkdir(parents=True)
    (data / "pretrain/transformer/seed-0/summary.json").write_text(
        json.dumps(
            {
                "updates": 1234,
                "tokens": 7_000_000,
                "heldout_perplexity": 21.234,
                "heldout_word_perplexity": 40.5,
            }
        )
    )
    (data / "acquire/corpus/books").mkdir(parents=True)
    (data / "acquire/corpus/books/manifest.json").write_text(
        json.dumps({"source": "books", "origin": "a shelf", "licence": "ours"})
    )
    (data / "acquire/tasks/sst2").mkdir(parents=True)
    (data / "acquire/tasks/sst2/manifest.json").write_text(
        json.dumps({"origin": "made up by gpt1.demo"})
    )
    (data / "report/table4").mkdir(parents=True)
    rows = [
        ("CoLA", name, "matthews", 38.5, 1043, ""),
        ("CoLA", name, "matthews", 41.5, 1043, ""),
        ("SST-2", "sst2", "accuracy", 90.0, 872, "made up"),
        ("MRPC", "mrpc", "f1", float("nan"), 0, ""),
    ]
    columns = ["column", "task", "metric", "score", "n", "source"]
    scores = pd.DataFrame(rows, columns=columns).assign(system="full", split="dev")
    scores.to_parquet(data / "report/table4/scores.parquet")


def test_a_card_says_what_the_run_says(model, tmp_path):
    run_with_results(tmp_path / "data", "cola")
    weights = tmp_path / "data/pretrain/transformer/seed-0/weights.safetensors"
    weights.write_bytes((model[0] / "weights.safetensors").read_bytes())
    (tmp_path / "params.yaml").write_text("# Composed by: gpt1 profile small finetune.epochs=2\n")
    export_language_model(read_outgoing(weights, model[0]), tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text()
    for fact in (
        "**ten [31mbooks**: 9 books, 4.0 M words, 5.0 M tokens",
        "1,234 updates, 7.0 M tokens",
        "perplexity **21.23** a token",
        "| books | a shelf | ours |",
        "| CoLA | matthews | dev | 1043 | 40.0 | 2.1 (2 seeds) |",
        "| SST-2 | accuracy | dev | 872 | 90.0 | one seed |",
        "gpt1 profile small finetune.epochs=2\ngpt1 run\n",
    ):
        assert fact in card, f"no {fact!r} in\n{card}"
    assert "MRPC" not in card
    assert "\x1b" not in card


def checked_card(folder):
    """The card of a folder by huggingface_hub's own reader, which refuses what is malformed; what
    it takes must come back as it was.
    """
    from huggingface_hub import ModelCard
    from huggingface_hub.repocard_data import (
        eval_results_to_model_index,
        model_index_to_eval_results,
    )
    from huggingface_hub.utils import validate_repo_id

    data = ModelCard.load(folder / "README.md", ignore_metadata_errors=False).data
    for name in (*(data.datasets or ()), *([data.base_model] if data.base_model else ())):
        validate_repo_id(name)
    found = data.eval_results or []
    assert model_index_to_eval_results(eval_results_to_model_index("gpt1", found))[1] == found
    assert (data.language, data.library_name) == ("en", "transformers")
    return data


def test_the_hubs_checker_takes_a_cards_scores(model, tmp_path):
    run_with_results(tmp_path / "data", "cola")
    weights = tmp_path / "data/pretrain/transformer/seed-0/weights.safetensors"
    weights.write_bytes((model[0] / "weights.safetensors").read_bytes())
    export_language_model(read_outgoing(weights, model[0]), tmp_path / "out")
    data = checked_card(tmp_path / "out")
    assert (data.license, data.pipeline_tag) == ("other", "text-generation")
    perplexity, cola, sst2 = data.eval_results
    assert (perplexity.metric_type, perplexity.metric_value) == ("perplexity", 21.234)
    assert (cola.dataset_type, cola.dataset_config) == ("nyu-mll/glue", "cola")
    assert cola.metric_name == "matthews, mean over 2 seeds, fine-tuned from this model"
    assert (cola.metric_type, cola.metric_value) == ("matthews_correlation", 0.4)
    assert cola.metric_args == {"rows": 1043}
    assert (sst2.dataset_type, sst2.dataset_name) == ("made-up", "SST-2 (made up)")


@pytest.fixture(scope="module")
def with_snapshots(tmp_path_factory):
    """A run's export with two snapshots: of each the weights are others."""
    run = tmp_path_factory.mktemp("run")
    run_with_results(run / "data", "cola")
    (folder := run / "data/pretrain/transformer/seed-0/snapshots").mkdir()
    for update in (100, 1234):
        saved_model(folder, seed=update)
        (folder / "weights.safetensors").rename(folder / f"{update:08d}.safetensors")
    saved_model(folder.parent, seed=1234)
    steps = [read_outgoing(path, folder) for path in sorted(folder.glob("*.safetensors"))]
    last = read_outgoing(folder.parent / "weights.safetensors", folder)
    for _ in range(2):  # the second replaces the first
        export_language_model(last, run / "gpt", steps)
    return run / "gpt"


def test_a_snapshots_card_has_no_score_of_the_last_update(with_snapshots):
    data = checked_card(with_snapshots / "step-100")
    assert not data.eval_results
    card = (with_snapshots / "step-100/README.md").read_text()
    assert "after update **100** of 1,234" in card
    assert "perplexity **" not in card
    assert checked_card(with_snapshots).eval_results


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"snapshots": True}, "snapshots: expected the snapshots of a pre-training, found none"),
        ({"snapshots": True, "task": Path("cola")}, "--snapshots are of a pre-training"),
        ({"base_model": "me/gpt"}, "--base-model is for a task's model"),
        ({"base_model": "my gpt", "task": Path("cola")}, "expected NAME/MODEL as on the hub"),
    ],
)
def test_options_that_do_not_go_together(model, tmp_path, options, line):
    from gpt1.commands.export import export

    weights = {"weights": model[0] / "weights.safetensors", "vocabulary": model[0]}
    with pytest.raises(UserError, match=line):
        export(tmp_path / "out", **weights | options)
    assert not (tmp_path / "out").exists()


def cached_from_the_hub(cache, name, revisions):
    """The folders as huggingface_hub keeps what it has downloaded of a model's revisions."""
    model = cache / f"models--{name.replace('/', '--')}"
    (model / "refs").mkdir(parents=True)
    for number, (revision, folder) in enumerate(revisions.items()):
        commit = f"{number:040x}"
        (model / "refs" / revision).write_text(commit)
        (model / "snapshots" / commit).mkdir(parents=True)
        for path in folder.iterdir():
            if path.is_file():
                (model / "snapshots" / commit / path.name).symlink_to(path)


@pytest.mark.slow
def test_each_snapshot_is_a_revision_and_a_subfolder(with_snapshots, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folders = {"main": with_snapshots} | {path.name: path for path in with_snapshots.glob("step-*")}
    assert sorted(folders) == ["main", "step-100", "step-1234"]
    cached_from_the_hub(tmp_path, "me/gpt", folders)
    loaded = {}
    for revision in folders:
        where = {"revision": revision, "cache_dir": tmp_path, "local_files_only": True}
        tokenizer = AutoTokenizer.from_pretrained("me/gpt", trust_remote_code=True, **where)
        text = "It's late -- the lamp is lit."
        assert tokenizer(text).input_ids == VOCABULARY.encode(text)
        loaded[revision] = AutoModelForCausalLM.from_pretrained("me/gpt", **where).state_dict()
    local = AutoModelForCausalLM.from_pretrained(str(with_snapshots), subfolder="step-100")
    name = "transformer.positions_embed.weight"
    assert torch.equal(loaded["step-100"][name], local.state_dict()[name])
    assert torch.equal(loaded["step-1234"][name], loaded["main"][name])
    assert not torch.equal(loaded["step-100"][name], loaded["main"][name])


def change(folder: Path, what: str) -> None:
    """Something that cannot be exported."""
    description, tensors = read_weights(folder / "weights.safetensors")
    changed = {
        "lstm": Description(
            "lstm",
            description.config,
            description.vocabulary_size,
            description.vocabulary_fingerprint,
        ),
        "vocabulary": Description(
            description.kind, description.config, description.vocabulary_size, "0" * 16
        ),
        "inner": Description(
            description.kind,
            description.config | {"feed_forward": 50},
            description.vocabulary_size,
            description.vocabulary_fingerprint,
        ),
    }.get(what, description)
    decoder = Decoder(SIZES, description.vocabulary_size, torch.Generator())
    decoder.load_state_dict(tensors)
    if what == "nan":
        decoder.blocks[1].qkv.weight.data[3, 4] = float("nan")
    save_weights(folder / "weights.safetensors", decoder, changed)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("lstm", "expected weights of a Transformer.* found 'lstm'"),
        ("vocabulary", "trained with the vocabulary in .*, found"),
        ("inner", r"expected model\.feed_forward 4 x model\.width"),
        ("nan", r"finite numbers in tensor blocks\.1\.qkv\.weight, found 1 that"),
    ],
)
def test_what_cannot_be_exported_is_refused_in_a_line(tmp_path, what, line):
    saved_model(tmp_path)
    change(tmp_path, what)
    with pytest.raises(UserError, match=line):
        export_language_model(
            read_outgoing(tmp_path / "weights.safetensors", tmp_path), tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


def test_a_folder_of_someone_else_is_never_replaced(model, tmp_path):
    outgoing = read_outgoing(model[0] / "weights.safetensors", model[0])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for name, word in (
        ("mine", "holds other files"),
        ("link", "is a link"),
        ("mine/thesis.txt", "is a file"),
    ):
        with pytest.raises(UserError, match=word):
            export_language_model(outgoing, tmp_path / name)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"
    export_language_model(outgoing, tmp_path / "ours")
    export_language_model(outgoing, tmp_path / "ours")
    (tmp_path / "ours/thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"thesis\.txt too, which would be lost"):
        export_language_model(outgoing, tmp_path / "ours")
    assert (tmp_path / "ours/thesis.txt").exists()
