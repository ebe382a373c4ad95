"""A fine-tuned model from its files: weights that say what they are, and the vocabulary they were
trained with.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from pydantic import ValidationError

from gpt1.base.errors import UserError, perhaps
from gpt1.base.files import read_json, stage_folder
from gpt1.corpus.bpe import SPECIAL_SYMBOLS, Vocabulary
from gpt1.inference.answer import Answer, answer
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Combine, Head
from gpt1.model.weights import read_weights, refuse_smaller
from gpt1.params.schema import Model, Params
from gpt1.tasks.rows import Example
from gpt1.tasks.shapes import Symbols, shape
from gpt1.tasks.table import TASKS, Task

WEIGHTS = "weights.safetensors"
KIND = "transformer for "  # and the task's name: what stage finetune writes into the weights


@dataclass(frozen=True)
class Finished:
    """The finished fine-tuning of a task: its folder, the seeds and their scores on the development
    split (0..1, correlations -1..1).
    """

    task: Task
    folder: Path
    dev_scores: dict[int, float]

    def best(self) -> int:
        """The seed that is best on the development split; of equals the first."""
        return max(self.dev_scores, key=lambda seed: (self.dev_scores[seed], -seed))

    def weights(self, seed: int | None) -> Path:
        """The weights of a seed, best by validation; None: of the best seed. Raises UserError where
        there is no such seed.
        """
        chosen = self.best() if seed is None else seed
        if chosen not in self.dev_scores:
            raise UserError(
                f"{self.folder}: expected one of the seeds"
                f" {', '.join(map(str, sorted(self.dev_scores)))}, found {chosen}; choose one of"
                " them with --seed, or add it to finetune.seeds in params.yaml and run gpt1 run"
            )
        return self.folder / f"seed-{chosen}" / WEIGHTS


def finished(params: Params, name: str) -> Finished:
    """The finished fine-tuning of a task of params.yaml. Raises UserError where there is no such
    task, or it is not finished.
    """
    if name not in params.tasks or name not in TASKS:
        raise UserError(
            f"expected one of the tasks in params.yaml: {', '.join(params.tasks)}; found"
            f" {name}{perhaps(name, params.tasks)}"
        )
    folder = stage_folder("finetune", params.tasks[name].group, name)
    try:
        seeds = read_json(folder / "summary.json")["seeds"]
        scores = {int(seed): float(row["best_dev_score"]) for seed, row in seeds.items()}
        if not scores:
            raise ValueError("it names no seed")
        return Finished(TASKS[name], folder, scores)
    except FileNotFoundError:
        raise UserError(
            f"{folder}/summary.json is not there: {name} is not fine-tuned; run gpt1 run"
            f" finetune@{name}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(
            f"{folder}/summary.json cannot be read ({error}); run dvc repro -f finetune@{name}"
        ) from None


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
        tokens_1kt = torch.zeros(1, len(sequences), max(map(len, sequences)), dtype=torch.int64)
        for place, ids in enumerate(sequences):
            tokens_1kt[0, place, : len(ids)] = torch.tensor(ids)
        logits_1o: torch.Tensor = self.classifier(
            tokens_1kt.to(self.device), NO_DROPOUT, 0.0
        ).logits_bo
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
    about, tensors = read_weights(weights)
    vocabulary = Vocabulary.load(vocabulary_folder)
    task = TASKS.get(about.kind.removeprefix(KIND)) if about.kind.startswith(KIND) else None
    if task is None:
        raise UserError(
            f"{weights}: expected weights of a fine-tuned {KIND}one of the tasks, found"
            f" {about.kind!r}; they lie in data/finetune/<group>/<task>/seed-<number>/"
        )
    if about.vocabulary_fingerprint != vocabulary.fingerprint:
        raise UserError(
            f"{weights}: expected weights trained with the vocabulary in {vocabulary_folder}"
            f" ({vocabulary.fingerprint}), found {about.vocabulary_fingerprint}; run gpt1 run"
            f" finetune@{task.name}, which brings both up to date"
        )
    generator = torch.Generator().manual_seed(0)
    try:
        sizes = Model(**{name: about.config[name] for name in Model.model_fields})
        refuse_smaller(weights, tensors, sizes.model_dump(), 0)
        network = Decoder(sizes, vocabulary.size + len(SPECIAL_SYMBOLS), generator)
        head = Head(
            sizes.width,
            task.outputs,
            cast(Combine, task.combine),
            sizes.weight_deviation,
            generator,
        )
        classifier = Classifier(network, head)
        classifier.load_state_dict(tensors)
    except (KeyError, ValidationError, RuntimeError) as error:
        raise UserError(
            f"{weights}: expected weights that fit the sizes they name, found others ({error}); "
            f"run dvc repro -f finetune@{task.name}"
        ) from None
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
