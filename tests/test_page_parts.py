"""What the report page is put together from: pictures, markdown, times, checksums, Table 5's
cells.
"""

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import made_curves
import made_results
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt1.results.document import Bullets, Grid, Heading, left_out, minus, number
from gpt1.results.page import findings, html, page, provenance, sheets
from gpt1.results.records import write_scores
from gpt1.stages import scores as scores_stage


@pytest.mark.parametrize(
    ("low", "high", "tone"),
    [(1.0, 2.0, "good"), (-2.0, -1.0, "bad"), (-1.0, 1.0, "even"), (0.0, 1.0, "even")],
)
def test_a_tone_follows_from_where_the_interval_lies(low, high, tone):
    cell = sheets.against("x", low, high, 0.0)
    assert cell.tone == tone
    assert cell.mark
    assert cell.means, "no tone without a sign and a word"


def test_table_5_sets_losses_beside_the_paper_s():
    def record(
        row,
        system,
        value,
        column,
        score=None,
        low=None,
        high=None,
        variant=None,
        task=None,
        seeds=None,
    ):
        return {
            "row": row,
            "system": system,
            "value": value,
            "column": column,
            "metric": "mean" if column == "Avg" else "f1",
            "score": score,
            "low": low,
            "high": high,
            "variant": variant,
            "task": task,
            "seeds": seeds,
        }

    whole, lstm = "Transformer w/ aux LM (full)", "LSTM w/ aux LM"
    records = [
        record("paper", name, "score", column, score)
        for name, column, score in (
            (whole, "Avg", 74.7),
            (whole, "MRPC", 82.3),
            (lstm, "Avg", 69.1),
            (lstm, "MRPC", 83.2),
        )
    ]
    for title, tasks in (("Avg", "mrpc rte"), ("MRPC", "mrpc")):
        seeds = 1 if title == "Avg" else 2
        records += [
            record("ours", whole, "score", title, 60.0, 55.0, 65.0, "full", tasks, seeds),
            record("ours", lstm, "score", title, 50.0, 45.0, 55.0, "lstm", tasks, seeds),
            record(
                "ours",
                lstm,
                "full less variant",
                title,
                10.0,
                4.0,
                16.0,
                "lstm",
                tasks,
                seeds,
            ),
        ]
    (_, average), (_, mrpc) = sheets.ablation_sheet(records, [], "", losses=True).rows
    assert (mrpc.text, mrpc.tone, mrpc.note) == ("+10.0", "good", "+4.0 to +16.0\nthe paper −0.9")
    assert average.note == "+4.0 to +16.0\nthe paper +5.6"
    (_, full, _), (_, own, _) = sheets.ablation_sheet(records, [], "", losses=False).rows
    assert full.note == "55.0 to 65.0\nthe paper 74.7"
    assert own.note == "55.0 to 65.0\nthe paper 82.3"
    for row in sheets.ablation_sheet(records, ["MRPC"], "", losses=True).rows:
        assert "paper" not in row[1].note
    (sentence,) = (one for one in findings.ablation_sentences(records, False) if "LSTM" in one)
    assert "(+4.0 to +16.0; the paper +5.6 over the same)" in sentence


def test_a_table_of_made_up_tasks_alone_has_no_column_of_differences_and_the_mean_has_its_interval():
    def record(column, metric, score, task):
        return {
            "row": "ours",
            "column": column,
            "task": task,
            "metric": metric,
            "score": score,
            "low": 40.0,
            "high": 60.0,
            "sd": 2.0,
            "seeds": 2,
            "majority": 33.0,
            "at_chance": False,
            "flagged_seeds": [1],
            "compared_with": 88.0,
            "difference": -38.0,
            "examples": 500,
            "split": "dev",
            "weights": "last update",
        }

    records = [
        record("MNLI-m", "accuracy", 50.0, "mnli"),
        record("mean over 1", "mean", 50.0, "MNLI"),
    ]
    real, invented = (
        sheets.comparison(records, made_up, "Table 4") for made_up in ((), ("MNLI-m", "MNLI"))
    )
    assert "difference" in real.header
    assert "difference" not in invented.header
    assert "no differences are given" in invented.caption
    assert {len(row) for sheet in (real, invented) for row in sheet.rows} == {
        len(real.header),
        len(invented.header),
    }
    mean = real.rows[-1]
    assert (mean[2].text, mean[2].note, mean[3].text, mean[3].mark) == (
        "50.0 ± 2.0",
        "40.0 to 60.0",
        "−38.0",
        "▼",
    )
    assert (mean[5].scale.low, mean[5].scale.high, mean[5].scale.majority) == (40.0, 60.0, None)
    assert invented.rows[-1][4].scale.paper is None
    both = record("RTE", "accuracy", 50.0, "rte")
    assert "§" in sheets.comparison([records[0], both], ["MNLI-m"], "").rows[0][3].text


