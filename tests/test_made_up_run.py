"""The folder in which benchmarks run the real stage `pretrain`, GPUs' among them: its command names a
network and a seed that the params have.
"""

import sys
from pathlib import Path

import pytest

from gpt1.corpus.shards import Shards
from gpt1.params.schema import validate
from gpt1.params.yaml import read_yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import made_up_run
from our_step import PROFILES


@pytest.mark.parametrize("size", PROFILES)
def test_the_command_trains_one_network_of_any_size(size: str, tmp_path: Path) -> None:
    made_up_run.prepare(tmp_path, size, 20_000, [])
    params = validate(read_yaml(tmp_path / "params.yaml"))
    *_, network, seed = made_up_run.COMMAND
    assert Path("data/pretrain", network, f"seed-{seed}") == made_up_run.OUT
    assert network in params.networks.pretrain
    assert params.pretrain.seeds == (int(seed),)
    shards = Shards.open(tmp_path / "data/shard")
    assert shards.tokens("train") >= 20_000
    assert shards.index["vocabulary_size"] == PROFILES[size][2]
