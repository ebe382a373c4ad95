"""What a training says of its progress where stderr is no terminal."""

import pytest

from gpt1.pipeline.progress import progress_in
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
    told = progress_in(capsys.readouterr().err.splitlines())
    assert (told.update, told.updates) == (1, 4)
    assert told.left
    assert told.says.startswith("loss 3.250, ")
    assert told.says.endswith(f" tokens/s{', ' if lacks else ''}{lacks}"), "gpt1 status shows it"
