"""Books and cleaning: the authors' standardisation, decoding by rule, pieces that give the words of
the whole.
"""

import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import ftfy
import pytest
import spacy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spacy.tokenizer import Tokenizer

from gpt1.base.errors import UserError
from gpt1.corpus.books import HoldOut
from gpt1.corpus.files import list_corpus
from gpt1.corpus.inspection import inspect, read_book, refuse_binary
from gpt1.corpus.words import (
    NEWLINE,
    Cleaner,
    UnbrokenTextError,
    chunks,
    fixed,
    lines_and_parts,
    standardise,
)

NASTY = st.sampled_from(
    [
        "’",
        "'",
        "''",
        "—",
        "…",
        "--",
        "((",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\r",
        "\u2028",
        "\u00a0",
        "&amp;",
        "&#10;",
        "<b>",
        "Ã©",
        "â€œ",
        "Mr.",
        "a.m.",
        "o.O",
        ":)",
        "'em",
        "He's",
        "Ol'",
        "don't",
        "I'ma",
        "Σ",
        "İ",
        "ﬁ",
        "é",
        "e\u0301",
        "\x0b",
        "\x1c",
        "\ufeff",
        "word",
        "Word",
        "10km",
        "U.S.",
        ".",
        ",",
        "$",
        "漢",
        "😀",
        "\x07",
        "\x1b[31m",
        "w",
        "'S",
        "...",
        "=3",
        "<3",
        ":'",
    ]
)
TEXTS = st.lists(NASTY, max_size=60).map("".join)


@pytest.fixture(scope="module")
def cleaner() -> Cleaner:
    return Cleaner()


@pytest.fixture(scope="module")
def english() -> spacy.Language:
    return spacy.blank("en")


def plainly_standardised(text: str) -> str:
    """The authors' rules said with regular expressions, one after another."""
    for dash in "—–―":
        text = text.replace(dash, "-")
    text = text.replace("…", "...").replace("´", "'")
    text = re.sub(
        r"""(-+|~+|!+|"+|;+|\?+|\++|,+|\)+|\(+|/+|\*+|\[+|\]+|\}+|\{+|\|+|_+)""", r" \1 ", text
    )
    text = re.sub(r"\s*\n\s*", " \n ", text)
    return re.sub(r"[^\S\n]+", " ", text).strip()


def whole_words(english: spacy.Language, text: str) -> list[str]:
    """Words by spaCy run once over the whole text."""
    tokens = english.tokenizer(plainly_standardised(ftfy.fix_text(text)))
    return [NEWLINE if token.text.isspace() else token.text.lower() for token in tokens]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a—b–c―d", "a - b - c - d"),
        ("wait…", "wait..."),
        ("´tis", "'tis"),
        ("a--b", "a -- b"),
        ("(x)", "( x )"),
        ("what?!", "what ? !"),
        ("a  \n\t\n  b", "a \n b"),
        ("a\tb\u00a0c", "a b c"),
        (" x ", "x"),
        ("\\back", "\\back"),
        ("1/2", "1 / 2"),
        ("a:b.c", "a:b.c"),
        ("\n", ""),
        (")(((", ") ((("),
        ("a_b__c", "a _ b __ c"),
    ],
)
def test_standardisation_by_hand(text: str, expected: str) -> None:
    assert standardise(text) == expected


@given(TEXTS)
def test_standardisation_is_the_authors_rules(text: str) -> None:
    assert standardise(text) == plainly_standardised(text)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="&")))
def test_lines_that_skip_ftfy_are_lines_it_would_not_change(text: str) -> None:
    assert ftfy.fix_text(text, unescape_html=False) == text


@given(TEXTS, st.lists(st.integers(0, 80), max_size=6))
def test_fixing_blocks_is_fixing_the_whole(text: str, cuts: list[int]) -> None:
    assert "".join(fixed(cut_at(text, cuts))) == ftfy.fix_text(text)


