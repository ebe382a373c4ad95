"""What one forward pass minimises: equation 1 in pre-training, equation 5 in fine-tuning."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gpt1.model.dropout import Dropout
from gpt1.model.heads import Classifier
from gpt1.model.lstm import Network
from gpt1.train import losses
from gpt1.train.batches import Batch


class Pretraining(nn.Module):
    """Next-token prediction over windows of the corpus; the softmax runs over the vocabulary's
    rows.
    """

    def __init__(self, decoder: Network) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, windows_bt: Tensor, dropout: Dropout) -> dict[str, Tensor]:
        """Mean loss in nats a token of windows [b, context + 1], each token but the first a
        target.
        """
        hidden_btd, embeddings = self.decoder(windows_bt[:, :-1], dropout)
        targets_bt = windows_bt[:, 1:]
        real_bt = torch.ones_like(targets_bt, dtype=torch.bool)
        return {
            "loss": losses.language_model(
                hidden_btd, embeddings.tokens_vd, targets_bt, real_bt
            ).mean
        }


class Parts(NamedTuple):
    """Logits [b, outputs], task loss of each example [b], language-model loss (None where lambda is
    0).
    """

    logits_bo: Tensor
    task_losses_b: Tensor
    lm_loss: losses.LanguageModelLoss | None


class Finetuning(nn.Module):
    """A task and the auxiliary language model over every sequence; the softmax runs over all rows,
    as the authors' does.
    """

    def __init__(self, classifier: Classifier, classifier_dropout: float, lambda_lm: float) -> None:
        super().__init__()
        self.classifier = classifier
        self.classifier_dropout = classifier_dropout
        self.lambda_lm = lambda_lm

    def parts(self, batch: Batch, dropout: Dropout) -> Parts:
        """Logits and losses of each example and sequence; labels are classes (int64) or scores of
        STS-B (floating).
        """
        logits_bo, hidden_ntd, embeddings = self.classifier(
            batch.tokens_bkt, dropout, self.classifier_dropout
        )
        if batch.labels_b.is_floating_point():
            task_losses_b = losses.soft_classification(
                logits_bo, losses.score_distribution(batch.labels_b)
            )
        else:
            task_losses_b = losses.classification(logits_bo, batch.labels_b)
        if self.lambda_lm == 0:
            return Parts(logits_bo, task_losses_b, None)
        targets_nt = batch.tokens_bkt.flatten(0, 1)[:, 1:]
        real_nt = (
            torch.arange(1, targets_nt.shape[1] + 1, device=targets_nt.device)
            < batch.lengths_bk.flatten()[:, None]
        )
        return Parts(
            logits_bo,
            task_losses_b,
            losses.language_model(
                hidden_ntd[:, :-1], embeddings.all_rows_vd(), targets_nt, real_nt
            ),
        )

    def forward(self, batch: Batch, dropout: Dropout) -> dict[str, Tensor]:
        """Equation 5 (`loss`) and its two terms; without `lm_loss` where lambda is 0."""
        _, task_losses_b, lm_loss = self.parts(batch, dropout)
        if lm_loss is None:
            return {"loss": task_losses_b.mean(), "task_loss": task_losses_b.mean()}
        return {
            "loss": losses.finetune(task_losses_b, lm_loss.mean, self.lambda_lm),
            "task_loss": task_losses_b.mean(),
            "lm_loss": lm_loss.mean,
        }
