"""A language model or a fine-tuned task model as a folder that transformers loads, with
preprocessing, a model card and checksums.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

import gpt1.corpus.words
import gpt1.tasks.shapes
from gpt1.base.errors import UserError
from gpt1.base.files import DATA, sha256_file, stage_folder, write_json, writing_folder
from gpt1.corpus.bpe import SPECIAL_SYMBOLS, Vocabulary
from gpt1.exchange import shipped
from gpt1.exchange.card import model_card
from gpt1.exchange.hugging_face import CONFIG, OURS, PREFIX, SAFETENSORS
from gpt1.exchange.incoming import (
    check_tensors,
    checksums,
    read_json_file,
    refuse_losses,
    refuse_other_folder,
)
from gpt1.exchange.layout import our_shapes, to_theirs
from gpt1.exchange.tokenizer_files import write_tokenizer
from gpt1.inference.finished import finetuned_folders, read_finished
from gpt1.inference.loading import read_saved
from gpt1.model.weights import Description, save_tensors
from gpt1.params.schema import Model

MANIFEST = (  # sha256 of every other file; a folder that has it may be exported into again
    "export.json"
)
BODY, HEAD = "decoder.", "head.linear."
DROPOUT = 0.1  # the paper's; transformers reads it when it trains


@dataclass(frozen=True)
class Outgoing:
    """A model to be exported: what its weights are, its decoder's tensors, the head's (none: a
    language model), its vocabulary.
    """

    weights: Path
    description: Description
    sizes: Model
    tensors: Mapping[str, Tensor]
    head: Mapping[str, Tensor]
    vocabulary: Vocabulary

    @property
    def rows(self) -> int:
        """Token embeddings: the vocabulary, and for a task the three special symbols."""
        return self.vocabulary.size + (len(SPECIAL_SYMBOLS) if self.head else 0)


def read_outgoing(weights: Path, vocabulary_folder: Path) -> Outgoing:
    """Weights and vocabulary to be exported. Raises UserError where they are no Transformer, do not
    fit, or openai-gpt cannot hold them.
    """
    saved = read_saved(
        weights,
        vocabulary_folder,
        "transformer( for .*)?",
        "a Transformer, for transformers has no such model as the LSTM",
    )
    found, sizes = saved.tensors, saved.sizes()
    if sizes.feed_forward != 4 * sizes.width:
        raise UserError(
            f"{weights}: expected model.feed_forward 4 x model.width, all that transformers'"
            f" openai-gpt knows, found {sizes.feed_forward} and {sizes.width}; such a model cannot"
            " be exported"
        )
    head = {
        name.removeprefix(HEAD): tensor for name, tensor in found.items() if name.startswith(HEAD)
    }
    tensors = {
        name.removeprefix(BODY): tensor
        for name, tensor in found.items()
        if not name.startswith(HEAD)
    }
    outgoing = Outgoing(weights, saved.description, sizes, tensors, head, saved.vocabulary)
    check_tensors(tensors, our_shapes(sizes, outgoing.rows), weights)
    return outgoing


def their_config(model: Outgoing) -> dict[str, Any]:
    """config.json of a language model: sizes; under our own key what theirs has no place for."""
    sizes = model.sizes
    return {
        "model_type": "openai-gpt",
        "architectures": ["OpenAIGPTLMHeadModel"],
        "vocab_size": model.rows,
        "n_positions": sizes.context,
        "n_embd": sizes.width,
        "n_layer": sizes.layers,
        "n_head": sizes.heads,
        "afn": "gelu",
        "layer_norm_epsilon": sizes.layer_norm_epsilon,
        "initializer_range": sizes.weight_deviation,
        "attn_pdrop": DROPOUT,
        "embd_pdrop": DROPOUT,
        "resid_pdrop": DROPOUT,
        "tie_word_embeddings": True,
        "dtype": "float32",
        OURS: {
            "embedding_deviation": sizes.embedding_deviation,
            "weight_deviation": sizes.weight_deviation,
            "vocabulary_fingerprint": model.vocabulary.fingerprint,
        },
    }


def task_config(about: Mapping[str, Any]) -> dict[str, Any]:
    """What config.json of a task's model says beside a language model's. Its kind is none that
    transformers knows: without the shipped code it refuses, in place of drawing a head of its own.
    """
    chooses, scored = about["combine"] == "choose", about["target"] == "score"
    purpose = "MultipleChoice" if chooses else "SequenceClassification"
    labels = ["score"] if scored else about["labels"]
    return {
        "model_type": "gpt1-task",
        "architectures": [f"GPT1For{purpose}"],
        "auto_map": {
            "AutoConfig": "modeling_gpt1.GPT1Config",
            f"AutoModelFor{purpose}": f"modeling_gpt1.GPT1For{purpose}",
        },
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
        "problem_type": "regression" if scored else "single_label_classification",
        "combine": about["combine"],
        "outputs": head_rows(about),
    }


def head_rows(about: Mapping[str, Any]) -> int:
    """Rows of the linear layer of the task that task.json tells of."""
    return 1 if about["combine"] == "choose" else int(about["outputs"])


def export_language_model(
    model: Outgoing, target: Path, snapshots: Iterable[Outgoing] = ()
) -> list[str]:
    """Write a language model as a Hugging Face folder, each snapshot of its pre-training as a whole
    one in its folder step-<update>; the names of its files. Raises UserError where `target` holds
    something else.
    """
    if model.head:
        raise UserError(
            f"{model.weights}: expected a language model, found the model of a task; export it with"
            " --task FOLDER"
        )
    with _replacing(target) as folder:
        _fill_language_model(folder, model)
        for snapshot in snapshots:
            (step := folder / f"step-{int(snapshot.weights.stem)}").mkdir()
            _fill_language_model(step, snapshot)
    return sorted(path.name for path in target.iterdir() if path.is_file())


def _fill_language_model(folder: Path, model: Outgoing) -> None:
    generation = {"do_sample": False, "max_length": model.sizes.context, "pad_token_id": 0}
    values = {CONFIG: their_config(model), "generation_config.json": generation}
    _fill(folder, model, values, ["tokenization_gpt1.py"])


def export_task_model(
    model: Outgoing,
    about: Mapping[str, Any],
    seed: int,
    target: Path,
    base_model: str | None = None,
) -> list[str]:
    """Write a task's model with the code of its classes; `about` is task.json, `base_model` for the
    card. Raises UserError as export_language_model.
    """
    rows = head_rows(about)
    check_tensors(model.head, {"weight": (rows, model.sizes.width), "bias": (rows,)}, model.weights)
    names = ("task", "kind", "combine", "outputs", "target", "labels", "metric")
    task = {name: about[name] for name in names} | {"seed": seed}
    values = {
        CONFIG: their_config(model) | task_config(about),
        "task.json": task | {"context": model.sizes.context},
    }
    with _replacing(target) as folder:
        code = ["tokenization_gpt1.py", "modeling_gpt1.py"]
        _fill(folder, model, values, code, task, base_model)
    return sorted(path.name for path in target.iterdir())


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `target` as a whole."""
    refuse_other_folder(target, MANIFEST, "the export")
    with writing_folder(target) as folder:
        yield folder
        refuse_losses(target, folder, MANIFEST)