@given(TEXTS, st.integers(1, 9))
def test_long_lines_are_cut_where_ftfy_cuts_them(text: str, longest: int) -> None:
    expected = ftfy.fix_text(text, max_decode_length=longest)
    assert "".join(
        ftfy.fix_text(
            part, max_decode_length=longest, unescape_html="auto" if "<" not in text else False
        )
        for part in lines_and_parts([text], longest)
    ) == (
        expected
        if "<" not in text
        else ftfy.fix_text(text, max_decode_length=longest, unescape_html=False)
    )


def cut_at(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    return [text[start:stop] for start, stop in pairwise(edges)]


@settings(
    max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(TEXTS, st.lists(st.integers(0, 80), max_size=6))
def test_pieces_give_the_words_of_the_whole(
    cleaner: Cleaner, english: spacy.Language, text: str, cuts: list[int]
) -> None:
    expected = whole_words(english, text)
    assert cleaner.words(text) == expected
    pieces = [string for found in cleaner.clean(cut_at(text, cuts)) for string in found]
    assert " ".join(pieces).split(" ") == (expected or [""])


@pytest.mark.slow
def test_a_special_case_across_a_blank_is_seen(cleaner: Cleaner, english: spacy.Language) -> None:
    """spaCy looks for special cases across tokens and blanks, and then a case within a chunk may
    lose: chunks alone would be wrong.
    """
    rules = [rule for rule in english.tokenizer.rules if rule.strip()]
    texts = [
        f"{first}{glue}{second} {third}"
        for first in ("w", "c.i", "Mr", "''")
        for glue in ("'", ":", ".", "’")
        for second in rules[::9]
        for third in ("'em", "'", ".", "<3")
    ]
    naive = [
        [
            token.text.lower()
            for chunk in standardise(text).split(" ")
            for token in english.tokenizer(chunk)
        ]
        for text in texts
    ]
    expected = [whole_words(english, text) for text in texts]
    assert any(alone != whole for alone, whole in zip(naive, expected, strict=True))
    assert [cleaner.words(text) for text in texts] == expected


def test_no_special_case_is_longer_than_the_context_or_spans_lines(english: spacy.Language) -> None:
    from gpt1.corpus.words import CONTEXT

    full = english.tokenizer
    bare = Tokenizer(
        english.vocab,
        {},
        full.prefix_search,
        full.suffix_search,
        full.infix_finditer,
        full.token_match,
        full.url_match,
    )
    assert max(len(bare(rule)) for rule in full.rules) <= CONTEXT
    assert [
        rule
        for rule in english.tokenizer.rules
        if len(rule) > 1 and any(character.isspace() for character in rule)
    ] == []


def test_lower_casing_is_by_token(cleaner: Cleaner) -> None:
    assert cleaner.words("ΟΔΟΣ-ΟΔΟΣ") == ["οδος", "-", "οδος"]
    assert cleaner.words("It's Mr. X") == ["it", "'s", "mr.", "x"]


def test_words_hold_no_blanks(cleaner: Cleaner) -> None:
    text = "".join(
        chr(code) + " x" for code in range(1, 0x3000) if unicodedata.category(chr(code)) != "Cs"
    )
    assert not [word for word in cleaner.words(text) if " " in word or word == ""]


def test_memory_of_spacy_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpt1.corpus.words.RENEWAL_CHUNKS", 50)
    cleaner = Cleaner()
    first = cleaner._full
    assert cleaner.words(" ".join(f"zor{number}q" for number in range(120))) == [
        f"zor{number}q" for number in range(120)
    ]
    assert cleaner._full is not first
    assert len(cleaner._full.vocab.strings) < len(first.vocab.strings)


def test_unbroken_text_is_refused() -> None:
    with pytest.raises(UnbrokenTextError):
        list(chunks(["x" * 2_001]))
    with pytest.raises(UnbrokenTextError):
        list(chunks("x" * 1_000_000 for _ in range(9)))
    assert list(chunks(["x\t" * 2_001]))


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        ("naïve “x”\n".encode(), "utf-8", "naïve “x”\n"),
        ("naïve".encode("utf-8-sig"), "utf-8-sig", "naïve"),
        ("naïve".encode("utf-16"), "utf-16", "naïve"),
        (b"\xfe\xff" + "naïve".encode("utf-16-be"), "utf-16", "naïve"),
        ("naïve “x”".encode("cp1252"), "windows-1252", "naïve “x”"),
        (b"a\r\nb", "utf-8", "a\r\nb"),
    ],
)
def test_encodings(tmp_path: Path, data: bytes, encoding: str, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    [book] = list_corpus(tmp_path)
    found = inspect(book)
    assert (found.encoding, found.problem, found.stripped) == (encoding, "", 0)
    assert "".join(read_book(book, found)) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text\0more", "NUL"),
        (b"\x81\x8d\xff\xfe", "neither UTF-8 nor windows-1252"),
        (b"caf\xe9\x01", "control characters"),
        (b"\x01\x02" + b"a" * 100, "control characters"),
        (b"\xff\xfea", "but is not that"),
        (b"\xef\xbb\xbf\xff", "but is not that"),
        ("text".encode("utf-32"), "NUL"),
    ],
)
def test_what_is_not_text_is_refused_by_name(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "bad.txt").write_bytes(data)
    with pytest.raises(UserError, match=rf"bad\.txt.*{reason}.*take them out"):
        refuse_binary([inspect(list_corpus(tmp_path)[0])])


