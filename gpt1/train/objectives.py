"""What a forward pass minimises: equation 1 or 5. Each sets its precision inside, where DeepSpeed
does not switch it off.
"""

from typing import NamedTuple

from torch import Tensor, nn

from gpt1.model.heads import Classifier
from gpt1.model.lstm import Network
from gpt1.model.packing import Computed, computed_places
from gpt1.train import losses
from gpt1.train.batches import Batch
from gpt1.train.speed import in_precision


class Pretraining(nn.Module):
    """Predicts the next token in windows (equation 1)."""

    def __init__(self, decoder: Network, precision: str) -> None:
        super().__init__()
        self.decoder, self.precision = decoder, precision

    def forward(self, windows_bt: Tensor, dropout: float = 0.0) -> dict[str, Tensor]:
        """Return the mean loss, in nats per token, of windows [b, context + 1]."""
        with in_precision(windows_bt.device, self.precision):
            # The last token of a window is a target only, the first an input only.
            hidden_btd, embeddings = self.decoder(windows_bt[:, :-1], dropout)
            lm_loss = losses.language_model(hidden_btd, embeddings.tokens_vd, windows_bt[:, 1:])
        return {"loss": lm_loss.mean}


class Parts(NamedTuple):
    """What equation 5 is made of."""

    logits_bo: Tensor
    task_losses_b: Tensor
    lm_loss: losses.LanguageModelLoss | None  # None where lambda is 0


class Finetuning(nn.Module):
    """Learns a task and the auxiliary language model (equation 5)."""

    def __init__(
        self, classifier: Classifier, classifier_dropout: float, lambda_lm: float, precision: str
    ) -> None:
        super().__init__()
        self.classifier, self.precision = classifier, precision
        self.classifier_dropout = classifier_dropout
        self.lambda_lm = lambda_lm

    def logits(self, batch: Batch) -> Tensor:
        """Return logits [b, outputs] in float32, without dropout."""
        with in_precision(batch.tokens_bkt.device, self.precision):
            computed = self._computed(batch)
            logits_bo: Tensor = self.classifier(batch.tokens_bkt, computed=computed).logits_bo
        return logits_bo.float()

    def _computed(self, batch: Batch) -> Computed:
        lengths_n, tokens_bkt = batch.lengths_bk.flatten(), batch.tokens_bkt
        t = self.classifier.padded_length(tokens_bkt.shape[2])
        return computed_places(lengths_n, t, tokens_bkt.device)

    def parts(self, batch: Batch, dropout: float = 0.0) -> Parts:
        """Return logits and losses."""
        tokens_bkt, labels_b, device = batch.tokens_bkt, batch.labels_b, batch.tokens_bkt.device
        with in_precision(device, self.precision):
            logits_bo, hidden_ntd, embeddings = self.classifier(
                tokens_bkt, dropout, self.classifier_dropout, self._computed(batch)
            )
            # STS-B: a score becomes soft labels over the classes 0 to 5.
            if labels_b.is_floating_point():
                labels_b = losses.score_distribution(labels_b, logits_bo.shape[1])
            task_losses_b = losses.classification(logits_bo, labels_b)
            if not self.lambda_lm:
                return Parts(logits_bo, task_losses_b, None)
            # Delimiter and extract are targets too, as in the authors' code; padding is none.
            targets_nt = tokens_bkt.flatten(0, 1)[:, 1:]
            t = targets_nt.shape[1]
            computed = losses.computed_targets(batch.lengths_bk.flatten() - 1, t, device)
            lm_loss = losses.language_model(
                hidden_ntd[:, :t], embeddings.all_rows_vd(), targets_nt, computed
            )
        return Parts(logits_bo, task_losses_b, lm_loss)

    def forward(self, batch: Batch, dropout: float = 0.0) -> dict[str, Tensor]:
        """Return equation 5 (`loss`) and its terms; no `lm_loss` where lambda is 0."""
        _, task_losses_b, lm_loss = self.parts(batch, dropout)
        if lm_loss is None:
            return {"loss": task_losses_b.mean(), "task_loss": task_losses_b.mean()}
        return {
            "loss": losses.finetune(task_losses_b, lm_loss.mean, self.lambda_lm),
            "task_loss": task_losses_b.mean(),
            "lm_loss": lm_loss.mean,
        }
