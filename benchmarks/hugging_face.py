"""For the benchmarks: Hugging Face's GPT of our sizes with our weights, and a classifier for its
Trainer.

`OpenAIGPT` offers one attention, written out in matrix products: no attn_implementation changes it,
so its best setting is the only one.
"""

from typing import Any

import torch
from our_step import Size
from torch import Tensor, nn
from torch.nn import functional as F

from gpt1.model.gpt import Decoder
from gpt1.params.schema import Model

try:
    import transformers
except ImportError:
    raise SystemExit(
        "transformers is not installed, and only this benchmark needs it: pip install -c"
        " constraints.txt -e '.[benchmarks]'"
    ) from None

LINEAR = {
    "qkv": "attn.c_attn",
    "projection": "attn.c_proj",
    "expand": "mlp.c_fc",
    "contract": "mlp.c_proj",
}
NORMS = {"attention_norm": "ln_1", "feed_forward_norm": "ln_2"}


def config(sizes: Model, rows: int, dropout: float) -> Any:
    """Their configuration of our sizes."""
    if sizes.feed_forward != 4 * sizes.width:
        raise SystemExit(
            "model.feed_forward: Hugging Face's GPT knows only 4 x width, found"
            f" {sizes.feed_forward} for width {sizes.width}"
        )
    return transformers.OpenAIGPTConfig(
        vocab_size=rows,
        n_positions=sizes.context,
        n_embd=sizes.width,
        n_layer=sizes.layers,
        n_head=sizes.heads,
        afn="gelu",
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
        layer_norm_epsilon=sizes.layer_norm_epsilon,
        loss_type="ForCausalLM",
    )


@torch.no_grad()
def fill(theirs: nn.Module, ours: Decoder) -> None:
    """Copy our weights into their `OpenAIGPTModel`; their linear layers are stored transposed."""
    tensors = {"tokens_embed.weight": ours.tokens, "positions_embed.weight": ours.positions}
    for number, block in enumerate(ours.blocks):
        for name, target in (LINEAR | NORMS).items():
            module = getattr(block, name)
            tensors[f"h.{number}.{target}.weight"] = (
                module.weight.T if name in LINEAR else module.weight
            )
            tensors[f"h.{number}.{target}.bias"] = module.bias
    own = dict(theirs.named_parameters())
    assert own.keys() == tensors.keys(), (
        f"names of Hugging Face's GPT have changed: {sorted(own.keys() ^ tensors.keys())}"
    )
    for name, tensor in tensors.items():
        own[name].copy_(tensor)


def language_model(size: Size, ours: Decoder) -> Any:
    """Their `OpenAIGPTLMHeadModel` with our weights and dropout."""
    model = transformers.OpenAIGPTLMHeadModel(
        config(size.model, size.vocabulary, size.recipe.dropout)
    )
    fill(model.transformer, ours)
    return model.train()


class Classifier(nn.Module):
    """As a user of Trainer writes it: their GPT, a linear layer on the state at the last token, the
    auxiliary LM added to the loss.
    """

    def __init__(self, gpt: Any, outputs: int, classifier_dropout: float, lambda_lm: float) -> None:
        super().__init__()
        self.gpt, self.head = gpt, nn.Linear(gpt.config.n_embd, outputs)
        self.dropout, self.lambda_lm = nn.Dropout(classifier_dropout), lambda_lm

    def forward(self, input_ids: Tensor, lengths: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Loss and logits of right-padded token ids [b, t]; under the causal mask padding needs
        none of its own.
        """
        hidden_btd = self.gpt(input_ids=input_ids).last_hidden_state
        logits_bo = self.head(
            self.dropout(hidden_btd[torch.arange(len(lengths), device=lengths.device), lengths - 1])
        )
        loss = F.cross_entropy(logits_bo.float(), labels)
        if self.training and self.lambda_lm:
            places_t = torch.arange(1, input_ids.shape[1], device=lengths.device)
            targets_bt = input_ids[:, 1:].masked_fill(places_t >= lengths[:, None], -100)
            tokens_btv = F.linear(hidden_btd[:, :-1], self.gpt.tokens_embed.weight)
            loss = loss + self.lambda_lm * F.cross_entropy(
                tokens_btv.flatten(0, 1).float(), targets_bt.flatten(), ignore_index=-100
            )
        return {"loss": loss, "logits": logits_bo}
