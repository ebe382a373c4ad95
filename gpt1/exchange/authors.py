"""The authors' released files, read as their loader reads them: ten arrays joined end to end, cut
at the shapes' offsets, reshaped.

params_shapes.json lists the shapes: positions first, then tokens, then each block's variables;
matrices are 1x1 convolutions.
"""

import hashlib
from itertools import accumulate
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import AUTHORS_FILES, read_vocabulary
from gpt1.exchange.incoming import Incoming, read_json_file, sizes_from
from gpt1.exchange.openai_gpt import names, to_ours
from gpt1.params.schema import Model
from gpt1.sources.addresses import RELEASED

SHAPES = "params_shapes.json"
ARRAYS = tuple(f"params_{number}.npy" for number in range(10))
HEAD_WIDTH = 64  # of the paper's heads; the files do not say it
WHAT_TO_DO = (
    "bring the files of the folder model of https://github.com/openai/finetune-transformer-lm again"
)


def read_authors(folder: Path, heads: int | None) -> Incoming:
    """The model in the authors' files in `folder`; `heads` None: as wide as the paper's. Raises
    UserError where they are not whole.
    """
    wanted = (SHAPES, *ARRAYS, *AUTHORS_FILES)
    if missing := [name for name in wanted if not (folder / name).is_file()]:
        raise UserError(
            f"{folder}: expected {SHAPES}, {ARRAYS[0]} to {ARRAYS[-1]},"
            f" {' and '.join(AUTHORS_FILES)}; found no {', no '.join(missing)}; {WHAT_TO_DO}"
        )
    files = [folder / name for name in wanted]
    others = [path.name for path in files if git_name(path) != RELEASED[path.name]]
    if others and any(name not in others for name in ARRAYS):
        raise UserError(
            f"{folder}: expected the released files, of which some are here, but"
            f" {', '.join(others)} {'differs' if len(others) == 1 else 'differ'} from them:"
            f" damaged, or of another model; {WHAT_TO_DO}"
        )
    vocabulary = read_vocabulary(folder / AUTHORS_FILES[0], folder / AUTHORS_FILES[1], WHAT_TO_DO)
    shapes = read_shapes(folder / SHAPES)
    sizes = sizes_of(shapes, heads, folder / SHAPES)
    numbers = joined([folder / name for name in ARRAYS], sum(map(prod, shapes)))
    parts = np.split(numbers, list(accumulate(map(prod, shapes)))[:-1])
    tensors = {
        theirs: torch.from_numpy(part.reshape(shape[-2:]))  # a matrix is a convolution of width 1
        for (_, theirs), shape, part in zip(names(sizes.layers), shapes, parts, strict=True)
    }
    ours = to_ours(tensors, sizes.layers)
    return Incoming("authors", sizes, ours, vocabulary, files, not others)


def git_name(path: Path) -> str:
    """The name by which git knows a file's bytes."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_shapes(path: Path) -> list[tuple[int, ...]]:
    """The shapes in the authors' order. Raises UserError where the file holds something else."""
    found = read_json_file(path, WHAT_TO_DO)
    if not isinstance(found, list) or not all(
        isinstance(shape, list) and shape and all(type(size) is int and size > 0 for size in shape)
        for shape in found
    ):
        raise UserError(
            f"{path}: expected a list of shapes such as [[512, 768], [40478, 768], [1, 768, 2304],"
            f" …], found something else; {WHAT_TO_DO}"
        )
    return [tuple(shape) for shape in found]


def sizes_of(shapes: list[tuple[int, ...]], heads: int | None, path: Path) -> Model:
    """The sizes of the model that has these shapes. Raises UserError where they are no model's."""
    layers, surplus = divmod(len(shapes) - 2, 12)
    if layers < 1 or surplus or len(shapes[0]) != 2 or len(shapes[1]) != 2:
        raise UserError(
            f"{path}: expected the shapes of positions, tokens and twelve variables a block, found"
            f" {len(shapes)} shapes, first {[list(shape) for shape in shapes[:2]]}; {WHAT_TO_DO}"
        )
    context, width = shapes[0]
    if heads is None and width % HEAD_WIDTH:
        raise UserError(
            f"{path}: heads of {HEAD_WIDTH} units, the paper's, do not divide the width {width},"
            " and the files do not say how many heads there are; give --heads N"
        )
    inner = shapes[8][-1]
    block = [(1, width, 3 * width), (3 * width,), (1, width, width), *[(width,)] * 3]
    block += [(1, width, inner), (inner,), (1, inner, width), *[(width,)] * 3]
    for place, expected in enumerate([(context, width), (shapes[1][0], width), *layers * block]):
        if shapes[place] != expected:
            raise UserError(
                f"{path}: expected shape {list(expected)} in place {place}, found"
                f" {list(shapes[place])}; {WHAT_TO_DO}"
            )
    return sizes_from(
        path,
        context=context,
        width=width,
        layers=layers,
        heads=heads or width // HEAD_WIDTH,
        feed_forward=inner,
    )


def joined(paths: list[Path], expected: int) -> Any:
    """The float32 numbers of the arrays end to end, [expected]. Raises UserError where an array is
    damaged or their number is another.
    """
    arrays = []
    for path in paths:
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError, MemoryError):  # numpy's words advise to load what may run code
            raise UserError(
                f"{path}: expected an array of numbers as numpy writes it, whole, found something"
                f" else; {WHAT_TO_DO}"
            ) from None
        if array.ndim != 1 or array.dtype.kind != "f":
            raise UserError(
                f"{path}: expected floating-point numbers in one row, found {array.dtype} in shape"
                f" {list(array.shape)}; {WHAT_TO_DO}"
            )
        arrays.append(array)
    numbers = np.concatenate(arrays).astype(np.float32, copy=False)
    if len(numbers) != expected:
        raise UserError(
            f"{paths[0].parent}: expected {expected:,} numbers in {paths[0].name} to"
            f" {paths[-1].name}, as {SHAPES} says, found {len(numbers):,}; {WHAT_TO_DO}"
        )
    return numbers
