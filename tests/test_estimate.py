"""`gpt1 estimate`: updates, tokens and operations of a run, by hand."""

import pytest

from gpt1.estimate import corpus_tokens, duration, lines, parameters, works
from gpt1.params.profile import compose
from gpt1.params.schema import validate


def test_the_papers_network_and_its_pre_training_by_hand():
    params = validate(compose("paper", ()))
    block = 4 * 768**2 + 2 * 768 * 3072
    rows = 40_000 + 2 * params.bpe.alphabet_size + 2
    assert parameters(params, "transformer") == (rows + 512) * 768 + 12 * block
    assert parameters(params, "transformer") == pytest.approx(116_534_784, rel=2e-3)
    pretrain = works(params)[0]
    assert pretrain.updates == pytest.approx(100 * 5.0e9 / 4.5 / (64 * 512), rel=1e-6)
    assert pretrain.operations == 6 * parameters(params, "transformer") * pretrain.tokens


def test_the_demos_trainings_by_hand():
    params = validate(compose("demo", ()))
    rows = {work.kind: work for work in works(params)}
    assert (rows["pretrain lstm"].networks, rows["pretrain lstm"].updates) == (1, 2400)
    assert rows["finetune"].networks == 12
    assert rows["finetune"].updates == 12 * 3 * (600 // 16)
    assert rows["ablate"].networks == 3 * 8
    assert rows["transfer"].networks == 2 + 1
    assert corpus_tokens(params) == pytest.approx(75 * 80 * 1911 / 4.5)
    *_, whole, hours, room = lines(params)
    assert whole.split()[:2] == ["all", f"{1 + 1 + 12 + 24 + 3}"]
    assert hours.endswith("H100 minutes, A100 minutes, RTX 4090 minutes")
    assert duration(10 * 3600) == "10 h"
    assert duration(72 * 3600) == "3 days"
    weights = 4 * parameters(params, "transformer")
    assert rows["finetune"].room == 12 * weights
    assert rows["ablate"].room == 0
    assert "GB needed, " in room
