"""A training for test_many_processes.py, `python -m many_processes FOLDER`: 20 updates of a 1
M-parameter model by our engine, in as many processes as a launcher has started.
"""

import gc
import json
import sys
import weakref
from pathlib import Path

import numpy as np
import torch
from made_data import tiny_sizes
from safetensors.torch import load_file, save_file

from gpt1.model.gpt import Decoder
from gpt1.model.heads import Classifier, Head
from gpt1.params.schema import validate
from gpt1.params.yaml import read_yaml
from gpt1.train import optim
from gpt1.train.batches import Examples, shares
from gpt1.train.engine import make_engine
from gpt1.train.finetuning import EncodedTask, FinetuningRun, finetune_seed
from gpt1.train.launch import prepare, read_machine
from gpt1.train.objectives import Pretraining

MODEL = tiny_sizes(context=16, width=128, layers=4, feed_forward=512)
ROWS, BATCH, UPDATES, HALF, MICRO_BATCHES = 2000, 4, 20, 10, 2


def paper():
    return validate(read_yaml(Path(__file__).parents[1] / "conf/paper.yaml"))


def recipe():
    changed = {"precision": "fp32", "learning_rate": 1e-3, "max_gradient_norm": 0.7}
    return paper().pretrain.model_copy(update=changed)


def objective():
    return Pretraining(Decoder(MODEL, ROWS, torch.Generator().manual_seed(0)), "fp32")


def micro_batches(update, rank, processes):
    """This process's windows [b, context + 1] of an update, in two micro-batches."""
    drawn = np.random.default_rng(update).integers(0, ROWS, size=(BATCH, MODEL.context + 1))
    parts = shares(np.arange(BATCH), rank, processes, BATCH // processes // MICRO_BATCHES)
    return [torch.from_numpy(drawn[part] ** 2 // ROWS) for part in parts]


def train(engine, updates):
    """Losses and gradient norms of these updates."""
    losses, norms = [], []
    for update in updates:
        total = torch.zeros((), dtype=torch.float64)
        for windows_bt in micro_batches(update, engine.rank, engine.processes):
            loss, share = engine.forward(windows_bt, 0.0)["loss"], len(windows_bt) / BATCH
            engine.backward(loss, share)
            total += loss.detach() * share
        norms.append(float(engine.step(optim.rates(recipe(), update, UPDATES, 0.2))))
        losses.append(float(engine.total(total)))
    return losses, norms


def save(engine, path):
    weights, moments = engine.state()
    if engine.rank == 0:
        state = {**weights, **moments}
        save_file({name: state[name].detach().contiguous().clone() for name in state}, path)


def load(engine, path, updates):
    state = load_file(path)
    moments = {name: value for name, value in state.items() if name.startswith(optim.MOMENTS)}
    engine.load({name: state[name] for name in state if name not in moments}, moments, updates)


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
    prepare(machine)
    engine = make_engine(objective(), recipe(), machine, MICRO_BATCHES)
    losses, norms = train(engine, range(1, HALF + 1))
    save(engine, folder / "half.safetensors")
    more = train(engine, range(HALF + 1, UPDATES + 1))
    save(engine, folder / "end.safetensors")
    engine = make_engine(objective(), recipe(), machine, MICRO_BATCHES)
    load(engine, folder.parent / "plain/half.safetensors", HALF)
    seen = {
        "losses": losses + more[0],
        "norms": norms + more[1],
        "resumed": train(engine, range(HALF + 1, UPDATES + 1))[0],
        "alive": alive_after_seeds(machine, folder),
    }
    if machine.rank == 0:
        (folder / "seen.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
