"""A fine-tuned GPT-1 and the answers it gives, from the files of this folder alone.

Needs torch, transformers, safetensors, ftfy and spacy. On the command line: python task_model.py
FIRST [SECOND]; for RACE: PASSAGE QUESTION ANSWER ANSWER …; for Story Cloze: STORY ENDING ENDING.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoTokenizer, OpenAIGPTConfig, OpenAIGPTModel

sys.path.insert(0, str(Path(__file__).parent))

from preprocessing import Cleaner  # type: ignore[import-not-found]
from shapes import Symbols, shape  # type: ignore[import-not-found]

SPECIAL_SYMBOLS = ("_start_", "_delimiter_", "_classify_")


class TaskModel(nn.Module):
    """The decoder and the linear layer that reads its state at the last symbol."""

    def __init__(self, folder: Path) -> None:
        """Load the model, its tokenizer and task.json from a folder."""
        super().__init__()
        self.task: dict[str, Any] = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        self.tokenizer = AutoTokenizer.from_pretrained(str(folder))
        self.cleaner = Cleaner()
        tensors = load_file(folder / "model.safetensors")
        self.transformer = OpenAIGPTModel(OpenAIGPTConfig.from_pretrained(str(folder)))
        self.head = nn.Linear(tensors["head.weight"].shape[1], tensors["head.weight"].shape[0])
        self.load_state_dict(tensors)
        self.eval()

    def ids(self, text: str) -> list[int]:
        """The ids of raw text: ftfy, standardisation, spaCy, lower case, byte pairs."""
        return list(
            self.tokenizer(" ".join(self.cleaner.words(text)), add_special_tokens=False)[
                "input_ids"
            ]
        )

    def sequences(self, texts: Sequence[str], choices: Sequence[str]) -> list[list[int]]:
        """An example's sequences, shaped as in Figure 1 of the paper."""
        table = self.tokenizer.get_vocab()
        start, delimiter, extract = (table[symbol] for symbol in SPECIAL_SYMBOLS)
        shaped = shape(
            self.task["kind"],
            [self.ids(text) for text in texts],
            [self.ids(text) for text in choices],
            Symbols(start, delimiter, extract),
            self.task["context"],
        )
        return list(shaped.sequences)

    @torch.inference_mode()
    def logits(self, texts: Sequence[str], choices: Sequence[str] = ()) -> Tensor:
        """Logits [outputs] of an example: its texts, and for multiple choice its choices."""
        states = torch.stack(
            [
                self.transformer(torch.tensor([ids])).last_hidden_state[0, -1]
                for ids in self.sequences(texts, choices)
            ]
        )
        logits: Tensor = (
            self.head(states)[:, 0]
            if self.task["combine"] == "choose"
            else self.head(states.sum(0))
        )
        return logits

    def answer(self, texts: Sequence[str], choices: Sequence[str] = ()) -> dict[str, Any]:
        """The answer to an example: a label with probabilities, the number of a choice, or a
        score.
        """
        shares = self.logits(texts, choices).double().softmax(0).tolist()
        if self.task["target"] == "score":
            return {"score": sum(number * share for number, share in enumerate(shares))}
        best = max(range(len(shares)), key=shares.__getitem__)
        return {
            "label": self.task["labels"][best],
            "probabilities": dict(zip(self.task["labels"], shares, strict=True)),
        }


def main() -> None:
    """Answer the example on the command line."""
    model, texts = TaskModel(Path(__file__).parent), sys.argv[1:]
    parts = (
        len(texts) - len(model.task["labels"]) if model.task["combine"] == "choose" else len(texts)
    )
    try:
        print(json.dumps(model.answer(texts[:parts], texts[parts:])))
    except ValueError as error:
        sys.exit(
            f"error: {error}; expected: python task_model.py FIRST [SECOND], or CONTEXT … CHOICE"
            " CHOICE …"
        )


if __name__ == "__main__":
    main()
