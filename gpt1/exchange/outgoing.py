"""A model as a folder that transformers loads."""

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import gpt1.corpus.words
import gpt1.tasks.shapes
from gpt1.base.errors import UserError
from gpt1.base.files import read_json_file, stage_folder, write_json, writing, writing_folder
from gpt1.corpus.bpe import SPECIAL_SYMBOLS, UNKNOWN, WORD_END, Vocabulary
from gpt1.exchange import shipped
from gpt1.exchange.card import model_card
from gpt1.inference.finetuned import finetuned_task
from gpt1.inference.loading import SavedModel, read_saved
from gpt1.inference.openai_gpt import (
    PREFIX,
    language_model,
    quiet_transformers,
    refuse_other_shapes,
    their_config,
    to_theirs,
)

CODE = Path(shipped.__path__[0])
BODY, HEAD = "decoder.", "head.linear."


def export_language_model(weights: Path, vocabulary_folder: Path, target: Path) -> list[str]:
    """Write a pre-trained Transformer as a Hugging Face folder; return its files. Raises
    UserError.
    """
    saved = read_saved(
        weights, vocabulary_folder, "transformer", "a pre-trained Transformer; --task for a task's"
    )
    refuse_other_shapes(saved)
    return write_folder(target, saved, language_model(saved))


def chosen_task(name: str, seed: int | None) -> tuple[Path, dict[str, Any]]:
    """Return a task's weights, and its task.json with seed and dev score (0..1, correlations
    -1..1); `seed` None: the best on dev. Raises UserError.
    """
    done = finetuned_task(name)
    chosen = done.best() if seed is None else seed
    weights = done.weights(chosen)
    encoded = stage_folder("encode", done.folder.parent.name, name, "task.json")
    about = read_json_file(encoded, f"run gpt1 run encode@{name}")
    return weights, about | {"seed": chosen, "dev_score": done.dev_scores[chosen]}


def export_task_model(weights: Path, about: Mapping[str, Any], target: Path) -> list[str]:
    """Write a task's model, of which `about` tells as `chosen_task` does, and the code of its
    classes; return its files. Raises UserError.
    """
    from gpt1.exchange.shipped import modeling_gpt1

    kind = f"transformer for {about['task']}"
    saved = read_saved(weights, stage_folder("bpe"), kind, "the task's model")
    sizes = refuse_other_shapes(saved)
    quiet_transformers()
    chooses, scored = about["combine"] == "choose", about["target"] == "score"
    purpose = "MultipleChoice" if chooses else "SequenceClassification"
    labels = ["score"] if scored else about["labels"]
    # A kind of model that transformers does not know: without the shipped code it refuses, in place
    # of drawing a head of its own.
    config = modeling_gpt1.GPT1Config(
        **their_config(sizes, saved.vocabulary.size + len(SPECIAL_SYMBOLS)),
        combine=about["combine"],
        outputs=1 if chooses else about["outputs"],
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        problem_type="regression" if scored else "single_label_classification",
        auto_map={
            "AutoConfig": "modeling_gpt1.GPT1Config",
            f"AutoModelFor{purpose}": f"modeling_gpt1.GPT1For{purpose}",
        },
    )
    body = {name.removeprefix(BODY): tensor for name, tensor in saved.tensors.items()}
    state = {PREFIX + name: tensor for name, tensor in to_theirs(body, sizes.layers).items()}
    state |= {f"head.{name}": saved.tensors[HEAD + name] for name in ("weight", "bias")}
    model = getattr(modeling_gpt1, f"GPT1For{purpose}").from_pretrained(
        None, config=config, state_dict=state
    )
    return write_folder(target, saved, model, about)


def filling(target: Path) -> AbstractContextManager[Path]:
    """Give a folder that becomes `target` as a whole. Raises UserError unless that is new or
    empty.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target}: expected a new folder, found one in use; name another")
    return writing_folder(target)


def write_folder(
    target: Path, saved: SavedModel, model: Any, task: Mapping[str, Any] | None = None
) -> list[str]:
    """Write model, tokenizer, code and card; return the files."""
    vocabulary = saved.vocabulary
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "auto_map": {"AutoTokenizer": ["tokenization_gpt1.GPT1Tokenizer", None]},
        "clean_up_tokenization_spaces": False,
        "model_max_length": saved.description.config["context"],
        "padding_side": "right",
        "model_input_names": ["input_ids", "attention_mask"],
        "unk_token": UNKNOWN,
        "pad_token": UNKNOWN,
        "split_special_tokens": True,  # a text that holds the letters of a symbol is not cut there
    }
    with filling(target) as folder:
        model.save_pretrained(folder)
        if task:
            config["kind"] = task["kind"]
            config |= zip(("bos_token", "sep_token", "cls_token"), SPECIAL_SYMBOLS, strict=True)
            write_json(folder / "task.json", task)
            shutil.copy(CODE / "modeling_gpt1.py", folder)
        vocabulary.save(folder, {})
        (folder / "meta.json").unlink()
        write_json(folder / "tokenizer_config.json", config)
        with writing(folder / "tokenizer.json") as file:
            file.write(words_to_ids(vocabulary, bool(task)))
        shutil.copy(CODE / "tokenization_gpt1.py", folder)
        shutil.copy(str(gpt1.corpus.words.__file__), folder / "preprocessing.py")
        shutil.copy(str(gpt1.tasks.shapes.__file__), folder / "shapes.py")
        model_card(saved, task).save(folder / "README.md")
    return sorted(path.name for path in target.iterdir())


def words_to_ids(vocabulary: Vocabulary, of_task: bool) -> str:
    """Return tokenizer.json: byte pairs of words with a blank between."""
    from tokenizers import Tokenizer, decoders, pre_tokenizers

    tokenizer = Tokenizer(vocabulary.byte_pairs)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    tokenizer.decoder = decoders.BPEDecoder(suffix=WORD_END)
    if of_task:
        tokenizer.add_special_tokens(list(SPECIAL_SYMBOLS))
    return str(tokenizer.to_str(pretty=True))
