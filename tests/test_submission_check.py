"""The checker of leaderboard files: a good one passes, and each wrong one is refused with its own
line.
"""

import gzip
import os
import re
import stat
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpt1.base.errors import UserError
from gpt1.commands.submission import submission
from gpt1.exchange.submission.board import BY_NAME, FILES
from gpt1.exchange.submission.check import MOST_ZIP_BYTES, wrong_with
from gpt1.exchange.submission.rows import wrong_in


@pytest.fixture(scope="module")
def contents():
    """The bytes of each file of a good submission."""
    return {
        file.name: file.written(
            [
                (file.words or ("0", "2.5", "5.0", "1e-3"))[row % (len(file.words) or 4)]
                for row in range(file.rows)
            ]
        )
        for file in FILES
    }


# What is done to a good zip -> the line that the checker says of it. A function takes {name: bytes}
# and gives it back changed.
def row(name, number, text):
    """Line `number` (the header is 1) replaced; several lines, or none, in its place."""

    def change(files):
        lines = files[name].split(b"\n")
        lines[number - 1 : number] = [text] if isinstance(text, bytes) else text
        return files | {name: b"\n".join(lines)}

    return change


def all_of(name, change):
    return lambda files: files | {name: change(files[name])}


def renamed(name, new):
    return lambda files: {new if old == name else old: content for old, content in files.items()}


def without(name):
    return lambda files: {old: content for old, content in files.items() if old != name}


