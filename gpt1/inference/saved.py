"""A fine-tuned model that answers examples of its task: a class, a score (Tai et al. 2015, as in
the authors' code) or the chosen ending, with probabilities.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from gpt1.base.errors import UserError
from gpt1.corpus.bpe import SPECIAL_SYMBOLS, Vocabulary
from gpt1.inference.cache import padded
from gpt1.inference.loading import read_saved
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Combine, Head
from gpt1.tasks.metrics import predictions
from gpt1.tasks.rows import Example
from gpt1.tasks.shapes import Symbols, shape
from gpt1.tasks.table import TASKS, Task

KIND = "transformer for "  # and the task's name: what stage finetune writes into the weights


Logits = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Answer:
    """An answer: `label` (a class or a choice) or `score`; the chosen text; the probability of each
    label, or of each whole score.
    """

    probabilities: dict[str, float]
    label: str | None = None
    score: float | None = None
    choice: str | None = None

    def record(self) -> dict[str, Any]:
        """The answer as plain values, without what it does not have."""
        values = {
            "label": self.label,
            "score": self.score,
            "choice": self.choice,
            "probabilities": self.probabilities,
        }
        return {name: value for name, value in values.items() if value is not None}


def softmax(logits_o: Logits) -> npt.NDArray[np.float64]:
    """Probabilities [outputs] that sum to 1, in float64."""
    weights = np.exp(logits_o.astype(np.float64) - logits_o.max())
    return np.asarray(weights / weights.sum())


def answer(task: Task, logits_o: Logits, choices: tuple[str, ...] = ()) -> Answer:
    """The answer that logits [outputs] of one example give."""
    probabilities = softmax(logits_o).tolist()
    found = predictions(logits_o[None], task.target)[0]
    if task.target == "score":
        return Answer(
            {str(score): value for score, value in enumerate(probabilities)}, score=float(found)
        )
    named = dict(zip(task.labels, probabilities, strict=True))
    return Answer(
        named, label=task.labels[int(found)], choice=choices[int(found)] if choices else None
    )


class TaskModel:
    """A fine-tuned model that answers examples of its task, in float32, each by itself: no other
    example can change an answer's bits.
    """

    def __init__(
        self,
        task: Task,
        classifier: Classifier,
        vocabulary: Vocabulary,
        context: int,
        device: torch.device,
    ) -> None:
        self.task, self.vocabulary, self.context, self.device = task, vocabulary, context, device
        self.classifier = classifier.to(device).eval()
        self.symbols = Symbols(vocabulary.start, vocabulary.delimiter, vocabulary.extract)

    def sequences(self, example: Example) -> list[list[int]]:
        """Token ids of an example's sequences, as stage encode makes them."""
        ids = [self.vocabulary.encode(text) for text in (*example.context, *example.choices)]
        texts = len(example.context)
        return shape(self.task.kind, ids[:texts], ids[texts:], self.symbols, self.context).sequences

    @torch.inference_mode()
    def logits(self, sequences: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        """Logits [outputs] of one example from its sequences' ids."""
        tokens_kt, _ = padded(sequences, self.device)
        logits_1o: torch.Tensor = self.classifier(tokens_kt[None], NO_DROPOUT, 0.0).logits_bo
        return np.asarray(logits_1o[0].float().cpu().numpy())

    def answer(self, example: Example) -> Answer:
        """The answer to one example; its label is not looked at."""
        return answer(self.task, self.logits(self.sequences(example)), example.choices)

    def answers(self, examples: Sequence[Example]) -> Iterator[Answer]:
        """The answers in order."""
        return map(self.answer, examples)


def load_model(weights: Path, vocabulary_folder: Path) -> TaskModel:
    """The model of a weights file of stage finetune, which names its task and sizes, with the
    vocabulary of stage bpe.

    Raises UserError where files are absent or damaged, the weights are no task's, or the vocabulary
    is another one.
    """
    saved = read_saved(
        weights,
        vocabulary_folder,
        f"{KIND}({'|'.join(TASKS)})",
        f"a fine-tuned {KIND}one of the tasks, which lie in"
        " data/finetune/<group>/<task>/seed-<number>/",
    )
    task, vocabulary = TASKS[saved.description.kind.removeprefix(KIND)], saved.vocabulary
    sizes, generator = saved.sizes(), torch.Generator().manual_seed(0)
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
    return TaskModel(task, classifier, vocabulary, sizes.context, device())


def device() -> torch.device:
    """Where answers are computed: a GPU that torch sees, unless GPT1_DEVICE says cpu."""
    name = os.environ.get("GPT1_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda") or (name == "cuda" and not torch.cuda.is_available()):
        raise UserError(
            f"GPT1_DEVICE: expected cpu, or cuda where torch sees a GPU, found {name}; set it in"
            " the environment"
        )
    return torch.device(name)
