"""What the benchmarks share: ways measured in turn in one process, their table, our pre-training step
on made-up windows, and Hugging Face's model with our weights.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch

from gpt1.base.machine import cpu_name
from gpt1.inference.openai_gpt import quiet_transformers, their_config, to_theirs
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Network
from gpt1.params.profile import compose
from gpt1.params.schema import Model, Pretrain, validate
from gpt1.train import launch, optim
from gpt1.train.batches import Integers, split_batch
from gpt1.train.engine import make_engine
from gpt1.train.launch import Machine
from gpt1.train.loop import MicroBatch, Stop, take_update
from gpt1.train.objectives import Pretraining
from gpt1.train.speed import speed_up

TINY = [
    "model.width=64",
    "model.layers=2",
    "model.heads=2",
    "model.feed_forward=256",
    "model.context=64",
    "transfer.mnli.layers=null",
    "transfer.race.layers=null",
]
PROFILES = {  # size: profile, settings, vocabulary
    "117m": ("paper", [], 40_478),
    "4m": ("small", [], 5_202),
    "1m": ("demo", [], 2_622),
    "tiny": ("demo", TINY, 500),
}
UPDATES = 1_000_000  # of the schedule: far more than are measured


def parser(document: str | None, rounds: int) -> argparse.ArgumentParser:
    """A parser that shows the module's docstring, with --rounds."""
    made = argparse.ArgumentParser(
        description=document, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--rounds", type=int, default=rounds, help=f"measured (default {rounds})")
    return made


def prepared_machine() -> Machine:
    """The machine as a stage takes it; prints a line of facts."""
    machine = launch.read_machine()
    launch.prepare(machine)
    print(heading(), flush=True)
    return machine


def heading() -> str:
    """Processor, its bf16, GPU, threads, torch and load, in a line."""
    flags = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").is_file() else ""
    bf16 = "AMX" if "amx_bf16" in flags else "AVX512" if "avx512_bf16" in flags else "none"
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return (
        f"{cpu_name()} (bf16: {bf16}), {gpu}, {torch.get_num_threads()} threads, torch"
        f" {torch.__version__}, load {psutil.getloadavg()[0]:.1f} at the start\n"
    )


def in_turn(
    ways: Mapping[str, Callable[[], object]], warm_up: int, rounds: int
) -> dict[str, list[float]]:
    """Seconds of each call of every way after `warm_up` calls of each.

    Every other round goes backwards, so that what grows or shrinks with time falls on all alike.
    """
    seconds = {name: list[float]() for name in ways}
    for number in range(warm_up + rounds):
        for name in list(ways) if number % 2 == 0 else reversed(ways):
            gc.collect()
            started = time.perf_counter()
            ways[name]()
            seconds[name].append(time.perf_counter() - started)
    return {name: each[warm_up:] for name, each in seconds.items()}


def spread(values: Sequence[float], digits: int) -> str:
    """In words: `median (least to most)`."""
    median, least, most = (
        f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values))
    )
    return f"{median} ({least} to {most})"


def rates(seconds: Sequence[float], work: float) -> list[float]:
    """`work` a second, of each call."""
    return [work / each for each in seconds]


def times_faster(ours: Sequence[float], others: Sequence[float]) -> str:
    """How many times faster ours is, pair by pair of a round."""
    return spread([other / own for own, other in zip(ours, others, strict=True)], 2)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


class Product(NamedTuple):
    """The product of two square matrices, so many times one after another."""

    side: int
    repeats: int

    def flops(self) -> float:
        """Operations of all of it."""
        return 2.0 * self.side**3 * self.repeats

    def way(self, dtype: torch.dtype, device: torch.device) -> Callable[[], object]:
        """Doing it, as a way; it waits for a GPU."""
        left, right = (torch.randn(self.side, self.side).to(device, dtype) for _ in range(2))
        out = torch.empty_like(left)

        def multiply() -> float:
            for _ in range(self.repeats):
                torch.mm(left, right, out=out)
            return out[0, 0].item()

        return multiply


