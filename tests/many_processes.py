"""A training for test_many_processes.py, `python -m many_processes FOLDER`: 20 updates of a 1
M-parameter model.

By the plain engine, or by as many processes as GPT1_PROCESSES says; whoever shares the batch, it is
the same training.
"""

import gc
import json
import sys
import weakref
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.params.schema import Model, validate
from gpt1.params.yaml import read_yaml
from gpt1.train import optim
from gpt1.train.batches import Examples, shares
from gpt1.train.engine import make_engine
from gpt1.train.finetuning import EncodedTask, FinetuningRun, finetune_seed
from gpt1.train.launch import prepare, read_machine, spread
from gpt1.train.objectives import Pretraining
from gpt1.train.speed import speed_up

MODEL = Model(
    context=16,
    width=128,
    layers=4,
    heads=4,
    feed_forward=512,
    embedding_deviation=0.02,
    weight_deviation=0.02,
    layer_norm_epsilon=1e-5,
)
ROWS, BATCH, UPDATES, HALF = 2000, 4, 20, 10


def paper():
    return validate(read_yaml(Path(__file__).parents[1] / "conf/paper.yaml"))


def recipe():
    return paper().pretrain.model_copy(
        update={
            "precision": "fp32",
            "learning_rate": 1e-3,
            "max_gradient_norm": 0.7,
        }
    )


def engine_of(machine):
    network = Decoder(MODEL, ROWS, torch.Generator().manual_seed(0))
    speed_up(network, recipe(), machine, 0)
    return make_engine(Pretraining(network, recipe().precision), recipe(), machine)


def train(engine, updates, micro_batch, scale=1.0):
    """Losses and gradient norms of these updates."""
    losses, norms = [], []
    for update in updates:
        windows = (
            np.random.default_rng(update).integers(0, ROWS, size=(BATCH, MODEL.context + 1)) ** 2
            // ROWS
        )
        parts = shares(np.arange(BATCH), engine.rank, engine.processes, micro_batch)
        engine.begin(len(parts))
        total = 0.0
        for part in parts:
            found = engine.forward(torch.from_numpy(windows[part]), 0.0)["loss"]
            engine.backward(found * scale, len(part) / BATCH)
            total += float(found.detach()) * len(part) / BATCH
        told = torch.tensor([total], dtype=torch.float64)
        loss, norm = engine.step(optim.rates(recipe(), update, UPDATES, 0.2), told).read()
        losses.append(loss)
        norms.append(norm)
    return losses, norms


def save(engine, path):
    weights, moments = engine.state()
    if engine.rank == 0:
        save_file(
            {
                name: value.detach().contiguous().clone()
                for name, value in (weights | moments).items()
            },
            path,
        )


def load(engine, path, steps):
    found = load_file(path)
    moments = {name: value for name, value in found.items() if name.startswith(optim.MOMENTS)}
    engine.load(
        {name: value for name, value in found.items() if name not in moments}, moments, steps
    )


def alive_after_seeds(machine, folder):
    """How many networks and objectives of three fine-tunings are still there after the last."""
    draw, references = np.random.default_rng(0), []
    tokens = draw.integers(0, ROWS - 1, (8, MODEL.context))
    tokens[:, -1] = ROWS - 1
    examples = Examples(
        tokens.flatten(), np.arange(9) * MODEL.context, draw.integers(0, 2, 8), sequences=1
    )
    task = EncodedTask("made", {"train": examples, "dev": examples}, "dev", lambda logits: 0.0)
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        classifier = Classifier(
            Decoder(MODEL, ROWS, generator), Head(MODEL.width, 2, "single", 0.02, generator)
        )
        references += [weakref.ref(classifier), weakref.ref(classifier.decoder)]
        run = FinetuningRun(
            classifier,
            paper().finetune.model_copy(update={"batch_size": BATCH, "epochs": 1}),
            task,
            seed,
            machine,
            folder / f"seed-{seed}.jsonl",
            f"finetune made/seed-{seed}",
        )
        finetune_seed(run, lambda update, values: None)
    del classifier, run
    gc.collect()
    return sum(reference() is not None for reference in references)


def main(folder):
    machine = read_machine()
    if spread(machine, "many_processes", str(folder)):
        return
    prepare(machine)
    engine = engine_of(machine)
    first = train(engine, range(1, HALF + 1), 4)
    save(engine, folder / "half.safetensors")
    second = train(engine, range(HALF + 1, UPDATES + 1), 1)
    save(engine, folder / "end.safetensors")
    not_finite = train(engine, [UPDATES + 1], 2, float("nan"))[1]
    save(engine, folder / "after-nan.safetensors")
    load(engine, folder.parent / "plain/half.safetensors", HALF)
    engine.begin(2)
    dropped = torch.zeros(1, 5, dtype=torch.long)
    engine.backward(engine.forward(dropped, 0.0)["loss"], 0.5)
    resumed = train(engine, range(HALF + 1, UPDATES + 1), 3)
    save(engine, folder / "resumed.safetensors")
    alive = alive_after_seeds(machine, folder)
    if machine.rank == 0:
        (folder / "found.json").write_text(
            json.dumps(
                {
                    "losses": first[0] + second[0],
                    "norms": first[1] + second[1],
                    "resumed": resumed[0],
                    "not_finite": not_finite,
                    "alive": alive,
                }
            )
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
