"""The made-up town's books, each about a town of its own, and its tasks' official files."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from gpt1.town import happenings, lexicon, official, tales, talks
from gpt1.town.official import Splits, Write, each
from gpt1.town.rows import (
    ENTAILMENT,
    RTE_CLAIMS,
    acceptability,
    answers,
    duplicate,
    entailment,
    follows,
    paraphrase,
    passages,
    pronouns,
    sentiment,
    similarity,
    stories,
)
from gpt1.town.scenes import Scene, diary, letter, notice, prose, report, talk
from gpt1.town.sides import Row, Side, clauses, distinct, sentences
from gpt1.town.tales import ORDER
from gpt1.town.town import Town

TALES = (6, 9)  # of a page, at least and at most
PARTS = (
    (0.15, happenings.turn),
    (0.15, talks.relation),
    (0.1, happenings.happen),
    (0.4, happenings.mood),
    (0.3, happenings.thank),
)


def write_page(scene: Scene) -> None:
    """Write one page of a book."""
    chance = scene.chance
    talks.introduce(scene)
    for _ in range(chance.randint(2, 4)):
        chance.choice(talks.TALKS)(scene)
    for _ in range(chance.randint(*TALES)):
        tales.tell(scene)
    for share, write_part in PARTS:
        if chance.random() < share:
            write_part(scene)


def write_book(seed: str, pages: int) -> str:
    """Return the book of a seed."""
    chance = Random(seed)
    town = Town(chance, EVERY, things=8)
    name = chance.choice(lexicon.SURNAME_STARTS) + chance.choice(lexicon.SURNAME_ENDS)
    paragraphs = [f"The days of {name.capitalize()}."]
    for _ in range(pages):
        scene = Scene(town, chance)
        write_page(scene)
        paragraphs.append(" ".join(scene.sentences))
    return "\n\n".join(paragraphs) + "\n"


SIZES = {  # rows of train, dev and test; where the official test has no labels the tables score dev
    "snli": (800, 100, 300),
    "mnli": (1000, 300, 60),
    "qnli": (1200, 300, 60),
    "rte": (1000, 300, 60),
    "scitail": (1000, 100, 300),
    "race": (800, 100, 300),
    "story_cloze": (1000, 0, 300),
    "mrpc": (500, 100, 300),
    "qqp": (800, 300, 60),
    "stsb": (1200, 100, 300),
    "sst2": (500, 300, 60),
    "cola": (1000, 300, 60),
    "dprd": (200, 0, 300),
}
# which words of a meaning training rows may take: of SST-2 every other one, of MRPC all but one
EVERY, WORDS = slice(None), {"sst2": slice(0, None, 2), "mrpc": slice(None, -1)}
# each as often: of four stories in six one pre-training had 72 on MNLI-mm, not 90; without notices,
# before whose quality stand more words than in the others, one fine-tuning in five had 76 to 86
MATCHED = (prose, report, letter, notice)
MISMATCHED = (talk, diary)
MISMATCHED_SEED = 1_000_003  # added to the seed


def write_books(folder: Path, seed: int, books: int, pages: int) -> frozenset[str]:
    """Write the books; return their clauses and sentences."""
    folder.mkdir(parents=True)
    book_texts: set[str] = set()
    for number in range(books):
        book = write_book(f"{seed}/books/{number}", pages)
        (folder / f"town {number:03d}.txt").write_text(book, encoding="utf-8")
        book_texts.update(clauses(book), sentences(book))
    return frozenset(book_texts)


def sample_rows(
    seed: int, task: str, make: Callable[[Side, int], list[Row]], book_texts: frozenset[str]
) -> Splits[Row]:
    """Return train rows of one side, dev and test rows of the other, which repeat no sentence of
    train.
    """
    train, dev, test = SIZES[task]
    learn, check = (
        Side(slice(number, None, 2), Random(f"{seed}/{task}/{number}"), book_texts, words)
        for number, words in enumerate((WORDS.get(task, EVERY), EVERY))
    )
    trained = distinct(make, learn, train)
    forbidden = book_texts.union(*(sentences(str(cell)) for row in trained for cell in row))
    tested = distinct(make, check._replace(forbidden=forbidden), dev + test)
    return trained, tested[:dev], tested[dev:]


def write_town(folder: Path, seed: int, books: int, pages: int) -> None:
    """Write `<folder>/<source>` for books and tasks. Equal arguments give equal bytes."""
    book_texts = write_books(folder / "books", seed, books, pages)
    for task, (make, write) in TASKS.items():
        (folder / task).mkdir()
        write(folder / task, sample_rows(seed, task, make, book_texts))
    other = partial(entailment, task="mnli", genres=MISMATCHED)
    _, mismatched, _ = sample_rows(seed + MISMATCHED_SEED, "mnli", other, book_texts)
    official.jsonl(folder / "mnli/multinli_1.0_dev_mismatched.jsonl", mismatched)


# how a side's row of a number is made, or that and its twin; how the three splits are written
TASKS: dict[str, tuple[Callable[[Side, int], list[Any]], Write]] = {
    "snli": (
        partial(entailment, task="snli", genres=(prose,)),
        each(official.jsonl, "snli_1.0_{}.jsonl"),
    ),
    "mnli": (
        partial(entailment, task="mnli", genres=MATCHED),
        each(official.jsonl, "multinli_1.0_{}.jsonl", ("train", "dev_matched", "")),
    ),
    "qnli": (answers, official.pairs_of_glue("index", "question", "sentence", "label")),
    "rte": (
        partial(follows, claims=RTE_CLAIMS, labels=ENTAILMENT),
        official.pairs_of_glue("index", "sentence1", "sentence2", "label"),
    ),
    "scitail": (
        partial(follows, claims=ORDER.claims, labels=("entails", "neutral")),
        each(official.tsv, "scitail_1.0_{}.tsv"),
    ),
    "race": (passages, official.race),
    "story_cloze": (
        stories,
        each(
            official.stories,
            "cloze_test_{0}__spring2016 - cloze_test_ALL_{0}.csv",
            ("val", "", "test"),
        ),
    ),
    "mrpc": (  # train and dev beside the official test: shares of one file would part twins
        paraphrase,
        each(official.mrpc, "{}", ("train.tsv", "dev.tsv", "msr_paraphrase_test.txt")),
    ),
    "qqp": (duplicate, official.pairs_of_glue("id", "question1", "question2", "is_duplicate")),
    "stsb": (similarity, each(official.stsb, "sts-{}.csv")),
    "sst2": (sentiment, official.singles_of_glue("sentence\tlabel\n", lambda row: row)),
    "cola": (
        acceptability,
        official.singles_of_glue(
            "", lambda row: ("town", row.label, "" if row.label == "1" else "*", row.text)
        ),
    ),
    "dprd": (pronouns, each(official.pronouns, "{}.c.txt", ("train", "", "test"))),
}
