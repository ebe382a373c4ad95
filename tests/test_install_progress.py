"""How far `make setup` is: what pip and uv write into the log, told in a line on a terminal and off
it.
"""

from pathlib import Path

import pytest

from gpt1.install.progress import Progress, in_words, look

PIP = """Looking in indexes: https://me:secret@index.example/simple
Collecting ftfy>=6.2 (from gpt1==0.1.0)
  Downloading ftfy-6.3.1-py3-none-any.whl (44 kB)
Collecting numpy>=2 (from gpt1==0.1.0)
  Downloading https://index.example/numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (66 kB)
  Downloading https://index.example/numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl (16.9 MB)
Processing /opt/torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl (from gpt1==0.1.0)
"""
UV_SAID = (
    "Resolved 278 packages in 3.21s\nDownloading torch (181.3MiB)\nDownloading numpy (16.0MiB)\n"
    " Downloaded numpy\n"
)


def test_how_far_an_installation_is_by_the_log_of_pip_or_uv() -> None:
    assert (
        in_words(look(PIP), 0, 287, 20)
        == "2 of at most 287 packages, 17 MB, 20 s; now numpy (16.9 MB)"
    )
    assert (
        in_words(look(PIP[:200]), 0, 287, 3)
        == "1 of at most 287 packages, 0 MB, 3 s; now ftfy (44 kB)"
    )
    assert (
        in_words(
            look("Collecting a\nCollecting b\n  Downloading b-1.whl.metadata (4 kB)\n"), 0, 9, 3
        )
        == "2 packages found, 3 s"
    )
    assert in_words(
        look(PIP + "  Building wheel for deepspeed (pyproject.toml): started\n"), 0, 9, 3
    ).endswith("now building deepspeed")
    assert (
        in_words(look(PIP + "Installing collected packages: ftfy, torch, numpy, a, b\n"), 2, 9, 3)
        == "2 of 5 packages installed, 3 s"
    )
    assert (
        in_words(look("Prepared 40 packages in 1s\n"), 10, 99, 5)
        == "10 of 40 packages installed, 5 s, about 15 s left"
    )
    assert (
        in_words(look(UV_SAID), 0, 287, 9)
        == "278 packages found, 207 MB, 9 s; now numpy (16.0 MiB)"
    )


def test_steps_are_lines_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, packages = tmp_path / "log", tmp_path / "lib/python3.11/site-packages"
    (packages / "old-1.dist-info").mkdir(parents=True)
    log.write_text("Downloading before-1.whl (9 MB)\n")
    progress = Progress(tmp_path, log, 287)
    progress.steps = 2
    progress.begin("downloading")
    log.write_text(log.read_text() + PIP)
    progress.tick()
    assert capsys.readouterr().err == "set-up: 1 of 2: downloading\n"
    monkeypatch.setattr("gpt1.install.progress.QUIET_SECONDS", 0.0)
    progress.tick()
    assert (
        capsys.readouterr().err
        == "set-up: 2 of at most 287 packages, 17 MB, 0 s; now numpy (16.9 MB)\n"
    )
    log.write_text(log.read_text() + "Installing collected packages: ftfy, numpy\n")
    (packages / "ftfy-1.dist-info").mkdir()
    progress.tick()
    assert (
        capsys.readouterr().err
        == "set-up: 2 of 2: unpacking 2 packages\nset-up: 1 of 2 packages installed, 0 s\n"
    )


def test_on_a_terminal_one_line_is_redrawn_and_wiped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    progress = Progress(tmp_path, log, 4)
    progress.begin("downloading")
    log.write_text(PIP)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    capsys.readouterr()
    progress.tick()
    progress.clear()
    assert (
        capsys.readouterr().err
        == "\r  [##########..........] 2 of at most 4 packages,\x1b[K\r\x1b[K"
    ), "cut to the terminal's width"
