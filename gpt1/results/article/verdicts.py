"""The paper's claims in an article: which are tested and how, what the run says of each, and how
verdicts move with the thresholds.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gpt1.base.files import stage_folder
from gpt1.params.schema import Params
from gpt1.results.ablations import ablation
from gpt1.results.article.reports import picture
from gpt1.results.claims import ablation_claims, transfer_claims
from gpt1.results.detectable import detectable_effects, lines_of
from gpt1.results.document import (
    Block,
    Bullets,
    Grid,
    Heading,
    Paragraph,
    counted,
    read_document,
)
from gpt1.results.packed import is_packed, reported_claims
from gpt1.results.records import Record, read_records
from gpt1.results.rules import ClaimRule, Rules, read_rules
from gpt1.results.verdict import Claim, judged
from gpt1.results.zero_shot_claims import zero_shot_claims

TESTS = {  # of rules.yaml
    "above": "the mean difference is above 0, two-sided",
    "every": "so in every part",
    "size": "within {margin} of the paper's number",
    "at_most": "the gain is below {margin}",
    "rises": "rises, against all orders and over seeds",
    "varies": "one variance above the other, over seeds",
}
LEVELS = (0.01, 0.10)
FACTORS = (0.5, 2.0)  # of the margins


class _Reported(NamedTuple):
    """The report of the claims, taken apart: when its rules were fixed, how many verdicts of each
    kind, for each claim its record and its cells by header, and the notes.
    """

    fixed: Paragraph
    counts: tuple[Paragraph, ...]
    claims: tuple[tuple[Record, Mapping[str, str]], ...]
    notes: Bullets


def _reported() -> _Reported:
    document = read_document(stage_folder("report", "claims"))
    fixed, *counts = (block for block in document if isinstance(block, Paragraph))
    grid = next(block for block in document if isinstance(block, Grid))
    notes = [block for block in document if isinstance(block, Bullets)][-1]
    cells = (dict(zip(grid.header, row, strict=True)) for row in grid.rows)
    claims = tuple(zip(read_records("claims"), cells, strict=True))
    return _Reported(fixed, tuple(counts), claims, notes)


def scope_blocks() -> Iterator[Block]:
    """Every claim that is tested, and by what. Raises UserError where the rules do not fit."""
    rules = _by_key(read_rules())
    yield Heading(2, "Scope of reproducibility")
    yield Paragraph(
        "The claims that are tested, the primary ones first. What the paper says of single scores"
        " stands beside this run's in its own tables."
    )
    rows = tuple(
        (
            cells["claim"],
            cells["where"],
            cells["the paper"],
            "primary" if record["primary"] else "exploratory",
            _test(rules[record["claim"]]),
        )
        for record, cells in _reported().claims
    )
    yield Grid(("claim", "where", "the paper", "kind", "confirmed where"), rows)


def _test(rule: ClaimRule) -> str:
    margin = f"{rule.margin or 0:g} point{'s' if rule.margin != 1 else ''}"
    return TESTS[rule.test].format(margin=margin)


def statistics_blocks(params: Params) -> list[Block]:
    """How verdicts come about, whether that was fixed before the run, and which effects it could
    see, by what was assumed then.
    """
    reported, rules = _reported(), read_rules()
    encoded = {f"encode@{task}" for task in params.tasks}
    effects = detectable_effects(params, rules, encoded)
    title, *lines = filter(None, map(str.strip, lines_of(effects, params, rules.least_seeds)))
    return [
        Heading(3, "Tests, intervals and power"),
        reported.fixed,
        reported.notes,
        Paragraph(f"{title}. No result of this run is in these numbers:"),
        Bullets(tuple(lines)),
    ]


def claim_blocks() -> Iterator[Block]:
    """What the run says of each claim."""
    reported = _reported()
    yield from reported.counts
    header = tuple(
        name
        for name in reported.claims[0][1]
        if name not in ("where", "the paper", "unit")  # as in the scope
    )
    for primary in (True, False):
        rows = tuple(
            tuple(cells[name] for name in header)
            for record, cells in reported.claims
            if record["primary"] == primary
        )
        if rows:
            yield Paragraph(f"{'Primary' if primary else 'Exploratory'} claims:")
            yield Grid(header, rows)
    yield picture(stage_folder("report", "claims") / "claims.svg")


def threshold_blocks(params: Params) -> Iterator[Block]:
    """Where each threshold comes from, and which verdicts others would give. Raises UserError where
    a result is missing or broken.
    """
    rules = read_rules()
    yield Heading(2, "Thresholds, and how verdicts move with them")
    yield Grid(("threshold", "value", "where it comes from"), tuple(_thresholds(params, rules)))
    as_fixed, *others = judgements(params, rules)
    moved = [key for key, word in as_fixed.verdicts.items() if others_of(others, key) - {word}]
    if not moved:
        names = ", ".join(one.name for one in others)
        yield Paragraph(f"No verdict moves with other thresholds: {names}.")
        return
    yield Paragraph(
        f"Verdicts of the same tests by other thresholds, where any differs; the other"
        f" {counted(len(as_fixed.verdicts) - len(moved), 'claim')} keep theirs. A verdict that"
        " moves is a weak one."
    )
    statements = {key: rule.statement for key, rule in _by_key(rules).items()}
    yield Grid(
        ("claim", *(one.name for one in (as_fixed, *others))),
        tuple(
            (statements[key], *(one.verdicts[key] for one in (as_fixed, *others))) for key in moved
        ),
    )


def others_of(others: Sequence["Judgement"], key: str) -> set[str]:
    """The verdicts on a claim by other thresholds."""
    return {one.verdicts[key] for one in others}


class Judgement(NamedTuple):
    """Every claim's verdict by some thresholds."""

    name: str
    verdicts: Mapping[str, str]