def test_a_claim_has_its_interval_in_a_column_of_its_own():
    one = {
        "statement": "It rises",
        "made_up": True,
        "primary": False,
        "p": 0.0123,
        "where": "section 5",
        "verdict": "confirmed",
        "published": "-1.1",
        "unit": "points",
        "score": -2.0,
        "low": -3.0,
        "high": -1.0,
        "detail": "from -9.0 to -11.0",
        "basis": "8 tasks",
    }
    sheet = findings.claims_sheet(
        [
            one,
            one
            | {
                "unit": "sets that rise",
                "score": 3.0,
                "low": None,
                "high": None,
                "detail": "of 4",
                "primary": True,
                "p": 0.0001,
            },
        ],
        "",
    )
    assert [cell.text for cell in sheet.rows[0]] == [
        "It rises°§",
        "confirmed",
        "−1.1",
        "−2.0",
        "−3.0 to −1.0",
        ".012",
        "",
    ]
    assert sheet.rows[0][3].note == "points\nfrom −9.0 to −11.0"
    cells = [cell.text for cell in sheet.rows[1]]
    assert (cells[0], cells[3:6]) == ("It rises§", ["3 of 4", "-", "< .001"])


@pytest.mark.parametrize(
    ("value", "form", "words"),
    [
        (-0.04, ".1f", "0.0"),
        (-0.04, "+.1f", "+0.0"),
        (-12.34, ".1f", "−12.3"),
        (1234.5, ".1f", "1234.5"),
        (-0.004, ".2f", "0.00"),
        (0.96, "+.0f", "+1"),
    ],
)
def test_a_number_has_a_real_minus_and_no_zero_has_one(value, form, words):
    assert number(value, form) == words
    assert (
        minus("w/o pre-training -3.5, from -9.0 to 1-2")
        == "w/o pre-training −3.5, from −9.0 to 1-2"
    )


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_letters_stand_out_in_light_and_dark():
    light, dark = re.findall(
        r":root \{(.*?)\}", Path(page.__file__).with_name("page.css").read_text(), re.DOTALL
    )
    for scheme in (light, dark):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", scheme))
        letters = [
            (name, "paper")
            for name in ("ink", "muted", "link", *(one for one in colours if one.endswith("-text")))
        ]
        letters += [(name, "back") for name in ("ink", "muted", "link")] + [
            (name, f"{name}-back") for name in ("good", "bad", "even")
        ]
        for letter, ground in letters:
            low, high = sorted((luminance(colours[letter]), luminance(colours[ground])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{letter} on {ground}"


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=8))
def test_time_at_work_counts_each_second_once(spans):
    covered = {second for begin, lasts in spans for second in range(begin, begin + lasts)}
    assert provenance.busy_seconds([(begin, begin + lasts) for begin, lasts in spans]) == len(
        covered
    )


