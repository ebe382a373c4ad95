"""Made-up rows, and tables {split: {column: values}} of them as Hugging Face exports; `classes`:
{column: what its integers mean}.
"""

import json
from functools import partial

import pyarrow as pa
from pyarrow import parquet

ROWS = {"train": 10, "dev": 6, "test": 4}
HUB = {"train": "train", "dev": "validation", "test": "test"}
PART = "{split}-{part:05d}-of-{parts:05d}.parquet"


def rows_of(split, start=0, stop=None):
    """The rows of a split, or some of them."""
    return [(split, number) for number in range(ROWS[split])][start:stop]


def cell(row, what, words=()):
    """What a row says. A text has all that the formats could trip over: quotes, commas, letters
    beyond ASCII, a no-break space.
    """
    split, number = row
    special = {
        "row": number,
        "score": round(number * 0.267 % 5, 3),
        "level": f"{'middle' if number < 2 else 'high'}{number}.txt",
        "options": [f"{number} {letter}é" for letter in "abcd"],
    }
    if what == "label":  # all of them in turn
        return words[(number + len(split)) % len(words)]
    text = f'{split} {what} {number}: “naïve” and "plain", it\'s\u00a0—\u6f22 {number % 3}.'
    return special.get(what, text)


def columns_of(rows, columns, words=()):
    """{column: values}; `columns`: a name=what of each, as "sentence1=a, sentence2=b"."""
    pairs = (column.split("=") for column in columns.split(", "))
    return {name: [cell(row, what, words) for row in rows] for name, what in pairs}


def write_lines(path, columns):
    """JSON lines, every other one in ASCII."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(zip(*columns.values(), strict=True)):
            about = dict(zip(columns, row, strict=True))
            file.write(json.dumps(about, ensure_ascii=number % 2 == 0) + "\n")


def table_of(columns, classes):
    """A table with the metadata that `datasets` writes; scores are 32-bit, classes 64-bit, as
    there.
    """
    features = {name: {"dtype": "string", "_type": "Value"} for name in columns}
    features |= class_labels(classes)
    arrays = [
        pa.array(values, pa.float32() if isinstance(values[0], float) else None)
        for values in columns.values()
    ]
    return pa.table(arrays, names=list(columns)).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )


def class_labels(classes):
    return {name: {"names": list(names), "_type": "ClassLabel"} for name, names in classes.items()}


def as_parquet(folder, tables, classes, name=PART, parts=1):
    """As in a clone from the hub."""
    for split, columns in tables.items():
        table = table_of(columns, classes)
        size = -(-len(table) // parts)
        for part in range(parts):
            path = folder / name.format(split=split, part=part, parts=parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(table.slice(part * size, size), path)


def as_lines(folder, tables, classes):
    """JSON lines, which say nothing of what their integers mean."""
    for split, columns in tables.items():
        write_lines(folder / f"{split}.jsonl", columns)


EXPORTS = {
    "parquet": as_parquet,
    "parquet in parts": partial(as_parquet, name=f"data/{PART}", parts=3),
    "jsonl": as_lines,
}
