"""`gpt1 estimate`: updates, tokens and operations of a run, by hand."""

import pytest
from made_data import paper
from our_imports import ROOT

from gpt1.estimate import (
    PEAKS,
    SHARE,
    corpus_tokens,
    duration,
    lines,
    parameters,
    total,
    works,
)
from gpt1.params.profile import compose
from gpt1.params.schema import validate


def test_the_papers_network_and_its_pre_training_by_hand():
    params = paper()
    block = 4 * 768**2 + 2 * 768 * 3072
    rows = 40_000 + 2 * params.bpe.alphabet_size + 2
    assert parameters(params, "transformer") == (rows + 512) * 768 + 12 * block
    assert parameters(params, "transformer") == pytest.approx(116_534_784, rel=2e-3)
    pretrain = works(params)["pretrain@transformer-0"]
    assert pretrain.updates == pytest.approx(100 * 5.0e9 / 4.5 / (64 * 512), rel=1e-6)
    assert pretrain.operations == 6 * parameters(params, "transformer") * pretrain.tokens


def test_the_demos_trainings_by_hand():
    params = validate(compose("demo", ()))
    rows = works(params)
    totals = {kind: total(kind, rows.values()) for kind in ("finetune", "ablation", "transfer")}
    assert (rows["pretrain@lstm-0"].networks, rows["pretrain@lstm-0"].updates) == (1, 3200)
    assert totals["finetune"].networks == 12
    assert totals["finetune"].updates == (5 * 5 + 4 * 8) * (900 // 16) + (5 + 9 + 5) * (900 // 8)
    assert totals["ablation"].networks == 3 * 8
    assert totals["transfer"].networks == 2 + 1
    assert corpus_tokens(params) == pytest.approx(75 * 80 * 1911 / 4.5)
    *_, whole, hours, room = lines(params)
    assert whole.split()[:2] == ["all", f"{1 + 1 + 12 + 24 + 3}"]
    assert hours.endswith("H100 minutes, A100 minutes, RTX 4090 minutes")
    assert duration(10 * 3600) == "10 h"
    assert duration(72 * 3600) == "3 days"
    weights = 4 * parameters(params, "transformer")
    assert totals["finetune"].disk_bytes == 12 * weights
    assert totals["ablation"].disk_bytes == 0
    assert "GB needed, " in room


def test_an_evening_is_one():
    hours = {
        name: total("all", works(validate(compose("evening", ()))).values()).operations
        / (3600 * SHARE * peak)
        for name, peak in PEAKS.items()
    }
    assert hours["RTX 4090"] < 6
    assert hours["H100"] < 3


def test_stages_that_are_out_of_date_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gpt1.params.profile.CONF", ROOT / "conf")
    params, outdated = validate(compose("demo", ())), ["encode@cola", "finetune@cola", "lstm@cola"]
    assert [line.split()[:2] for line in lines(params, outdated)[1:-2]] == [
        ["finetune", "1"],
        ["ablation", "1"],
        ["all", "2"],
    ]
    assert [line.split()[:2] for line in lines(params, [])[1:-2]] == [["all", "0"]]
