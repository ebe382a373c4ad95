"""The authors' released files, read as their loader does: ten arrays joined, cut and reshaped."""

from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpt1.base.errors import UserError
from gpt1.base.files import read_json_file
from gpt1.corpus.bpe import AUTHORS_FILES, read_vocabulary
from gpt1.exchange.incoming import Incoming, sizes_from
from gpt1.inference.openai_gpt import names, to_ours
from gpt1.params.schema import Model
from gpt1.sources.addresses import RELEASED
from gpt1.sources.download import checksum

SHAPES = "params_shapes.json"
ARRAYS = tuple(f"params_{number}.npy" for number in range(10))
HEAD_WIDTH = 64  # of the paper's heads; the files do not say it
WHAT_TO_DO = (
    "bring the files of the folder model of https://github.com/openai/finetune-transformer-lm again"
)


def read_authors(folder: Path) -> Incoming:
    """Read the authors' files. Raises UserError where they are not whole."""
    required = (SHAPES, *ARRAYS, *AUTHORS_FILES)
    if missing := [name for name in required if not (folder / name).is_file()]:
        raise UserError(
            f"{folder}: expected {SHAPES}, {ARRAYS[0]} to {ARRAYS[-1]},"
            f" {' and '.join(AUTHORS_FILES)}; found no {', no '.join(missing)}; {WHAT_TO_DO}"
        )
    files = [folder / name for name in required]
    others = [path.name for path in files if checksum(path, 40) != RELEASED[path.name]]
    if others and any(name not in others for name in ARRAYS):
        raise UserError(
            f"{folder}: expected the released files, of which some are here, but"
            f" {', '.join(others)} {'differs' if len(others) == 1 else 'differ'} from them:"
            f" damaged, or of another model; {WHAT_TO_DO}"
        )
    vocabulary = read_vocabulary(folder, WHAT_TO_DO, AUTHORS_FILES)
    shapes = read_json_file(folder / SHAPES, WHAT_TO_DO, list)
    try:
        sizes = sizes_of(shapes, folder / SHAPES)
        arrays = [np.load(folder / name, allow_pickle=False) for name in ARRAYS]
        numbers = np.concatenate(arrays).astype(np.float32, casting="same_kind", copy=False)
        parts = np.split(numbers, list(accumulate(map(prod, shapes)))[:-1])
        tensors = {
            theirs: torch.from_numpy(array.reshape(shape[-2:]))  # a matrix is a convolution of 1
            for (_, theirs), shape, array in zip(names(sizes.layers), shapes, parts, strict=True)
        }
    except Exception as error:  # numpy lets through what Python's own parser raises
        raise UserError(
            f"{folder}: expected the numbers of {SHAPES} as numpy writes them, in one row over ten"
            f" files, found others ({type(error).__name__}); {WHAT_TO_DO}"
        ) from None
    ours = to_ours(tensors, sizes.layers)
    return Incoming("authors", sizes, ours, vocabulary, files, not others)


def sizes_of(shapes: Any, path: Path) -> Model:
    """Return the sizes of a model with these shapes. Raises LookupError, TypeError or ValueError
    for others.
    """
    (context, width), (rows, _), *blocks = shapes
    layers, inner = len(blocks) // 12, blocks[6][-1]
    block = [[1, width, 3 * width], [3 * width], [1, width, width], *[[width]] * 3]
    block += [[1, width, inner], [inner], [1, inner, width], *[[width]] * 3]
    if shapes != [[context, width], [rows, width], *layers * block]:
        raise ValueError("they are not positions, tokens and twelve variables a block")
    heads = width // HEAD_WIDTH
    return sizes_from(
        path, context=context, width=width, layers=layers, heads=heads, feed_forward=inner
    )
