"""Nothing half-written is ever taken for whole; one mistake is one line and one exit status."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpt1.base.errors import UserError
from gpt1.base.files import fingerprint, read_json, sha256_file, write_json, writing, writing_folder


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "result.txt"
    with writing(path) as file:
        file.write("first")

    def fail() -> None:
        with writing(path) as file:
            file.write("half of the sec")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "first"
    assert [entry.name for entry in path.parent.iterdir()] == ["result.txt"]


def test_a_failed_folder_leaves_what_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    with writing_folder(folder) as temporary:
        (temporary / "a").write_text("1")

    def fail() -> None:
        with writing_folder(folder) as temporary:
            (temporary / "b").write_text("2")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [entry.name for entry in folder.iterdir()] == ["a"]
    with writing_folder(folder) as temporary:
        (temporary / "b").write_text("2")
    assert [entry.name for entry in folder.iterdir()] == ["b"], (
        "a new result replaces the whole folder"
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["stage"]


def test_a_link_is_never_replaced_nor_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "precious").touch()
    (tmp_path / "stage").symlink_to(tmp_path / "disk")
    with pytest.raises(UserError, match="is a link"), writing_folder(tmp_path / "stage"):
        raise AssertionError("the work was begun")
    assert (tmp_path / "stage" / "precious").exists()
    assert (tmp_path / "stage").is_symlink()
    with writing_folder(tmp_path / "stage" / "part") as folder:  # below a link is as good a place
        (folder / "result").touch()
    assert {path.name for path in (tmp_path / "disk").iterdir()} == {"precious", "part"}


def test_json_is_the_same_bytes_for_equal_values(tmp_path: Path) -> None:
    write_json(tmp_path / "1.json", {"b": 1, "a": [0.1, "é"]})
    write_json(tmp_path / "2.json", {"a": [0.1, "é"], "b": 1})
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    assert read_json(tmp_path / "1.json") == {"a": [0.1, "é"], "b": 1}
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "3.json", float("nan"))
    assert not (tmp_path / "3.json").exists()


def test_hashes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_file(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()
    assert fingerprint({"a": 1, "b": 2}) == fingerprint(json.loads('{"b": 2, "a": 1}'))
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


@pytest.mark.parametrize(
    ("raised", "status", "line"),
    [
        ("UserError('expected a,\\n  found b')", 2, "error: expected a, found b\n"),
        ("KeyboardInterrupt()", 130, "interrupted: .*\n"),
    ],
)
def test_a_stage_ends_with_one_line(raised: str, status: int, line: str) -> None:
    program = f"from gpt1.base.errors import UserError, run_stage\ndef main(): raise {raised}\nrun_stage(main)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (status, "")
    assert re.fullmatch(line, done.stderr)


def test_user_errors_are_one_line() -> None:
    assert str(UserError("a\nb   c")) == "a b c"
