"""The files of an exported tokenizer; in tokenizer.json, for those who run no code of ours, raw
text to words as far as `tokenizers` alone can go: gpt1.corpus.words as regular expressions.

A replacement cannot quote what it found, so blanks are put in at places: an empty match between
what stands before and after. None at either end of the text, where tokenizers loses count.
"""

import re
from pathlib import Path
from typing import Any

from gpt1.base.files import write_json, writing
from gpt1.corpus.bpe import SPECIAL_SYMBOLS, UNKNOWN, WORD_END, Vocabulary
from gpt1.corpus.words import LONGEST_CHUNK, REPLACED, SPACED

LOWER, UPPER, LETTER = r"\p{Ll}\p{Lo}", r"\p{Lu}\p{Lo}", r"\p{L}"
START, END = r"(?:^|(?<= ))", r"(?= |$)"  # of what stands between two blanks
TIMES = 3  # so many prefixes and as many suffixes of a chunk are parted
LIGATURES = (("ﬀ", "ff"), ("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬃ", "ffi"), ("ﬄ", "ffl"))
FULL_WIDTH = tuple((chr(code + 0xFEE0), chr(code)) for code in range(0x21, 0x7F))
UNCURLED = (("[ʼ‘’‚‛]", "'"), ("[“”„‟]", '"'), (r"\r\n?|[\u2028\u2029]", "\n"), ("\x85", "..."))
ANY = r"[\s\S]"
ENTITIES = {"quot": '"', "#39": "'", "nbsp": " ", "gt": ">", "lt": "<", "amp": "&"}  # the commoner
CONTROLS = r"[\x00-\x08\x0b\x0e-\x1f\x7f\u206a-\u206f\ufeff]"
# Of spaCy's infixes what standardised text can hold.
INFIX = rf"\.\.+|\p{{So}}|(?<=[0-9])\^(?=[0-9-])|(?<=[{LETTER}0-9])[:<>=](?=[{LETTER}])"


def either(texts: Any) -> str:
    """A group that matches one of these texts, the longest that does."""
    return f"(?:{'|'.join(map(re.escape, sorted(texts, key=lambda text: (-len(text), text))))})"


def boundaries() -> str:
    """The places at both ends of each run of one of the marks that get blanks around them."""
    return "|".join(
        rf"(?<={ANY})(?<!{mark})(?={mark})|(?<={mark})(?!{mark})(?={ANY})"
        for mark in map(re.escape, SPACED)
    )


def spacy_places() -> list[str]:
    """Where spaCy's English tokenizer parts a chunk of standardised text: repeated marks, prefixes,
    suffixes, special cases; one after the other.
    """
    import spacy

    english: Any = spacy.blank("en")
    cases = {
        case: [token.text for token in english.tokenizer(case)]
        for case in english.tokenizer.rules
        if not re.search(r"[\s’]", case) and not any(mark in case for mark in SPACED)
    }
    prefixes, suffixes = (
        {one for one in (re.sub(r"^\\(.)$", r"\1", each) for each in given) if len(one) == 1}
        for given in (english.Defaults.prefixes, english.Defaults.suffixes)
    )
    # what is not one character is written anew: spaCy's own classes of letters are long
    longer = [each for each in english.Defaults.suffixes if each.startswith("(?<=[0-9])")]
    special = either(cases)
    prefix = rf"(?:''|(?>\.\.+)|[ACU]S?\$|\+(?![0-9])|\p{{So}}|{either(prefixes)})"
    suffix = (
        rf"(?:''|\.\.+|\p{{So}}|'[sS]|{'|'.join(longer)}|{either(suffixes)}"
        rf"|(?<=[0-9{LOWER}%²+\p{{P}}])\.|(?<=[{UPPER}]{{2}})\.)"
    )
    # a special case that is several words: what may stand before each of its places
    split: dict[str, list[str]] = {}
    for tokens in cases.values():
        for place in range(1, len(tokens)):
            split.setdefault("".join(tokens[place:]), []).append("".join(tokens[:place]))
    whole = re.compile(r"(.*?[a-z])\.(?=[A-Z])")  # a special case is not parted at such a full stop
    held = [found[n] for case in cases if (found := whole.match(case)) for n in (0, 1)]
    marks = either(set(SPACED) & prefixes - {"~", "-"})
    some = rf"[^ ]{{1,{LONGEST_CHUNK}}}?"
    a_prefix = rf"{START}(?={prefix}[^ ])(?!{special}(?:{suffix})?{END}){prefix}\K(?=[^ ])"
    a_suffix = (
        rf"{START}(?={some}{suffix}{END})(?!(?:{special}|''|\.\.+){END}){some}\K(?={suffix}{END})"
    )
    low, unheld = rf"[{LOWER}'\"]", rf"(?<!(?:^| ){either(held)})"
    return [
        rf"(?<={marks})(?={marks})",
        *TIMES * [a_prefix],
        *TIMES * [a_suffix],
        rf"{unheld}(?:(?<={low})(?=\.[{UPPER}])|(?<={low}\.)(?=[{UPPER}]))",
        "|".join(
            rf"(?={re.escape(right)}{END})(?<=(?:^| ){either(lefts)})"
            for right, lefts in sorted(split.items())
        ),
    ]


