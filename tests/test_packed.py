"""A run that was packed without data, weights and logs: what was answered in it scores as it did
then, and its article is whole.
"""

import re
from contextlib import chdir
from pathlib import Path

import pytest

from gpt1.base.errors import UserError
from gpt1.commands import report as command
from gpt1.params.schema import read_params
from gpt1.results.article.verdicts import judgements
from gpt1.results.records import read_records
from gpt1.results.rules import read_rules
from gpt1.results.runs import SHIPPED, shipped


@pytest.mark.parametrize("run", shipped())
def test_the_verdicts_of_a_shipped_run_follow_from_its_answers(run):
    with chdir(SHIPPED.parent / run):
        as_fixed, *_ = judgements(read_params(), read_rules())
        assert as_fixed.verdicts == {one["claim"]: one["verdict"] for one in read_records("claims")}


@pytest.mark.parametrize("run", shipped())
def test_a_shipped_run_has_an_article(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command.report(run=run, article=True)
    text = Path(f"article-{Path(run).name}", "article.md").read_text(encoding="utf-8")
    with chdir(SHIPPED.parent / run):
        records = read_records("claims")
    for record in records:
        assert f"| {record['statement']}" in text
    for file in re.findall(r"\]\(([^)]+\.svg)\)", text):
        for suffix in (".svg", ".png"):
            assert Path(f"article-{Path(run).name}", file).with_suffix(suffix).is_file()
    assert "Stages without results" not in text, "a packed run has none, and is not unfinished"
    assert "Not there yet" not in text
    assert re.search(r"Commit\*\*: \w{40}", text)
    assert re.search(r"`gpt1 profile|`gpt1 run`", text)


def test_a_packed_run_without_the_answers_of_a_system_says_so(tmp_path, monkeypatch):
    from shutil import copytree

    import pyarrow.compute as pc
    from pyarrow import parquet

    copytree(SHIPPED / "small", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    path = Path("data/report/predictions/predictions.parquet")
    table = parquet.read_table(path)
    parquet.write_table(table.filter(pc.field("system") != "lstm"), path)
    with pytest.raises(UserError, match=r"expected answers of lstm on cola, found none; have whoe"):
        judgements(read_params(), read_rules())
