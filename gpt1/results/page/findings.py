"""What a run found and what it left out, in sentences, and the verdict on each claim. Functions
of the reports' records.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gpt1.results.document import NONE, counted, minus, number
from gpt1.results.drawing import NETWORK_TITLES
from gpt1.results.page.sheets import FULL, Sheet, SheetCell, Tone, interval, points
from gpt1.results.records import Record
from gpt1.results.registration import SHORT
from gpt1.results.statistics.estimates import COVERAGE
from gpt1.results.verdict import (
    CONFIRMED,
    DOES_NOT_COMPARE,
    EXPLORATORY,
    FORMS,
    MADE_UP,
    NOT_MEASURED,
    REFUTED,
    UNDECIDED,
    p_in_words,
)

LOSSES = {
    "no_pretraining": "Pre-training is worth",
    "no_aux_lm": "The auxiliary language model is worth",
    "lstm": "The Transformer is ahead of the LSTM of the paper's proportion by",
    "lstm_equal": "The Transformer is ahead of the LSTM of equal size by",
    "embeddings_only": "The layers above the embeddings are worth",
}


VERDICTS: dict[str, tuple[Tone, str]] = {
    CONFIRMED: ("good", "✓"),
    REFUTED: ("bad", "✗"),
    UNDECIDED: ("even", "≈"),
    DOES_NOT_COMPARE: ("quiet", "§"),
    NOT_MEASURED: ("quiet", "·"),
}
CLAIMS_HEADER = (
    "claim",
    "verdict",
    "the paper",
    "this run",
    f"{COVERAGE:.0%} interval",
    "p",
    "on what",
)


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
            (one["low"], one["high"], one["compared_with"])
            for one in compared
            if one["low"] is not None
        ]
        above = sum(low > paper for low, _, paper in spans)
        below = sum(high < paper for _, high, paper in spans)
        told += "; beside the paper "
        if spans:
            told += (
                f"{above} above, {len(spans) - above - below} with an interval that holds its"
                f" number, {below} below"
            )
        if rest := len(compared) - len(spans):
            told += f"{', ' if spans else ''}{rest} without an interval, for want of seeds"
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
    """How many claims have which verdict, and whether they are by rules fixed before the run."""
    if not records:
        return ""
    told = [f"By rules {records[0]['rules'][:SHORT]}, {records[0]['fixed']}:"]
    for kind, primary in (("primary", True), ("exploratory", False)):
        found = Counter(one["verdict"] for one in records if one["primary"] == primary)
        words = ", ".join(f"{found[word]} {word}" for word in VERDICTS if found[word])
        told.append(f"of {counted(found.total(), f'{kind} claim')} of the paper {words or 'none'};")
    return " ".join(told).removesuffix(";") + "."


def left_out(lacks: Mapping[str, Sequence[str]], claims: Sequence[Record]) -> list[tuple[str, str]]:
    """What is not on the page and why, as heading and words; `lacks` is what each report
    leaves out, by title.
    """
    told = [(title, what) for title, those in lacks.items() for what in those]
    reasons: dict[str, list[str]] = {}
    for one in claims:
        if one["verdict"] == NOT_MEASURED:
            reasons.setdefault(one["basis"], []).append(one["statement"])
    return told + [
        ("Claims not measured", f"{reason}: {'; '.join(statements)}")
        for reason, statements in reasons.items()
    ]


def claims_sheet(records: Sequence[Record], caption: str) -> Sheet:
    """Every claim a row, the primary ones first."""
    return Sheet(caption, CLAIMS_HEADER, tuple(_claim_row(one) for one in records))


def _claim_row(one: Record) -> tuple[SheetCell, ...]:
    tone, mark = VERDICTS[one["verdict"]]
    statement = one["statement"] + ("" if one["primary"] else EXPLORATORY)
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
        SheetCell(statement + (MADE_UP if one["made_up"] else ""), one["where"]),
        SheetCell(one["verdict"], "", tone, mark),
        SheetCell(minus(one["published"])),
        ours,
        SheetCell(interval(one, form)),
        SheetCell(NONE if one.get("p") is None else p_in_words(one["p"])),
        SheetCell("", one["basis"]),
    )
