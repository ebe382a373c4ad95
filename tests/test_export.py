"""Exports: what transformers makes of the folder, the same ids, the way back bit for bit, and a
task's own loader.
"""

from dataclasses import replace

import pytest
import torch
from made_models import SIZES, paragraphs, run_example, saved_model, vocabulary

from gpt1.base.errors import UserError
from gpt1.base.files import sha256_file, write_json
from gpt1.corpus.words import Cleaner
from gpt1.exchange.incoming import read_checkpoint, write_import
from gpt1.exchange.outgoing import export_language_model
from gpt1.model.gpt import Decoder
from gpt1.model.weights import read_weights, save_weights

VOCABULARY = vocabulary()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    return folder, saved_model(folder)


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    target = tmp_path_factory.mktemp("exported") / "gpt"
    export_language_model(model[0] / "weights.safetensors", model[0], target)
    return target


@pytest.fixture(scope="module")
def tokenizer(exported):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(exported), trust_remote_code=True)


@pytest.mark.slow
def test_the_same_ids_on_500_paragraphs(tokenizer):
    texts = paragraphs(500)
    wrong = [text for text in texts if tokenizer(text).input_ids != VOCABULARY.encode(text)]
    assert not wrong, f"{len(wrong)} of {len(texts)} texts differ, first {wrong[0]!r}"


@pytest.mark.slow
def test_line_breaks_come_back_and_end_texts_for_those_who_ask(tokenizer):
    ids = tokenizer("the lamp\nis lit").input_ids
    assert tokenizer.decode(ids, skip_special_tokens=True).split("\n")[0] == "the lamp"
    assert tokenizer.decode(ids).count("\n") == 1
    assert tokenizer.eos_token_id == VOCABULARY.encode("a\nb")[1]


@pytest.mark.slow
def test_without_our_code_words_with_blanks_between_get_the_same_ids(exported):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(exported), trust_remote_code=False)
    cleaner = Cleaner()
    for text in paragraphs(100):
        words = " ".join(cleaner.words(text))
        assert tokenizer(words).input_ids == VOCABULARY.encode(text), text


@pytest.mark.slow
def test_the_cards_example_runs_in_the_folder(exported):
    assert run_example(exported).startswith("it 's late -- the lamp is lit .")


@pytest.mark.slow
def test_the_same_logits_on_50_texts(model, exported, tokenizer):
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(str(exported)).eval()
    assert theirs.lm_head.weight is theirs.transformer.tokens_embed.weight, "the softmax is tied"
    for text in paragraphs(50):
        tokens_bt = torch.tensor([tokenizer(text).input_ids[: SIZES.context] or [0]])
        with torch.inference_mode():
            hidden_btd, embeddings = model[1](tokens_bt)
            logits_btv = hidden_btd @ embeddings.tokens_vd.T
            assert torch.allclose(theirs(tokens_bt).logits, logits_btv, rtol=0, atol=1e-5), text


def test_the_way_back_is_bit_for_bit(model, exported, tmp_path):
    about = write_import(read_checkpoint(exported), tmp_path / "back")
    (description, tensors), (found_description, found) = (
        read_weights(folder / "weights.safetensors") for folder in (model[0], tmp_path / "back")
    )
    assert found_description.kind == description.kind
    assert found_description.vocabulary_fingerprint == description.vocabulary_fingerprint
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / "back" / name).read_bytes() == (model[0] / name).read_bytes()
    assert about["files"]["model.safetensors"] == sha256_file(exported / "model.safetensors")


@pytest.fixture
def run_with_results(model, tmp_path):
    """The weights of a run, beside the files that a card is made from."""
    data = tmp_path / "data"
    train = {"tokens": 5_000_000, "words": 4_000_000, "books": [{}] * 9}
    summary = {"updates": 1234, "tokens": 7_000_000}
    summary |= {"heldout_perplexity": 21.234, "heldout_word_perplexity": 40.5}
    manifest = {"source": "books", "origin": "a shelf", "licence": "ours"}
    for name, content in (
        ("clean/counts.json", {"corpus_name": "ten \x1b[31mbooks"}),
        ("shard/index.json", {"splits": {"train": train}}),
        ("pretrain/transformer/seed-0/summary.json", summary),
        ("acquire/corpus/books/manifest.json", manifest),
    ):
        write_json(data / name, content)
    weights = data / "pretrain/transformer/seed-0/weights.safetensors"
    weights.write_bytes((model[0] / "weights.safetensors").read_bytes())
    return weights


def test_a_card_says_what_the_run_says(model, run_with_results, tmp_path):
    export_language_model(run_with_results, model[0], tmp_path / "out")
    card = (tmp_path / "out/README.md").read_text()
    for fact in (
        "**ten [31mbooks**: 9 books, 4,000,000 words, 5,000,000 tokens",
        "1,234 updates, 7,000,000 tokens",
        "perplexity **21.23** per token",
        "- books: a shelf; ours",
    ):
        assert fact in card, f"no {fact!r} in\n{card}"
    assert "\x1b" not in card
    data = checked_card(tmp_path / "out")
    assert (data.license, data.pipeline_tag) == ("other", "text-generation")


def checked_card(folder):
    """The card of a folder by huggingface_hub's own reader, which refuses what is malformed."""
    from huggingface_hub import ModelCard
    from huggingface_hub.utils import validate_repo_id

    data = ModelCard.load(folder / "README.md", ignore_metadata_errors=False).data
    for name in (*(data.datasets or ()), *([data.base_model] if data.base_model else ())):
        validate_repo_id(name)
    assert (data.language, data.library_name) == ("en", "transformers")
    return data


def change(folder, **values):
    """The same weights with another description."""
    description, tensors = read_weights(folder / "weights.safetensors")
    decoder = Decoder(SIZES, description.vocabulary_size, torch.Generator())
    decoder.load_state_dict(tensors)
    save_weights(folder / "weights.safetensors", decoder, replace(description, **values))


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"kind": "lstm"}, "expected weights of a pre-trained Transformer.* found 'lstm'"),
        ({"vocabulary_fingerprint": "0" * 16}, "trained with the vocabulary in .*, found"),
        (
            {"config": SIZES.model_dump() | {"feed_forward": 50}},
            r"expected model\.feed_forward 4 x model\.width",
        ),
    ],
)
def test_what_cannot_be_exported_is_refused_in_a_line(tmp_path, values, line):
    saved_model(tmp_path)
    change(tmp_path, **values)
    with pytest.raises(UserError, match=line):
        export_language_model(tmp_path / "weights.safetensors", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_never_replaced(model, tmp_path):
    weights, vocabulary_folder = model[0] / "weights.safetensors", model[0]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for name in ("mine", "link", "mine/thesis.txt"):
        with pytest.raises(UserError, match="expected a new folder, found one in use"):
            export_language_model(weights, vocabulary_folder, tmp_path / name)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    export_language_model(weights, vocabulary_folder, tmp_path / "empty")
