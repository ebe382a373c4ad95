"""The paper's claims and a verdict on each: a page in three formats, numbers for DVC, and a picture
of the effects.
"""

import itertools
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpt1.base.files import write_json
from gpt1.params.schema import Params
from gpt1.results import document as documents
from gpt1.results import drawing
from gpt1.results.ablation_page import caption_facts
from gpt1.results.ablations import ablation
from gpt1.results.bootstrap import COVERAGE, REPLICATES
from gpt1.results.claims import POINTS, RANKS, ablation_claims, transfer_claims
from gpt1.results.document import Block, Bullets, Grid, Heading, Paragraph, write_document
from gpt1.results.formats import as_csv, floating, tabular
from gpt1.results.notes import FEW_SEEDS
from gpt1.results.records import write_scores
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    NOT_CONFIRMED,
    NOT_MEASURED,
    RULE,
    UNDECIDED,
    Claim,
)
from gpt1.results.words import NONE, ONE_SEED, alone, minus, number
from gpt1.results.zero_shot_claims import SCALED, SQUARED, zero_shot_claims

if TYPE_CHECKING:  # half a second, which only drawing is worth
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADING = "What the paper claims of its ablations, and what this run says of it"
HEADER = (
    "claim",
    "where",
    "the paper",
    "this run",
    f"{COVERAGE:.0%} interval",
    "unit",
    "verdict",
    "on what",
)
CSV_COLUMNS = (
    "claim",
    "statement",
    "where",
    "published",
    "published_value",
    "unit",
    "ours",
    "low",
    "high",
    "seeds",
    "verdict",
    "made_up",
    "basis",
    "detail",
    "profile",
    "corpus",
)
MADE_UP = "§"
MARKS = {
    CONFIRMED: ("o", drawing.BLUE),
    NOT_CONFIRMED: ("X", drawing.VERMILION),
    UNDECIDED: ("D", drawing.GREY),
    DOES_NOT_COMPARE: ("s", drawing.GREY),
}
INCHES_WIDE, INCHES_A_LINE, INCHES_BETWEEN, INCHES_OF_AXIS = 7.0, 0.14, 0.11, 0.5
LETTERS_WIDE = 68  # a longer statement takes two lines
PANELS = {POINTS: "points (score × 100)", SCALED: SCALED, RANKS: RANKS}


def write(params: Params, folder: Path) -> str:
    """Write the claims into `folder`; returns their markdown. Raises UserError where a result that
    params.yaml names is missing.
    """
    table = ablation(params)
    claims = [*ablation_claims(params, table), *transfer_claims(params), *zero_shot_claims(params)]
    facts = caption_facts(params, table)
    text = write_document(folder, "claims", document(facts, claims))
    (folder / "claims.tex").write_text(latex(facts, claims), encoding="utf-8")
    rows = records(params, claims)
    write_scores(folder, rows)
    rows = [row | {"ours": row.get("score")} for row in rows]
    (folder / "claims.csv").write_text(as_csv(rows, CSV_COLUMNS), encoding="utf-8")
    write_json(folder / "metrics.json", metrics(claims))
    drawing.write_pictures(folder, "claims", lambda: draw(params.profile, claims))
    return text


def row_of(claim: Claim) -> tuple[str, ...]:
    """A claim under HEADER."""
    value, interval = NONE, NONE
    if claim.estimate:
        low, high = claim.estimate.interval
        form = {POINTS: "+.1f", SCALED: "+.1f", SQUARED: "+.1f", RANKS: "+.2f"}.get(
            claim.unit, ".0f"
        )
        value = number(claim.estimate.value, form) + (
            f" ({minus(claim.detail)})" if claim.detail else ""
        )
        interval = f"[{number(low, form)}, {number(high, form)}]{alone(claim.estimate.seeds)}"
    return (
        claim.statement + (MADE_UP if claim.made_up else ""),
        claim.where,
        minus(claim.published),
        value,
        interval,
        claim.unit,
        claim.verdict,
        claim.basis,
    )


