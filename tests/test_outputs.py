"""What a training says of its progress where stderr is no terminal."""

import pytest

from gpt1.train import outputs
from gpt1.train.outputs import ProgressBar
from gpt1.train.speed import NOT_COMPILED


@pytest.mark.parametrize("lacks", ["", NOT_COMPILED])
def test_every_line_says_why_a_training_is_slower_than_it_could_be(
    lacks, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(outputs, "QUIET_SECONDS", -1.0)
    bar = ProgressBar("pretrain transformer", 4, 0, True, lacks)
    bar.advance(1, 100, 3.25)
    bar.close()
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("pretrain transformer: update 1 of 4, loss 3.250, ")
    assert f" tokens/s{', ' if lacks else ''}{lacks}, " in line
