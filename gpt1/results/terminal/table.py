"""`gpt1 table`: one page of the report in the format that is asked for, or set beside that of
another run or revision.
"""

import csv
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from gpt1.base.errors import UserError
from gpt1.base.files import stage_folder
from gpt1.base.terminal import console, plain, print_json
from gpt1.results.terminal.compare import compare, print_differences
from gpt1.results.terminal.other import other_numbers, read_numbers
from gpt1.results.terminal.page import print_page

Name = Literal["table2", "table3", "table4", "table5", "figure2", "claims", "curves"]
Format = Literal["terminal", "markdown", "csv", "latex", "json"]
CHANGED_SHOWN = 4  # a person who wants all asks for JSON
SUFFIXES = {"markdown": ".md", "csv": ".csv", "latex": ".tex"}


def show_table(name: str, format_: Format, against: str | None, changed: Sequence[str]) -> None:
    """Print a page of the report. Raises UserError where it has not been made, not in that format,
    or cannot be compared.

    changed: what params.yaml has other values for than the results were made with; said on the
    error stream, or in the JSON.
    """
    folder = stage_folder("report", name)
    if changed and format_ != "json":
        more = f"; {len(changed) - CHANGED_SHOWN} more" if len(changed) > CHANGED_SHOWN else ""
        print(
            plain(
                f"note: params.yaml has other values than {name} was made with:"
                f" {'; '.join(changed[:CHANGED_SHOWN])}{more}; gpt1 run {name} makes it anew"
            ),
            file=sys.stderr,
        )
    if against is not None:
        if format_ not in ("terminal", "json"):
            raise UserError(
                f"--against knows the formats terminal and json, found --format {format_}; leave"
                " one of the two out"
            )
        differences = compare(read_numbers(folder, name), other_numbers(name, against))
        if format_ == "json":
            print_json(
                {
                    "table": name,
                    "against": against,
                    "differences": [one._asdict() for one in differences],
                    "params_changed": list(changed),
                }
            )
        else:
            print_differences(console(), name, against, differences)
        return
    if format_ == "json":
        print_json(as_json(name, folder) | {"params_changed": list(changed)})
        return
    text = (
        read(folder / f"{name}{SUFFIXES.get(format_, '.md')}", name)
        if format_ != "csv"
        else read(records_of(name, folder), name)
    )
    if format_ == "terminal":
        print_page(console(), name, text)
    else:
        sys.stdout.write(plain(text) if sys.stdout.isatty() else text)


def read(path: Path, name: str) -> str:
    """The text of a file of a page. Raises UserError where it is not there."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        there = sorted(
            other
            for other, suffix in SUFFIXES.items()
            if (path.parent / f"{name}{suffix}").is_file()
        )
        if there:
            raise UserError(
                f"{name} is not written as {path.suffix[1:]}; expected one of"
                f" {', '.join([*there, 'json'])}"
            ) from None
        if not Path("dvc.yaml").is_file():
            raise UserError(
                f"{Path.cwd()} is no checkout, and holds no {path.parent}: call gpt1 table in the"
                " root of one"
            ) from None
        raise UserError(
            f"{path.parent} is not there: gpt1 run {name} makes it, gpt1 status {name} says what"
            " that needs"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path} cannot be read ({error}); make it anew: dvc repro -f -s {name}"
        ) from None


def records_of(name: str, folder: Path) -> Path:
    """The file that holds every number of a page, a record a line."""
    return folder / ("parameters.csv" if name == "curves" else f"{name}.csv")


def as_json(name: str, folder: Path) -> dict[str, Any]:
    """Every record of a page, and its numbers as DVC's metrics have them. Raises UserError."""
    number: Callable[[str], Any] = json.loads

    def value(text: str) -> Any:
        try:
            return number(text) if text else None
        except ValueError:
            return text

    records = csv.DictReader(read(records_of(name, folder), name).splitlines())
    return {
        "table": name,
        "records": [
            {key: value(text) for key, text in record.items() if text} for record in records
        ],
        "metrics": read_numbers(folder, name),
    }
