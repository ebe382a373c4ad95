"""Errors that a person reads, and exit statuses."""

import codecs
import errno
import gc
import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from typing import NoReturn

USER_ERROR_STATUS = 2
INTERRUPTED_STATUS = 130
TEMPORARY_STATUS = 75  # EX_TEMPFAIL of sysexits.h: what failed may go well a little later
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# what a person does who called a command where no run is
ELSEWHERE = "run this in a project folder (the root of a clone)"


def printable(text: str) -> str:
    """Escape control characters and marks of direction, which could steer a terminal."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def plain(text: str) -> str:
    """Make text from a file `printable` line by line."""
    return "\n".join(map(printable, text.expandtabs().split("\n")))


def did_you_mean(name: str, candidates: Iterable[str], section: str = "") -> str:
    """Return `; did you mean cola?` for a name like a known one, else ""."""
    import difflib

    short = re.compile(".*".join(map(re.escape, name)))
    near = difflib.get_close_matches(name, sorted_names := sorted(candidates), 1)
    near += filter(short.match, sorted_names)
    return f"; did you mean {section}{near[0]}?" if near else ""


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say where a text stops being UTF-8."""
    if error.start == 0 and error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "the mark of UTF-16"
    return f"byte {error.object[error.start]:#04x} at {error.start}"


class UserError(Exception):
    """A mistake that the user can correct. Its line says what was expected, found, and to do."""

    def __str__(self) -> str:
        return printable(" ".join(super().__str__().split()))


class TemporaryError(UserError):
    """A fault, as of a network, that the next try may not meet."""


def run_stage(main: Callable[[], None]) -> None:
    """Run a stage; an error that a person can mend ends it with one line and a status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # what it cannot encode is escaped, as on stderr
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stdout = sys.stdout or io.StringIO()  # it was closed
    try:
        main()
    except UserError as error:
        if rank := int(os.environ.get("RANK", "0")):  # the first process says what all say alike,
            time.sleep(2.0 + rank)  # and its launcher then ends the others
        temporary = isinstance(error, TemporaryError)
        _end(f"error: {error}", TEMPORARY_STATUS if temporary else USER_ERROR_STATUS)
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module == "gpt1" or str(error.name).startswith("flows."):
            raise
        extra = "ray" if module == "ray" else "pipeline"
        how = f"in a clone make setup, or pip install '.[{extra}]'"
        if module == "flows":  # no wheel has it
            how = f"make setup, and {ELSEWHERE}"
        _end(f"error: expected the package {module}, found none: {how}", USER_ERROR_STATUS)
    except (RuntimeError, MemoryError) as error:
        kind = type(error).__name__  # torch, which has an error of its own, is slow to import
        if "MemoryError" not in kind and "can't allocate memory" not in str(error):
            raise
        _end(
            f"error: too little memory ({kind}: {printable(str(error))[:120]}); set"
            " GPT1_MICRO_BATCH to fewer rows at a time, or have fewer stages side by side: gpt1 run"
            " -j 1",
            USER_ERROR_STATUS,
        )
    except OSError as error:
        numbers = (*DISK_FULL, *FORBIDDEN)  # by its words, which copytree keeps of others alone
        number = next((code for code in numbers if os.strerror(code) in str(error)), None)
        if number is None:
            raise
        cannot, cure = (
            ("written", "make room on the disk")
            if number in DISK_FULL
            else ("used", "make it readable and its folder writable to you")
        )
        _end(
            f"error: {printable(str(error.filename or 'an output'))} cannot be {cannot}"
            f" ({os.strerror(number)}): {cure} and run the same command again; nothing finished was"
            " lost",
            USER_ERROR_STATUS,
        )
    except KeyboardInterrupt as interrupt:
        gc.freeze()  # or else Python would look through all of torch's objects before it ends
        default = "interrupted: nothing finished was lost; run the same command again to go on"
        _end(str(interrupt) or default, INTERRUPTED_STATUS)


def _end(line: str, status: int) -> NoReturn:
    print(line, file=sys.stderr, flush=True)
    sys.exit(status)
