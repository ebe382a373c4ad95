"""Books and cleaning: the authors' standardisation, decoding by rule, lines that give the words of
the whole.
"""

import re

import ftfy
import pytest
import spacy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpt1.base.errors import UserError
from gpt1.corpus.books import HoldOut
from gpt1.corpus.cleaning import clean_files
from gpt1.corpus.files import list_corpus
from gpt1.corpus.words import (
    NEWLINE,
    Cleaner,
    UnbrokenTextError,
    fixed,
    standardise,
)

MARKS = "’ ' '' — … -- (( . , $ ... =3 <3 :' :) o.O &amp; &#10; <b> Ã© â€œ Mr. a.m. U.S. 10km"
PARTS = "'em He's Ol' don't I'ma Σ İ ﬁ é word Word w 'S 漢 😀"
BLANKS = (*" \t\n\r\u2028\u00a0\x0b\x1c\ufeff\x07", "  ", "\r\n", "\x1b[31m", "e\u0301")
NASTY = st.sampled_from([*MARKS.split(), *PARTS.split(), *BLANKS])
TEXTS = st.lists(NASTY, max_size=60).map("".join)


@pytest.fixture(scope="module")
def cleaner():
    return Cleaner()


@pytest.fixture(scope="module")
def english():
    return spacy.blank("en")


def plainly_standardised(text):
    """The authors' rules said with regular expressions, one after another."""
    for dash in "—–―":
        text = text.replace(dash, "-")
    text = text.replace("…", "...").replace("´", "'")
    text = re.sub(
        r"""(-+|~+|!+|"+|;+|\?+|\++|,+|\)+|\(+|/+|\*+|\[+|\]+|\}+|\{+|\|+|_+)""", r" \1 ", text
    )
    text = re.sub(r"\s*\n\s*", " \n ", text)
    return re.sub(r"[^\S\n]+", " ", text).strip()


def whole_words(english, text):
    """Words by spaCy run once over the whole text."""
    tokens = english.tokenizer(plainly_standardised(ftfy.fix_text(text)))
    return [NEWLINE if token.text.isspace() else token.text.lower() for token in tokens]


BY_HAND = {
    "a—b–c―d": "a - b - c - d",
    "wait…": "wait...",
    "´tis": "'tis",
    "a--b": "a -- b",
    "(x)": "( x )",
    "what?!": "what ? !",
    "a  \n\t\n  b": "a \n b",
    "a\tb\u00a0c": "a b c",
    " x ": "x",
    "\\back": "\\back",
    "1/2": "1 / 2",
    "a:b.c": "a:b.c",
    "\n": "",
    ")(((": ") (((",
    "a_b__c": "a _ b __ c",
}


def test_standardisation_by_hand():
    assert {text: standardise(text) for text in BY_HAND} == BY_HAND


@given(TEXTS)
def test_standardisation_is_the_authors_rules(text):
    assert standardise(text) == plainly_standardised(text)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="&")))
def test_lines_that_skip_ftfy_are_lines_it_would_not_change(text):
    assert ftfy.fix_text(text, unescape_html=False) == text


@given(TEXTS)
def test_fixing_lines_is_fixing_the_whole(text):
    assert fixed(text) == ftfy.fix_text(text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
def test_lines_give_the_words_of_the_whole(cleaner, english, text):
    assert cleaner.words(text) == whole_words(english, text)


def test_no_special_case_spans_lines(english):
    rules = english.tokenizer.rules
    assert not [rule for rule in rules if len(rule) > 1 and re.search(r"\s", rule)]


def test_a_long_line_is_cut_at_white_space(cleaner):
    text = "so it was . " * 30_000
    assert " ".join(cleaner.clean(text)).split() == text.split()


def test_lower_casing_is_by_token(cleaner):
    assert cleaner.words("ΟΔΟΣ-ΟΔΟΣ") == ["οδος", "-", "οδος"]
    assert cleaner.words("It's Mr. X") == ["it", "'s", "mr.", "x"]


def test_words_hold_no_blanks(cleaner):
    text = "".join(chr(code) + " x" for code in range(1, 0x3000))
    assert not [word for word in cleaner.words(text) if " " in word or word == ""]


def test_unbroken_text_is_refused(cleaner):
    for length in (2_001, 9_000_000):
        with pytest.raises(UnbrokenTextError):
            list(cleaner.clean("x" * length))
    assert list(cleaner.clean("x\t" * 2_001))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"text\0more", "NUL"),
        (b"\x81\x8d\xff\xfe", "neither UTF-8 nor windows-1252"),
        (b"caf\xe9\x01", "control characters"),
        (b"\xff\xfea", "but is not that"),
    ],
)
def test_what_is_not_text_is_refused_by_name(tmp_path, data, reason):
    (tmp_path / "bad.txt").write_bytes(data)
    with pytest.raises(UserError, match=rf"bad\.txt.*{reason}.*take them out"):
        clean_files(list_corpus(tmp_path), "text", tmp_path, tmp_path / "cleaned")


def test_held_out_books_depend_on_name_and_seed_alone():
    names = [f"book {number}" for number in range(4000)]
    draws = ((3, 0.1), (4, 0.1), (3, 0.2))
    heldout, others, more = (
        {name for name in names if HoldOut(seed, fraction).holds(name)} for seed, fraction in draws
    )
    assert 300 < len(heldout) < 500
    assert heldout != others
    assert heldout < more
    assert HoldOut(3, 0.1).for_corpus(iter(names)) == HoldOut(3, 0.1)


def test_one_book_at_least_is_held_out_and_one_is_left(capfd):
    with pytest.raises(UserError, match="a corpus of one book cannot be split"):
        HoldOut(0, 0.5).for_corpus(["a"])
    for fraction, words, held_out in ((1e-9, "none of 3", 1), (1 - 1e-12, "all of 3", 2)):
        hold_out = HoldOut(0, fraction).for_corpus("abc")
        assert words in capfd.readouterr().err
        assert sum(map(hold_out.holds, "abc")) == held_out
