"""The replication article of a run: every claim with its result, no number that the records lack,
what a run cannot show, and LaTeX that compiles whatever its names are.
"""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import made_curves
import made_results
import pytest
from test_page import COMPONENTS, CURVE

from gpt1.base.errors import UserError
from gpt1.commands import report as command
from gpt1.params.schema import read_params
from gpt1.results import drawing
from gpt1.results.article import article, limits, verdicts
from gpt1.results.article.latex import inline, latex
from gpt1.results.article.methods import difference_lines
from gpt1.results.document import Bullets, Grid, Heading, Paragraph, Picture, number
from gpt1.results.page.page import gathered
from gpt1.results.records import read_records
from gpt1.results.rules import read_rules
from gpt1.stages import report as stage

pytestmark = pytest.mark.slow

HOSTILE = r"50%_of & #1 {x} \input $y$ ~^ [q] <b> 书 Ħ −±§†× --no"
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
SEEDS = [0, 1, 2]
VARIANTS = ("no_pretraining", "no_aux_lm", "lstm", "lstm_equal")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of GLUE's tasks with three seeds and Table 5's variants, on a corpus of a hostile
    name.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("run"))
        patch.setattr(drawing, "png", lambda draw, points: DOT)
        shutil.copy(made_results.ROOT / "dvc.yaml", folder / "dvc.yaml")
        made_results.write_params(
            list(made_results.GLUE_TASKS),
            SEEDS,
            pretrain={"seeds": SEEDS},
            clean={"corpus_name": HOSTILE},
            ablate=made_results.ablate_rows(VARIANTS, made_results.GLUE_TASKS),
        )
        made_results.write_pretraining()
        made_results.write_lstms()
        for network in ("transformer", "lstm", "lstm_equal"):
            made_curves.write_pretraining(network, CURVE, 1024, COMPONENTS)
            for seed in SEEDS[1:]:
                first = Path("data/pretrain", network, "seed-0")
                shutil.copytree(first, first.with_name(f"seed-{seed}"))
        skills = {"full": 2.0} | dict(zip(VARIANTS, (0.5, 1.9, 1.3, 1.3), strict=True))
        made_results.write_drawn(made_results.GLUE_TASKS, skills, tuple(SEEDS), 60)
        for name in article.REPORTS:
            stage.main(name)
        yield folder


@pytest.fixture
def here(run, tmp_path, monkeypatch):
    """A copy of the run to change."""
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(run):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(run)
        yield article.article(read_params(), gathered(read_params(), None))


@pytest.fixture
def document(made, run, monkeypatch):
    """The article, in the run's folder."""
    monkeypatch.chdir(run)
    return made


def section(document, title: str) -> list:
    """The blocks under a heading of level 2."""
    places = [at for at, block in enumerate(document) if isinstance(block, Heading)]
    begin = next(at for at in places if document[at] == Heading(2, title))
    end = next((at for at in places if at > begin and document[at].level <= 2), len(document))
    return document[begin:end]


@pytest.mark.parametrize(
    ("rate", "said"), [(None, "recipe, which was not tuned for it."), (0.02, "a rate of its own.")]
)
def test_the_lstms_rate_is_told_as_it_was(here, rate, said):
    params = read_params()
    lstm = params.lstm.model_copy(update={"learning_rate": rate})
    lines = difference_lines(params.model_copy(update={"lstm": lstm}))
    [line] = [one for one in lines if one.startswith("The paper gives the LSTM's")]
    assert line.endswith(said)


def test_every_claim_has_its_test_and_its_result(document):
    [scope] = (
        block for block in section(document, "Scope of reproducibility") if isinstance(block, Grid)
    )
    results = [
        block
        for block in section(document, "Results, claim by claim")
        if isinstance(block, Grid) and "verdict" in block.header
    ]
    rows = {row[0]: row for grid in results for row in grid.rows}
    tested = {row[0]: row for row in scope.rows}
    records = read_records("claims")
    assert len(rows) == len(tested) == len(records) == len(read_rules().keys)
    for record in records:
        [title] = (name for name in rows if name.rstrip("§°") == record["statement"])
        assert rows[title][results[0].header.index("verdict")] == record["verdict"]
        assert ("primary" if record["primary"] else "exploratory") in tested[title]
    size = next(row for name, row in tested.items() if "about 15 points" in name)
    assert size[-1] == "within 2 points of the paper's number"


