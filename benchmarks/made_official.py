"""All that profile `official` reads, made up, to rehearse it without a download: weights of the
paper's size in the authors' form, two books, and a few rows of every task in its official format.

    python benchmarks/made_official.py FOLDER --rows 2
    gpt1 import FOLDER/model
    gpt1 profile official --data FOLDER/corpora finetune.batch_size=2 pretrain.heldout_windows=4
    gpt1 run table2

On a CPU give it `finetune.seeds=[0]` too: each seed of a task keeps half a gigabyte.
"""

import argparse
import json
import math
from itertools import accumulate, product
from pathlib import Path

import numpy as np
from gpt1.exchange.layout import their_shapes

from gpt1.corpus.bpe import AUTHORS_ENTRIES, AUTHORS_FILES, VERSION_LINE, Vocabulary
from gpt1.demo import files
from gpt1.exchange.authors import ARRAYS, SHAPES
from gpt1.params.profile import compose
from gpt1.params.schema import Model, validate

CHARACTERS = [chr(code) for code in range(33, 127) if not chr(code).isupper()] + [
    chr(code) for code in range(0xC0, 0xC0 + 171)
]  # of theirs there are as many, which leaves 40,000 merges
DEVIATION = 0.02
BOOKS, PAGES = 2, 4


def made_vocabulary(size: int) -> Vocabulary:
    """So many entries; each merge is of pieces that are there: letters, then pairs and threes."""
    letters = [character for character in CHARACTERS if character.isascii()]
    merges = [(left, right) for left, right in product(letters, repeat=2)]
    merges += [(left + right, last + "</w>") for left, right, last in product(letters, repeat=3)]
    return Vocabulary(CHARACTERS, merges[: size - 2 - 2 * len(CHARACTERS)])


def write_model(folder: Path, sizes: Model, words: Vocabulary) -> None:
    """The authors' files with drawn numbers, gains of 1 and biases of 0."""
    folder.mkdir(parents=True)
    draw, shapes = np.random.default_rng(0), their_shapes(sizes, words.size)
    numbers = np.empty(sum(map(math.prod, shapes.values())), np.float32)
    ends = accumulate(map(math.prod, shapes.values()))
    for (name, shape), end in zip(shapes.items(), ends, strict=True):
        part = numbers[end - math.prod(shape) : end]
        if len(shape) > 1:
            part[:] = DEVIATION * draw.standard_normal(len(part), np.float32)
        else:
            part[:] = float(name.endswith("weight"))
    said = [
        [1, *shape] if i > 1 and len(shape) == 2 else shape
        for i, shape in enumerate(shapes.values())
    ]
    (folder / SHAPES).write_text(json.dumps(said))
    for name, part in zip(ARRAYS, np.array_split(numbers, len(ARRAYS)), strict=True):
        np.save(folder / name, part)
    entries = {piece: number for number, piece in enumerate(words.pieces)}
    (folder / AUTHORS_FILES[0]).write_text(json.dumps(entries))
    lines = [VERSION_LINE, *(" ".join(merge) for merge in words.merges)]
    (folder / AUTHORS_FILES[1]).write_text("\n".join(lines) + "\n")


def main() -> None:
    """Write FOLDER/model and FOLDER/corpora."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folder", type=Path, help="a new folder, of half a gigabyte")
    parser.add_argument("--rows", type=int, default=2, help="of each split of a task")
    asked = parser.parse_args()
    write_model(
        asked.folder / "model",
        validate(compose("official", [])).model,
        made_vocabulary(AUTHORS_ENTRIES),
    )
    files.SIZES |= {  # where dev is a part of the training file, that has rows for both
        task: (asked.rows * (1 if dev else 2), asked.rows * bool(dev), asked.rows * bool(test))
        for task, (_, dev, test) in files.SIZES.items()
    }
    files.write_world(asked.folder / "corpora", 0, BOOKS, PAGES)


if __name__ == "__main__":
    main()
