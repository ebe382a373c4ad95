"""GPT-1's tokenizer for raw text: ftfy, the authors' standardisation, spaCy's English tokenizer,
lower case, byte pairs; for a fine-tuned task the texts stand between the symbols of Figure 1.

Needs transformers, tokenizers, ftfy and spacy (no spaCy model).
"""
# mypy: ignore-errors

from functools import cache
from typing import Any

from tokenizers.models import BPE
from transformers import BatchEncoding, PreTrainedTokenizer

from .preprocessing import Cleaner
from .shapes import Symbols, shape

SYMBOLS = ("_start_", "_delimiter_", "_classify_")


@cache
def cleaner() -> Cleaner:
    """One for all tokenizers: it takes half a second to make, and cannot be sent to a process."""
    return Cleaner()


class GPT1Tokenizer(PreTrainedTokenizer):
    """Raw text to ids. `kind`: of a fine-tuned task, as in task.json; none for a language model."""

    vocab_files_names = {"vocab_file": "vocab.json", "merges_file": "merges.txt"}  # noqa: RUF012
    add_bpe_version_header = True  # in the merges that save_pretrained writes

    def __init__(
        self, vocab_file: str, merges_file: str, kind: str | None = None, **kwargs: Any
    ) -> None:
        # under the names by which save_pretrained knows them
        self.encoder, merges = BPE.read_file(vocab_file, merges_file)
        self.bpe_ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.pairs = BPE(self.encoder, merges, unk_token="<unk>", end_of_word_suffix="</w>")
        self.kind = kind
        self.table = dict(self.encoder)
        if kind:
            self.table |= {symbol: len(self.encoder) + n for n, symbol in enumerate(SYMBOLS)}
        self.named = {id_: piece for piece, id_ in self.table.items()}
        super().__init__(kind=kind, **kwargs)

    @property
    def vocab_size(self) -> int:
        """Ids, a task's symbols among them."""
        return len(self.table)

    @property
    def eos_token_id(self) -> int | None:
        """A language model's line break, for tools that ask after what a text ends and the next
        begins. It is no special token, so decoding keeps it and generation goes on after it.
        """
        return None if self.kind else self.table["\n</w>"]

    def get_vocab(self) -> dict[str, int]:
        """Pieces and their ids."""
        return self.table | self._added_tokens_encoder

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [
            piece.value for word in cleaner().words(text) for piece in self.pairs.tokenize(word)
        ]

    def _convert_token_to_id(self, token: str) -> int:
        return self.table.get(token, self.table["<unk>"])

    def _convert_id_to_token(self, index: int) -> str:
        return self.named[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Words with blanks between, line breaks where the text has them."""
        lines = "".join(tokens).replace("</w>", " ").split("\n")
        return "\n".join(" ".join(line.split()) for line in lines)

    def shaped(self, texts: list[list[int]], choices: list[list[int]]) -> list[list[int]]:
        """The sequences of an example from its texts' ids, cut as the paper's model was trained."""
        start, delimiter, extract = (self.table[symbol] for symbol in SYMBOLS)
        symbols = Symbols(start, delimiter, extract)
        sequences: list[list[int]] = shape(
            str(self.kind), texts, choices, symbols, self.model_max_length
        ).sequences
        return sequences

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """A text's or a pair's sequence; of a pair whose order does not count, the first order; of
        a choice, what stands before it and it. Raises ValueError where the task has other texts.
        """
        if not self.kind:
            return token_ids_0 + (token_ids_1 or [])
        texts = [token_ids_0] if token_ids_1 is None else [token_ids_0, token_ids_1]
        return self.shaped(
            *((texts[:1], texts[1:]) if self.kind == "multiple_choice" else (texts, []))
        )[0]

    def create_token_type_ids_from_sequences(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Zeros: GPT-1 has no kinds of tokens."""
        return [0] * len(self.build_inputs_with_special_tokens(token_ids_0, token_ids_1))

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Symbols of a text or a pair."""
        return (3 if pair else 2) if self.kind else 0

    def truncate_sequences(
        self,
        ids: list[int],
        pair_ids: list[int] | None = None,
        num_tokens_to_remove: int = 0,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[list[int], list[int] | None, list[int]]:
        """As the paper's model was trained: each of two texts keeps half of the room at most."""
        if not self.kind or pair_ids is None:
            cut: tuple[list[int], list[int] | None, list[int]] = super().truncate_sequences(
                ids, pair_ids, num_tokens_to_remove, *args, **kwargs
            )
            return cut
        half = (len(ids) + len(pair_ids) - num_tokens_to_remove) // 2
        return ids[:half], pair_ids[:half], []

    def choices(self, texts: list[str], choices: list[str]) -> BatchEncoding:
        """One example of a multiple choice, input_ids [1, choices, tokens]: `texts` is what stands
        before the choices, a story, or a passage and a question.
        """
        ids = [self.encode(text, add_special_tokens=False) for text in (*texts, *choices)]
        padded = self.pad(
            {"input_ids": self.shaped(ids[: len(texts)], ids[len(texts) :])}, return_tensors="pt"
        )
        return BatchEncoding({name: value[None] for name, value in padded.items()})