def raw_text_pipeline() -> tuple[Any, Any]:
    """A normalizer and a pre-tokenizer: ftfy's commoner repairs, the authors' standardisation,
    spaCy's rules, lower case. Neither mojibake nor a rarer HTML entity is mended.
    """
    from tokenizers import Regex, normalizers, pre_tokenizers

    def replaced(pattern: str, text: str = " ") -> Any:
        return normalizers.Replace(Regex(pattern), text)

    normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            *(
                normalizers.Replace(found, plain)
                for found, plain in LIGATURES + FULL_WIDTH + REPLACED
            ),
            *(replaced(found, plain) for found, plain in UNCURLED),
            *(replaced(rf"\G[^<]*?\K&{name};(?!{ANY}*<)", mark) for name, mark in ENTITIES.items()),
            replaced(CONTROLS, ""),
            replaced(boundaries()),
            replaced(r"[^\S\n]+"),
            replaced(r" ?\n\s*", " \n "),
            normalizers.Strip(),
            *map(replaced, spacy_places()),
            normalizers.Lowercase(),
        ]
    )
    return normalizer, pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(" ", "removed"),
            pre_tokenizers.Split(Regex(INFIX), "isolated"),
        ]
    )


def tokenizer_json(vocabulary: Vocabulary, kind: str | None) -> str:
    """tokenizer.json, for those who run no code of ours: words nearly as cleaning makes them, byte
    pairs; for a task (`kind`) the three symbols around the texts, which nothing cuts.
    """
    from tokenizers import AddedToken, Tokenizer, decoders
    from tokenizers.models import BPE
    from tokenizers.processors import TemplateProcessing

    table = {piece: id_ for id_, piece in enumerate(vocabulary.pieces)}
    tokenizer = Tokenizer(
        BPE(table, list(vocabulary.merges), unk_token=UNKNOWN, end_of_word_suffix=WORD_END)
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = raw_text_pipeline()
    tokenizer.decoder = decoders.BPEDecoder(suffix=WORD_END)
    if kind:
        tokenizer.add_special_tokens(
            [AddedToken(symbol, normalized=False, special=True) for symbol in SPECIAL_SYMBOLS]
        )
        start, delimiter, extract = SPECIAL_SYMBOLS
        tokenizer.post_processor = TemplateProcessing(
            single=f"{start} $A {extract}",
            pair=f"{start} $A {delimiter} $B {extract}",
            special_tokens=[(symbol, tokenizer.token_to_id(symbol)) for symbol in SPECIAL_SYMBOLS],
        )
    text: str = tokenizer.to_str(pretty=True)
    return text


def write_tokenizer(folder: Path, vocabulary: Vocabulary, context: int, kind: str | None) -> None:
    """Write tokenizer.json, tokenizer_config.json, vocab.json and merges.txt."""
    vocabulary.save(folder, {})
    (folder / "meta.json").unlink()  # export.json says what it says
    with writing(folder / "tokenizer.json") as file:
        file.write(tokenizer_json(vocabulary, kind) + "\n")
    task = {"kind": kind} | dict(
        zip(("bos_token", "sep_token", "cls_token"), SPECIAL_SYMBOLS, strict=True)
    )
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "auto_map": {"AutoTokenizer": ["tokenization_gpt1.GPT1Tokenizer", None]},
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        "padding_side": "right",
        "model_input_names": ["input_ids", "attention_mask"],
        "unk_token": UNKNOWN,
        "pad_token": UNKNOWN,
        "split_special_tokens": True,  # a text that holds the letters of a symbol is not cut there
    }
    write_json(folder / "tokenizer_config.json", config | (task if kind else {}))
