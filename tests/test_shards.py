"""Shards: windows that depend on (seed, update) alone, inside books, uniform; files that must agree
with their index.
"""

import numpy as np
import pytest
from made_data import change_json

from gpt1.base.errors import UserError
from gpt1.corpus.shards import Shards, SplitWriter, token_type, write_index

CONTEXT = 8
LENGTHS = {"train": (40, 5, 8, 9, 100), "heldout": (30, 3)}


def make(folder, vocabulary_size=1000):
    """Token files in which each token is its position, and books of LENGTHS."""
    splits = {}
    for split, lengths in LENGTHS.items():
        writer, position = SplitWriter(folder / f"{split}.bin"), 0
        for number, length in enumerate(lengths):
            writer.begin(f"book {number}")
            for start, stop in ((0, length // 2), (length // 2, length)):
                writer.append(
                    np.arange(position + start, position + stop).astype(
                        token_type(vocabulary_size)
                    ),
                    stop - start,
                )
            position += length
        splits[split] = writer.close()
    write_index(folder, splits, vocabulary_size, "f" * 16)
    return folder


def valid_starts(split):
    """Every position at which a window lies inside one book."""
    offsets = np.cumsum((0, *LENGTHS[split]))
    return [
        int(offset) + start
        for offset, length in zip(offsets, LENGTHS[split], strict=False)
        for start in range(length - CONTEXT)
    ]


@pytest.mark.parametrize(
    ("vocabulary_size", "dtype", "bytes_"), [(65_536, "uint16", 2), (65_537, "uint32", 4)]
)
def test_type_and_index(tmp_path, vocabulary_size, dtype, bytes_):
    shards = Shards.open(make(tmp_path, vocabulary_size))
    assert shards.index["dtype"] == dtype
    assert (tmp_path / "train.bin").stat().st_size == bytes_ * 162
    assert shards.tokens("train") == 162
    assert shards.words_per_token("train") == 1.0
    assert np.fromfile(tmp_path / "train.bin", dtype).tolist() == list(range(162))


def windows(shards, seed, update, batch, context):
    """A batch of the training books."""
    return shards.windows("train", shards.starts("train", seed, update, batch, context), context)


def test_windows_lie_inside_books_and_every_start_comes(tmp_path):
    shards = Shards.open(make(tmp_path))
    starts = valid_starts("train")
    batches = [windows(shards, 1, update, 64, CONTEXT) for update in range(200)]
    found = np.concatenate(batches)
    assert found.dtype == np.int64
    assert found.shape == (200 * 64, CONTEXT + 1)
    assert (np.diff(found, axis=1) == 1).all()
    counts = np.bincount(found[:, 0], minlength=162)
    assert set(np.flatnonzero(counts)) == set(starts)
    expected = len(found) / len(starts)
    assert (
        (counts[starts] - expected) ** 2 / expected
    ).sum() < 180  # chi-square with 124 degrees of freedom: p < 0.001 above


def test_windows_depend_on_seed_and_update_alone(tmp_path):
    shards, other = Shards.open(make(tmp_path)), Shards.open(tmp_path)
    batch = windows(shards, 1, 5, 32, CONTEXT)
    windows(other, 1, 4, 32, CONTEXT)
    assert (batch == windows(other, 1, 5, 32, CONTEXT)).all()
    assert (batch != windows(shards, 1, 6, 32, CONTEXT)).any()
    assert (batch != windows(shards, 2, 5, 32, CONTEXT)).any()


def test_heldout_windows_are_fixed_and_spread(tmp_path):
    shards = Shards.open(make(tmp_path))
    assert shards.heldout_windows(11, CONTEXT)[:, 0].tolist() == list(range(0, 22, 2))
    assert (shards.heldout_windows(5, CONTEXT) == shards.heldout_windows(5, CONTEXT)).all()
    assert shards.heldout_windows(44, CONTEXT).shape == (44, CONTEXT + 1)
    assert set(shards.heldout_windows(44, CONTEXT)[:, 0].tolist()) == set(valid_starts("heldout"))


def test_no_book_is_as_long_as_a_window(tmp_path):
    shards = Shards.open(make(tmp_path))
    assert shards.heldout_windows(1, 29).tolist() == [list(range(30))]
    with pytest.raises(
        UserError,
        match=(
            r"no heldout book is as long as a window of 31 tokens \(the longest has 30\); lower"
            r" model.context"
        ),
    ):
        shards.heldout_windows(1, 30)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (
            lambda folder: (folder / "train.bin").write_bytes(b"12"),
            "does not fit train.bin, of 2 bytes",
        ),
        (lambda folder: (folder / "heldout.bin").unlink(), "No such file .*heldout.bin"),
        (lambda folder: (folder / "index.json").write_text("{"), "and their index, found others"),
        (
            lambda folder: change_json(folder / "index.json", dtype="uint32"),
            "wants uint16, found uint32",
        ),
        (
            lambda folder: change_json(folder / "index.json", vocabulary_size=70_000),
            "wants uint32, found uint16",
        ),
    ],
)
def test_shards_that_do_not_agree_with_their_index(tmp_path, harm, message):
    make(tmp_path)
    harm(tmp_path)
    with pytest.raises(UserError, match=rf"{message}.*dvc repro shard"):
        Shards.open(tmp_path)
