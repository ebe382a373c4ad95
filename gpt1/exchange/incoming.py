"""What an import reads and writes, whatever form the files had: weights, vocabulary and a manifest;
nothing is taken on trust.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gpt1.base.errors import UserError
from gpt1.base.files import sha256_file, write_json, writing_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.exchange.layout import our_shapes
from gpt1.model.weights import Description, instead_of, save_state
from gpt1.params.schema import Model
from gpt1.params.strict import validated

IMPORTED = (  # what an import writes last; a folder that has it may be imported into again
    "import.json"
)
DEVIATION = (
    0.02  # of the paper's initial weights: what a folder that does not say it is taken to have had
)
EPSILON = 1e-5


class Incoming(NamedTuple):
    """A model as found in a folder: its form, sizes, our tensors, vocabulary, the files it came
    from, what else is to be told.
    """

    form: str
    sizes: Model
    tensors: dict[str, Tensor]
    vocabulary: Vocabulary
    files: list[Path]
    facts: dict[str, Any]


def sizes_from(path: Path, **values: Any) -> Model:
    """The sizes that a file tells. Raises UserError naming the file where they make no model."""
    return validated(
        Model,
        {
            "embedding_deviation": DEVIATION,
            "weight_deviation": DEVIATION,
            "layer_norm_epsilon": EPSILON,
        }
        | values,
        "",
        str(path),
    )


def read_json_file(path: Path, what_to_do: str) -> Any:
    """The JSON value of a file that others wrote. Raises UserError where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); {what_to_do}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path}: expected JSON, found something else ({error}); {what_to_do}"
        ) from None


def refuse_other_depth(tensors: Mapping[str, Tensor], layers: int, path: Path) -> None:
    """Raise UserError where there cannot be so many blocks: the number is another's word, and a
    list of them would fill the memory.
    """
    if layers > len(tensors):
        raise UserError(
            f"{path}: expected the tensors of {layers:,} blocks, found {len(tensors):,} tensors in"
            " all; bring the files of one model"
        )


def check_tensors(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], path: Path
) -> None:
    """Raise UserError naming the first tensor of `path` that is missing, unknown, of another shape
    or type, or not finite.
    """
    for name, shape in shapes.items():
        if name not in tensors:
            raise UserError(
                f"{path}: expected tensor {name} of shape {list(shape)}, found "
                + (instead_of(name, tensors, shapes) or "none; bring the file again, whole")
            )
        found = tensors[name]
        if tuple(found.shape) != shape or not found.is_floating_point():
            raise UserError(
                f"{path}: expected tensor {name} of floating-point numbers in shape {list(shape)},"
                f" found {str(found.dtype).removeprefix('torch.')} in {list(found.shape)}; bring"
                " the file again, whole"
            )
        if not torch.isfinite(found).all():
            count = int((~torch.isfinite(found)).sum())
            raise UserError(
                f"{path}: expected finite numbers in tensor {name}, found {count} that are not;"
                " bring the file again, whole"
            )
    if unknown := sorted(tensors.keys() - shapes.keys()):
        raise UserError(
            f"{path}: expected the tensors of a language model alone, found"
            f" {unknown[0]!r}{f' and {len(unknown) - 1} more' if unknown[1:] else ''}; export the"
            " language model without them"
        )


def refuse_other_folder(folder: Path, marker: str, what: str) -> None:
    """Raise UserError unless `folder` is absent, empty, or of an earlier such command, which leaves
    `marker` in it.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(
            f"{folder} is a {'link' if folder.is_symlink() else 'file'}; expected a new folder for"
            f" {what}: name another"
        )
    if folder.is_dir() and any(folder.iterdir()) and not (folder / marker).is_file():
        raise UserError(
            f"{folder} holds other files; expected a new or empty one for {what}, which replaces it"
            " as a whole: name another"
        )


def refuse_losses(folder: Path, new: Path, marker: str) -> None:
    """Raise UserError where `folder` holds what neither `new`, which is to replace it, does nor the
    earlier command wrote, by `marker` in it; a folder that has a `marker` of its own is of it too.
    """
    kept = {path.name for path in folder.glob("*") if not (path / marker).is_file()}
    made = {path.name for path in new.glob("*")}
    if kept:
        earlier = read_json_file(folder / marker, "name another folder")
        made |= set(earlier.get("files", ())) if isinstance(earlier, dict) else set()
    if others := sorted(kept - made - {"__pycache__"}):
        raise UserError(
            f"{folder} holds {others[0]} too, which would be lost: move it away, or name another"
            " folder"
        )


def checksums(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """The size and sha256 of files, by name."""
    return {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
        for path in sorted(paths)
    }


def write_import(found: Incoming, target: Path) -> dict[str, Any]:
    """Write weights.safetensors, the vocabulary and import.json as a whole; returns what
    import.json says.

    Raises UserError where `target` holds something else.
    """
    refuse_other_folder(target, IMPORTED, "the import")
    source, rows = found.files[0].parent, len(found.tensors["tokens"])
    if rows != found.vocabulary.size:
        raise UserError(
            f"{source}: expected {found.vocabulary.size:,} token embeddings, one for each entry of"
            f" the vocabulary beside it, found {rows:,}; bring weights and vocabulary of the same"
            " model"
        )
    check_tensors(found.tensors, our_shapes(found.sizes, rows), source)
    description = Description(
        "transformer", found.sizes.model_dump(), found.vocabulary.size, found.vocabulary.fingerprint
    )
    about = {
        "form": found.form,
        "parameters": sum(tensor.numel() for tensor in found.tensors.values()),
        "model": found.sizes.model_dump(),
        "vocabulary_size": found.vocabulary.size,
        "vocabulary_fingerprint": found.vocabulary.fingerprint,
        "files": checksums(found.files),
        **found.facts,
    }
    with writing_folder(target) as folder:
        save_state(
            folder / "weights.safetensors",
            {name: tensor.float() for name, tensor in found.tensors.items()},
            description,
        )
        found.vocabulary.save(folder, {"source": "imported"})
        write_json(
            folder / IMPORTED,
            about | {"weights_sha256": sha256_file(folder / "weights.safetensors")},
        )
        refuse_losses(target, folder, IMPORTED)
    return about
