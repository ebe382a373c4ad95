"""The vocabulary as Hugging Face's tokenizer files. They take words that blanks divide, which
preprocessing.py makes of raw text.

No symbol of the vocabulary is declared special: a text that holds its letters would then be cut
there, and have other ids than ours.
"""

from pathlib import Path
from typing import Any

from gpt1.base.files import write_json, writing
from gpt1.corpus.bpe import SPECIAL_SYMBOLS, UNKNOWN, WORD_END, Vocabulary


def tokenizer_json(vocabulary: Vocabulary, special: bool) -> str:
    """tokenizer.json: words between blanks, a line break one of them, lower case, byte pairs;
    `special`: with the three symbols.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import BPE

    table = {piece: id_ for id_, piece in enumerate(vocabulary.pieces)}
    tokenizer = Tokenizer(
        BPE(table, list(vocabulary.merges), unk_token=UNKNOWN, end_of_word_suffix=WORD_END)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s*\n\s*"), " \n "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    tokenizer.decoder = decoders.BPEDecoder(suffix=WORD_END)
    if special:
        tokenizer.add_special_tokens(
            [AddedToken(symbol, normalized=False, special=True) for symbol in SPECIAL_SYMBOLS]
        )
    text: str = tokenizer.to_str(pretty=True)
    return text


def write_tokenizer(folder: Path, vocabulary: Vocabulary, context: int, special: bool) -> None:
    """Write tokenizer.json, tokenizer_config.json, special_tokens_map.json, vocab.json and
    merges.txt.
    """
    vocabulary.save(folder, {})
    (folder / "meta.json").unlink()  # export.json says what it says
    with writing(folder / "tokenizer.json") as file:
        file.write(tokenizer_json(vocabulary, special) + "\n")
    symbols = {"additional_special_tokens": list(SPECIAL_SYMBOLS)} if special else {}
    common: dict[str, Any] = {
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        "padding_side": "right",
        "model_input_names": ["input_ids", "attention_mask"],
    }
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast"} | common | symbols,
    )
    write_json(folder / "special_tokens_map.json", symbols)
