"""The report page: numbers by hand, what is missing named, self-contained and readable by whoever
cannot see it.
"""

import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import made_curves
import made_results
import pytest

from gpt1.base.errors import UserError
from gpt1.commands import report as command
from gpt1.results import drawing
from gpt1.results.page import page
from gpt1.results.records import read_records
from gpt1.stages import report as stage
from gpt1.train.speed import NOT_COMPILED

COMPONENTS = {
    "attention": 300,
    "feed_forward": 500,
    "layer_norms": 20,
    "position_embeddings": 30,
    "token_embeddings": 150,
}
CURVE = [
    {"update": update, "loss": 8.0 - update / 10, "learning_rate": 1e-4, "gradient_norm": 2.0}
    for update in (10, 20, 30, 40)
] + [{"update": 20, "heldout_loss": 7.0}, {"update": 40, "heldout_loss": 5.0}]
VOID = {"meta", "link", "img", "br", "hr"}


class Read(HTMLParser):
    """A page as a list of (tag, attributes, the tags around it) and its visible words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == [], "every tag is closed in order"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def bare(folder: Path) -> None:
    shutil.copy(made_results.ROOT / "dvc.yaml", folder / "dvc.yaml")
    made_results.write_params(["rte", "snli", "scitail"], [0])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three tasks, one made up, with Table 2 and the curves; no other table, figure or
    claim.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("run"))
        bare(folder)
        values = json.loads(Path("params.yaml").read_text())
        values["world"] = {"town": {"seed": 0, "books": 3, "pages": 3}}
        values["sources"]["snli"]["folder"] = "world/town"
        values["variants"] = {}
        Path("params.yaml").write_text(json.dumps(values))
        made_results.write_pretraining()
        made_curves.write_pretraining("transformer", CURVE, 1024, COMPONENTS)
        made_results.simple("rte", 90, 100)
        labels = [i % 2 for i in range(400)]
        for task in ("scitail", "snli"):
            made_results.write_task(
                task,
                {"dev": labels, "test": labels},
                {
                    0: {
                        f"{split}/{weights}": [
                            1 - label if i % 3 == 0 else label for i, label in enumerate(labels)
                        ]
                        for split in ("dev", "test")
                        for weights in ("last", "best")
                    }
                },
            )
        patch.setattr(
            drawing, "png", lambda draw, points: b""
        )  # seconds of drawing that the page has no use for
        for name in ("table2", "curves"):
            stage.main(name)
        yield folder


@pytest.fixture
def here(run, tmp_path, monkeypatch):
    """A copy of the run to change."""
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made() -> str:
    page.write_page()
    return page.INDEX.read_text(encoding="utf-8")


def row_of(text: str, table: str, column: str) -> str:
    section = text[text.index(f'<section id="{table}">') :]
    return next(
        row
        for row in re.findall(r'<tr role="row">.*?</tr>', section, re.DOTALL)
        if re.search(rf'role="rowheader">\s*{re.escape(column)}\s', row)
    )


def test_a_difference_of_one_seed_stands_without_an_interval(here):
    text = made()
    rte = row_of(
        text, "table2", "RTE"
    )  # 90 of 100 right: one standard error is 100 sqrt(0.9 0.1 / 100) = 3; the paper has 56.0
    assert "1 seed: no interval" in rte
    assert re.search(r'aria-label="ours 90.0, majority', rte), "a line without an interval"
    written = next(
        one for one in read_records("table2") if one["row"] == "ours" and one["column"] == "RTE"
    )
    assert (written["low"], written["high"]) == (None, None)
    assert "crossed, each with Student" in text
    assert re.search(r'data-name="difference">\s*\+34.0', rte), "unmarked without an interval"
    assert re.search(r'data-name="over the majority" class="good">.*?\+40.0', rte, re.DOTALL)
    scitail = row_of(text, "table2", "SciTail")
    assert re.search(r'data-name="difference">\s*−', scitail)
    snli = row_of(text, "table2", "SNLI")
    assert "§" in snli
    assert not re.search(r'data-name="difference" class="(good|bad|even)"', snli), (
        "made-up tasks compare with nothing of the paper"
    )
    assert "left out" in row_of(text, "table2", "QNLI")


def test_a_bare_clone_has_a_page_that_names_what_to_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bare(tmp_path)
    command.report(as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["parts_missing"] == [
        "table2",
        "table3",
        "table4",
        "table5",
        "claims",
        "figure2",
        "curves",
    ]
    text = Read(page.INDEX.read_text()).text
    for name in (*told["parts_missing"], "generate", "acquire"):
        assert f"gpt1 run {name}" in text
    assert "Nothing yet" in text
    command.report(out=Path("elsewhere/page.html"))
    assert "without table2, " in capsys.readouterr().out
    assert Path("elsewhere/page.html").read_bytes() == page.INDEX.read_bytes()


def test_equal_results_give_equal_bytes_and_nothing_is_fetched(here):
    first = made()
    assert made() == first
    assert len(first.encode()) < 5e6
    assert not re.search(r"""(?:src|href|xlink:href)=["'](?!#)|url\((?!#)|@import""", first)
    assert "default-src 'none'" in first
    assert "<script" not in first