def test_every_number_of_the_results_stands_in_the_records(document):
    known = {"001"}  # that p is below it
    for name in ("table2", "table3", "table4", "table5", "claims", "figure2"):
        for record in read_records(name):
            for value in record.values():
                for one in value if isinstance(value, list) else [value]:
                    if isinstance(one, str):
                        known |= set(re.findall(r"\d[\d,]*\.?\d*", one))
                    elif isinstance(one, int | float) and not isinstance(one, bool):
                        known |= {number(abs(one), form) for form in (".0f", ",.0f", ".1f", ".2f")}
                        known |= {f"{one:.3f}".removeprefix("0.")} if name == "claims" else set()
    shown = [
        cell
        for block in section(document, "Results, claim by claim")
        if isinstance(block, Grid)
        for row in block.rows
        if "verdict" in block.header or "this run" in row[0]
        for cell in row[1:]
    ]
    numbers = {found for cell in shown for found in re.findall(r"\d[\d,]*\.?\d*", cell)}
    assert len(numbers) > 100
    assert numbers - known == set()


def test_a_result_of_the_records_is_not_left_out(document):
    text = " ".join(
        cell for block in document if isinstance(block, Grid) for row in block.rows for cell in row
    )
    for record in read_records("claims"):
        if record["score"] is not None and record["unit"] == "points":
            assert number(record["score"], "+.1f") in text


def test_the_verdicts_as_fixed_are_the_reports_and_move_with_the_thresholds(run, monkeypatch):
    monkeypatch.chdir(run)
    rules = read_rules()
    as_fixed, strict, lax, halved, doubled = verdicts.judgements(read_params(), rules)
    assert as_fixed.verdicts == {one["claim"]: one["verdict"] for one in read_records("claims")}
    p_values = {one["claim"]: one["p"] for one in read_records("claims") if one["p"] is not None}
    for key, p in p_values.items():
        for one, level in ((strict, 0.01), (lax, 0.10)):
            assert (one.verdicts[key] in ("confirmed", "refuted")) == (p <= level), (key, one.name)
    assert {halved.name, doubled.name} == {"margins halved", "margins doubled"}
    twice = verdicts.with_margins(rules, 2.0)
    assert twice.table5["pretraining_size"].margin == 4.0
    assert twice.table5["pretraining_helps"] == rules.table5["pretraining_helps"]


@pytest.mark.parametrize("seeds", [1, 2, 3])
@pytest.mark.parametrize("made_up", [True, False])
def test_what_a_run_cannot_show_is_said(run, monkeypatch, seeds, made_up):
    monkeypatch.chdir(run)
    params = read_params()
    few = params.model_copy(
        update={"pretrain": params.pretrain.model_copy(update={"seeds": tuple(range(seeds))})}
    )
    told = {"made_up": made_up, "all_made_up": made_up, "left_out": [("a", "b")], "found": []}
    told |= {"code": [("Machine", "a; b")], "facts": []}
    for lines in (limits.warnings(few, told), limits.limit_lines(few, told)):
        text = " ".join(lines)
        assert ("every task of this run are made up" in text) == made_up
        assert ("every claim is undecided" in text) == (seeds < 3)
    assert ("tests the software, not the thesis" in text) == made_up
    assert text.endswith("a: b")


def test_a_warning_comes_before_every_number(here):
    params = read_params()
    one = params.model_copy(update={"pretrain": params.pretrain.model_copy(update={"seeds": (0,)})})
    document = article.article(one, gathered(params, None))
    text = [block.text for block in document[:3] if isinstance(block, Paragraph)]
    assert "This run has 1 pre-training of each network." in text[1]