def test_pictures_keep_their_names_apart_and_lose_what_could_run(tmp_path):
    source = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        ' width="500pt" viewBox="0 0 9 9"><script>alert(1)</script><defs><clipPath id="c"><path'
        ' d="M0 0"/></clipPath><path id="unused"/></defs><g clip-path="url(#c)" onload="x()"><use'
        ' xlink:href="#c"/><text style="fill: #cc79a7">a &lt; b</text><path style="stroke:'
        ' #000000"/></g></svg>'
    )
    for name in ("one", "two"):
        (tmp_path / f"{name}.svg").write_text(source)
    first, second = (str(html.inline(tmp_path / f"{name}.svg", 'a "b"')) for name in ("one", "two"))
    ids = [re.findall(r' id="([^"]+)"', text) for text in (first, second)]
    assert [len(names) for names in ids] == [1, 1]
    assert ids[0] != ids[1]
    assert f'clip-path="url(#{ids[0][0]})"' in first
    assert f'href="#{ids[0][0]}"' in first
    assert "script" not in first
    assert "onload" not in first
    assert 'aria-label="a &quot;b&quot;"' in first
    assert "var(--purple-text, var(--purple))" in first
    assert "stroke: var(--ink)" in first
    assert "#000000" in str(html.inline(tmp_path / "one.svg", "x", recoloured=False))


def test_a_report_becomes_a_section_and_html_in_it_stays_text(tmp_path):
    report = [
        Heading(1, "Title"),
        Heading(2, "Part"),
        Bullets(("a <b>bold</b> word",)),
        Grid(("", "n"), (("**row**", "1"),)),
    ]
    text = str(html.html(report, tmp_path, {}, "Above"))
    assert "Title" not in text
    assert "<h3>Part</h3>" in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert '<th scope="row"><strong>row</strong></th>' in text
    ElementTree.fromstring(f"<all>{text}</all>")  # every tag is closed in order
    assert "<table>" not in html.html(report, tmp_path, {}, "Above", with_tables=False)