WRONG = {
    "missing": (
        without("WNLI.tsv"),
        "WNLI.tsv: expected 146 predictions, found no such file; the server wants all 11 files",
    ),
    "extra": (
        lambda files: files | {"notes.txt": b"x"},
        "'notes.txt': expected only the eleven files, found another; leave it out",
    ),
    "nested": (
        lambda files: {f"glue/{name}": content for name, content in files.items()},
        "'glue/': expected the files themselves, found",
    ),
    "windows": (
        lambda files: files | {"a\\CoLA.tsv": b""},
        "'a/': expected the files themselves, found a folder; go into it",
    ),
    "macos": (
        lambda files: files | {"__MACOSX/._CoLA.tsv": b"x"},
        "__MACOSX: expected only the eleven files, found a folder that mac",
    ),
    "case": (renamed("CoLA.tsv", "COLA.tsv"), "'COLA.tsv': expected the name CoLA.tsv; rename it"),
    "hyphen": (
        renamed("MNLI-mm.tsv", "MNLI_mm.tsv"),
        "'MNLI_mm.tsv': expected the name MNLI-mm.tsv; rename it",
    ),
    "ending": (renamed("AX.tsv", "AX.csv"), "'AX.csv': expected the name AX.tsv; rename it"),
    "escape": (
        lambda files: files | {"\x1b[31mred": b""},
        r"'\x1b[31mred': expected only the eleven files",
    ),
    "header": (
        row("RTE.tsv", 1, b"index\tlabel"),
        r"RTE.tsv: line 1: expected the header 'index\tprediction', found 'index\tlabel'; keep",
    ),
    "header order": (
        row("RTE.tsv", 1, b"prediction\tindex"),
        "the index comes first, and both names are lower case",
    ),
    "no header": (
        row("RTE.tsv", 1, []),
        (
            r"RTE.tsv: line 1: expected the header 'index\tprediction', found '0\tentailment', a"
            r" row; put"
        ),
    ),
    "commas": (
        all_of("RTE.tsv", lambda text: text.replace(b"\t", b",")),
        "found 'index,prediction', with another delimiter; put one tab",
    ),
    "comma": (
        row("RTE.tsv", 9, b"7,entailment"),
        "RTE.tsv: line 9: expected an index, a tab and a prediction, found the delimiter ',' in",
    ),
    "columns": (
        row("RTE.tsv", 9, b"7\tentailment\t0.9"),
        "RTE.tsv: line 9: expected an index, a tab and a prediction, found 3 columns in",
    ),
    "crlf": (
        all_of("SST-2.tsv", lambda text: text.replace(b"\n", b"\r\n")),
        "SST-2.tsv: line 1: expected text with line ends of LF, f",
    ),
    "bom": (
        all_of("SST-2.tsv", lambda text: b"\xef\xbb\xbf" + text),
        "SST-2.tsv: line 1: expected plain UTF-8, found a byte-order mark",
    ),
    "utf-16": (
        all_of("SST-2.tsv", lambda text: text.decode().encode("utf-16")),
        "SST-2.tsv: line 1: expected plain UTF-8, found UTF-16",
    ),
    "latin": (
        row("SST-2.tsv", 4, b"2\t\xe9"),
        "SST-2.tsv: line 4: expected plain UTF-8, found the byte 0xe9",
    ),
    "nul": (
        row("SST-2.tsv", 4, b"2\t\0"),
        "SST-2.tsv: line 4: expected text with line ends of LF, found a NUL character",
    ),
    "empty file": (
        all_of("SST-2.tsv", lambda text: b""),
        "SST-2.tsv: expected the header 'index\\tprediction' and rows, found an emp",
    ),
    "short": (
        row("MRPC.tsv", 1726, []),
        "MRPC.tsv: expected 1725 rows after the header, found 1724: it ends after line 1725;",
    ),
    "long": (
        row("QNLI.tsv", 5465, [b"5463\tentailment", b""]),
        "QNLI.tsv: expected 5463 rows after the header, found 5464: line 5465",
    ),
    "empty line": (
        row("CoLA.tsv", 8, b""),
        "CoLA.tsv: line 8: expected the row of index 6, found an empty line; take it away",
    ),
    "twice": (
        row("CoLA.tsv", 8, b"5\t1"),
        "CoLA.tsv: line 8: expected the index 6, found '5' a second time; give every index once",
    ),
    "order": (
        row("CoLA.tsv", 8, b"9\t1"),
        "CoLA.tsv: line 8: expected the index 6, found '9'; give every index once, in the order of",
    ),
    "from 1": (
        row("CoLA.tsv", 2, b"1\t1"),
        "CoLA.tsv: line 2: expected the index 0, found '1'; count from 0, in the order of the",
    ),
    "index": (
        row("CoLA.tsv", 8, b"6.0\t1"),
        "CoLA.tsv: line 8: expected the index 6, found '6.0'; write it as a whole number",
    ),
    "number": (
        row("MNLI-m.tsv", 3, b"1\t2"),
        "MNLI-m.tsv: line 3: expected entailment, neutral or contradiction, found '2'; write the",
    ),
    "word": (
        row("WNLI.tsv", 3, b"1\tentailment"),
        "WNLI.tsv: line 3: expected 0 or 1, found 'entailment'; write the label's number",
    ),
    "float": (
        row("WNLI.tsv", 3, b"1\t1.0"),
        "WNLI.tsv: line 3: expected 0 or 1, found '1.0'; write whole numbers, without decimals",
    ),
    "class": (
        row("AX.tsv", 3, b"1\tnot_entailment"),
        "AX.tsv: line 3: expected entailment, neutral or contradiction, found 'not_",
    ),
    "none": (
        row("AX.tsv", 3, b"1\t"),
        (
            "AX.tsv: line 3: expected entailment, neutral or contradiction, found no prediction;"
            " predict every"
        ),
    ),
    "blank": (
        row("AX.tsv", 3, b"1\tneutral "),
        "AX.tsv: line 3: expected entailment, neutral or contradiction, found 'neutral '; take",
    ),
    "nan": (
        row("STS-B.tsv", 3, b"1\tnan"),
        "STS-B.tsv: line 3: expected a number from 0 to 5, found 'nan', which is no number",
    ),
    "range": (
        row("STS-B.tsv", 3, b"1\t5.001"),
        "STS-B.tsv: line 3: expected a number from 0 to 5, found '5.001', which is out of range",
    ),
    "bomb": (
        all_of("AX.tsv", lambda text: bytes(20_000_000)),
        "AX.tsv: expected at most 70,720 bytes, 1104 rows, found 20,000,000; write",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_one_is_refused_with_its_own_line(contents, tmp_path, what):
    """QQP's 390,965 rows are left out of these, to be quick, so its line stands last among the
    files'.
    """
    change, line = WRONG[what]
    files = change({name: content for name, content in contents.items() if name != "QQP.tsv"})
    with zipfile.ZipFile(tmp_path / "wrong.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo("x")
            entry.filename, entry.compress_type = name, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    found = [
        said
        for said in wrong_with(tmp_path / "wrong.zip")
        if not said.startswith("QQP.tsv: expected 390965 predictions, found no")
    ]
    assert len(found) == 1, found
    assert line in found[0]
    assert found[0].isprintable()


def test_the_lines_of_the_wrong_ones_differ():
    assert len(WRONG) == len({line for _, line in WRONG.values()}) > 30


def test_a_folder_of_the_files_is_checked_as_a_zip_is(contents, tmp_path):
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    assert wrong_with(tmp_path) == []
    (tmp_path / "QQP.tsv").write_bytes(contents["QQP.tsv"].replace(b"\n300000\t", b"\n300000\t0"))
    (tmp_path / "AX.tsv").unlink()
    os.mkfifo(tmp_path / "AX.tsv")
    (tmp_path / "WNLI.tsv").write_bytes(bytes(1_000_000))
    (tmp_path / "old").mkdir()
    (tmp_path / ".DS_Store").touch()
    found = wrong_with(tmp_path)
    starts = (
        "'.DS_Store': expected only",
        "'old/': expected the files themselves",
        "QQP.tsv: line 300002: expected 0 or 1, found '0",
        "WNLI.tsv: expected at most 9,408 bytes, 146 rows, found more",
        "AX.tsv: expected a plain file",
    )
    for line, start in zip(found, starts, strict=True):
        assert line.startswith(start), line


def entries(path, *made):
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in made:
            archive.writestr(entry, content)
    return path


def test_entries_that_no_server_reads_are_named(contents, tmp_path):
    link = zipfile.ZipInfo("CoLA.tsv")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    packed = zipfile.ZipInfo("RTE.tsv")
    packed.compress_type = zipfile.ZIP_BZIP2
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = entries(
            tmp_path / "a.zip",
            (link, "/etc/passwd"),
            (packed, contents["RTE.tsv"]),
            ("WNLI.tsv", contents["WNLI.tsv"]),
            ("WNLI.tsv", contents["WNLI.tsv"]),
            ("SST-2.tsv", contents["SST-2.tsv"]),
            ("AX.tsv", contents["AX.tsv"]),
        )
    raw = bytearray(path.read_bytes())
    for local in re.finditer(rb"PK\x03\x04", bytes(raw)):
        if raw[local.start() + 30 :].startswith(b"SST-2.tsv"):
            raw[local.start() + 6] |= 1
        if raw[local.start() + 30 :].startswith(b"AX.tsv"):
            raw[local.start() + 60] ^= 1
    central = bytes(raw).rindex(b"SST-2.tsv") - 46
    raw[central + 8] |= 1
    path.write_bytes(raw)
    found = {line.partition(":")[0]: line for line in wrong_with(path)}
    for name, part in (
        ("CoLA.tsv", "found a link or a device"),
        ("RTE.tsv", "found compression method 12"),
        ("WNLI.tsv", "found it twice"),
        ("SST-2.tsv", "found the file encrypted"),
        ("AX.tsv", "found it damaged (\"Bad CRC-32 for file 'AX.tsv'\")"),
    ):
        assert part in found[name]


def test_what_is_no_zip_is_refused_in_one_line(contents, tmp_path):
    (tmp_path / "empty.zip").touch()
    (tmp_path / "text.zip").write_bytes(contents["AX.tsv"])
    (tmp_path / "glue.tar.gz").write_bytes(gzip.compress(contents["AX.tsv"]))
    (tmp_path / "cut.zip").write_bytes(
        entries(tmp_path / "whole.zip", ("AX.tsv", contents["AX.tsv"])).read_bytes()[:-30]
    )
    with (tmp_path / "large.zip").open("wb") as file:
        file.truncate(MOST_ZIP_BYTES + 1)
    entries(tmp_path / "many.zip", *((str(number), b"") for number in range(301)))
    os.mkfifo(tmp_path / "pipe.zip")
    for name, part in (
        ("empty.zip", "found an empty file"),
        ("text.zip", "found none, or one cut short ('File is not a zip file')"),
        ("glue.tar.gz", "found a gzip file"),
        ("cut.zip", "found none, or one cut short"),
        ("large.zip", "found 8,388,609"),
        ("many.zip", "found 301; zip those files alone"),
        ("pipe.zip", "found something that is no file"),
        ("none.zip", "found none; gpt1 submission make FILE makes one"),
    ):
        with pytest.raises(UserError, match=re.escape(part)):
            submission("check", tmp_path / name)


WNLI = BY_NAME["WNLI.tsv"]
GOOD = re.compile(
    rb"index\tprediction\n" + b"\n".join(rb"%d\t[01]" % row for row in range(146)) + rb"\n?"
)


PIECES = st.sampled_from([b"\t", b"\n", b"1", b"0", b"", b"\r", b"\xff", b"\x1b", b" "])


@given(st.lists(st.tuples(st.integers(0, 950), st.integers(0, 3), PIECES), max_size=3))
def test_a_file_is_well_exactly_if_it_matches_one_pattern(edits):
    content = WNLI.written(["1"] * 146)
    for place, many, text in edits:
        content = content[:place] + text + content[place + many :]
    wrong = wrong_in(WNLI, content)
    assert (wrong is None) == bool(GOOD.fullmatch(content))
    assert wrong is None or wrong.isprintable()


@given(st.binary(max_size=300), st.integers(0, 2000), st.binary(max_size=8))
def test_any_bytes_give_a_line_or_a_result(tmp_path_factory, content, place, noise):
    assert isinstance(wrong_in(BY_NAME["STS-B.tsv"], content), str)
    path = tmp_path_factory.getbasetemp() / "any.zip"
    raw = entries(path, ("WNLI.tsv", WNLI.written(["1"] * 146)), ("AX.tsv", content)).read_bytes()
    path.write_bytes(raw[:place] + noise + raw[place + len(noise) :])
    try:
        lines = wrong_with(path)
    except UserError as error:
        lines = [str(error)]
    assert all(line.isprintable() for line in lines)
