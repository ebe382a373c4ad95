"""Which form a folder's model has, and the reading of it."""

from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.exchange.authors import ARRAYS, SHAPES, read_authors
from gpt1.exchange.hugging_face import CONFIG, read_hugging_face
from gpt1.exchange.incoming import Incoming

SHOWN_ENTRIES = 8


def read_model(folder: Path, heads: int | None) -> Incoming:
    """The model in a folder of the authors' files (or a checkout of their repository), or in a
    Hugging Face folder.

    `heads`: number of attention heads, which the authors' files do not say (None: 64 units each).
    Raises UserError for other folders.
    """
    if not folder.is_dir():
        raise UserError(
            f"{folder} is not a folder; expected one with the authors' files ({SHAPES}, …) or a"
            " Hugging Face openai-gpt folder"
        )
    for place in (folder, folder / "model"):
        if any((place / name).is_file() for name in (SHAPES, ARRAYS[0])):
            return read_authors(place, heads)
    if (folder / CONFIG).is_file():
        if heads is not None:
            raise UserError(
                f"--heads is for the authors' files; {folder / CONFIG} says how many heads the"
                " model has: leave it out"
            )
        return read_hugging_face(folder)
    names = sorted(path.name for path in folder.iterdir())
    found = ", ".join(names[:SHOWN_ENTRIES]) + (
        f" and {len(names) - SHOWN_ENTRIES} more" if len(names) > SHOWN_ENTRIES else ""
    )
    raise UserError(
        f"{folder}: expected the authors' files ({SHAPES}, {ARRAYS[0]} to {ARRAYS[-1]},"
        f" encoder_bpe_40000.json, vocab_40000.bpe) or a Hugging Face openai-gpt folder ({CONFIG},"
        f" model.safetensors, vocab.json, merges.txt); found {found or 'nothing'}"
    )