def test_a_source_s_checksum_is_what_sha256sum_tells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("data/acquire/tasks/rte")
    folder.mkdir(parents=True)
    for name in ("b.tsv", "a.tsv"):
        (folder / name).write_text(name)
    lines = subprocess.run(
        "sha256sum a.tsv b.tsv", shell=True, cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    files = {
        line.split()[1]: {"sha256": line.split()[0], "bytes": 5, "rows": 1}
        for line in lines.splitlines()
    }
    made_results.write_json(
        folder / "manifest.json", {"source": "rte", "origin": "o", "licence": "MIT", "files": files}
    )
    whole = subprocess.run(
        "sha256sum", input=lines, capture_output=True, text=True, check=True
    ).stdout.split()[0]
    (source,) = provenance.sources()
    assert (source.sha256, source.bytes_) == (whole, 10)


def test_the_commands_to_run_it_again_come_from_params_yaml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(
        "# Composed by: gpt1 profile small finetune.epochs=2\nprofile: small\n"
    )
    assert "gpt1 profile small finetune.epochs=2" in provenance.commands("not under git")
    assert provenance.commands("not under git")[0].startswith("make setup")
    assert provenance.commands("abc")[0] == "git checkout abc"
    assert "not committed" in provenance.commands("abc, with uncommitted changes")[1]


def test_what_was_found_and_left_out_in_words():
    def record(column, score, at_chance, compared):
        return {
            "row": "ours",
            "metric": "accuracy",
            "column": column,
            "score": score,
            "at_chance": at_chance,
            "compared_with": compared,
            "low": score and score - 2,
            "high": score and score + 2,
            "flagged_seeds": [],
        }

    records = [
        record("SNLI", 95.0, False, 89.9),
        record("RTE", 56.5, True, 56.0),
        record("QNLI", None, None, 88.1),
    ]
    assert (
        findings.table_sentence(2, records, [])
        == "Table 2: 2 of 3 scores measured, the mean at chance on RTE, the others above chance"
        " with every seed; beside the paper 1 above, 1 with an interval that holds its number, 0"
        " below."
    )
    alone = [one | {"seeds": 1, "low": None, "high": None} for one in records]
    assert findings.table_sentence(2, alone, []).endswith(
        "beside the paper 2 without an interval, for want of seeds."
    )
    assert "beside" not in findings.table_sentence(2, records, ["SNLI", "RTE"])
    assert (
        findings.table_sentence(2, [records[0] | {"flagged_seeds": [1]}], ["SNLI"])
        == "Table 2: 1 of 1 score measured, single seeds at chance on SNLI."
    )
    assert (
        findings.table_sentence(2, records[:1], ["SNLI"])
        == "Table 2: 1 of 1 score measured, above chance with every seed."
    )
    assert (
        findings.table_sentence(2, records[2:], []) == "Table 2: none of its columns is measured."
    )
    claims = [
        {
            "verdict": verdict,
            "basis": "no row",
            "statement": f"It is {verdict}",
            "primary": verdict == "confirmed",
            "rules": "0123456789abcdef",
            "fixed": "post hoc",
        }
        for verdict in ("confirmed", "not measured")
    ]
    assert findings.claims_sentence(claims) == (
        "By rules 01234567, post hoc: of 1 primary claim of the paper 1 confirmed; of 1 exploratory"
        " claim of the paper 1 not measured."
    )
    assert findings.left_out(
        {"Table 2": list(left_out([Bullets(("x", "Left out: SNLI."))]))},
        claims,
    ) == [
        ("Table 2", "SNLI."),
        ("Claims not measured", "no row: It is not measured"),
    ]


def test_headline_numbers_a_file_each_and_a_difference_only_where_the_table_has_one(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    made_results.write_params(["rte", "snli"], [0, 1])
    values = json.loads(Path("params.yaml").read_text()) | {"variants": {}}
    Path("params.yaml").write_text(json.dumps(values))
    made_curves.write_pretraining(
        "transformer",
        [{"update": update, "loss": 7.0 - update / 10, "gradient_norm": 1.0} for update in (10, 20)]
        + [{"update": 20, "heldout_loss": 5.0}],
        1024,
        {"attention": 1},
    )
    table = [
        {"row": "paper's model", "column": "RTE", "metric": "accuracy", "score": 56.0},
        {
            "row": "ours",
            "column": "RTE",
            "metric": "accuracy",
            "score": 66.0,
            "low": 58.9343,
            "high": 73.0657,
            "difference": 10.0,
        },
        {
            "row": "ours",
            "column": "SNLI",
            "metric": "accuracy",
            "score": 66.0,
            "low": 60.0,
            "high": 71.0,
        },
        {"row": "ours", "column": "QNLI", "metric": "accuracy"},
    ]
    effect = {"score": 8.0, "low": 6.0, "high": 10.0}
    claims = [
        {"claim": "lstm_below", "verdict": "confirmed", **effect},
        {"claim": "lstm_size", "verdict": "refuted", **effect},
        {"claim": "other", "verdict": "not measured"},
    ]
    for name, rows in (("table2", table), ("claims", claims)):
        folder = Path("data/report", name)
        folder.mkdir(parents=True)
        write_scores(folder, rows)
    scores_stage.main()
    found = {
        path.relative_to("data/report/scores").as_posix(): json.loads(path.read_text())
        for path in Path("data/report/scores").rglob("*.json")
    }
    assert sorted(found) == [
        "claims/lstm_below.json",
        "claims/lstm_size.json",
        "pretrain/transformer.json",
        "table2/RTE-accuracy.json",
        "table2/SNLI-accuracy.json",
    ]
    assert found["table2/RTE-accuracy.json"] == {
        "score": 66.0,
        "low": 58.93,
        "high": 73.07,
        "difference": 10.0,
    }
    assert "difference" not in found["table2/SNLI-accuracy.json"]
    assert [found[f"claims/{name}.json"]["confirmed"] for name in ("lstm_below", "lstm_size")] == [
        1.0,
        -1.0,
    ]
    assert found["pretrain/transformer.json"]["perplexity"] == pytest.approx(
        148.413, abs=1e-3
    )  # e to the 5
    assert (
        Path("data/report/plots/heldout.csv").read_text()
        == "update,transformer,lstm,lstm_equal\n20,5.0000,,\n"
    )
    assert (
        Path("data/report/plots/scores.csv").read_text()
        == "column,score\nRTE-accuracy,66.0000\nSNLI-accuracy,66.0000\n"
    )