def _fill(
    folder: Path,
    model: Outgoing,
    values: dict[str, Any],
    code: list[str],
    task: Mapping[str, Any] | None = None,
    base_model: str | None = None,
) -> None:
    """Write a model's files: weights, these values, tokenizer, code with the very files that make
    words and sequences here, card, and at last what all of it is.
    """
    tensors = {
        f"{PREFIX}{name}": tensor
        for name, tensor in to_theirs(model.tensors, model.sizes.layers).items()
    }
    tensors |= {f"head.{name}": tensor for name, tensor in model.head.items()}
    save_tensors(folder / SAFETENSORS, tensors, {"format": "pt"})  # transformers wants the word
    kind = str(task["kind"]) if task else None
    write_tokenizer(folder, model.vocabulary, model.sizes.context, kind)
    for name, value in values.items():
        write_json(folder / name, value)
    for name in code:
        shutil.copyfile(Path(shipped.__path__[0]) / name, folder / name)
    shutil.copyfile(str(gpt1.corpus.words.__file__), folder / "preprocessing.py")
    shutil.copyfile(str(gpt1.tasks.shapes.__file__), folder / "shapes.py")
    card = model_card(model.weights, model.description, model.tensors, task, base_model)
    (folder / "README.md").write_text(card, encoding="utf-8")
    about = {
        "kind": model.description.kind,
        "weights_sha256": sha256_file(model.weights),
        "files": checksums(folder.iterdir()),
    }
    write_json(
        folder / MANIFEST,
        about | ({name: task[name] for name in ("task", "seed")} if task else {}),
    )


class ChosenTask(NamedTuple):
    """A task's weights, the vocabulary that they were trained with, task.json, and the seed."""

    weights: Path
    vocabulary: Path
    about: dict[str, Any]
    seed: int


def task_folder(name: Path) -> Path:
    """The folder data/finetune/<group>/<task> that a path or a task's name means. Raises UserError
    where there is none.
    """
    if any(name.glob("seed-*/summary.json")):
        return name
    there = finetuned_folders()
    if found := [path for path in there if path.name == str(name)]:
        return found[0]
    raise UserError(
        f"{name}: expected a task that has been fine-tuned"
        f" ({', '.join(path.name for path in there) or 'none yet'}), or its folder under"
        f" {stage_folder('finetune')}, found none; run gpt1 run finetune@TASK"
    )


def chosen_task(name: Path, seed: int | None) -> ChosenTask:
    """What to export of a task; `seed` None: the one with the best score on validation. Raises
    UserError where it is not there.
    """
    done = read_finished(task_folder(name))
    weights = done.weights(seed)
    parents = done.folder.resolve().parents
    data = parents[2] if len(parents) > 2 and parents[1].name == "finetune" else DATA
    about = read_json_file(
        data / "encode" / parents[0].name / done.task.name / "task.json", "run dvc repro"
    )
    return ChosenTask(weights, data / "bpe", about, done.best() if seed is None else seed)
