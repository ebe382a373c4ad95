"""The command line as a whole: which commands there are, their help, examples and exit statuses,
how long help takes, docs/cli.md.
"""

import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from gpt1.base import errors
from gpt1.cli import COMMANDS, ENDING, app, main

NAMES = [name.rstrip("_") for name in COMMANDS]
EXAMPLE = re.compile(
    r"^ +(?:[A-Z0-9_]+=\S+ )*gpt1 (.+?)(?: {2,}.*)?$"
)  # a comment stands after two blanks or more
ROOT = Path(__file__).parents[1]
RENEW = "typer gpt1.cli utils docs --name gpt1 --output docs/cli.md"
MAIN = "import sys; sys.argv[0] = 'gpt1'; from gpt1.cli import main; main()"


def gpt1(*words, **environment):
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def load(name):
    return get_command(app).commands[name]


def examples(name):
    found = [match[1] for line in load(name).epilog.splitlines() if (match := EXAMPLE.match(line))]
    return [shlex.split(re.split(r" (?:\||&&|>) ", line)[0]) for line in found]


def test_every_example_of_a_command_is_understood():
    for name in NAMES:
        assert any(words[0] == name for words in examples(name)), (
            "a command needs an example of itself"
        )
        for words in examples(name):
            command = load(words[0])
            if "<" in words:  # what the shell takes out
                words = words[: words.index("<")]
            with command.make_context(words[0], list(words[1:])) as context:
                assert not context.args, f"gpt1 {shlex.join(words)}: {context.args} is left over"


def test_the_page_of_the_command_line_is_as_the_commands_are(tmp_path):
    """RENEW writes it anew."""
    page = tmp_path / "cli.md"
    words = [sys.executable, "-m", *RENEW.split()[:-1], page]
    subprocess.run(words, check=True, capture_output=True, cwd=ROOT)
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == page.read_text(encoding="utf-8")


def test_help_lists_every_command_and_every_exit_status():
    said = gpt1("--help", COLUMNS="80")
    assert said.returncode == 0
    assert re.findall(r"^  (\w+) {2,}[A-Z]", said.stdout, re.MULTILINE) == NAMES
    assert max(map(len, said.stdout.splitlines())) <= 80
    for status in (errors.USER_ERROR_STATUS, errors.TEMPORARY_STATUS, errors.INTERRUPTED_STATUS):
        assert re.search(rf"^ +{status} ", ENDING, re.MULTILINE)


def test_help_is_quick_for_it_imports_next_to_nothing():
    """A third of a second of processor time at most; what would cost more is named."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    listed = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "import sys; from gpt1.cli import app\ntry: app(['--help'])\n"
                "except SystemExit: print('modules:', *sys.modules)"
            ),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    modules = set(listed.stdout.partition("modules: ")[2].split())
    assert "gpt1.commands.run" in modules
    assert not modules & {
        "rich",
        "torch",
        "numpy",
        "pydantic",
        "dvc",
        "mlflow",
        "prefect",
        "gpt1.params.schema",
        "transformers",
    }
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.33


def test_a_mistyped_command_is_met_with_the_one_that_was_meant():
    said = gpt1("estmate")
    assert said.returncode == 2
    assert re.fullmatch(r"error: .*'estmate'.*'estimate'\?.*gpt1 --help.*\n", said.stderr)


def test_a_command_line_that_cannot_be_understood_is_one_line(monkeypatch, capsys):
    for words, told in [
        ("table tabel2", r"'tabel2' is not one of 'table2', "),
        ("table --format json", r"Missing argument 'name'.*table2, table3"),
        (
            "table table2 --format csv --against x",
            "--against: expected --format terminal, found csv",
        ),
        ("table table2 --all", "--all: expected --against too"),
        ("table table2 --format pdf", "'pdf' is not one of 'terminal'"),
        ("table table2 more", "unexpected extra argument"),
        ("run -j none", "'-j' / '--lanes'"),
        ("generate x --top-p 7", "'--top-p': Input should be less than or equal to 1"),
        *((f"{name} --no-such-option", "No such option: --no-such-option") for name in NAMES),
    ]:
        monkeypatch.setattr(sys, "argv", ["gpt1", *words.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1)
        assert re.fullmatch(
            rf"error: .*gpt1 {words.split()[0]}: .*{told}.* \(.*gpt1 {words.split()[0]} --help\)\n",
            said.err,
        )


FULL, READ_ONLY = "No space left on device", "Read-only file system"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (errors.UserError("mend it"), 2, "mend it\n"),
        (errors.TemporaryError("try again"), 75, "try again\n"),
        (OSError(28, FULL, "x"), 2, f"x cannot be written ({FULL})"),
        (
            shutil.Error([("a", "b", f"[Errno 28] {FULL}: b")]),
            2,
            f"an output cannot be written ({FULL}): make room on the disk",
        ),
        (
            OSError(30, READ_ONLY, "x"),
            2,
            f"x cannot be used ({READ_ONLY}): make it readable and its folder",
        ),
    ],
)
def test_what_a_person_can_mend_ends_a_command_with_one_line_and_a_status(
    error, status, line, monkeypatch, capsys
):
    def fail():
        raise error

    monkeypatch.setattr("gpt1.params.schema.read_params", fail)
    monkeypatch.setattr(sys, "argv", ["gpt1", "sync"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (status, 1)
    assert said.startswith(f"error: {line}")


def test_what_a_terminal_cannot_encode_is_escaped():
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "table", "table5", "--run", "gpt1/reference/town"],
        cwd=Path(errors.__file__).parents[2],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\xb1" in done.stdout
