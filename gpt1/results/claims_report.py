"""The paper's claims and a verdict on each, as words, as records and as a picture."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpt1.params.schema import Params
from gpt1.results.ablations import ablation
from gpt1.results.bootstrap import COVERAGE, REPLICATES
from gpt1.results.claims import ablation_claims, transfer_claims
from gpt1.results.document import (
    NONE,
    ONE_SEED,
    Block,
    Bullets,
    Facts,
    Grid,
    Heading,
    Paragraph,
    facts_list,
    minus,
    number,
    seeds_note,
)
from gpt1.results.formats import ReportContent, caption, estimate_record, floating, rounded, tabular
from gpt1.results.notes import FEW_SEEDS
from gpt1.results.records import Record
from gpt1.results.score_pictures import draw_claims
from gpt1.results.table5 import ablation_facts
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    FORMS,
    MADE_UP,
    NOT_CONFIRMED,
    NOT_MEASURED,
    RULE,
    SCALED,
    UNDECIDED,
    Claim,
)
from gpt1.results.zero_shot_claims import zero_shot_claims

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
    "claim statement where published published_value unit ours low high seeds verdict made_up basis"
    " detail profile corpus"
)
CLAIM_FIELDS = "statement where published published_value unit verdict made_up basis detail"
VERDICT_KEYS = {
    CONFIRMED: "confirmed",
    NOT_CONFIRMED: "not_confirmed",
    UNDECIDED: "undecided",
    DOES_NOT_COMPARE: "does_not_compare",
    NOT_MEASURED: "not_measured",
}


def claims_report(params: Params) -> ReportContent:
    """The claims. Raises UserError where a result that params.yaml names is missing or broken."""
    table = ablation(params)
    claims = [*ablation_claims(params, table), *transfer_claims(params), *zero_shot_claims(params)]
    facts = ablation_facts(params, table)
    records = claim_records(params, claims)
    return ReportContent(
        "claims",
        claims_document(facts, claims),
        claims_metrics(claims),
        {"claims": (CSV_COLUMNS, [row | {"ours": row.get("score")} for row in records])},
        {"claims": lambda: draw_claims(params.profile, claims)},
        records,
        tex=claims_latex(facts, claims),
    )


def row_of(claim: Claim) -> tuple[str, ...]:
    """A claim under HEADER."""
    value, interval = NONE, NONE
    if claim.estimate:
        low, high = claim.estimate.interval
        form = FORMS.get(claim.unit, ".0f")
        value = number(claim.estimate.value, form) + (
            f" ({minus(claim.detail)})" if claim.detail else ""
        )
        interval = f"[{number(low, form)}, {number(high, form)}]{seeds_note(claim.estimate.seeds)}"
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


def claims_notes(claims: Sequence[Claim]) -> list[str]:
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


def claims_document(facts: Facts, claims: Sequence[Claim]) -> list[Block]:
    """The claims in the order in which they are read."""
    counts = Counter(claim.verdict for claim in claims)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICT_KEYS)
    return [
        Heading(1, HEADING),
        facts_list(facts),
        Paragraph(f"Of {len(claims)} claims: {told}."),
        Grid(HEADER, tuple(map(row_of, claims))),
        Bullets(tuple(claims_notes(claims))),
    ]


def claims_latex(facts: Facts, claims: Sequence[Claim]) -> str:
    r"""The claims as one LaTeX table; it needs \usepackage{booktabs} and nothing else."""
    widths = "p{4.2cm}p{2.2cm}p{2.0cm}p{2.4cm}p{2.2cm}p{2.0cm}p{2.2cm}"
    body = tabular(widths, HEADER[:-1], [row_of(claim)[:-1] for claim in claims])
    text = caption(HEADING, facts)
    return floating("claims", r"\scriptsize", text, body, claims_notes(claims))


def claim_records(params: Params, claims: Sequence[Claim]) -> list[Record]:
    """One flat record a claim."""
    return [
        {
            "table": "claims",
            "row": "ours",
            "claim": claim.key,
            "profile": params.profile,
            "corpus": params.clean.corpus_name,
        }
        | {name: getattr(claim, name) for name in CLAIM_FIELDS.split()}
        | estimate_record(claim.estimate)
        for claim in claims
    ]


def claims_metrics(claims: Sequence[Claim]) -> dict[str, Any]:
    """Numbers for `dvc metrics`: {"pretraining_helps": {"ours": …, "low": …, "high": …,
    "confirmed": 1}, …}.
    """
    sign = {CONFIRMED: 1, NOT_CONFIRMED: -1}
    counts = Counter(claim.verdict for claim in claims)
    return {
        claim.key: rounded(
            estimate_record(claim.estimate) | {"confirmed": sign.get(claim.verdict, 0)},
            score="ours",
        )
        for claim in claims
        if claim.estimate
    } | {"verdicts": {key: counts[verdict] for verdict, key in VERDICT_KEYS.items()}}
