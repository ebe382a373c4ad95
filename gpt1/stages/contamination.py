"""`contamination`: runs of words that the corpus and the tasks' evaluation texts share:
data/contamination/table.md, .csv, .json.
"""

from dataclasses import asdict

from gpt1.base.files import read_json, stage_folder, write_json, writing, writing_folder
from gpt1.corpus.books import cleaned_books
from gpt1.params.schema import read_params
from gpt1.tasks.contamination.index import make_index, search
from gpt1.tasks.contamination.overlap import EvaluatedSplit, as_csv, count, markdown
from gpt1.tasks.contamination.texts import clean_texts, read_examples


def main() -> None:
    """Index the evaluation texts of every task, search the cleaned corpus for their runs of words,
    count, write.
    """
    params = read_params()
    n = params.contamination.ngram
    asked = list(read_examples(params))
    texts = dict.fromkeys(text for *_, examples in asked for one in examples for text in one)
    numbers = {text: number for number, text in enumerate(texts)}
    index = make_index(clean_texts(list(texts)), n)
    found = search(index, cleaned_books(stage_folder("clean")))
    counted = [
        count(
            EvaluatedSplit(
                task.title, split, scored, [[numbers[text] for text in one] for one in examples]
            ),
            index,
            found,
        )
        for task, split, scored, examples in asked
    ]
    rows, worst = [row for row, _ in counted], [one for _, some in counted for one in some]
    counts = read_json(stage_folder("clean", "counts.json"))
    name, words = counts["corpus_name"], counts["totals"]["words"]
    text = markdown(rows, worst, n, name, words)
    with writing_folder(stage_folder("contamination")) as folder:
        for suffix, content in (("md", text), ("csv", as_csv(rows, n, name))):
            with writing(folder / f"table.{suffix}") as file:
                file.write(content)
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