def test_many_binary_books_make_one_line(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"{number}.txt").write_bytes(b"\0")
    with pytest.raises(
        UserError, match=r"found 8 .*4\.txt \(holds NUL characters\) and 3 more"
    ) as caught:
        refuse_binary(map(inspect, list_corpus(tmp_path)))
    assert "5.txt" not in str(caught.value)


def test_books_are_sorted_found_below_and_others_left(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".ipynb_checkpoints").mkdir()
    hidden = (".ipynb_checkpoints/a.txt", "._a.txt", "~$a.txt")
    for name in ("b/z.txt", "c.TXT", "a.txt", "manifest.json", *hidden):
        (tmp_path / name).write_text("x")
    assert [book.name for book in list_corpus(tmp_path)] == ["a.txt", "b/z.txt", "c.TXT"]


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"expected a folder of books.*found none.*gpt1 profile PROFILE --data FOLDER",
    ):
        list_corpus(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"no book in .*found 0 other.*gpt1 profile"):
        list_corpus(tmp_path)
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "target")
    with pytest.raises(UserError, match=r"gone\.jsonl is a link to nothing"):
        list_corpus(tmp_path)


def test_held_out_books_depend_on_name_and_seed_alone() -> None:
    names = [f"book {number}" for number in range(4000)]
    draws = ((3, 0.1), (4, 0.1), (3, 0.2))
    heldout, others, more = (
        {name for name in names if HoldOut(seed, fraction).holds(name)} for seed, fraction in draws
    )
    assert 300 < len(heldout) < 500
    assert heldout != others
    assert heldout < more
    HoldOut(3, 0.1).check(names)


def test_a_corpus_that_cannot_be_split() -> None:
    with pytest.raises(UserError, match="a corpus of one book cannot be split"):
        HoldOut(0, 0.5).check(["a"])
    with pytest.raises(
        UserError, match="holds out none of 2 books; the smallest fraction"
    ) as caught:
        HoldOut(0, 1e-9).check(["a", "b"])
    fraction = float(re.findall(r"holds one out is ([0-9.]+)", str(caught.value))[0])
    HoldOut(0, fraction).check(["a", "b"])
    assert sum(HoldOut(0, fraction).holds(name) for name in ("a", "b")) == 1
    with pytest.raises(UserError, match="holds out all 2 books"):
        HoldOut(0, 1 - 1e-12).check(["a", "b"])
