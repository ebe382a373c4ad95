"""A fine-tuned model that answers examples of its task with probabilities."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from gpt1.base.errors import UserError
from gpt1.base.machine import setting
from gpt1.corpus.bpe import SPECIAL_SYMBOLS, Vocabulary
from gpt1.inference.loading import read_saved
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Combine, Head
from gpt1.tasks.definitions import TASKS, Task
from gpt1.tasks.layouts import TableFormat
from gpt1.tasks.metrics import answers_of
from gpt1.tasks.rows import Example
from gpt1.tasks.shapes import Symbols, shape

KIND = "transformer for "  # and the task's name: what stage finetune writes into the weights


def fields_of(task: Task) -> tuple[str, ...]:
    """Return which of `first`, `second` and `choices` an example has."""
    form = task.layouts[0][0].format
    two = 2 if not isinstance(form, TableFormat) else 1 if form.joined else len(form.texts)
    return "first", *["second"] * (two == 2), *["choices"] * (task.kind == "multiple_choice")


def example_of(task: Task, record: Any, where: str) -> Example:
    """Make an example of {"first": …, "second": …, "choices": […]}. Raises UserError, naming
    `where`, for other fields.
    """
    fields, record = fields_of(task), record if isinstance(record, dict) else {}
    given = {  # a table has nan, a float, where a row has no such field
        str(name): value
        for name, value in record.items()
        if value is not None and not isinstance(value, float)
    }
    choices = given.get("choices")
    texts = tuple(given.get(name) for name in fields if name != "choices")
    listed = tuple(choices) if isinstance(choices, list | tuple | np.ndarray) else ()
    if (
        sorted(given) != sorted(fields)
        or ("choices" in fields and len(listed) != len(task.labels))
        or not all(isinstance(text, str) and text.strip() for text in texts + listed)
    ):
        what = ", ".join(fields).replace("choices", f"{len(task.labels)} choices")
        raise UserError(
            f"{where}: expected {what} for {task.name}, each a text with a word in it; found"
            f" {', '.join(f'{name} {value!r:.60}' for name, value in given.items()) or 'nothing'}"
        )
    return Example(tuple(map(str, texts)), listed)


def answer(task: Task, logits_o: Tensor, choices: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the answer of logits [outputs]: `label` or `score`, `probabilities`, and a
    `choice`.
    """
    shares = logits_o.double().softmax(0).tolist()
    prediction = answers_of(logits_o[None].numpy(), task.target)[0]
    if task.target == "score":
        return {
            "score": float(prediction),
            "probabilities": dict(zip("012345", shares, strict=True)),
        }
    label = task.labels[int(prediction)]
    result = {"label": label, "probabilities": dict(zip(task.labels, shares, strict=True))}
    return result | ({"choice": choices[int(prediction)]} if choices else {})


class TaskModel:
    """A fine-tuned model that answers one example at a time, so that no other changes its bits."""

    def __init__(self, task: Task, classifier: Classifier, vocabulary: Vocabulary) -> None:
        self.task, self.vocabulary, self.classifier = task, vocabulary, classifier.eval()
        self.symbols = Symbols(vocabulary.start, vocabulary.delimiter, vocabulary.extract)

    def sequences(self, example: Example) -> list[list[int]]:
        """Return an example's sequences, as stage encode makes them."""
        ids = [self.vocabulary.encode(text) for text in (*example.context, *example.choices)]
        texts, context = len(example.context), self.classifier.decoder.context
        return shape(self.task.kind, ids[:texts], ids[texts:], self.symbols, context).sequences

    @torch.inference_mode()
    def logits(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """Compute logits [outputs] of one example's sequences."""
        device = self.classifier.head.linear.weight.device
        tokens_kt = pad_sequence([torch.tensor(ids) for ids in sequences], batch_first=True)
        logits_1o = self.classifier(tokens_kt[None].to(device)).logits_bo
        logits_o: Tensor = logits_1o[0].float().cpu()
        return logits_o

    def answer(self, example: Example) -> dict[str, Any]:
        """Answer one example, without looking at its label."""
        return answer(self.task, self.logits(self.sequences(example)), example.choices)


def load_model(weights: Path, vocabulary_folder: Path) -> TaskModel:
    """Load weights of stage finetune, on a GPU unless there is none or GPT1_DEVICE is cpu. Raises
    UserError where they are damaged or of no task.
    """
    saved = read_saved(
        weights,
        vocabulary_folder,
        f"{KIND}({'|'.join(TASKS)})",
        f"a fine-tuned {KIND}one of the tasks, which lie in"
        " data/finetune/<group>/<task>/seed-<number>/",
    )
    task, vocabulary = TASKS[saved.description.kind.removeprefix(KIND)], saved.vocabulary
    sizes, generator = saved.sizes(), torch.Generator()
    classifier = Classifier(
        Decoder(sizes, vocabulary.size + len(SPECIAL_SYMBOLS), generator),
        Head(
            sizes.width,
            task.outputs,
            cast(Combine, task.combine),
            sizes.weight_deviation,
            generator,
        ),
    )
    saved.fill(classifier)
    gpu = torch.cuda.is_available() and setting("GPT1_DEVICE") != "cpu"
    return TaskModel(task, classifier.to("cuda" if gpu else "cpu"), vocabulary)
