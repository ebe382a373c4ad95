"""What a run will take, before it starts: updates, tokens, 6 N D operations, and hours at the speed
of a matrix product measured here. Small networks take some times as long, for they are no such
products; scoring and text come on top.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gpt1.base.files import RAW
from gpt1.params.recipes import finetune_recipe, transferred_layers
from gpt1.params.schema import NetworkName, Params
from gpt1.sources.table import is_made_up
from gpt1.tasks.table import TASKS

# Examples to train on (the releases' papers; GLUE: Wang et al. 2018), and tokens of a sequence by
# the authors' byte pairs: counted in SNLI, MNLI, QNLI, RTE and RACE; for CoLA, SST-2, STS-B and QQP
# from counts with 5,000 merges; for SciTail, MRPC and Story Cloze guessed from their mean words.
OFFICIAL = {
    "snli": (549_367, 26),
    "mnli": (392_702, 39),
    "qnli": (104_743, 51),
    "rte": (2_490, 71),
    "scitail": (23_596, 38),
    "race": (87_866, 353),
    "story_cloze": (1_497, 53),
    "cola": (8_551, 11),
    "sst2": (67_349, 13),
    "mrpc": (3_668, 55),
    "stsb": (5_749, 31),
    "qqp": (363_846, 31),
}
OTHER, TOWN = (10_000, 40), (600, 18)  # of a task not named above; of the made-up town's, about
BYTES_A_TOKEN, BOOKSCORPUS_BYTES, PAGE_BYTES = 4.5, 5.0e9, 1_911  # Zhu et al. 2015; a town's page
PRODUCT_SECONDS = 1.0


class Work(NamedTuple):
    """The work of all stages of one kind: networks trained, updates, tokens, operations."""

    kind: str
    networks: int
    updates: float
    tokens: float
    operations: float


def parameters(params: Params, network: NetworkName) -> int:
    """N: weights of the matrices, the embedding among them, which is the softmax's too."""
    model = params.model
    rows = params.bpe.merges + 2 * params.bpe.alphabet_size + 2
    if network == "transformer":
        block = 4 * model.width**2 + 2 * model.width * model.feed_forward
        return (rows + model.context) * model.width + model.layers * block
    units: int = getattr(params, network).units
    return rows * model.width + 4 * units * (model.width + units) + units * model.width


def corpus_tokens(params: Params) -> float:
    """Tokens of the books: the made-up town's, those in data/raw, or else BooksCorpus."""
    folder = params.sources["books"].folder
    if is_made_up(folder):
        town = params.world[folder.removeprefix("world/")]
        return PAGE_BYTES * town.books * town.pages / BYTES_A_TOKEN
    own = sum(path.stat().st_size for path in (RAW / "books").rglob("*.txt"))
    return (own or BOOKSCORPUS_BYTES) / BYTES_A_TOKEN


def pretraining(params: Params, network: NetworkName) -> Work:
    """All pre-trainings of a network."""
    recipe, seeds = params.pretrain, len(params.pretrain.seeds)
    if recipe.source == "official":
        return Work(f"pretrain {network}", 0, 0, 0.0, 0.0)
    update = recipe.batch_size * params.model.context
    updates = recipe.updates or (recipe.epochs or 0) * corpus_tokens(params) / update
    tokens = seeds * updates * update
    kind = f"pretrain {network}"
    return Work(kind, seeds, seeds * updates, tokens, 6 * parameters(params, network) * tokens)


def finetuning(
    params: Params, task: str, variant: str | None, network: NetworkName, kind: str, parts: int = 1
) -> Work:
    """The fine-tunings of a task, on every seed, of so many parts each."""
    recipe, row = finetune_recipe(params, task, variant), params.tasks[task]
    known = TOWN if is_made_up(params.sources[task].folder) else OFFICIAL.get(task, OTHER)
    examples = min(known[0], row.train_rows or known[0])
    length = TASKS[task].sequences * min(known[1], params.model.context)
    networks = parts * len(recipe.seeds)
    updates = networks * recipe.epochs * (examples // recipe.batch_size)
    tokens = float(updates * recipe.batch_size * length)
    return Work(kind, networks, updates, tokens, 6 * parameters(params, network) * tokens)


def works(params: Params) -> list[Work]:
    """The work of a run, a row for each kind of training."""
    rows = [pretraining(params, network) for network in params.networks.pretrain]
    for task in params.tasks:
        rows.append(finetuning(params, task, None, "transformer", "finetune"))
        rows += [
            finetuning(params, task, name, variant.network, "ablate")
            for name, variant in params.variants.items()
            if task in variant.tasks
        ]
    for task in params.transfer:
        layers = len(transferred_layers(params, task))
        rows.append(finetuning(params, task, None, "transformer", "transfer", layers))
    kinds = dict.fromkeys(row.kind for row in rows)
    return [
        Work(kind, *map(sum, zip(*(row[1:] for row in rows if row.kind == kind), strict=True)))
        for kind in kinds
    ]


def product_speed(precision: str) -> tuple[float, str]:
    """Operations a second of a large matrix product on all of this machine, by the device that
    trainings take; and what that is.
    """
    import torch

    from gpt1.train.launch import read_machine
    from gpt1.train.precision import arithmetic

    machine = read_machine()
    device = machine.device
    bf16 = arithmetic(torch.device(device), precision) == "bf16"
    kind = torch.bfloat16 if bf16 else torch.float32
    size = 8192 if device == "cuda" else 1024
    left, right = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
    count, began = 0, 0.0
    while not count or time.perf_counter() - began < PRODUCT_SECONDS:
        (left @ right)[0, 0].item()
        began = began or time.perf_counter()  # the first one has its own cost
        count += 1
    seconds = time.perf_counter() - began
    gpus = machine.processes if device == "cuda" else 1
    speed = gpus * 2 * size**3 * (count - 1) / seconds
    return speed, f"{gpus} x {torch.cuda.get_device_name()}" if device == "cuda" else "this CPU"


def lines(params: Params) -> Sequence[str]:
    """The screen of `gpt1 estimate`; the last line stands for all of it."""
    rows = works(params)
    rows.append(Work("all", *map(sum, zip(*(row[1:] for row in rows), strict=True))))
    speed, device = product_speed(params.pretrain.precision)
    head = f"{'':20} {'networks':>8} {'updates':>12} {'tokens':>10} {'6 N D':>10} {'hours':>9}"
    body = [
        f"{row.kind:20} {row.networks:>8,} {row.updates:>12,.0f} {row.tokens:>10.2e}"
        f" {row.operations:>10.2e} {row.operations / speed / 3600:>9.2g}"
        for row in rows
    ]
    hours = rows[-1].operations / speed / 3600
    return [
        head,
        *body,
        f"at least {hours:,.2g} hours, at the {speed / 1e9:,.0f} GFLOP/s of a matrix product on"
        f" {device}; a small network takes some times as long",
    ]


def show(params: Params) -> None:
    """Print the screen, and where the corpus is not there yet say whose size is taken."""
    for line in lines(params):
        print(line)
    if not is_made_up(params.sources["books"].folder) and not Path(RAW, "books").is_dir():
        print("(no books in data/raw yet: the size of BooksCorpus is taken)")
