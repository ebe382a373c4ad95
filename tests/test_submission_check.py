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
from gpt1.exchange.submission.board import BY_NAME, FILES, wrong_in
from gpt1.exchange.submission.check import MOST_ZIP_BYTES, wrong_with


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
    "extra": (lambda files: files | {"notes.txt": b"x"}, "'notes.txt': expected only"),
    "nested": (
        lambda files: {f"glue/{name}": content for name, content in files.items()},
        "'glue/': expected only the files' names, found another; zip the eleven files alone",
    ),
    "windows": (lambda files: files | {"a\\CoLA.tsv": b""}, "'a/': expected only"),
    "macos": (lambda files: files | {"__MACOSX/._CoLA.tsv": b"x"}, "'__MACOSX/': expected only"),
    "escape": (lambda files: files | {"\x1b[31mred": b""}, r"'\x1b[31mred': expected only"),
    "header": (
        row("RTE.tsv", 1, b"index\tlabel"),
        r"RTE.tsv: line 1: expected the header 'index\tprediction', found 'index\tlabel'; write",
    ),
    "no header": (row("RTE.tsv", 1, []), r"found '0\tentailment'; write it so, one tab"),
    "commas": (
        all_of("RTE.tsv", lambda text: text.replace(b"\t", b",")),
        "found 'index,prediction'; write it so, one tab",
    ),
    "comma": (
        row("RTE.tsv", 9, b"7,entailment"),
        "RTE.tsv: line 9: expected 7, a tab and entailment or not_entailment, found '7,entail",
    ),
    "columns": (row("RTE.tsv", 9, b"7\tentailment\t0.9"), r"found '7\tentailment\t0.9'; write"),
    "crlf": (
        all_of("SST-2.tsv", lambda text: text.replace(b"\n", b"\r\n")),
        r"SST-2.tsv: line 1: expected the header 'index\tprediction', found 'index\tprediction\r'",
    ),
    "bom": (
        all_of("SST-2.tsv", lambda text: b"\xef\xbb\xbf" + text),
        r"SST-2.tsv: line 1: expected the header 'index\tprediction', found '\ufeffindex",
    ),
    "utf-16": (
        all_of("SST-2.tsv", lambda text: text.decode().encode("utf-16")),
        "SST-2.tsv: line 1: expected plain UTF-8, found the byte 0xff; save the file as UTF-8",
    ),
    "latin": (
        row("SST-2.tsv", 4, b"2\t\xe9"),
        "SST-2.tsv: line 4: expected plain UTF-8, found the byte 0xe9",
    ),
    "nul": (
        row("SST-2.tsv", 4, b"2\t\0"),
        r"SST-2.tsv: line 4: expected 2, a tab and 0 or 1, found '2\t\x00'",
    ),
    "empty file": (
        all_of("SST-2.tsv", lambda text: b""),
        "SST-2.tsv: line 1: expected the header 'index\\tprediction', found ''",
    ),
    "short": (
        row("MRPC.tsv", 1726, []),
        "MRPC.tsv: expected 1725 rows after the header, found 1724; predict every row",
    ),
    "long": (
        row("QNLI.tsv", 5465, [b"5463\tentailment", b""]),
        "QNLI.tsv: expected 5463 rows after the header, found 5464; predict every row of the"
        " official test file of the second version",
    ),
    "empty line": (
        row("CoLA.tsv", 8, b""),
        "CoLA.tsv: line 8: expected 6, a tab and 0 or 1, found ''",
    ),
    "twice": (
        row("CoLA.tsv", 8, b"5\t1"),
        r"CoLA.tsv: line 8: expected 6, a tab and 0 or 1, found '5\t1'",
    ),
    "from 1": (
        row("CoLA.tsv", 2, b"1\t1"),
        r"CoLA.tsv: line 2: expected 0, a tab and 0 or 1, found '1\t1'",
    ),
    "index": (
        row("CoLA.tsv", 8, b"6.0\t1"),
        r"CoLA.tsv: line 8: expected 6, a tab and 0 or 1, found '6.0\t1'",
    ),
    "number": (
        row("MNLI-m.tsv", 3, b"1\t2"),
        r"MNLI-m.tsv: line 3: expected 1, a tab and entailment or neutral or contradiction, found '1\t2'",
    ),
    "float": (
        row("WNLI.tsv", 3, b"1\t1.0"),
        r"WNLI.tsv: line 3: expected 1, a tab and 0 or 1, found '1\t1.0'",
    ),
    "class": (
        row("AX.tsv", 3, b"1\tnot_entailment"),
        r"AX.tsv: line 3: expected 1, a tab and entailment or neutral or contradiction, found '1\tnot_",
    ),
    "none": (row("AX.tsv", 3, b"1\t"), r"found '1\t'; write such a row for every row"),
    "blank": (row("AX.tsv", 3, b"1\tneutral "), r"found '1\tneutral '; write such a row"),
    "nan": (
        row("STS-B.tsv", 3, b"1\tnan"),
        r"STS-B.tsv: line 3: expected 1, a tab and a number from 0 to 5, found '1\tnan'",
    ),
    "range": (row("STS-B.tsv", 3, b"1\t5.001"), r"a number from 0 to 5, found '1\t5.001'"),
    "bomb": (
        all_of("AX.tsv", lambda text: bytes(20_000_000)),
        "AX.tsv: expected 1104 rows in at most 70,720 bytes, found more; write",
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


@pytest.mark.parametrize("name", ["COLA.tsv", "AX.csv", "MNLI_mm.tsv"])
def test_a_wrong_name_and_the_file_that_lacks_are_both_told(tmp_path, name):
    (tmp_path / name).touch()
    assert wrong_with(tmp_path)[0].startswith(f"'{name}': expected only the files' names")
    assert len(wrong_with(tmp_path)) == 1 + len(FILES)


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
        "'old/': expected only",
        "QQP.tsv: line 300002: expected 300000, a tab and 0 or 1, found '300000",
        "WNLI.tsv: expected 146 rows in at most 9,408 bytes, found more",
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
        ("RTE.tsv", "found compression 12"),
        ("WNLI.tsv", "found it twice"),
        ("SST-2.tsv", "without password, found none"),
        ("AX.tsv", "found none (\"Bad CRC-32 for file 'AX.tsv'\")"),
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
        ("empty.zip", "or one cut short"),
        ("text.zip", "found none that can be read, or one cut short ('File is not a zip file')"),
        ("glue.tar.gz", "found none that can be read"),
        ("cut.zip", "found none that can be read"),
        ("large.zip", "found 8,388,609"),
        ("many.zip", "found 301 files; zip the eleven"),
        ("pipe.zip", "found none; gpt1 submission make"),
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
