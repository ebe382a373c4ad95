"""For the benchmarks: a folder in which the real stage `pretrain` runs on made-up shards, and what
it leaves behind.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from our_step import PROFILES
from side_by_side import RENDEZVOUS

from gpt1.base.files import read_json, sha256_file
from gpt1.corpus.shards import SPLITS, SplitWriter, token_type, write_index
from gpt1.params.profile import compose

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "gpt1.stages", "pretrain", "transformer", "0"]
OUT = Path("data/pretrain/transformer/seed-0")
BOOKS = 8


def prepare(folder: Path, size: str, tokens: int, overrides: Sequence[str]) -> None:
    """Write params.yaml of a size by name and shards of so many made-up training tokens. Run in the
    root of the checkout.
    """
    profile, own, vocabulary = PROFILES[size]
    (folder / "data" / "shard").mkdir(parents=True)
    values = compose(profile, [*own, "pretrain.seeds=[0]", *overrides])
    (folder / "params.yaml").write_text(json.dumps(values))
    draw, splits = np.random.default_rng(0), {}
    for split, share in zip(SPLITS, (1.0, 0.05), strict=True):
        writer = SplitWriter(folder / "data" / "shard" / f"{split}.bin")
        for book in range(BOOKS):
            count = max(2000, round(tokens * share / BOOKS))
            writer.begin(f"{split}{book}")
            writer.append(
                draw.integers(vocabulary, size=count).astype(token_type(vocabulary)), count
            )
        splits[split] = writer.close()
    write_index(folder / "data" / "shard", splits, vocabulary, "made up", "made up")


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, without what DeepSpeed left in it, and with our code and the
    settings.
    """
    kept = {name: value for name, value in os.environ.items() if name not in RENDEZVOUS}
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        **settings,
    }


def pretrain(folder: Path, settings: Mapping[str, str]) -> dict[str, Any]:
    """Run the stage to its end from nothing; what it says of its speed, and the hash of its
    weights. Raises RuntimeError.
    """
    shutil.rmtree(folder / OUT, ignore_errors=True)
    started = time.perf_counter()
    done = subprocess.run(
        COMMAND,
        cwd=folder,
        env=environment(settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"pretrain ended with status {done.returncode}:\n"
            + "\n".join(done.stderr.splitlines()[-15:])
        )
    speed = read_json(folder / "data/logs/pretrain/transformer-0-speed.json")
    return {
        **speed,
        "stage_seconds": time.perf_counter() - started,
        "sha256": sha256_file(folder / OUT / "weights.safetensors"),
    }
