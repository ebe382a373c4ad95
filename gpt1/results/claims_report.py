"""The paper's claims and a verdict on each, as words, as records and as a picture."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpt1.params.schema import Params
from gpt1.results.ablations import ablation
from gpt1.results.claims import ablation_claims, transfer_claims
from gpt1.results.claims_picture import draw_claims
from gpt1.results.document import (
    NONE,
    Block,
    Bullets,
    Facts,
    Grid,
    Heading,
    Paragraph,
    facts_list,
    minus,
)
from gpt1.results.formats import ReportContent, caption, floating, rounded, tabular
from gpt1.results.records import Record
from gpt1.results.registration import Registration, registration
from gpt1.results.rules import RULES_RECORD, Rules, read_rules
from gpt1.results.statistics.estimates import COVERAGE
from gpt1.results.table5 import ablation_facts
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    EXPLORATORY,
    MADE_UP,
    NOT_MEASURED,
    REFUTED,
    SCALED,
    UNDECIDED,
    Claim,
    effect_in_words,
    judged,
    marked,
    p_in_words,
    rule_in_words,
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
    "p",
    "verdict",
    "on what",
)
CSV_COLUMNS = (
    "claim statement where primary published published_value unit ours low high seeds p verdict"
    " made_up basis detail rules fixed profile corpus"
)
CLAIM_FIELDS = (
    "statement where primary published published_value unit p verdict made_up basis detail"
)
VERDICT_KEYS = {
    CONFIRMED: "confirmed",
    REFUTED: "refuted",
    UNDECIDED: "undecided",
    DOES_NOT_COMPARE: "does_not_compare",
    NOT_MEASURED: "not_measured",
}


def claims_report(params: Params) -> ReportContent:
    """The claims. Raises UserError where a result that params.yaml names is missing or broken."""
    rules, fixed, table = read_rules(), registration(params), ablation(params)
    claims = judged(
        rules,
        [
            *ablation_claims(rules, params, table),
            *transfer_claims(rules, params),
            *zero_shot_claims(rules, params),
        ],
    )
    facts = ablation_facts(params, table)
    records = claim_records(params, claims, fixed)
    return ReportContent(
        "claims",
        claims_document(rules, fixed, facts, claims),
        claims_metrics(claims, fixed),
        {"claims": (CSV_COLUMNS, [row | {"ours": row.get("score")} for row in records])},
        {"claims": lambda: draw_claims(params.profile, claims)},
        records,
        tex=claims_latex(rules, fixed, facts, claims),
    )


def row_of(claim: Claim) -> tuple[str, ...]:
    """A claim under HEADER."""
    value, interval = NONE, NONE
    if claim.effect:
        value, interval = effect_in_words(claim.effect, claim.unit)
        value += f" ({minus(claim.detail)})" if claim.detail else ""
    return (
        marked(claim),
        claim.where,
        minus(claim.published),
        value,
        interval,
        claim.unit,
        NONE if claim.p is None else p_in_words(claim.p),
        claim.verdict,
        claim.basis,
    )


def claims_notes(rules: Rules, claims: Sequence[Claim]) -> list[str]:
    """The rules, how far chance goes, and what the units are."""
    tested = [
        claim
        for claim in claims
        if claim.effect
        and not claim.primary
        and claim.effect.seeds >= rules.least_seeds
        and claim.verdict != DOES_NOT_COMPARE
    ]
    lines = [
        *rule_in_words(rules),
        (
            f"p: of a verdict by chance, where nothing is so; of the primary claims adjusted by"
            f" Holm. {len(tested)} exploratory claims are tested at {rules.level:.0%} each: if no"
            f" difference that they rest on were real, some {rules.level * len(tested):.1f} of"
            " their verdicts would still come out confirmed or refuted."
        ),
        (
            f"Points: score x 100. {SCALED[0].upper()}{SCALED[1:]}: (score - random) / (state of"
            " the art - random) x 100, as in Figure 2. Steadily, and the more layers: Spearman's"
            " correlation of the seeds' mean scores with the number of layers or updates."
            " Variance: that of a snapshot's relative performance about the line between both its"
            " neighbours in log updates (Gasser et al. 1986), the mean over the sets, the LSTM's"
            " less the Transformer's, by seed."
        ),
    ]
    if any(claim.made_up for claim in claims):
        lines.append(
            f"{MADE_UP} on made-up tasks in the official file formats: a verdict is about this"
            " pipeline at this size, and says nothing about the paper's own data; sizes do not"
            " compare."
        )
    return lines


def claims_document(
    rules: Rules, fixed: Registration, facts: Facts, claims: Sequence[Claim]
) -> list[Block]:
    """The claims in the order in which they are read."""
    primary = [claim for claim in claims if claim.primary]
    others = [claim for claim in claims if not claim.primary]
    return [
        Heading(1, HEADING),
        Paragraph(fixed.in_words),
        facts_list(facts),
        Paragraph(f"Of {len(primary)} primary claims: {told(primary)}."),
        Paragraph(f"Of {len(others)} exploratory claims ({EXPLORATORY}): {told(others)}."),
        Grid(HEADER, tuple(map(row_of, claims))),
        Bullets(tuple(claims_notes(rules, claims))),
    ]


def told(claims: Sequence[Claim]) -> str:
    """How many of the claims have which verdict."""
    counts = Counter(claim.verdict for claim in claims)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICT_KEYS)


def claims_latex(rules: Rules, fixed: Registration, facts: Facts, claims: Sequence[Claim]) -> str:
    r"""The claims as one LaTeX table; it needs \usepackage{booktabs} and nothing else."""
    widths = "p{4.2cm}p{2.2cm}p{2.0cm}p{2.4cm}p{2.2cm}p{2.0cm}p{1.0cm}p{2.2cm}"
    rows = [row_of(claim)[:-1] for claim in claims]
    body = tabular(widths, HEADER[:-1], rows)
    text = caption(HEADING, facts)
    notes = [fixed.in_words, *claims_notes(rules, claims)]
    return floating("claims", r"\scriptsize", text, body, notes)


def claim_records(params: Params, claims: Sequence[Claim], fixed: Registration) -> list[Record]:
    """One flat record a claim."""
    return [
        {
            "table": "claims",
            "row": "ours",
            "claim": claim.key,
            "rules": fixed.rules,
            "fixed": fixed.word,
            "profile": params.profile,
            "corpus": params.clean.corpus_name,
        }
        | {name: getattr(claim, name) for name in CLAIM_FIELDS.split()}
        | _numbers(claim)
        for claim in claims
    ]


def _numbers(claim: Claim) -> Record:
    """What was measured of a claim; nothing where nothing was."""
    if claim.effect is None:
        return {}
    low, high = claim.effect.interval or (None, None)
    return {
        "score": float(claim.effect.value),
        "low": None if low is None else float(low),
        "high": None if high is None else float(high),
        "seeds": claim.effect.seeds,
    }


def claims_metrics(claims: Sequence[Claim], fixed: Registration) -> dict[str, Any]:
    """Numbers for `dvc metrics`: {"pretraining_helps": {"ours": …, "low": …, "high": …, "p": …,
    "confirmed": 1}, …}; -1 is refuted. With the rules' hash, and whether they were fixed.
    """
    sign = {CONFIRMED: 1, REFUTED: -1}
    counts = Counter(claim.verdict for claim in claims)
    return {
        claim.key: rounded(
            _numbers(claim) | {"p": claim.p, "confirmed": sign.get(claim.verdict, 0)}, score="ours"
        )
        for claim in claims
        if claim.effect
    } | {
        "verdicts": {key: counts[verdict] for verdict, key in VERDICT_KEYS.items()},
        RULES_RECORD: fixed.rules,
        "fixed": fixed.word,
    }
