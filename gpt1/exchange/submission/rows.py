"""One file of a submission, checked as GLUE's server would read it: a line says what is wrong with
it, or nothing is.
"""

import re

from gpt1.exchange.submission.board import HEADER, HIGHEST, LOWEST, NUMBERS, BoardFile
from gpt1.tasks.rows import shown

NUMBER = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
WIDE = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"\xef\xbb\xbf", "a byte-order mark"))


def wrong_in(file: BoardFile, content: bytes) -> str | None:
    """What the server would refuse in a file's bytes: where, what it expects, what is there, what
    to do. None where all is well.
    """
    encoding = _encoding(content)
    if encoding:
        return encoding
    lines = content.decode("utf-8").split("\n")
    if lines[-1] == "":
        lines.pop()
    if lines[0] != HEADER:
        return _header(file, lines[0])
    rows, words = lines[1:], frozenset(file.words)
    for index, row in enumerate(rows[: file.rows]):
        start, _, answer = row.partition("\t")
        if start != str(index) or (answer not in words if words else not _is_score(answer)):
            return f"line {index + 2}: {_row(file, index, row)}"
    if len(rows) != file.rows:
        more = (
            f"line {file.rows + 2} is one too many"
            if len(rows) > file.rows
            else f"it ends after line {len(lines)}"
        )
        return (
            f"expected {file.rows} rows after the header, found {len(rows)}: {more}; predict every"
            " row of the official test"
            f" file{' of the second version' if file.task == 'qnli' else ''}, and no other"
        )
    return None


def _encoding(content: bytes) -> str | None:
    """What is wrong with the bytes as text."""
    if not content:
        return f"expected the header {HEADER!r} and rows, found an empty file; write it again"
    for mark, name in WIDE:
        if content.startswith(mark):
            return (
                f"line 1: expected plain UTF-8, found {name}; save the file as UTF-8 without"
                " byte-order mark"
            )
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return (
            f"line {content.count(10, 0, error.start) + 1}: expected plain UTF-8, found the byte"
            f" {content[error.start]:#04x}; save the file as UTF-8"
        )
    for byte, name, todo in (
        (
            b"\r",
            "a carriage return (Windows or old Mac line ends)",
            "write it with line ends of LF alone, as by dos2unix",
        ),
        (b"\0", "a NUL character", "write it again as plain text"),
    ):
        if byte in content:
            return (
                f"line {content.count(10, 0, content.index(byte)) + 1}: expected text with line"
                f" ends of LF, found {name}; {todo}"
            )
    return None


def _header(file: BoardFile, first: str) -> str:
    """What is wrong with a header."""
    expected = f"line 1: expected the header {HEADER!r}, found {shown(first)}"
    if re.split(r"[,; |]+", first.strip()) == HEADER.split("\t"):
        return (
            f"{expected}, with another delimiter; put one tab between the columns, here and in"
            " every row"
        )
    if re.fullmatch(r"[0-9]+[\t,; |].*", first):
        return f"{expected}, a row; put the header before it"
    if sorted(first.lower().split("\t")) == sorted(HEADER.split("\t")):
        return f"{expected}; the index comes first, and both names are lower case"
    return f"{expected}; keep these two columns, in {file.name} and in all others"


def _row(file: BoardFile, index: int, row: str) -> str:
    """What is wrong with a row."""
    cells = row.split("\t")
    if not row.strip():
        return f"expected the row of index {index}, found an empty line; take it away"
    if len(cells) != 2:
        other = next((mark for mark in ",; |" if mark in row), None) if len(cells) == 1 else None
        found = f"the delimiter {other!r}" if other else f"{len(cells)} columns"
        return (
            f"expected an index, a tab and a prediction, found {found} in {shown(row)}; put one tab"
            " between two columns"
        )
    if cells[0] != str(index):
        return _index(index, cells[0])
    return _answer(file, cells[1])


def _index(index: int, found: str) -> str:
    """What is wrong with an index."""
    expected = f"expected the index {index}, found {shown(found)}"
    if not re.fullmatch("[0-9]{1,9}", found) or found != str(int(found)):
        return f"{expected}; write it as a whole number, with no more than its digits"
    if index == 0:
        return f"{expected}; count from 0, in the order of the official test file"
    if int(found) == index - 1:
        return f"{expected} a second time; give every index once"
    return f"{expected}; give every index once, in the order of the official test file"


def _answer(file: BoardFile, answer: str) -> str:
    """What is wrong with a prediction."""
    wanted = (
        ", ".join(file.words[:-1]) + f" or {file.words[-1]}"
        if file.words
        else f"a number from {LOWEST:g} to {HIGHEST:g}"
    )
    if not answer.strip():
        return f"expected {wanted}, found no prediction; predict every row"
    expected = f"expected {wanted}, found {shown(answer)}"
    if answer != answer.strip():
        return f"{expected}; take the blanks around it away"
    if not file.words:
        return (
            f"{expected}, which is out of range; clip the scores"
            if NUMBER.fullmatch(answer)
            else (f"{expected}, which is no number; predict every row with one")
        )
    if file.words != NUMBERS and NUMBER.fullmatch(answer):
        return f"{expected}; write the label's word, not its number"
    if file.words == NUMBERS and not NUMBER.fullmatch(answer):
        return f"{expected}; write the label's number, not its word"
    if file.words == NUMBERS and float(answer) in (0, 1):
        return f"{expected}; write whole numbers, without decimals or sign"
    return f"{expected}; write one of the labels of {file.name}, spelled so"


def _is_score(answer: str) -> bool:
    """Whether it is a number in range."""
    return bool(NUMBER.fullmatch(answer)) and LOWEST <= float(answer) <= HIGHEST