def notes(claims: Sequence[Claim]) -> list[str]:
    """The rule, how the intervals are made, and how far they carry."""
    lines = [
        f"Rule: {RULE}",
        (
            f"Intervals: {COVERAGE:.0%} by a percentile bootstrap of {REPLICATES:,} replicates over"
            " examples and seeds, paired: the same examples and seeds serve both systems of a"
            " difference; tasks are drawn apart. Zero-shot answers have no seeds, for there is one"
            f" pre-training of each network: their intervals are over examples alone, of"
            f" {ONE_SEED}. {FEW_SEEDS}"
        ),
        (
            "Each verdict stands on its own interval; among twenty such claims one may come out"
            " wrong by chance alone."
        ),
        (
            "Steadily, and the more layers: Spearman's rank correlation of the score with the"
            " number of layers or updates, over all points; that every single step rises would be"
            " too much to ask of scores with a sampling error. Five points need 0.9, which chance"
            " alone reaches in 4% of their orders. Drawing examples again adds noise to the order,"
            " so its interval leans towards 0; and it takes what one seed did at a point for a fact"
            " of that point."
        ),
        (
            f"Points: score x 100. {SCALED[0].upper()}{SCALED[1:]}: (score - random) / (state of"
            " the art - random) x 100, as in Figure 2. Variance: that of a snapshot's relative"
            " performance about the line between both its neighbours in log updates (Gasser et al."
            " 1986), the mean over the sets, the LSTM's less the Transformer's."
        ),
    ]
    if any(claim.made_up for claim in claims):
        lines.append(
            f"{MADE_UP} on made-up tasks in the official file formats: a verdict is about this"
            " pipeline at this size, and says nothing about the paper's own data; sizes do not"
            " compare."
        )
    return lines


def document(facts: Sequence[tuple[str, str]], claims: Sequence[Claim]) -> list[Block]:
    """The claims in the order in which they are read."""
    return [
        Heading(1, HEADING),
        documents.facts(facts),
        Paragraph(summary(claims)),
        Grid(HEADER, tuple(map(row_of, claims))),
        Bullets(tuple(notes(claims))),
    ]


def summary(claims: Sequence[Claim]) -> str:
    """How many claims have which verdict."""
    counts = [
        (sum(claim.verdict == one for claim in claims), one)
        for one in (CONFIRMED, NOT_CONFIRMED, UNDECIDED, DOES_NOT_COMPARE, NOT_MEASURED)
    ]
    return f"Of {len(claims)} claims: {', '.join(f'{count} {one}' for count, one in counts)}."


def latex(facts: Sequence[tuple[str, str]], claims: Sequence[Claim]) -> str:
    r"""The claims as one LaTeX table; it needs \usepackage{booktabs} and nothing else."""
    caption = f"{HEADING}. {'. '.join(f'{name}: {text}' for name, text in facts)}."
    widths = "p{4.2cm}p{2.2cm}p{2.0cm}p{2.4cm}p{2.2cm}p{2.0cm}p{2.2cm}"
    body = tabular(widths, HEADER[:-1], [row_of(claim)[:-1] for claim in claims])
    return floating("claims", r"\scriptsize", caption, body, notes(claims))


