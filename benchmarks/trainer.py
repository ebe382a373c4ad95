"""For benchmarks/finetuning.py: Hugging Face's Trainer on our encoded examples, from our weights,
by our recipe.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hugging_face
import numpy as np
import torch
import transformers

from gpt1.model.heads import Classifier
from gpt1.params.schema import Finetune, Model
from gpt1.train.batches import Examples

Row = dict[str, Any]
EVALUATION_BATCHES = 4  # times the training batch
SCHEDULES = {
    "warmup_linear": "linear",
    "warmup_cosine": "cosine",
    "warmup_constant": "constant_with_warmup",
}


def rows_of(examples: Examples) -> list[Row]:
    """Examples of one sequence as a list of rows: ids, their number, label."""
    return [
        {
            "input_ids": examples.tokens[start:stop].astype(np.int64),
            "length": int(stop - start),
            "labels": int(label),
        }
        for start, stop, label in zip(
            examples.offsets, examples.offsets[1:], examples.labels, strict=False
        )
    ]


def collate(rows: list[Row]) -> dict[str, torch.Tensor]:
    """Rows padded to the longest among them."""
    lengths = torch.tensor([row["length"] for row in rows])
    input_ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int64)
    for place, row in enumerate(rows):
        input_ids[place, : row["length"]] = torch.from_numpy(row["input_ids"])
    return {
        "input_ids": input_ids,
        "lengths": lengths,
        "labels": torch.tensor([row["labels"] for row in rows]),
    }


def module_of(ours: Classifier, sizes: Model, recipe: Finetune) -> hugging_face.Classifier:
    """Their network and a linear layer with the weights of ours."""
    gpt = transformers.OpenAIGPTModel(
        hugging_face.config(sizes, len(ours.decoder.tokens), recipe.dropout)
    )
    hugging_face.fill(gpt, ours.decoder)
    module = hugging_face.Classifier(
        gpt, ours.head.linear.out_features, recipe.classifier_dropout, recipe.lambda_lm
    )
    module.head.load_state_dict(ours.head.linear.state_dict())
    return module


def trainer_for(
    module: hugging_face.Classifier,
    recipe: Finetune,
    rows: dict[str, list[Row]],
    updates: int,
    device: str,
    note_padding: Callable[[torch.Tensor, int], None],
    score: Callable[[Any, Any], float],
    folder: Path,
) -> transformers.Trainer:
    """A Trainer of `updates` updates on rows["train"] that evaluates on rows["dev"] after each
    epoch and writes nothing.

    `score` takes logits and labels.
    """

    def counted(batch: list[Row]) -> dict[str, torch.Tensor]:
        tensors = collate(batch)
        if module.training:
            note_padding(tensors["lengths"], tensors["input_ids"].numel())
        return tensors

    arguments = transformers.TrainingArguments(
        output_dir=str(folder / "trainer"),
        use_cpu=device == "cpu",
        bf16=recipe.precision == "bf16",
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch_size,
        per_device_eval_batch_size=EVALUATION_BATCHES * recipe.batch_size,
        train_sampling_strategy="group_by_length",
        length_column_name="length",
        learning_rate=recipe.learning_rate,
        lr_scheduler_type=SCHEDULES[recipe.schedule],
        warmup_steps=math.ceil(updates * recipe.warmup_fraction),
        optim="adamw_torch_fused",
        adam_beta1=recipe.beta1,
        adam_beta2=recipe.beta2,
        adam_epsilon=recipe.epsilon,
        weight_decay=recipe.weight_decay,
        max_grad_norm=recipe.max_gradient_norm,
        eval_strategy="epoch",
        save_strategy="no",
        logging_steps=recipe.log_updates,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=["labels"],
        seed=0,
    )
    # group_by_length sorts dev too, so it is scored against the labels as they come.
    trainer = transformers.Trainer(
        module,
        arguments,
        data_collator=counted,
        train_dataset=rows["train"],
        eval_dataset=rows["dev"],
        compute_metrics=lambda found: {
            "score": score(np.asarray(found.predictions), np.asarray(found.label_ids))
        },
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer
