"""For test_ranks.py, `python -m fake_ranks FOLDER`: pre-training with evaluation and checkpoints, and
fine-tuning, as some of 64 processes, one at a time: torch's fake process group keeps what a process
gives to the others, so that each collective can be noted.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
from many_processes import ROWS, paper
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.model.weights import Description
from gpt1.params.schema import Model
from gpt1.train.batches import Examples
from gpt1.train.checkpoint import Saver
from gpt1.train.finetuning import EncodedTask, FinetuningRun, finetune_seed
from gpt1.train.launch import Machine
from gpt1.train.pretraining import Corpus, PretrainingRun, pretrain

PROCESSES, RANKS = 64, (0, 7, 63)
UPDATES, HELDOUT, DEV = 3, 100, 70  # some have two of the held-out windows, some one
MODEL = Model(
    context=8,
    width=16,
    layers=1,
    heads=2,
    feed_forward=32,
    embedding_deviation=0.02,
    weight_deviation=0.02,
    layer_norm_epsilon=1e-5,
)


class Note(TorchDispatchMode):
    """Collectives, and the sizes and types of what is sent."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function.namespace == "c10d":
            tensors = [one for one in tree_leaves(arguments) if isinstance(one, torch.Tensor)]
            sizes = [f"{tuple(one.shape)} {one.dtype}" for one in tensors]
            self.calls.append([str(function), *sizes])
        return function(*arguments, **(options or {}))


def decoder():
    return Decoder(MODEL, ROWS, torch.Generator().manual_seed(0))


def pretraining(machine, folder):
    recipe = paper().pretrain.model_copy(
        update={
            "batch_size": PROCESSES,
            "warmup_updates": 1,
            "heldout_updates": 2,
            "log_updates": 1,
            "precision": "fp32",
            "checkpoint_minutes": 0.0,
        }
    )
    windows = np.random.default_rng(0).integers(0, ROWS, (HELDOUT, MODEL.context + 1))
    corpus = Corpus(lambda _: np.arange(PROCESSES), windows.__getitem__, windows, 1.0)
    description = Description("transformer", {}, ROWS, "f" * 16)
    pretrain(
        PretrainingRun(decoder(), description, recipe, 0, UPDATES, corpus, machine, folder),
        lambda update, values: None,
    )


def finetuning(machine, folder):
    recipe = paper().finetune.model_copy(
        update={"batch_size": PROCESSES, "epochs": 1, "precision": "fp32"}
    )
    draw = np.random.default_rng(0)
    train, dev = (examples(draw, rows) for rows in (2 * PROCESSES, DEV))
    task = EncodedTask("made", {"train": train, "dev": dev}, "dev", lambda logits: 0.0)
    head = Head(MODEL.width, 2, "single", 0.02, torch.Generator().manual_seed(0))
    classifier, curve = Classifier(decoder(), head), folder / "finetune.jsonl"
    finetune_seed(
        FinetuningRun(classifier, recipe, task, 0, machine, curve, "finetune made"),
        lambda update, values: None,
    )


def examples(draw, rows):
    """Rows of one to seven tokens and the extract symbol."""
    lengths = draw.integers(2, MODEL.context + 1, rows)
    tokens = draw.integers(0, ROWS - 1, lengths.sum())
    ends = np.cumsum(lengths)
    tokens[ends - 1] = ROWS - 1
    return Examples(
        tokens.astype(np.uint16), np.concatenate([[0], ends]), draw.integers(0, 2, rows), 1
    )


def be(rank, stage, folder):
    """Train as that process; leaves `<stage>-<rank>.json`."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank % 8), "WORLD_SIZE": str(PROCESSES)}
    torch.distributed.init_process_group("fake", rank=rank, world_size=PROCESSES, store=FakeStore())
    # what rank 0 says of a checkpoint does not come through: all take it that it said yes
    Saver.due = lambda saver, update: True
    machine = Machine("cpu", PROCESSES, rank, rank % 8, 1, None, True, False, zero_stage=stage)
    own, found = folder / f"{stage}-{rank}", {}
    for train in (pretraining, finetuning):
        with Note() as note:
            train(machine, own)
        found[train.__name__] = note.calls
    (folder / f"{own.name}.json").write_text(json.dumps(found))


def main(folder):
    import deepspeed  # noqa: F401 (once for all)

    for stage in (0, 1):
        for rank in RANKS:
            child = os.fork()
            if not child:
                be(rank, stage, folder)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0, f"rank {rank} at stage {stage} failed"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
