"""A fine-tuned GPT-1 (Radford et al. 2018, section 3.2 and Figure 1): transformers' decoder and one
linear layer that reads the state at the last symbol of each sequence.

The inputs are those of this folder's tokenizer, padded on the right.
"""
# mypy: ignore-errors

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import OpenAIGPTConfig, OpenAIGPTModel, OpenAIGPTPreTrainedModel
from transformers.modeling_outputs import MultipleChoiceModelOutput, SequenceClassifierOutput


class GPT1Config(OpenAIGPTConfig):
    """openai-gpt's, with `combine` (what makes an example's logits of its sequences: single, sum,
    choose) and `outputs` (rows of the linear layer). The last three ids are start, delimiter and
    extract.
    """

    model_type = "gpt1-task"


class GPT1ForTask(OpenAIGPTPreTrainedModel):
    """The decoder and the linear layer."""

    config_class = GPT1Config

    def __init__(self, config: GPT1Config) -> None:
        super().__init__(config)
        self.transformer = OpenAIGPTModel(config)
        self.head = nn.Linear(config.n_embd, config.outputs)
        self.post_init()

    def place(self, ids_nt: Tensor, symbol: int) -> Tensor:
        """Where the symbol `symbol` places from the end of the vocabulary stands in each row, [n].
        Raises ValueError where it does not.
        """
        found_nt = ids_nt == self.config.vocab_size - symbol
        if not found_nt.any(dim=1).all():
            raise ValueError(
                "expected sequences between this model's symbols, of as many texts as its task has;"
                " make them with the tokenizer of the same folder"
            )
        return found_nt.int().argmax(dim=1)

    def states(self, ids_nt: Tensor) -> Tensor:
        """The state at each sequence's extract symbol, [n, width]; under the causal mask what pads
        it counts for nothing.
        """
        ends_n = self.place(ids_nt, 1)
        hidden_ntd: Tensor = self.transformer(ids_nt).last_hidden_state
        return hidden_ntd[torch.arange(len(ids_nt), device=ids_nt.device), ends_n]

    def other_order(self, ids_nt: Tensor) -> Tensor:
        """Each pair's sequence with the two texts exchanged."""
        turned = ids_nt.clone()
        places = zip(self.place(ids_nt, 2).tolist(), self.place(ids_nt, 1).tolist(), strict=True)
        for row, (delimiter, end) in enumerate(places):
            first, second = ids_nt[row, 1:delimiter], ids_nt[row, delimiter + 1 : end]
            turned[row, 1:end] = torch.cat((second, ids_nt[row, delimiter, None], first))
        return turned


class GPT1ForSequenceClassification(GPT1ForTask):
    """Logits [b, classes] of texts and of pairs; where order does not count, both orders' states
    are added. For a score, [b, 1]: the expected value over whole scores (Tai et al. 2015).
    """

    def forward(
        self, input_ids: Tensor, labels: Tensor | None = None, **_: Any
    ) -> SequenceClassifierOutput:
        """Ids [b, t]; `labels` [b] for a loss: classes, or scores (squared error)."""
        states_bd = self.states(input_ids)
        if self.config.combine == "sum":
            states_bd = states_bd + self.states(self.other_order(input_ids))
        logits_bo = self.head(states_bd)
        scored = self.config.problem_type == "regression"
        if scored:
            scores_o = torch.arange(self.config.outputs, device=logits_bo.device)
            shares_bo = logits_bo.float().softmax(dim=1)
            logits_bo = (shares_bo * scores_o).sum(dim=1, keepdim=True)
        loss = None
        if labels is not None:
            loss = (
                F.mse_loss(logits_bo[:, 0], labels.float())
                if scored
                else F.cross_entropy(logits_bo, labels)
            )
        return SequenceClassifierOutput(loss=loss, logits=logits_bo)


class GPT1ForMultipleChoice(GPT1ForTask):
    """One logit a choice, [b, choices]."""

    def forward(
        self, input_ids: Tensor, labels: Tensor | None = None, **_: Any
    ) -> MultipleChoiceModelOutput:
        """Ids [b, choices, t]; `labels` [b] for a loss."""
        logits_bk = self.head(self.states(input_ids.flatten(0, 1))).view(input_ids.shape[:2])
        loss = None if labels is None else F.cross_entropy(logits_bk, labels)
        return MultipleChoiceModelOutput(loss=loss, logits=logits_bk)