def records(params: Params, claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """One flat record a claim."""
    return [
        {
            "table": "claims",
            "row": "ours",
            "claim": claim.key,
            "statement": claim.statement,
            "where": claim.where,
            "published": claim.published,
            "published_value": claim.published_value,
            "unit": claim.unit,
            "verdict": claim.verdict,
            "made_up": claim.made_up,
            "basis": claim.basis,
            "detail": claim.detail,
            "profile": params.profile,
            "corpus": params.clean.corpus_name,
        }
        | (_numbers(claim) if claim.estimate else {})
        for claim in claims
    ]


def metrics(claims: Sequence[Claim]) -> dict[str, Any]:
    """Numbers for `dvc metrics`: {"claims": {"pretraining_helps": {"ours": …, "low": …, "high": …,
    "confirmed": 1}, …}}.
    """
    sign = {CONFIRMED: 1, NOT_CONFIRMED: -1}
    rows: dict[str, Any] = {
        claim.key: (
            {
                "ours" if name == "score" else name: round(value, 4)
                for name, value in _numbers(claim).items()
            }
            | {"confirmed": sign.get(claim.verdict, 0)}
        )
        for claim in claims
        if claim.estimate
    }
    rows["verdicts"] = {
        name: sum(claim.verdict == one for claim in claims)
        for name, one in (
            ("confirmed", CONFIRMED),
            ("not_confirmed", NOT_CONFIRMED),
            ("undecided", UNDECIDED),
            ("does_not_compare", DOES_NOT_COMPARE),
            ("not_measured", NOT_MEASURED),
        )
    }
    return {"claims": rows}


def _numbers(claim: Claim) -> dict[str, float]:
    assert claim.estimate is not None
    low, high = claim.estimate.interval
    return {"score": claim.estimate.value, "low": low, "high": high, "seeds": claim.estimate.seeds}


def draw(profile: str, claims: Sequence[Claim]) -> "Figure":
    """Every effect with its interval, a panel for each unit, the colour and form of a mark its
    verdict.
    """
    from matplotlib.figure import Figure

    panels = [
        (title, shown)
        for unit, title in PANELS.items()
        if (shown := [claim for claim in claims if claim.estimate and claim.unit == unit])
    ]
    if not panels:
        return drawing.empty("no claim was measured", (INCHES_WIDE, 1.5))
    heights = [_places(shown)[-1] for _, shown in panels]
    figure = Figure(
        figsize=(INCHES_WIDE, sum(heights) + INCHES_OF_AXIS * len(heights) + 0.8),
        layout="constrained",
    )
    for axes, (title, shown) in zip(
        figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0],
        panels,
        strict=True,
    ):
        _panel(axes, title, shown)
    top = figure.axes[0]
    invented = (
        f" ({MADE_UP} on made-up tasks)"
        if any(claim.made_up for _, shown in panels for claim in shown)
        else ""
    )
    figure.suptitle(
        f"Claims of the paper, {profile}: effects with {COVERAGE:.0%} intervals{invented}",
        fontsize="medium",
    )
    for name, (marker, colour) in MARKS.items():
        top.plot([], [], marker, color=colour, markersize=4.5, label=name)
    top.plot(
        [], [], "|", color="black", markersize=9, markeredgewidth=1.2, label="the paper's number"
    )
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def _panel(axes: "Axes", title: str, claims: Sequence[Claim]) -> None:
    drawing.plain(axes)
    axes.axvline(0, color=drawing.GREY, linewidth=0.9)
    *begins, end = _places(claims)
    middles = [(begin + after) / 2 for begin, after in itertools.pairwise((*begins, end))]
    for place, claim in zip(middles, claims, strict=True):
        assert claim.estimate is not None
        marker, colour = MARKS[claim.verdict]
        low, high = claim.estimate.interval
        axes.plot([low, high], [place, place], color=colour, linewidth=1.4)
        axes.plot(claim.estimate.value, place, marker, color=colour, markersize=4.5)
        if claim.published_value is not None and not claim.made_up:
            axes.plot(
                claim.published_value, place, "|", color="black", markersize=9, markeredgewidth=1.2
            )
    axes.set_yticks(middles, ["\n".join(_lines(claim)) for claim in claims])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(end, 0)
    axes.set_xlabel(title)


def _lines(claim: Claim) -> list[str]:
    assert claim.estimate is not None
    return textwrap.wrap(
        claim.statement + (MADE_UP if claim.made_up else "") + alone(claim.estimate.seeds),
        LETTERS_WIDE,
        break_on_hyphens=False,
    )


def _places(claims: Sequence[Claim]) -> list[float]:
    """Where each claim's row begins from the top, in inches, and where the last ends: a row is as
    high as its lines.
    """
    return [
        0.0,
        *itertools.accumulate(
            INCHES_A_LINE * len(_lines(claim)) + INCHES_BETWEEN for claim in claims
        ),
    ]
