"""The made-up town: the bytes of the runs shipped; what training, test and books share."""

import hashlib
import re
from collections import Counter
from itertools import chain

import pytest

from gpt1.params.schema import read_params
from gpt1.tasks.definitions import DPRD, TASKS
from gpt1.tasks.readers import read_task
from gpt1.town import lexicon
from gpt1.town.files import SIZES, write_town
from gpt1.town.rows import Single
from gpt1.town.sides import FRAME, clauses, misjudged, sentences

pytestmark = pytest.mark.slow

SEED, BOOKS, PAGES = 5, 4, 40
OF_SHIPPED_RUNS = "dbfbce1547b7a555d2ce59c9057c922aa0b918a1d83747813da381f437cae8d9"


def digest(folder):
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".gz":  # another zlib may pack otherwise
            whole.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return whole.hexdigest()


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "town"
    write_town(folder, SEED, BOOKS, PAGES)
    return folder


def splits_of(town, task):
    """The splits as the pipeline reads them."""
    about = DPRD if task == "dprd" else TASKS[task]
    return read_task(about, town / task, read_params().tasks["mnli"], 0.0)[0]


def texts_of(town, task):
    """The texts of training rows, and of development and test rows; Story Cloze's are one file."""
    train, rest = [], []
    for name, rows in splits_of(town, task).items():
        side = train if name == "train" or (task, name) == ("story_cloze", "dev") else rest
        side.extend(text for row in rows.examples for text in (*row.context, *row.choices))
    return train, rest


TEXT_TASKS = sorted(set(SIZES) - {"race", "dprd"})


def test_equal_seeds_give_equal_bytes_whatever_the_hash_seed(town):
    """Python draws the seed of its hashes anew for each run of the tests."""
    assert digest(town) == OF_SHIPPED_RUNS


NAMES = {*lexicon.WOMEN, *lexicon.MEN}
STREETS = re.compile(rf"\b[A-Z][a-z]+ (?:{'|'.join(lexicon.STREET_KINDS)})\b")


def names_in(text):
    return (NAMES & set(re.findall(r"[A-Z][a-z]+", text))) | set(STREETS.findall(text))


@pytest.mark.parametrize("task", TEXT_TASKS)
def test_sides_share_no_names_no_streets_and_no_sentence(town, task):
    train, rest = texts_of(town, task)
    for found_in in (names_in, sentences):
        learned, asked = (
            {one for text in texts for one in found_in(text) if not FRAME.match(one)}
            for texts in (train, rest)
        )
        assert min(len(learned), len(asked)) > 3
        assert not learned & asked


def test_of_the_words_that_decide_sst2_half_are_new_in_development_and_test(town):
    words = {*lexicon.GOOD, *lexicon.BAD}
    learned, asked = (words & set(" ".join(texts).split()) for texts in texts_of(town, "sst2"))
    assert len(asked - learned) == len(asked) / 2


def test_of_26_rows_two_have_each_others_label():
    rows = misjudged([Single("", str(number)) for number in range(53)])
    wrong = {place: row.label for place, row in enumerate(rows) if row.label != str(place)}
    assert wrong == {24: "25", 25: "24", 50: "51", 51: "50"}


ON_ORDER = ("rte", "scitail", "qnli", "mrpc", "cola")


def words(text):
    """All tokens of a text, in no order."""
    return tuple(sorted(re.findall(r"\w+|[^\w\s]", text.lower())))


def test_every_row_on_order_has_a_twin_of_the_same_words_and_another_label(town):
    """So that whatever sees no order, in any of the texts, answers half of them wrongly."""
    for task in [*ON_ORDER, "dprd"]:
        splits = [rows.examples for rows in splits_of(town, task).values() if rows.labelled]
        assert len(splits) >= 2
        for examples in splits:
            labels = {}
            for row in examples:
                key = tuple(map(words, (*row.context, *row.choices)))
                labels.setdefault(key, Counter())[row.label] += 1
            for found in labels.values():
                assert len(found) == 2
                assert len(set(found.values())) == 1  # as often each: no class is likelier


@pytest.mark.parametrize("task", TEXT_TASKS)
def test_no_sentence_of_a_task_stands_in_the_books(town, task):
    said = {
        clause
        for path in (town / "books").iterdir()
        for clause in [*clauses(path.read_text()), *sentences(path.read_text())]
    }
    if task in ON_ORDER:  # a claim may: it is true of one twin and false of the other
        tale = 0 if task in ("mrpc", "cola") else 1
        told = [
            row.context[tale] for rows in splits_of(town, task).values() for row in rows.examples
        ]
        found = {sentence for text in told for sentence in sentences(text)} & said
    else:
        both = [*map(clauses, chain(*texts_of(town, task)))]
        known = {clause for found in both for clause in found if len(clause.split()) > 2} & said
        found = {one for one in known if not one.startswith(("the newspaper", "it added"))}
    assert not found, f"{len(found)} stand in the books too"
