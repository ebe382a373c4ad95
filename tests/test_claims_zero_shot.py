"""Claims about zero-shot behaviours, of results of known scores."""

import json
from pathlib import Path

import made_curves
import numpy as np
import pytest

from gpt1.base.errors import UserError
from gpt1.params.schema import read_params
from gpt1.results.claims_report import row_of
from gpt1.results.document import NONE
from gpt1.results.rules import read_rules
from gpt1.results.verdict import CONFIRMED, NOT_MEASURED, UNDECIDED, Claim, judged
from gpt1.results.zero_shot_claims import unsteadiness, zero_shot_claims

RULES = read_rules()
SETS = {name: {"train_rows": None, "rows": None} for name in ("cola", "sst2", "race", "dprd")}
SEEDS = (0, 1, 2)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def by_key(claims: list[Claim]) -> dict[str, Claim]:
    return {claim.key: claim for claim in judged(RULES, claims)}


UPDATES = [1, 10, 100, 1000, 10000]


def zero_shot_of(seeds: tuple[int, ...]) -> dict[str, Claim]:
    """Of curves that rise but for DPRD's, and an LSTM's that go up and down."""
    made_curves.write_params(4, [0], made_up=False, zero_shot=SETS, pretrain={"seeds": list(seeds)})
    for seed in seeds:
        rising, flat = [200, 220, 240, 260, 280 + seed], [200, 201, 199, 200, 200]
        ours = {
            name: dict(zip(UPDATES, flat if name == "dprd" else rising, strict=True))
            for name in SETS
        }
        made_curves.write_zero_shot("transformer", 400, ours, seed)
        up_and_down = [200, 240, 200, 240 + seed, 200]
        theirs = {name: dict(zip(UPDATES, up_and_down, strict=True)) for name in SETS}
        made_curves.write_zero_shot("lstm", 400, theirs, seed)
    return by_key(zero_shot_claims(RULES, read_params()))


def test_zero_shot_claims_of_several_pretrainings() -> None:
    found = zero_shot_of(SEEDS)
    sst2, steadily = found["zero_shot_sst2"], found["zero_shot_sst2_steadily"]
    assert sst2.effect is not None
    assert steadily.effect is not None
    assert float(sst2.effect.value) == pytest.approx(20.25)
    assert sst2.detail == "from 50.0 to 70.2"
    assert sst2.verdict == CONFIRMED
    assert sst2.basis == "SST-2: 1 task, 3 seeds, 400 examples, 5 snapshots, updates 1 to 10,000"
    assert (float(steadily.effect.value), steadily.verdict) == (pytest.approx(1.0), CONFIRMED)
    together = found["zero_shot_all"]
    assert together.effect is not None
    assert (together.effect.value, together.published, together.detail) == (3, "4 of 4", "of 4")
    assert together.verdict == UNDECIDED, "DPRD is flat, and not shown to fall"
    assert found["zero_shot_above_lstm"].verdict == CONFIRMED
    assert found["zero_shot_lstm_variance"].verdict == CONFIRMED


def test_examples_that_belong_together_count_once_zero_shot() -> None:
    alone = zero_shot_of(SEEDS)["zero_shot_sst2"]
    path = Path("data/prompt/sst2/clusters.npz")
    path.parent.mkdir(parents=True)
    scores = Path("data/zero_shot")
    for file in scores.rglob("scores.json"):
        values = json.loads(file.read_text())
        for one in values["sets"].values():
            one["split"] = "dev"
        file.write_text(json.dumps(values))
    np.savez(path, dev=np.arange(400) // 100)
    by_hundreds = by_key(zero_shot_claims(RULES, read_params()))["zero_shot_sst2"]
    widths = []
    for claim in (alone, by_hundreds):
        assert claim.effect is not None
        assert claim.effect.interval is not None
        widths.append(float(claim.effect.interval[1] - claim.effect.interval[0]))
    assert widths[0] != pytest.approx(widths[1])
    np.savez(path, dev=np.arange(399))
    with pytest.raises(UserError, match="expected clusters of 400 examples"):
        zero_shot_claims(RULES, read_params())


def test_zero_shot_claims_of_one_pretraining_are_undecided() -> None:
    found = zero_shot_of((0,))
    assert {claim.verdict for claim in found.values()} == {UNDECIDED}
    assert all(row_of(claim)[4] == NONE for claim in found.values())


def test_zero_shot_without_the_lstm_or_with_one_snapshot_is_not_measured() -> None:
    made_curves.write_params(4, [0], made_up=False)
    values = json.loads(Path("params.yaml").read_text())
    values |= {"variants": {}, "zero_shot": {"sst2": SETS["sst2"]}}
    Path("params.yaml").write_text(json.dumps(values))
    made_curves.write_zero_shot("transformer", 100, {"sst2": {5: 60}})
    found = by_key(zero_shot_claims(RULES, read_params()))
    missing = {key: claim.basis for key, claim in found.items() if claim.verdict == NOT_MEASURED}
    assert missing["zero_shot_lstm_variance"] == "no variant in params.yaml has the network lstm"
    assert missing["zero_shot_race"] == "zero_shot has no row race in params.yaml"
    assert "1 snapshot; at least 4" in missing["zero_shot_sst2"]
    assert missing.keys() == found.keys()


def test_pretrainings_have_to_answer_the_same() -> None:
    zero_shot_of(SEEDS)
    fewer = {name: dict.fromkeys(UPDATES[:4], 200) for name in SETS}
    made_curves.write_zero_shot("lstm", 400, fewer, 1)
    with pytest.raises(UserError, match="the same snapshots of every pre-training seed"):
        zero_shot_claims(RULES, read_params())


def test_unsteadiness_is_the_variance_of_noise_and_none_of_a_line() -> None:
    at = np.sort(np.random.default_rng(0).uniform(0, 10, size=400))
    assert unsteadiness(at, (3 * at + 1)[:, None]) == pytest.approx([0.0], abs=1e-18)
    noise = np.random.default_rng(1).normal(scale=2.0, size=(400, 50))
    assert unsteadiness(at, 5 * at[:, None] + noise).mean() == pytest.approx(4.0, rel=0.05)
    three = np.array([[0.0], [4.0], [3.0]])
    expected = [9 / (4 / 9 + 1 / 9 + 1)]
    assert unsteadiness(np.array([0.0, 1.0, 3.0]), three) == pytest.approx(expected)
