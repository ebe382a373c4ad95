"""What a run found and what it left out, in sentences, and the verdict on each claim. Functions
of the reports' records.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpt1.pipeline.schedule import group
from gpt1.results.document import ONE_SEED, counted, minus, number
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.page.sheets import FULL, Sheet, SheetCell, Tone, interval, points
from gpt1.results.records import Record
from gpt1.results.statistics.estimates import COVERAGE
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    FORMS,
    MADE_UP,
    NOT_CONFIRMED,
    NOT_MEASURED,
    UNDECIDED,
)

LOSSES = {
    "no_pretraining": "Pre-training is worth",
    "no_aux_lm": "The auxiliary language model is worth",
    "lstm": "The Transformer is ahead of the LSTM by",
}


VERDICTS: dict[str, tuple[Tone, str]] = {
    CONFIRMED: ("good", "✓"),
    NOT_CONFIRMED: ("bad", "✗"),
    UNDECIDED: ("even", "≈"),
    DOES_NOT_COMPARE: ("quiet", "§"),
    NOT_MEASURED: ("quiet", "·"),
}
CLAIMS_HEADER = ("claim", "verdict", "the paper", "this run", f"{COVERAGE:.0%} interval", "on what")


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def training_sentence(summaries: Mapping[str, Any], which: str = "") -> str:
    """Pre-training's end, a network after the other; '' for none. `which`: of several, in words."""
    told = [
        f"the {NETWORK_TITLES.get(network, network)} reaches a held-out perplexity of"
        f" {one['heldout_perplexity']:.1f} a token after {counted(one['updates'], 'update')}"
        for network, one in sorted(summaries.items(), reverse=True)
    ]
    text = listed(told)
    return (
        f"Pre-training{f' ({which})' if which else ''}: {text} (the paper: 18.4, on BooksCorpus)."
        if text
        else ""
    )


def table_sentence(number: int, records: Sequence[Record], made_up: Sequence[str]) -> str:
    """How a table's columns stand to chance and, where they compare, to the paper; '' for no
    records.
    """
    ours = [one for one in records if one["row"] == "ours" and one["metric"] != "mean"]
    there = [one for one in ours if one["score"] is not None]
    if not ours:
        return ""
    if not there:
        return f"Table {number}: none of its columns is measured."
    low = list(dict.fromkeys(one["column"] for one in there if one["at_chance"]))
    doubtful = list(
        dict.fromkeys(
            one["column"] for one in there if one["flagged_seeds"] and not one["at_chance"]
        )
    )
    chance = [f"the mean at chance on {listed(low)}"] if low else []
    chance += [f"single seeds at chance on {listed(doubtful)}"] if doubtful else []
    if len({*low, *doubtful}) < len({one["column"] for one in there}):
        chance.append(
            "the others above chance with every seed" if chance else "above chance with every seed"
        )
    told = (
        f"Table {number}: {len(there)} of {counted(len(ours), 'score')} measured,"
        f" {', '.join(chance)}"
    )
    compared = [
        one for one in there if one["column"] not in made_up and one["compared_with"] is not None
    ]
    if compared:
        spans = [
            (
                (one.get("low") or 0.0, one.get("high") or 0.0),
                one.get("compared_with") or 0.0,
            )
            for one in compared
        ]
        above, below = (
            sum(span[0] > paper for span, paper in spans),
            sum(span[1] < paper for span, paper in spans),
        )
        told += (
            f"; beside the paper {above} above, {len(spans) - above - below} with an interval that"
            f" holds its number, {below} below"
        )
        if any(one.get("seeds") == 1 for one in compared):
            told += f", by intervals of {ONE_SEED}"
    return f"{told}."


def ablation_sentences(records: Sequence[Record], made_up: bool) -> list[str]:
    """What the whole model has over each variant on average."""
    means = {
        one["variant"]: one
        for one in records
        if one["row"] == "ours" and one["value"] == "full less variant" and one["column"] == "Avg"
    }
    told = []
    for variant, one in means.items():
        words = LOSSES.get(variant, f"The whole model is ahead of {one['system']} by")
        paper = "" if made_up else _paper_loss(records, one["system"])
        told.append(
            f"{words} {points(one.get('score'))} points on average"
            f" ({interval(one, '+.1f')}{paper}), over"
            f" {counted(len(one['task'].split()), 'task')}."
        )
    return told


def _paper_loss(records: Sequence[Record], system: str) -> str:
    means = {
        one["system"]: one.get("score")
        for one in records
        if one["row"] == "paper" and one["column"] == "Avg"
    }
    whole = next(
        (one["system"] for one in records if one["row"] == "ours" and one["variant"] == FULL), ""
    )
    full, other = means.get(whole), means.get(system)
    return (
        "" if full is None or other is None else f"; the paper {points(full - other)} over the same"
    )


def claims_sentence(records: Sequence[Record]) -> str:
    """How many claims have which verdict."""
    if not records:
        return ""
    found = Counter(one["verdict"] for one in records)
    return (
        f"Of {len(records)} claims of the paper, {found[CONFIRMED]} confirmed,"
        f" {found[NOT_CONFIRMED]} not confirmed, {found[UNDECIDED]} undecided at this size,"
        f" {found[DOES_NOT_COMPARE]} of a size that does not compare on made-up tasks,"
        f" {found[NOT_MEASURED]} not measured."
    )


def left_out(
    lacks: Mapping[str, Sequence[str]], claims: Sequence[Record], missing: Sequence[str]
) -> list[tuple[str, str]]:
    """What is not on the page and why, as heading and words; `lacks` is what each report
    leaves out, by title, `missing` unfinished stages.
    """
    groups: dict[str, list[str]] = {}
    for name in missing:
        groups.setdefault(group(name), []).append(name.partition("@")[2])
    told = (
        [
            (
                "Stages without results",
                "; ".join(
                    f"{stage} ({', '.join(names)})" if any(names) else stage
                    for stage, names in groups.items()
                ),
            )
        ]
        if missing
        else []
    )
    told += [(title, what) for title, those in lacks.items() for what in those]
    reasons: dict[str, list[str]] = {}
    for one in claims:
        if one["verdict"] == NOT_MEASURED:
            reasons.setdefault(one["basis"], []).append(one["statement"])
    return told + [
        ("Claims not measured", f"{reason}: {'; '.join(statements)}")
        for reason, statements in reasons.items()
    ]


def claims_sheet(records: Sequence[Record], caption: str) -> Sheet:
    """Every claim a row, in the paper's order."""
    return Sheet(caption, CLAIMS_HEADER, tuple(_claim_row(one) for one in records))


def _claim_row(one: Record) -> tuple[SheetCell, ...]:
    tone, mark = VERDICTS[one["verdict"]]
    form, detail = FORMS.get(one["unit"], ".0f"), one["detail"] or ""
    ours = SheetCell()
    if one.get("score") is not None:
        text, notes = number(one["score"], form), [one["unit"]]
        if detail.startswith("of "):  # 3 of 4
            text += f" {detail}"
        elif detail:
            notes.append(minus(detail))
        ours = SheetCell(text, "\n".join(notes))
    return (
        SheetCell(one["statement"] + (MADE_UP if one["made_up"] else ""), one["where"]),
        SheetCell(one["verdict"], "", tone, mark),
        SheetCell(minus(one["published"])),
        ours,
        SheetCell(interval(one, form)),
        SheetCell("", one["basis"]),
    )
