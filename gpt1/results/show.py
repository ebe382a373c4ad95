"""`gpt1 table`: one page of the report in the format that is asked for, or set beside that of
another run.
"""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from gpt1.base.errors import ELSEWHERE, UserError
from gpt1.base.files import parse_json, read_json, sha256_file, stage_folder
from gpt1.base.terminal import console, plain, print_json
from gpt1.results.against import compare, other_numbers, print_differences, read_numbers
from gpt1.results.baselines import higher_sentences
from gpt1.results.document import (
    DOCUMENT,
    Block,
    Bullets,
    Document,
    Grid,
    Paragraph,
    markdown,
    read_document,
)
from gpt1.results.notes import LEGEND
from gpt1.results.paper import TABLES
from gpt1.results.records import SCORES, read_records
from gpt1.results.runs import RUN, make_anew, within
from gpt1.results.terminal_page import print_page
from gpt1.results.verdict import EXPLORATORY, MADE_UP

Format = Literal["terminal", "markdown", "csv", "latex", "json", "parquet"]
SIGNS = tuple(LEGEND)
BRIEF = ("table2", "table3", "table4", "table5", "claims")


def show_table(name: str, format_: Format, against: str | None) -> None:
    """Print a page of the report. Raises UserError where it has not been made, not in that format,
    or cannot be compared.
    """
    folder = stage_folder("report", name)
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
                }
            )
        else:
            print_differences(console(), name, against, differences)
        return
    if format_ == "json":
        print_json(as_json(name))
        return
    if format_ == "terminal":
        print_page(console(), name, document_of(name))
        return
    if format_ == "parquet" and sys.stdout.isatty():
        raise UserError(f"parquet is no text for a terminal: add > {name}.parquet")
    content = read(name, format_)
    sys.stdout.flush()
    sys.stdout.buffer.write(
        plain(content.decode(errors="replace")).encode() if sys.stdout.isatty() else content
    )


def show_brief(names: Sequence[str]) -> None:
    """Print the scores of tables and the verdicts on claims, without details and notes; of several,
    those that have been made. Raises UserError where none has.
    """
    there = [name for name in names if (stage_folder("report", name) / DOCUMENT).is_file()]
    for name in there or names[:1]:
        document = document_of(name)
        print(verdicts(document) if name == "claims" else scores(document))
    found = [one for name in there if name in TABLES for one in read_records(name)]
    if above := higher_sentences(found):
        print(f"\n{' '.join(above)}")


def scores(document: Document) -> str:
    """A page's title, its first grid, and what the signs in it mean."""
    place = next(at for at, block in enumerate(document) if isinstance(block, Grid))
    blocks = [document[0], document[place]]
    after = document[place + 1] if place + 1 < len(document) else None
    if isinstance(after, Bullets):
        blocks.append(Bullets(tuple(line for line in after.lines if line.startswith(SIGNS))))
    return markdown(blocks)


def verdicts(document: Document) -> str:
    """Whether the rules were fixed, how many claims have which verdict, then each: verdict, ours,
    statement.
    """
    summary = [block.text for block in document if isinstance(block, Paragraph)]
    grid = next(block for block in document if isinstance(block, Grid))
    places = [grid.header.index(name) for name in ("verdict", "this run", "claim")]
    rows = [[row[place] for place in places] for row in (grid.header, *grid.rows)]
    lines = [f"{verdict:22}  {ours:31}  {claim}" for verdict, ours, claim in rows]
    lines += ["", f"{EXPLORATORY} exploratory: tested by itself, not with the primary claims"]
    if any(claim.endswith(MADE_UP) for *_, claim in rows):
        lines += [
            f"{MADE_UP} on made-up tasks: the effect is there or not, its size does not compare"
            " with the paper's",
        ]
    return "\n".join([*summary, "", *lines])


def document_of(name: str) -> list[Block]:
    """A page of the report. Raises UserError where it has not been made."""
    try:
        return read_document(stage_folder("report", name), plain)
    except FileNotFoundError:
        raise missing(name, "terminal") from None


def file_of(name: str, format_: str) -> Path:
    """The file of a page in a format; as CSV the one that holds every number."""
    files = {
        "terminal": DOCUMENT,
        "markdown": f"{name}.md",
        "csv": "parameters.csv" if name == "curves" else f"{name}.csv",
        "latex": f"{name}.tex",
        "parquet": SCORES,
    }
    return stage_folder("report", name) / files[format_]


def read(name: str, format_: str) -> bytes:
    """A file of a page. Raises UserError where it is not there."""
    path = file_of(name, format_)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise missing(name, format_) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error}); {make_anew(name)}") from None


def missing(name: str, format_: str) -> UserError:
    """Why a page is not there in a format, and what to do."""
    folder = stage_folder("report", name)
    formats = ("csv", "latex", "markdown", "parquet")
    there = [other for other in formats if file_of(name, other).is_file()]
    if there and format_ == "terminal":
        return UserError(
            f"{folder / DOCUMENT} is not there, since an earlier version made {name}: gpt1 run"
            f" {name} makes it anew"
        )
    if there:
        return UserError(
            f"{name} is not written as {format_}; expected one of {', '.join([*there, 'json'])}"
        )
    if not Path("dvc.yaml").is_file():
        return UserError(
            f"{Path.cwd()} is no checkout, and holds no {folder}: {ELSEWHERE}, or add --run"
            " reference/town, which ships with gpt1"
        )
    return UserError(f"{folder} is not there: gpt1 run {name} makes it")


def as_json(name: str) -> dict[str, Any]:
    """Every record of a page, and its numbers as DVC's metrics have them. Raises UserError."""

    def value(text: str) -> Any:
        try:
            return parse_json(text) if text else None
        except ValueError:
            return text

    try:
        records = list(csv.DictReader(read(name, "csv").decode().splitlines(), restval=""))
    except (ValueError, csv.Error) as error:
        raise UserError(
            f"{file_of(name, 'csv')} cannot be read ({error}); {make_anew(name)}"
        ) from None
    return {
        "table": name,
        "records": [
            {key: value(text) for key, text in record.items() if key and text} for record in records
        ],
        "metrics": read_numbers(stage_folder("report", name), name),
    }


def facts_of(run: str) -> dict[str, Any]:
    """Of another run: its page's path and size; where it was packed its facts, and which files are
    not as they were then. Raises UserError where it has no page, or no such run is there.
    """
    with within(run):
        page = stage_folder("report", "index.html").absolute()
        if not page.is_file():
            raise UserError(f"{page} is not there: gpt1 report, in the root of that run, makes it")
        packed = read_json(Path(RUN)) if Path(RUN).is_file() else {"facts": {}, "files": {}}
        return {
            "path": page.as_posix(),
            "bytes": page.stat().st_size,
            "facts": {plain(name): plain(said) for name, said in packed["facts"].items()},
            "changed": [
                plain(name)
                for name, digest in packed["files"].items()
                if not Path(name).is_file() or sha256_file(Path(name)) != digest
            ],
        }
