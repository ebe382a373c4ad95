"""Zero-shot scoring: one sequence at a time against batches with shared prefixes, the same weights
in the same process.

    python benchmarks/zero_shot.py [--profile small] [--prompts 60]        in the root of the checkout

Random weights of the profile's sizes (both networks), made-up prompts as long as RACE's (four
options, cut to the context) and DPRD's (two candidates, sentences in pairs that begin alike). One
at a time: each continuation after its whole prefix by a plain forward, with the log-probabilities
of every position, as a language model gives them; and, harder to beat, with a softmax at the
counted tokens alone. One thread, for processor seconds compare best so; with more, a batch gains
more than a single short text.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from gpt1.base.cores import cpu_name
from gpt1.inference.continuations import Prompts, log_probabilities, pack
from gpt1.model.dropout import NO_DROPOUT
from gpt1.model.gpt import Decoder
from gpt1.model.lstm import Lstm, Network
from gpt1.params.profile import compose
from gpt1.params.schema import Model
from gpt1.train import launch

VOCABULARY = {"paper": 40_478, "small": 5_202, "demo": 2_622}
DRAW_SEED, ROUNDS = 0, 3


class Kind(NamedTuple):
    """Mean lengths in tokens of a set's prefixes, of what does not count and of what does in a
    continuation; how many continuations.

    alike: neighbours that have one and the same prefix.
    """

    prefix: int
    uncounted: int
    counted: int
    continuations: int
    alike: int


KINDS = {"RACE": Kind(340, 0, 8, 4, 1), "DPRD": Kind(9, 3, 6, 2, 2)}


def made_up(kind: Kind, prompts: int, context: int, vocabulary: int) -> Prompts:
    """Prompts whose lengths vary as real ones do, by half around the mean, and fit the context."""
    draw = np.random.default_rng(DRAW_SEED)

    def lengths(mean: int, *shape: int) -> np.ndarray:
        return np.maximum(draw.normal(mean, mean / 3, shape).round().astype(np.int64), min(mean, 1))

    uncounted_nk = lengths(kind.uncounted, prompts, kind.continuations)
    continuation_nk = uncounted_nk + lengths(kind.counted, prompts, kind.continuations)
    room_n = (context - continuation_nk.max(axis=1)).reshape(-1, kind.alike).min(axis=1)
    prefix_n = np.minimum(lengths(kind.prefix, prompts // kind.alike), room_n).repeat(kind.alike)
    lengths_nj = np.column_stack([prefix_n, continuation_nk])
    offsets = np.concatenate([[0], np.cumsum(lengths_nj)])
    tokens, starts = (
        draw.integers(vocabulary, size=offsets[-1]).astype(np.uint16),
        offsets[: -1 : kind.continuations + 1],
    )
    for number, (start, length) in enumerate(zip(starts, prefix_n, strict=True)):
        first = starts[number - number % kind.alike]
        tokens[start : start + length] = tokens[first : first + length]
    return Prompts(tokens, offsets, uncounted_nk, np.zeros(prompts, dtype=np.int64))


@torch.inference_mode()
def one_at_a_time(
    network: Network, prompts: Prompts, vocabulary: int, everywhere: bool
) -> np.ndarray:
    """Sums of log-probabilities [n, k] by a forward for each continuation; the softmax
    `everywhere`, or where it is needed.
    """
    lengths_nj = prompts.lengths()
    n, parts = lengths_nj.shape
    sums_nk = np.zeros((n, parts - 1))
    for row in range(n):
        start = prompts.offsets[row * parts :]
        for k in range(parts - 1):
            ids = np.concatenate(
                [prompts.tokens[start[0] : start[1]], prompts.tokens[start[k + 1] : start[k + 2]]]
            ).astype(np.int64)
            first = lengths_nj[row, 0] + prompts.uncounted_nk[row, k]
            text_1t = torch.from_numpy(ids)[None]
            states_td = network(text_1t[:, :-1], NO_DROPOUT).hidden_btd[
                0, 0 if everywhere else first - 1 :
            ]
            logs_tv = (states_td @ network.tokens[:vocabulary].T).log_softmax(dim=1)
            counted_s = text_1t[0, first:, None]
            sums_nk[row, k] = logs_tv[-len(counted_s) :].gather(1, counted_s).sum().item()
    return sums_nk


def seconds_of(ways: list[Callable[[], np.ndarray]]) -> tuple[list[float], list[np.ndarray]]:
    """Processor seconds of each way, the least of some rounds of all in turn (other programs count
    for little), and what it gave.
    """
    seconds, results = [math.inf] * len(ways), [np.zeros(0)] * len(ways)
    for _ in range(ROUNDS):
        for number, way in enumerate(ways):
            started = time.process_time()
            results[number] = way()
            seconds[number] = min(seconds[number], time.process_time() - started)
    return seconds, results


def table_row(name: str, network: Network, kind: str, prompts: int, vocabulary: int) -> str:
    """One network on one kind of prompts, both ways, as a row of the table."""
    made = made_up(KINDS[kind], prompts, network.context, vocabulary)
    batch_tokens = launch.MICRO_BATCH_TOKENS["cpu"]
    (plain, lean, together), (expected, _, found) = seconds_of(
        [
            lambda: one_at_a_time(network, made, vocabulary, everywhere=True),
            lambda: one_at_a_time(network, made, vocabulary, everywhere=False),
            lambda: log_probabilities(
                network, made, pack(made, batch_tokens), vocabulary, torch.device("cpu")
            ),
        ]
    )
    worst = np.abs((found - expected) / made.counted()).max()
    return (
        f"| {name} | {kind} | {made.lengths()[:, 0].mean():.0f} + {KINDS[kind].continuations} x"
        f" {made.lengths()[:, 1:].mean():.0f} | {prompts / plain:.1f} | {prompts / lean:.1f} |"
        f" {prompts / together:.1f} | {plain / together:.1f} | {lean / together:.1f} |"
        f" {worst:.0e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="small", choices=sorted(VOCABULARY))
    parser.add_argument("--prompts", type=int, default=60, help="an even number")
    arguments = parser.parse_args()
    launch.prepare(replace(launch.read_machine(), threads=1, device="cpu"))
    values, vocabulary = compose(arguments.profile, []), VOCABULARY[arguments.profile]
    sizes, generator = (
        Model.model_validate(values["model"]),
        torch.Generator().manual_seed(DRAW_SEED),
    )
    networks = {
        "transformer": Decoder(sizes, vocabulary, generator),
        "lstm": Lstm(sizes, values["lstm"]["units"], vocabulary, generator),
    }
    print(
        f"{cpu_name()}, one thread, torch {torch.__version__}, profile"
        f" {arguments.profile}\n\n| network | prompts as | tokens each | one at a time, prompts/s |"
        " the same, least softmax | batched, shared | times faster | than least softmax | largest"
        f" difference a token |\n|{'---|' * 9}"
    )
    for name, network in networks.items():
        for kind in KINDS:
            print(table_row(name, network, kind, arguments.prompts, vocabulary), flush=True)


if __name__ == "__main__":
    main()