def largest_product(dtype: torch.dtype, device: torch.device, seconds: float = 3.0) -> Product:
    """Of side 8192, fifty times, on a GPU; on a CPU once, of side 4096 or the power of two below it
    that takes at most `seconds`.
    """
    if device.type == "cuda":
        return Product(8192, 50)
    side, small = 4096, Product(256, 1)
    least = min(in_turn({"small": small.way(dtype, device)}, 1, 3)["small"])
    while side > small.side and least * (side / small.side) ** 3 > seconds:
        side //= 2
    return Product(side, 1)


class Size(NamedTuple):
    """A decoder's sizes, its vocabulary and the recipe of its pre-training."""

    model: Model
    vocabulary: int
    recipe: Pretrain

    def network(self) -> Decoder:
        """A decoder of this size; always the same weights."""
        return Decoder(self.model, self.vocabulary, torch.Generator().manual_seed(0))

    def windows(self, update: int) -> Integers:
        """Made-up windows [batch, context + 1] of an update."""
        shape = (self.recipe.batch_size, self.model.context + 1)
        return np.random.default_rng(update).integers(self.vocabulary, size=shape)

    def tokens(self) -> int:
        """Of an update."""
        return self.recipe.batch_size * self.model.context

    def flops_per_token(self) -> float:
        """Operations of matrix products for a token of a full window, forward and backward; half of
        attention is masked, not counted.
        """
        width, layers = self.model.width, self.model.layers
        block = 4 * width**2 + 2 * width * self.model.feed_forward + width * self.model.context
        return 6.0 * (layers * block + self.vocabulary * width)


def named_size(name: str, batch: int, precision: str, dropout: float) -> Size:
    """A size by name with the recipe of its profile, but for what is given. Run in the root of the
    checkout.
    """
    profile, settings, vocabulary = PROFILES[name]
    own = [
        f"pretrain.batch_size={batch}",
        f"pretrain.precision={precision}",
        f"pretrain.dropout={dropout}",
    ]
    params = validate(compose(profile, [*settings, *own]))
    return Size(params.model, vocabulary, params.pretrain)


def our_step(
    size: Size, machine: Machine, network: Network | None = None
) -> Callable[[], dict[str, float]]:
    """The next update of a run of UPDATES, at every call, as gpt1/train/pretraining.py takes it:
    losses and the gradient's norm; of a decoder where no network is given.
    """
    network, recipe, context = network or size.network(), size.recipe, size.model.context
    speed_up(network, recipe, machine, UPDATES * size.tokens())
    rows = split_batch(
        np.arange(recipe.batch_size),
        machine.rank,
        machine.processes,
        machine.micro_batch_for(context),
    )
    engine = make_engine(Pretraining(network, recipe.precision), recipe, machine, len(rows))
    updates, stop = count(1), Stop()

    def take() -> dict[str, float]:
        update = next(updates)
        windows = size.windows(update)
        batches = [
            MicroBatch(len(part) / len(windows), torch.from_numpy(windows[part]).to(engine.device))
            for part in rows
        ]
        rates = optim.rates(recipe, update, UPDATES, recipe.warmup_updates / UPDATES)
        return take_update(engine, batches, recipe.dropout, recipe.seeds[0], update, rates, stop)

    return take


def hugging_face(ours: Decoder, sizes: Model, dropout: float) -> Any:
    """transformers' OpenAIGPTLMHeadModel with our weights. It offers one attention, written out in
    matrix products: no attn_implementation changes it.
    """
    from transformers import OpenAIGPTConfig, OpenAIGPTLMHeadModel

    quiet_transformers()
    model = OpenAIGPTLMHeadModel(
        OpenAIGPTConfig(
            **their_config(sizes, len(ours.tokens)),
            resid_pdrop=dropout,
            embd_pdrop=dropout,
            attn_pdrop=dropout,
            loss_type="ForCausalLM",
        )
    )
    model.transformer.load_state_dict(to_theirs(ours.state_dict(), sizes.layers))
    return model


def check_equal(expected: torch.Tensor, found: torch.Tensor) -> None:
    """End the program where logits of our weights in Hugging Face's model differ from ours."""
    difference = float((found - expected).abs().max() / expected.abs().max())
    if not difference < 1e-3:
        raise SystemExit(
            "expected our weights in Hugging Face's model to give our logits, found a relative"
            f" difference of {difference:.0e}"
        )
