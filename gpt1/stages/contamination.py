"""`contamination`: runs of words that the corpus and the tasks' evaluation texts share:
data/contamination/table.md, .csv, .json.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

from gpt1.base.errors import UserError
from gpt1.base.files import read_json, stage_folder, write_json, writing, writing_folder
from gpt1.corpus.books import Book, DocumentsPart, cleaned_books, documents_parts
from gpt1.corpus.clean import LONGEST_CHUNK, Cleaner, UnbrokenTextError
from gpt1.corpus.encoding import batches
from gpt1.corpus.parallel import processes_for, workers
from gpt1.corpus.shards import Part, parts_of
from gpt1.params.schema import Params, read_params
from gpt1.tasks.contamination.index import Found, Index, make_index
from gpt1.tasks.contamination.table import Split, as_csv, count, markdown
from gpt1.tasks.readers import read_split, splits_to_read
from gpt1.tasks.table import TASKS, Task, scored_split

SHOWN_CHARACTERS = 40

Searched = tuple[Part | DocumentsPart, str]


def read_examples(params: Params) -> Iterator[tuple[Task, str, bool, list[tuple[str, ...]]]]:
    """For each split of each task but those to train on: the task, its name, whether it is scored,
    the texts of its examples.
    """
    for name, row in params.tasks.items():
        task, folder = TASKS[name], stage_folder("acquire", "tasks", name)
        splits = [split for split in splits_to_read(task, folder, row) if split.name != "train"]
        found = {
            split.name: read_split(task, split, folder, row, params.encode.max_unreadable_fraction)
            for split in splits
        }
        labelled = {split: {"labelled": rows.labelled} for split, rows in found.items()}
        scored = {scored_split(column, labelled) for column in task.columns}
        for split, rows in found.items():
            yield (
                task,
                split,
                split in scored,
                [(*example.context, *example.choices) for example in rows.examples],
            )


def clean_batch(cleaner: Cleaner, texts: list[str]) -> list[str]:
    """Texts as their words joined by blanks. Raises UserError for one that is no English text, as
    `encode` does.
    """
    found = []
    for text in texts:
        try:
            found.append(" ".join(cleaner.words(text)))
        except UnbrokenTextError:
            raise UserError(
                f"expected English text in the tasks' files, found {text[:SHOWN_CHARACTERS]!a} …"
                f" with more than {LONGEST_CHUNK:,} characters without a blank or line break; mend"
                " it or leave it out"
            ) from None
    return found


def cleaned(texts: list[str]) -> list[str]:
    """All texts cleaned, in order."""
    tasks = list(batches(texts))
    sizes = [sum(map(len, batch)) for batch in tasks]
    with workers(Cleaner, processes_for(sum(sizes))) as pool:
        return [
            text
            for batch in pool.map("cleaning the tasks' texts", clean_batch, tasks, sizes)
            for text in batch
        ]


def find(index: Index, task: Searched) -> list[Found]:
    """The runs that stand in one part of the corpus."""
    return index.find(*task)


def itself(index: Index) -> Index:
    """What each process prepares: the index that it was sent."""
    return index


def search(index: Index, books: list[Book]) -> dict[int, str]:
    """{run: the first book or document that it stands in}, over the whole corpus."""
    tasks: list[Searched] = [
        (part, book.name)
        for book in books
        for part in (documents_parts(book)[0] if book.many else parts_of(book.path))
    ]
    sizes = [part.bytes_ for part, _ in tasks]
    found: dict[int, str] = {}
    prepare: Callable[[], Index] = partial(itself, index)
    with workers(
        prepare, processes_for(sum(sizes) // 8)
    ) as pool:  # quick beside what a further process costs
        for runs in pool.map("searching books", find, tasks, sizes):
            for run, book in runs:
                found.setdefault(run, book)
    return found


def main() -> None:
    """Index the evaluation texts of every task, search the cleaned corpus for their runs of words,
    count, write.
    """
    params = read_params()
    n = params.contamination.ngram
    asked = list(read_examples(params))
    texts = dict.fromkeys(
        text for *_, examples in asked for one in examples for text in one
    )  # each once
    numbers = {text: number for number, text in enumerate(texts)}
    splits = [
        Split(task.title, split, scored, [[numbers[text] for text in one] for one in examples])
        for task, split, scored, examples in asked
    ]
    index = make_index(cleaned(list(numbers)), n)
    found = search(index, cleaned_books(stage_folder("clean")))
    counted = [count(split, index, found) for split in splits]
    rows, worst = [row for row, _ in counted], [one for _, some in counted for one in some]
    counts = read_json(stage_folder("clean", "counts.json"))
    name, words = counts["corpus_name"], counts["totals"]["words"]
    with writing_folder(stage_folder("contamination")) as folder:
        text = markdown(rows, worst, n, name, words)
        with writing(folder / "table.md") as file:
            file.write(text)
        with writing(folder / "table.csv") as file:
            file.write(as_csv(rows, n, name))
        write_json(
            folder / "table.json",
            {
                "ngram": n,
                "corpus": name,
                "corpus_words": words,
                "rows": list(map(asdict, rows)),
                "worst": list(map(asdict, worst)),
            },
        )
    print(text)
