"""What is kept of DVC's word that all is up to date."""

import os
import time
from pathlib import Path

import pytest

from gpt1.pipeline import up_to_date
from gpt1.pipeline.schedule import Stage

STAGES = {
    "clean": Stage("clean", frozenset(), ("books",), ("data/clean",)),
    "table": Stage("table", frozenset({"clean"}), ("data/clean/text", "gpt1"), ("data/table",)),
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("books/a", "data/clean/text", "data/table", "gpt1/code", "cache/ab/cd"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for name in up_to_date.FILES[:3]:
        (tmp_path / name).write_text(name)
    return tmp_path


def soon() -> float:
    time.sleep(0.02)
    return time.time()


def test_the_word_stands_while_nothing_looks_otherwise(checkout: Path) -> None:
    assert up_to_date.recall() == {}
    up_to_date.remember(STAGES, checkout / "cache", soon())
    assert up_to_date.recall() == STAGES


@pytest.mark.parametrize(
    "name",
    ["books/a", "books/new", "data/clean/text", "data/table", "gpt1/code", "dvc.yaml", "dvc.lock"],
)
def test_a_file_that_changed_or_came_asks_dvc_again(checkout: Path, name: str) -> None:
    up_to_date.remember(STAGES, checkout / "cache", soon())
    (checkout / name).write_text("another")
    assert up_to_date.recall() == {}


@pytest.mark.parametrize("name", ["books/a", "data/table", "params.yaml", "cache/ab/cd"])
def test_a_file_that_went_asks_dvc_again(checkout: Path, name: str) -> None:
    up_to_date.remember(STAGES, checkout / "cache", soon())
    (checkout / name).unlink()
    assert up_to_date.recall() == {}


@pytest.mark.parametrize("name", [".dvcignore", ".dvc/config.local"])
def test_another_setting_of_dvc_asks_it_again(checkout: Path, name: str) -> None:
    up_to_date.remember(STAGES, checkout / "cache", soon())
    (checkout / name).write_text("*")
    assert up_to_date.recall() == {}


def test_what_changed_while_dvc_looked_is_not_taken_for_seen(checkout: Path) -> None:
    asked = soon()
    time.sleep(0.02)
    before = (checkout / "books/a").stat()
    (checkout / "books/a").write_text("other")
    os.utime(checkout / "books/a", ns=(before.st_atime_ns, before.st_mtime_ns))
    up_to_date.remember(STAGES, checkout / "cache", asked)
    assert up_to_date.recall() == {}


def test_a_damaged_note_asks_dvc(checkout: Path) -> None:
    up_to_date.remember(STAGES, checkout / "cache", soon())
    for text in ("", "{", "[]", '{"paths": []}'):
        up_to_date.KEPT.write_text(text)
        assert up_to_date.recall() == {}
