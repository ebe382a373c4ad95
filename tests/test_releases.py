"""Tables name the release of the files they were made from, and leave out what the files do not
hold.
"""

import json
from pathlib import Path
from typing import Any

import made_results
import pytest

from gpt1.params.schema import read_params
from gpt1.results.document import markdown
from gpt1.results.paper import TABLES
from gpt1.results.scores import Cell, table_cells
from gpt1.results.tables import table_page


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_results.write_pretraining()


def describe(task: str, release: str, subsets: dict[str, int] | None = None) -> None:
    """Put into a made task.json what `encode` writes of releases and subsets."""
    path = Path("data/encode", made_results.group(task), task, "task.json")
    about: dict[str, Any] = json.loads(path.read_text()) | {"release": release}
    for rows in about["splits"].values():
        rows |= {"subsets": subsets} if subsets else {}
    path.write_text(json.dumps(about))


def laid_out(table: str) -> tuple[dict[str, Cell], str]:
    params = read_params()
    cells = table_cells(params, table)
    return {cell.title: cell for cell in cells if cell.first}, markdown(
        table_page(params, TABLES[table], cells, None).document
    )


@pytest.mark.parametrize(
    ("release", "compared", "said"),
    [
        ("v1", 88.1, "QNLI: version 1, the paper's."),
        (
            "v2",
            87.4,
            "these files are QNLI v2, drawn anew after the paper; the paper's model scores 87.4",
        ),
        (
            "not recognised",
            87.4,
            (
                "these files' rows are of neither version of QNLI, and v2 is likelier: the paper's"
                " model scores 87.4"
            ),
        ),
    ],
)
def test_qnli_is_named_by_its_version(release: str, compared: float, said: str) -> None:
    made_results.write_params(["qnli"], [0])
    made_results.simple("qnli", right=90, of=100)
    describe("qnli", release)
    cells, text = laid_out("table2")
    assert cells["QNLI"].compared == compared
    assert said in text
    assert ("¶" in text) is (release != "v1")
    assert "QNLI: version not recognised" in text or release != "not recognised"


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("2016", "the 2016 set, the paper's"),
        ("2018", "the 2018 set, not the paper's 2016; its test"),
    ],
)
def test_story_cloze_is_named_by_its_set_and_2018_is_scored_on_dev(release: str, said: str) -> None:
    made_results.write_params(["story_cloze"], [0])
    answers = {
        f"{split}/{weights}": [0, 1, 1] for split in ("dev", "test") for weights in ("best", "last")
    }
    labels: dict[str, list[float]] = {"dev": [0, 1, 1], "test": [0, 1, 0]}
    made_results.write_task(
        "story_cloze", labels if release == "2016" else {"dev": labels["dev"]}, {0: answers}
    )
    describe("story_cloze", release)
    cells, text = laid_out("table3")
    measured = cells["Story Cloze"].measured
    assert measured
    assert (measured.split, measured.mean) == (
        ("test", pytest.approx(200 / 3)) if release == "2016" else ("dev", 100.0)
    )
    assert f"Story Cloze: {said}" in text


@pytest.mark.parametrize("level", ["middle", "high"])
def test_race_with_one_level_is_scored_on_that_alone(level: str) -> None:
    made_results.write_params(["race"], [0])
    number = ("middle", "high").index(level)
    labels: list[float] = [0, 1, 2, 3]
    made_results.write_task(
        "race", {"test": labels}, {0: {"test/best": [0, 1, 2, 0]}}, subset=[number] * 4
    )
    describe("race", "", {name: 4 if name == level else 0 for name in ("middle", "high")})
    cells, text = laid_out("table3")
    there, absent = ("RACE-m", "RACE-h") if level == "middle" else ("RACE-h", "RACE-m")
    measured = cells[there].measured
    assert measured
    assert measured.mean == 75.0
    assert cells[absent].measured is None
    assert cells["RACE"].measured is None, "the paper's number is of both levels"
    other = "high" if level == "middle" else "middle"
    said = [
        f"{title} (the files have no {other} questions)"
        for title in ("RACE-m", "RACE-h", "RACE")
        if title != there
    ]
    assert f"Not scored: {', '.join(said)}." in text
    assert "Left out: Story Cloze, not among" in text