def judgements(params: Params, rules: Rules) -> list[Judgement]:
    """Verdicts by the rules as they are fixed, at other levels, and with other margins. Raises
    UserError where a result is missing or broken.
    """
    table = ablation(params)
    zero_shot = reported_claims(rules) if is_packed() else zero_shot_claims(rules, params)

    def claims(by: Rules) -> list[Claim]:
        return [
            *ablation_claims(by, params, table),
            *transfer_claims(by, params),
            *zero_shot,  # which have no margin
        ]

    measured = claims(rules)
    found = [_judgement("as fixed", rules, measured)]
    for level in LEVELS:
        other = rules.model_copy(update={"level": level})
        found.append(_judgement(f"level {level:.0%}", other, measured))
    for factor in FACTORS:
        other = with_margins(rules, factor)
        name = f"margins {'halved' if factor < 1 else 'doubled'}"
        found.append(_judgement(name, other, claims(other)))
    return found


def with_margins(rules: Rules, factor: float) -> Rules:
    """The rules with every margin so many times as wide."""
    sections = {
        name: {
            key: rule.model_copy(update={"margin": rule.margin and rule.margin * factor})
            for key, rule in getattr(rules, name).items()
        }
        for name in ("table5", "layers", "zero_shot")
    }
    return rules.model_copy(update=sections)


def _judgement(name: str, rules: Rules, claims: Sequence[Claim]) -> Judgement:
    return Judgement(name, {claim.key: claim.verdict for claim in judged(rules, claims)})


def _by_key(rules: Rules) -> dict[str, ClaimRule]:
    return {**rules.table5, **rules.layers, **rules.zero_shot}


def _thresholds(params: Params, rules: Rules) -> Iterator[tuple[str, str, str]]:
    margins = {
        test: ", ".join(
            sorted({f"{one.margin:g}" for one in _by_key(rules).values() if one.test == test})
        )
        for test in ("size", "at_most")
    }
    yield (
        "level",
        f"{rules.level:.0%}",
        "the field's convention; over the primary claims together by Holm (1979), of each"
        " exploratory claim by itself",
    )
    yield (
        "least pre-training seeds",
        f"{rules.least_seeds}",
        "of fewer the spread over seeds is not known well enough for any interval that covers what"
        " it says: benchmarks/coverage.py, which anyone can run again",
    )
    yield (
        "margin of a size",
        f"{margins['size']} (points)",
        "what such a mean of the paper would itself move by on other seeds, for it prints one run a"
        " cell, at an assumed deviation of 2 points between fine-tunings of a task",
    )
    yield (
        "margin of “does not help”",
        f"{margins['at_most']} (points)",
        "what the paper counts as help elsewhere is 0.8 points, rounded up",
    )
    yield (
        "least points of an order",
        f"{rules.least_points}",
        "of three points one order in six rises by chance, of four one in twenty-four",
    )
    yield (
        "chance level",
        f"{params.report.chance_standard_errors:g}",
        "standard errors above the best answer that looks at no input: so near, a score is flagged"
        " in the tables; about one in forty scores at chance would pass. No verdict depends on it",
    )
