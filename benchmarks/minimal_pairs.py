"""What a pre-training knows of order: how often each snapshot finds what follows from a tale of the
made-up town likelier than the same with two fillers exchanged, tale by tale.

    python benchmarks/minimal_pairs.py --run FOLDER              snapshots of a finished run, both networks
    python benchmarks/minimal_pairs.py --town 100 [OVERRIDE …]   one pre-training of the demo's on another town's books, in a folder of its own

In the root of the checkout; overrides as `gpt1 profile` takes them, such as pretrain.updates=600.
A tale is told in names, things and qualities drawn for it; what it says stands in none of the
books. Both members of each pair of tales are asked, so that whatever sees no order is right half of
the time. Two figures each, in percent: claims, and answers to short questions. A tale may serve as a
task from 80 on claims.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import torch

from gpt1.base.files import stage_folder
from gpt1.corpus.bpe import Vocabulary
from gpt1.corpus.encoding import encode_texts
from gpt1.demo import tales
from gpt1.demo.files import write_books
from gpt1.demo.sides import Side, sentences
from gpt1.demo.tales import Tale
from gpt1.demo.telling import question, sentence
from gpt1.inference.continuations import Prompts, log_probabilities
from gpt1.model.networks import describe, make_network
from gpt1.model.weights import load_weights
from gpt1.params.profile import compose
from gpt1.params.schema import PARAMS, read_params
from gpt1.params.yaml import write_yaml
from gpt1.stages import acquire, bpe, clean, pretrain, shard
from gpt1.stages.zero_shot import snapshots_of
from gpt1.train import launch

NAMES = {tale: name.lower() for name, tale in vars(tales).items() if isinstance(tale, Tale)}


class MinimalPair(NamedTuple):
    """What stands before, what follows from it, and what does not."""

    before: str
    right: str
    wrong: str


def pre_train(town: int, overrides: list[str], folder: Path) -> None:
    """The demo's stages from the books of a town to one pre-training, in a folder."""
    values = compose("demo", [f"world.town.seed={town}", "pretrain.seeds=[0]", *overrides])
    write_yaml(folder / PARAMS, values, "benchmarks/minimal_pairs.py")
    os.chdir(folder)
    row = read_params().world["town"]
    write_books(Path("data/world/town/books"), row.seed, row.books, row.pages)
    acquire.main("books")
    clean.main()
    bpe.main()
    shard.main()
    pretrain.main("transformer")


def pairs_of(tale: Tale, side: Side, count: int) -> Iterator[tuple[str, MinimalPair]]:
    """Minimal pairs by what is asked: claims, answers."""
    for _ in range(count):
        frame, slots, contrary = side.tale(tale)
        claim = side.chance.choice(tale.claims)
        asked, answer = side.chance.choice(tale.quiz).split("|")
        for told, other in ((slots, contrary), (contrary, slots)):
            before = sentence(frame.format(**told))
            right, wrong = (sentence(claim.format(**one)) for one in (told, other))
            yield "claims", MinimalPair(before, right, wrong)
            heard = f"{before} {question(asked.format(**told))}"
            right, wrong = (sentence(answer.format(**one)) for one in (told, other))
            yield "answers", MinimalPair(heard, right, wrong)


def prompts_of(pairs: list[MinimalPair]) -> Prompts:
    """The pairs as prompts of two continuations, the first of which is right."""
    ids = encode_texts(
        "minimal pairs", [text for pair in pairs for text in pair], stage_folder("bpe")
    )
    parts = [ids[text] for pair in pairs for text in pair]
    return Prompts(
        np.concatenate(parts),
        np.concatenate([[0], np.cumsum([len(part) for part in parts])]),
        np.zeros((len(pairs), 2), dtype=np.int64),
        np.zeros(len(pairs), dtype=np.int64),
    )


def known_books() -> set[str]:
    """Every sentence of the books."""
    books = stage_folder("acquire", "corpus", "books")
    return {said for path in books.glob("*.txt") for said in sentences(path.read_text("utf-8"))}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = options.add_mutually_exclusive_group(required=True)
    where.add_argument("--run", type=Path, metavar="FOLDER")
    where.add_argument("--town", type=int)
    options.add_argument("--folder", type=Path, help="for --town: keep the run here")
    options.add_argument("--count", type=int, default=50, help="tales of each kind (default 50)")
    options.add_argument("overrides", nargs="*")
    arguments = options.parse_args()
    launch.prepare(launch.read_machine())
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.run:
            os.chdir(arguments.run)
        else:
            folder = arguments.folder or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            pre_train(arguments.town, arguments.overrides, folder.absolute())
        show(arguments.count)
        os.chdir("/")


def show(count: int) -> None:
    """A line for each snapshot of each network's first pre-training here."""
    params, vocabulary = read_params(), Vocabulary.load(stage_folder("bpe"))
    side = Side(1, Random("minimal pairs"), known_books())
    sets: dict[tuple[str, str], list[MinimalPair]] = {}
    for tale in tales.TALES:
        for asked, pair in pairs_of(tale, side, count):
            sets.setdefault((NAMES[tale], asked), []).append(pair)
    tokens = launch.read_machine().micro_batch_for(params.model.context) * params.model.context
    prompts = {key: prompts_of(pairs) for key, pairs in sets.items()}
    for name in ("transformer", "lstm"):
        if not stage_folder("pretrain", name).is_dir():
            continue
        wanted = describe(name, params, vocabulary.size, vocabulary.fingerprint)
        network = make_network(name, params, vocabulary.size, torch.Generator())
        for update, path in snapshots_of(name, params.pretrain.seeds[0], params).items():
            load_weights(path, wanted, network)
            network.eval()
            found: dict[str, list[str]] = {}
            for (tale, asked), one in prompts.items():
                sums_nk = log_probabilities(network, one, vocabulary.size, tokens)
                share = 100 * (sums_nk[:, 0] > sums_nk[:, 1]).mean()
                found.setdefault(tale, []).append(f"{asked} {share:.0f}")
            said = "; ".join(f"{tale}: {', '.join(shares)}" for tale, shares in found.items())
            print(f"{name}, update {update}: {said}", flush=True)


if __name__ == "__main__":
    main()
