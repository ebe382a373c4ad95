"""The paper's claims with this run's verdict on each, as the page shows them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from gpt1.results.bootstrap import COVERAGE
from gpt1.results.document import minus, number
from gpt1.results.page.cells import Cell, Sheet, Tone, interval
from gpt1.results.records import Record
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    FORMS,
    MADE_UP,
    NOT_CONFIRMED,
    NOT_MEASURED,
    UNDECIDED,
)

VERDICTS: dict[str, tuple[Tone, str]] = {
    CONFIRMED: ("good", "✓"),
    NOT_CONFIRMED: ("bad", "✗"),
    UNDECIDED: ("even", "≈"),
    DOES_NOT_COMPARE: ("quiet", "§"),
    NOT_MEASURED: ("quiet", "·"),
}
HEADER = ("claim", "verdict", "the paper", "this run", f"{COVERAGE:.0%} interval", "on what")


def counts(records: Sequence[Record]) -> Mapping[str, int]:
    """How many claims have which verdict."""
    return Counter(one["verdict"] for one in records)


def claims(records: Sequence[Record], caption: str) -> Sheet:
    """Every claim a row, in the paper's order."""
    return Sheet(caption, HEADER, tuple(_row(one) for one in records))


def _row(one: Record) -> tuple[Cell, ...]:
    tone, mark = VERDICTS[one["verdict"]]
    form, detail = FORMS.get(one["unit"], ".0f"), one["detail"] or ""
    ours = Cell()
    if one.get("score") is not None:
        text, notes = number(one["score"], form), [one["unit"]]
        if detail.startswith("of "):  # 3 of 4
            text += f" {detail}"
        elif detail:
            notes.append(minus(detail))
        ours = Cell(text, "\n".join(notes))
    return (
        Cell(one["statement"] + (MADE_UP if one["made_up"] else ""), one["where"]),
        Cell(one["verdict"], "", tone, mark),
        Cell(minus(one["published"])),
        ours,
        Cell(interval(one, form)),
        Cell("", one["basis"]),
    )
