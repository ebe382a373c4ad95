"""The committed params.yaml's own pipeline, at a fraction of its size, and what the README says one can type then."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from copied_checkout import ROOT, Checkout

from gpt1.yaml_files import read_yaml

README = (ROOT / "README.md").read_text(encoding="utf-8")
PARAMS = read_yaml(ROOT / "params.yaml")
# A sixth of the books, a hundredth of the updates, a tenth of the rows, one seed of two: every stage is there, no score means anything.
FRACTION = ["world.town.books=10", "shard.heldout_fraction=0.3", "bpe.merges=300", "pretrain.updates=20", "pretrain.warmup_updates=2",
            "pretrain.heldout_updates=10", "finetune.seeds=[0]", "finetune.epochs=1", "pretrain.snapshots_per_decade=1",
            *(f"zero_shot.{name}.rows=40" for name in PARAMS["zero_shot"]), "zero_shot.cola.train_rows=40",
            *(f"tasks.{task}.train_rows=40" for task in PARAMS["tasks"])]


class Block(NamedTuple):
    """Commands of the README, the line on which they start, and whether they are to be run; if not, why."""

    line: int
    commands: str
    mark: str


def blocks() -> list[Block]:
    """Every block of commands: fenced, and no picture."""
    found = []
    for match in re.finditer(r"(?:<!-- (.*?) -->\n)?```(\w*)\n(.*?)```", README, re.DOTALL):
        if match[2] != "mermaid":
            found.append(Block(README[:match.start(3)].count("\n") + 1, match[3], match[1] or ""))
    return found


@pytest.mark.parametrize("block", blocks(), ids=lambda block: f"line-{block.line}")
def test_every_block_says_whether_it_is_run(block: Block) -> None:
    assert re.fullmatch(r"run|not run: \w.+", block.mark), f"README.md, line {block.line}: expected <!-- run --> or <!-- not run: … -->"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The whole graph of the demo, run by `gpt1 run`."""
    checkout = Checkout(tmp_path_factory.mktemp("readme"), "params.yaml", "Makefile", "README.md")
    (checkout.folder / ".venv").symlink_to(sys.prefix)
    checkout.gpt1("profile", "demo", *FRACTION)
    checkout.gpt1("run")
    return checkout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_runs_end_to_end(made: Checkout) -> None:
    for table in ("table2", "table3", "table4"):
        text = (made.folder / f"data/report/{table}/{table}.md").read_text()
        assert "made up" in text
        ours = next(line for line in text.splitlines() if "**this run" in line)
        assert ours.count(" - ") == (table == "table4"), f"{table}: a task is left out: {ours}"  # GLUE itself lacks WNLI
    for report, words in (("table5", "LSTM"), ("figure2", "layers transferred"), ("claims", "undecided"), ("curves", "Parameters")):
        assert words in (made.folder / f"data/report/{report}/{report}.md").read_text(), report
    trained = {folder.name for folder in (made.folder / "data/finetune").glob("*/*") if (folder / "seed-0/weights.safetensors").exists()}
    assert trained == set(PARAMS["tasks"])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("block", [block for block in blocks() if block.mark == "run"], ids=lambda block: f"line-{block.line}")
def test_a_block_runs_as_it_stands(made: Checkout, block: Block) -> None:
    made.run("bash", "-euo", "pipefail", "-c", block.commands)


def test_the_readme_names_what_is_there() -> None:
    """Paths in the README exist in the repository, or are made by a run."""
    for name in re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`((?:gpt1|tests|conf|benchmarks)/[\w/.]+)`", README):
        assert Path(ROOT, name).exists(), f"README.md names {name}, which is not there"