def test_it_says_what_differs_and_what_was_spent(here):
    made_results.write_json(
        Path("data/logs/finetune/rte/seed-0.run.json"),
        {
            "name": "rte/seed-0",
            "profile": "made_up",
            "status": "finished",
            "seconds": 7200.0,
            "machine": {"cpu": "a & b", "cores": "2", "gpu": "none"},
        },
    )
    shutil.copytree(made_results.ROOT / "conf", "conf")
    values = json.loads(Path("params.yaml").read_text())
    values["finetune"]["learning_rate"] = 0.5
    Path("params.yaml").write_text(json.dumps(values))
    document = article.article(read_params(), gathered(read_params(), None))
    rows = {row[0]: row for block in document if isinstance(block, Grid) for row in block.rows}
    assert rows["`finetune.learning_rate`"][1:] == ("**0.5**", "6.25e-05")
    assert rows["`finetune.epochs`"][1:] == ("3", "3")
    [trained] = (one for one in document if isinstance(one, Grid) and one.header[0] == "trainings")
    assert trained.rows[0][:4] == ("finetune", "1", "0", "2.0 h")
    assert "a & b" in trained.rows[0][-1]
    [tasks] = (one for one in document if isinstance(one, Grid) and one.header[0] == "task")
    both = ("the official files", "900", "60 + 60", "(2)", "dev, dev_mismatched", "60 + 60")
    assert ("MNLI", *both) in tasks.rows


def test_an_unfinished_run_has_no_article(here):
    shutil.rmtree("data/report/table4")
    with pytest.raises(UserError, match="not there: table4; gpt1 run makes them"):
        article.write_article()


def test_the_command_says_what_it_wrote(here, capsys):
    command.report(article=True)
    assert capsys.readouterr().out.startswith("data/report/article/article.md, and data/report/")
    command.report(out=Path("there"), article=True, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "markdown": "there/article.md",
        "latex": "there/article.tex",
    }
    text = Path("there/article.md").read_text(encoding="utf-8")
    assert HOSTILE in text
    assert text == Path("data/report/article/article.md").read_text(encoding="utf-8")
    for file in re.findall(r"\]\(([^)]+\.svg)\)", text):
        assert Path("there", file).is_file()
        assert Path("there", file).with_suffix(".png").is_file()


def test_latex_sees_no_command_in_a_text():
    assert inline("50% of a_b & c#d {x} $y$ --out") == (r"50\% of a\_b \& c\#d \{x\} \$y\$ -{}-out")
    assert inline("**a_b** and `c_d`") == r"\textbf{a\_b} and \texttt{c\_d}"
    assert inline("[a](http://b.c/d_e%20f#g)") == r"\href{http://b.c/d\_e\%20f\#g}{a}"
    assert "\\input" not in inline(HOSTILE)
    text = latex([Heading(1, "书 and é"), Grid(("a",), (("[1, 2]",),))])
    assert r"\DeclareUnicodeCharacter{4E66}{[U+4E66]}" in text
    assert "00E9}" not in text, "what the type has is printed as it is"
    assert "{}[1,~2]" in text, "a row that begins with a bracket is no option of the row before"


def test_a_wide_table_wraps_and_a_wider_one_is_divided():
    def tables(columns, cell):
        grid = Grid(("", *map(str, range(columns))), (("a row", *[cell] * columns),) * 2)
        return latex([Heading(1, "t"), grid]).count(r"\begin{longtable}")

    assert tables(6, "10.0") == 1
    assert tables(6, "+10.0 [+9.0, +11.0]") == 1, "the interval goes under the number"
    assert tables(24, "+10.0 [+9.0, +11.0]") > 1


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs texlive")
def test_the_latex_compiles(here):
    written = article.write_article()
    text = [
        Heading(1, HOSTILE),
        Heading(2, HOSTILE),
        Paragraph(HOSTILE),
        Bullets((HOSTILE, "[x]")),
        Grid((HOSTILE, "*"), ((HOSTILE, "[1, 2]"), ("[3]", "é" * 200))),
        Picture("table5.svg", HOSTILE),
    ]
    hostile = Path(written["latex"]).with_name("hostile.tex")
    hostile.write_text(latex(text), encoding="utf-8")
    for name in ("article", "hostile"):
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"],
            cwd=hostile.parent,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
        assert hostile.with_name(f"{name}.pdf").stat().st_size > 10_000
