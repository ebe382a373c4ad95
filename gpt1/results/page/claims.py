"""The paper's claims with this run's verdict on each, as the page shows them."""

from collections.abc import Sequence

from gpt1.results.bootstrap import COVERAGE
from gpt1.results.claims import POINTS, RANKS
from gpt1.results.page.cells import Cell, Sheet, Tone, interval
from gpt1.results.records import Record
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    NOT_CONFIRMED,
    NOT_MEASURED,
    UNDECIDED,
)
from gpt1.results.words import minus, number
from gpt1.results.zero_shot_claims import SCALED, SQUARED

VERDICTS: dict[str, tuple[Tone, str]] = {
    CONFIRMED: ("good", "✓"),
    NOT_CONFIRMED: ("bad", "✗"),
    UNDECIDED: ("even", "≈"),
    DOES_NOT_COMPARE: ("quiet", "§"),
    NOT_MEASURED: ("quiet", "·"),
}
HEADER = ("claim", "verdict", "the paper", "this run", f"{COVERAGE:.0%} interval", "on what")
FORMS = {
    POINTS: "+.1f",
    SCALED: "+.1f",
    SQUARED: "+.1f",
    RANKS: "+.2f",
}  # whatever else is counted, in whole numbers


def counts(records: Sequence[Record]) -> dict[str, int]:
    """How many claims have which verdict, each verdict among them."""
    return {verdict: sum(one["verdict"] == verdict for one in records) for verdict in VERDICTS}


def claims(records: Sequence[Record], caption: str) -> Sheet:
    """Every claim a row, in the paper's order."""
    return Sheet(caption, HEADER, tuple(_row(one) for one in records))


def _row(one: Record) -> tuple[Cell, ...]:
    tone, mark = VERDICTS[one["verdict"]]
    ours = one.get("score")
    form = FORMS.get(one["unit"], ".0f")
    of, detail = (
        (f" {one['detail']}", "")
        if (one["detail"] or "").startswith("of ")
        else ("", minus(one["detail"] or ""))
    )  # 3 of 4
    told = (
        Cell()
        if ours is None
        else Cell(number(ours, form) + of, "\n".join(filter(None, (one["unit"], detail))))
    )
    return (
        Cell(one["statement"] + ("§" if one["made_up"] else ""), one["where"]),
        Cell(one["verdict"], "", tone, mark),
        Cell(minus(one["published"])),
        told,
        Cell(interval(one, form)),
        Cell("", one["basis"]),
    )