def test_who_cannot_see_it_can_read_it(here):
    Path("data/generate").mkdir()
    Path("data/generate/samples.json").write_text(
        json.dumps(
            {
                "network": "transformer",
                "tokens": 9,
                "decodings": {"greedy": "the likeliest"},
                "signatures": {"bleu": "v1"},
                "perplexity": {"books": 1, "tokens": 10, "per_token": 2.0, "per_word": 3.0},
                "scores": {"greedy": {"bleu": 1.25}},
                "prompts": [
                    {
                        "origin": "params.yaml",
                        "prompt": "once",
                        "reference": None,
                        "samples": [
                            {
                                "decoding": "greedy",
                                "text": "<script>x</script> & y",
                                "tokens": 9,
                                "log_probability": -1.0,
                                "stopped": True,
                            }
                        ],
                    }
                ],
            }
        )
    )
    read = Read(text := made())
    assert "&lt;script&gt;x&lt;/script&gt; &amp; y" in text
    ids = Counter(attributes["id"] for _, attributes, _ in read.tags if "id" in attributes)
    assert max(ids.values()) == 1
    for tag, attributes, around in read.tags:
        if tag == "a" or (tag == "use" and "href" in attributes):
            assert attributes["href"][1:] in ids, f"{attributes['href']} leads nowhere"
        if tag == "th":
            assert attributes["scope"] in ("col", "row")
        if tag == "svg":
            assert attributes["role"] == "img"
            assert len(attributes["aria-label"]) > 20
        if tag == "caption":
            assert around[-1] == "table"
        if (attributes.get("class") or "").startswith(("scroll", "picture")):
            assert attributes["tabindex"] == "0", "what scrolls can be reached without a mouse"
            assert attributes["aria-label"]
    tables = sum(tag == "table" for tag, _, _ in read.tags)
    assert tables == sum(tag == "caption" for tag, _, _ in read.tags)
    assert sum(tag == "svg" for tag, _, _ in read.tags) >= 5
    levels = [int(tag[1]) for tag, _, _ in read.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), (
        "no level of headings is skipped"
    )


def test_time_and_cost_come_from_the_logs_of_the_run(here):
    logs = Path("data/logs/run")
    logs.mkdir(parents=True)
    (logs / "seconds.json").write_text(
        json.dumps({"table2": 1800.0, "curves": 1800.0, "bpe": 10.0})
    )
    for name, said in (
        ("table2", "Running stage 'table2'"),
        ("curves", "Running stage 'curves'"),
        ("bpe", "Stage didn't change"),
    ):
        (logs / f"{name}.log").write_text(said)
    text = Read(made()).text
    assert "At work for 30.0 min; the stages' own times add up to 60.2 min" in text, (
        "two side by side; of the third only the length"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiled", "words"),
    [
        ("no", "not compiled"),
        ("blocks and masks", "blocks and masks compiled"),
        (NOT_COMPILED, "not compiled, for want of a compiler"),
    ],
)
def test_a_reader_sees_whether_the_pre_training_was_compiled(here, compiled, words):
    told = {"arithmetic": "bf16", "compiled": compiled, "attention": "plain"}
    log = Path("data/logs/pretrain/transformer-0-speed.json")
    made_results.write_json(log, told | {"processes": 2, "threads": 1})
    about = Read(made()).text
    assert f"Its computation bf16; {words}; attention: plain; 2 processes, 1 thread each" in about
    log.write_text("{")
    assert "Its computation" not in Read(made()).text, "a log is not a result"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("data/report/curves/pretraining.svg", "<svg"),
        ("data/pretrain/transformer/seed-0/summary.json", "{"),
        ("data/report/table2/scores.parquet", "table,row\ntable2,ours\n"),
        ("data/report/table2/page.json", '[["grid", ["a"]]]'),
        ("data/generate/samples.json", '{"prompts": [{}]}'),
    ],
)
def test_a_broken_result_is_one_line(here, file, text):
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(text)
    with pytest.raises(UserError, match=r"cannot be read.*dvc repro"):
        made()
    assert not page.INDEX.exists()
