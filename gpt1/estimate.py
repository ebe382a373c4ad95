"""What a run will take: updates, tokens, 6 N D operations, time on a GPU, room on the disk."""

import math
import shutil
from collections.abc import Collection
from typing import NamedTuple

from gpt1.base.files import RAW
from gpt1.params.recipes import finetune_recipe, transferred_layers
from gpt1.params.schema import NetworkName, Params
from gpt1.sources.definitions import is_made_up
from gpt1.tasks.definitions import TASKS
from gpt1.train.schedules import snapshot_updates

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
OTHER, TOWN = (10_000, 40), (900, 20)  # of a task not named above; of the made-up town's, about
BYTES_A_TOKEN, BOOKSCORPUS_BYTES, PAGE_BYTES = 4.5, 5.0e9, 1_911  # Zhu et al. 2015; a town's page
# Operations a second of dense matrix products in bf16 (NVIDIA's data sheets), and the share of them
# that a training is assumed to reach.
PEAKS, SHARE = {"H100": 989e12, "A100": 312e12, "RTX 4090": 165e12}, 0.35
WEIGHT_BYTES, CHECKPOINT_BYTES = 4, 24  # a parameter: fp32; twice that and Adam's two averages
TEXT_COPIES = 3  # of the corpus: as it comes, cleaned, as token ids


class Work(NamedTuple):
    """The work of all stages of one kind."""

    kind: str
    networks: int
    updates: float
    tokens: float
    operations: float
    disk_bytes: float


def parameters(params: Params, network: NetworkName) -> int:
    """Return N, the weights of all matrices; the embedding is the softmax's too."""
    model = params.model
    rows = params.bpe.merges + 2 * params.bpe.alphabet_size + 2
    if network == "transformer":
        block = 4 * model.width**2 + 2 * model.width * model.feed_forward
        return (rows + model.context) * model.width + model.layers * block
    units: int = getattr(params, network).units
    return rows * model.width + 4 * units * (model.width + units) + units * model.width


def corpus_tokens(params: Params) -> float:
    """Return the tokens of the books: of the town, of data/raw, or of BooksCorpus where a training
    needs it.
    """
    folder = params.sources["books"].folder
    if (town := params.town) and is_made_up(folder):
        return PAGE_BYTES * town.books * town.pages / BYTES_A_TOKEN
    own = sum(path.stat().st_size for path in (RAW / "books").rglob("*.*"))
    return (own or BOOKSCORPUS_BYTES * (params.pretrain.source == "train")) / BYTES_A_TOKEN


def pretraining(params: Params, network: NetworkName) -> Work:
    """Return the work of a pre-training."""
    recipe, kind = params.pretrain, f"pretrain {network}"
    if recipe.source == "official":
        return Work(kind, *[0] * 5)
    update = recipe.batch_size * params.model.context
    updates = recipe.updates or (recipe.epochs or 0) * corpus_tokens(params) / update
    tokens, size = updates * update, parameters(params, network)
    snapshots = len(snapshot_updates(math.ceil(updates), recipe.snapshots_per_decade))
    kept = 1 + snapshots * (network != "lstm_equal")
    disk_bytes = size * (CHECKPOINT_BYTES + kept * WEIGHT_BYTES)
    return Work(kind, 1, updates, tokens, 6 * size * tokens, disk_bytes)


def finetuning(
    params: Params, task: str, ablation: str | None, network: NetworkName, kind: str, parts: int = 1
) -> Work:
    """Return the work of a task's fine-tunings on every seed, each of `parts`."""
    recipe, row = finetune_recipe(params, task, ablation), params.tasks[task]
    made_up = is_made_up(params.sources[task].folder)
    examples, length = TOWN if made_up else OFFICIAL.get(task, OTHER)
    examples = min(examples, row.train_rows or examples)
    sequences = TASKS[task].sequences if task in TASKS else 1  # the stage names an unknown one
    length = sequences * min(length, params.model.context)
    networks = parts * len(recipe.seeds)
    updates = networks * recipe.epochs * (examples // recipe.batch_size)
    tokens = float(updates * recipe.batch_size * length)
    size = parameters(params, network)
    disk_bytes = networks * size * WEIGHT_BYTES * (kind == "finetune")  # others leave no weights
    return Work(kind, networks, updates, tokens, 6 * size * tokens, disk_bytes)


def works(params: Params) -> dict[str, Work]:
    """Return the work of each stage that trains."""
    stages = {
        f"pretrain@{network}-{seed}": pretraining(params, network)
        for network in params.networks.pretrain
        for seed in params.pretrain.seeds
    }
    for task in params.tasks:
        stages[f"finetune@{task}"] = finetuning(params, task, None, "transformer", "finetune")
    for name, ablation in params.ablations.items():
        for task in ablation.tasks:
            stages[f"{name}@{task}"] = finetuning(params, task, name, ablation.network, "ablation")
    for task in params.transfer:
        # with all layers it is the ordinary fine-tuning
        layers = sum(count < params.model.layers for count in transferred_layers(params, task))
        stages[f"transfer@{task}"] = finetuning(
            params, task, None, "transformer", "transfer", layers
        )
    return stages


def total(kind: str, rows: Collection[Work]) -> Work:
    """Sum the rows of a kind, or of all."""
    own = [row[1:] for row in rows if kind in (row.kind, "all")]
    return Work(kind, *map(sum, zip([0] * 5, *own, strict=True)))


def lines(params: Params, outdated: Collection[str] | None = None) -> list[str]:
    """Return the screen of `gpt1 estimate`, of the `outdated` stages (None: all); its last two
    lines are a summary.
    """
    stages = {
        name: row for name, row in works(params).items() if outdated is None or name in outdated
    }
    kinds = dict.fromkeys([*(row.kind for row in stages.values()), "all"])
    rows = [total(kind, stages.values()) for kind in kinds]
    body = [
        f"{row.kind:20} {row.networks:>8,} {row.updates:>12,.0f} {row.tokens:>10.2e}"
        f" {row.operations:>10.2e}"
        for row in rows
    ]
    text = corpus_tokens(params) * (outdated is None or "clean" in outdated)
    needed = rows[-1].disk_bytes + TEXT_COPIES * BYTES_A_TOKEN * text
    guessed = text == BOOKSCORPUS_BYTES / BYTES_A_TOKEN
    note = "" if not guessed else " (no books in data/raw yet: the size of BooksCorpus is taken)"
    times = ", ".join(
        f"{name} {duration(rows[-1].operations / SHARE / peak)}" for name, peak in PEAKS.items()
    )
    return [
        f"{'':20} {'networks':>8} {'updates':>12} {'tokens':>10} {'6 N D':>10}",
        *body,
        f"training on one GPU, at {SHARE:.0%} of its peak: {times}",
        f"room on the disk: {needed / 1e9:,.1f} GB needed, {shutil.disk_usage('.').free / 1e9:,.0f}"
        f" GB free{note}",
    ]


def duration(seconds: float) -> str:
    """Put a time in words."""
    hours = seconds / 3600
    return f"{hours / 24:,.0f} days" if hours > 48 else f"{hours:.0f} h" if hours > 1 else "minutes"
