"""A pre-training of twelve updates in this process, on made windows."""

import os
import re
import signal

import numpy as np
import pytest
import torch
from made_data import outputs, paper, tiny_sizes

from gpt1.model.gpt import Decoder
from gpt1.model.weights import Description
from gpt1.train.launch import Machine
from gpt1.train.pretraining import Corpus, PretrainingRun, pretrain

TINY = tiny_sizes(context=8, layers=1, heads=2, feed_forward=32)
ROWS, BATCH, UPDATES, HELDOUT = 30, 6, 12, 5


def made_recipe():
    recipe = paper().pretrain
    return recipe.model_copy(
        update={
            "batch_size": BATCH,
            "learning_rate": 1e-2,
            "warmup_updates": 2,
            "log_updates": 2,
            "heldout_updates": 3,
            "precision": "fp32",
            "snapshots_per_decade": 10,
            "checkpoint_minutes": 60.0,
        }
    )


def checkpoints(folder):
    """The updates of which there is a checkpoint."""
    return sorted(int(path.name.removeprefix("update-")) for path in folder.glob("update-*"))


class Run:
    """Pre-trainings in a folder. Before each micro-batch `at_call` is given the count of
    micro-batches since the start, and its windows.

    In the updates `spoiled` the network gives what is no number.
    """

    def __init__(self, folder, recipe, micro_batch=1, spoiled=()):
        self.folder, self.recipe, self.micro_batch, self.spoiled = (
            folder,
            recipe,
            micro_batch,
            spoiled,
        )
        self.update_of = {}

    def windows(self, starts):
        update, first = divmod(int(starts[0]), 100)
        windows = np.random.default_rng(update).integers(0, ROWS, size=(BATCH, 9))
        self.update_of[windows[first, :-1].tobytes()] = update
        return windows[starts % 100]

    def go(self, at_call=lambda call, windows_bt: None):
        self.calls = 0
        self.network = Decoder(TINY, ROWS, torch.Generator().manual_seed(0))

        def count(_, inputs):
            self.calls += 1
            at_call(self.calls, inputs[0])

        def spoil(_network, inputs, output):
            update = self.update_of.get(inputs[0][0].numpy().tobytes())
            return (
                (output[0] * float("nan"), *output[1:])
                if torch.is_grad_enabled() and update in self.spoiled
                else output
            )

        self.network.register_forward_pre_hook(count)
        self.network.register_forward_hook(spoil)
        corpus = Corpus(
            lambda update: 100 * update + np.arange(BATCH),
            self.windows,
            np.random.default_rng(0).integers(0, ROWS, size=(HELDOUT, 9)),
            0.75,
        )
        machine = Machine("cpu", threads=1, micro_batch=self.micro_batch)
        run = PretrainingRun(
            self.network,
            Description("transformer", {}, ROWS, "f" * 16),
            self.recipe,
            self.recipe.seeds[0],
            UPDATES,
            corpus,
            machine,
            self.folder,
        )
        return pretrain(run, lambda update, values: None)

    def stopped(self, ask_at, match, capsys, number=signal.SIGINT):
        """A run that is asked to end at a call: it ends with these words, and no micro-batch
        later.
        """
        with pytest.raises(SystemExit, match=str(128 + number)):
            self.go(lambda call, _: os.kill(os.getpid(), number) if call == ask_at else None)
        assert re.search(match, capsys.readouterr().err)
        assert self.calls == ask_at, (
            f"{self.calls - ask_at} micro-batches went through the network after the signal"
        )

    def checkpoints(self):
        return checkpoints(self.folder)

    def results(self):
        return {
            name: content
            for name, content in outputs(self.folder).items()
            if not name.startswith("update-")
        }
