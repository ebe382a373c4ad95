"""For gpu.py: what each part's figures say in words, and last what was predicted beside what was
measured.
"""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kernel_classes import CLASSES
from side_by_side import heading, shown, table

from gpt1.base.files import read_json

HOLDS = 0.2  # how far a step may be from its budget
BUDGET = Path(__file__).with_name("step_budget.csv")
# that other trainings of about 124 M parameters say of H100s, by this project's formula (half of
# attention): tokens a second of a GPU, share of the nominal peak
PUBLISHED = {
    "llm.c, 124 M, 8 x H100, no dropout (its log in modded-nanogpt, 2024-10-13)": (468_000, 0.378),
    "modded-nanogpt, record 7, 8 x H100, no dropout": (462_000, 0.373),
}


def millions(bytes_: float | None) -> str:
    return f"{bytes_ / 1e6:,.0f}" if bytes_ else "-"


def listed(chosen: dict[str, dict[str, str]]) -> str:
    return "; ".join(
        f"{way}: {', '.join(f'{name} {value}' for name, value in row.items())}"
        for way, row in chosen.items()
    )


def peak_share(found: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Operations a second of the model's own products, of what the data sheet gives."""
    rate, nominal = row["tokens_per_second"]["median"], found["nominal_flops"]
    return f"{found['flops_per_token'] * rate / nominal:.1%}" if nominal else "-"


def step_words(found: dict[str, Any]) -> str:
    rows = []
    for way, row in found["ways"].items():
        memory = found.get("memory", {}).get(way, {})
        rows.append(
            [
                way,
                shown(row["tokens_per_second"], 0),
                f"{row['share_of_limit']:.1%}",
                peak_share(found, row),
                shown(row["times_hf"], 2) if row["times_hf"] else "-",
                f"{row['warm_up_seconds']:.0f}",
                millions(memory.get("cuda_bytes")),
                millions(memory.get("peak_bytes")),
            ]
        )
    head = [
        "way",
        "tokens/s: median (least to most)",
        "share of a large product",
        "share of the nominal peak",
        "times Hugging Face",
        "warm-up, s",
        "peak of the GPU, MB",
        "peak of the process, MB",
    ]
    return (
        f"{found['size']}, {found['batch']} x {found['context']}, {found['precision']}, dropout"
        f" {found['dropout']}; "
        f"{found['flops_per_token'] / 1e6:.0f} MFLOP a token; a large product:"
        f" {found['limit_flops']['median'] / 1e12:.1f} TFLOP/s\n\n"
        f"{table(head, rows)}\n\n{listed(found['chosen'])}"
        + (f"\n\n```\n{found['profile']}\n```" if "profile" in found else "")
    )


def agree_words(found: dict[str, Any]) -> str:
    return "; ".join(
        f"{precision}: the losses of {row['updates']} updates by {row['engine']}, compiled:"
        f" {row['compiled']}, kernels: {row['kernels']}, and by the CPU's differ by"
        f" {row['apart']:.0e} at most,"
        " relative"
        for precision, row in found.items()
    )


def processes_words(found: dict[str, Any]) -> str:
    return "; ".join(
        f"{what}: losses within {apart:.0e} of one process's" for what, apart in found.items()
    )


def sweep_words(found: dict[str, Any]) -> str:
    return table(
        ["windows", "ms an update", "tokens/s", "TFLOP/s", "peak of the GPU, MB"],
        [
            [
                batch,
                f"{1e3 * row['seconds']:,.1f}",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['flops_per_second'] / 1e12:,.1f}",
                millions(row["gpu_peak_bytes"]),
            ]
            for batch, row in found.items()
        ],
    )


def evaluate_words(found: dict[str, Any]) -> str:
    return "; ".join(f"{what}: {rate:,.0f} tokens/s" for what, rate in found.items())


def recipe_words(found: dict[str, Any]) -> str:
    return (
        f"{found['updates']} updates at {found['tokens_per_second'] or 0:,.0f} tokens/s, start"
        f" included; {found['skipped_updates']} skipped; held-out losses {found['heldout_losses']};"
        f" {' '.join(found['said_last'])}"
    )


def tests_words(found: dict[str, Any]) -> str:
    return f"tests/test_gpu.py: {found['passed']} passed, {found['skipped']} skipped"


def kernels_words(found: dict[str, Any]) -> str:
    return (
        f"tests/test_kernels.py: {found['passed']} passed, {found['skipped']} skipped; with dropout"
        f" {agree_words(found['agree'])}\n\n{step_words(found['step'])}"
    )


def finetune_words(found: dict[str, Any]) -> str:
    return table(
        [
            "made-up rows as",
            "rows",
            "seconds",
            "rows/s",
            "tokens/s",
            "dev accuracy",
            "peak of the GPU, MB",
        ],
        [
            [
                name,
                row["rows"],
                f"{row['seconds']:.1f}",
                f"{row['rows_per_second']:,.0f}",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['dev_score']:.3f}",
                millions(row["gpu_peak_bytes"]),
            ]
            for name, row in found.items()
        ],
    )


def resume_words(found: dict[str, Any]) -> str:
    return (
        f"{found['updates']} updates at {found['tokens_per_second']:,.0f} tokens/s; killed after"
        f" the checkpoint of update {found['killed_after_checkpoint_of_update']} and gone on: the same bits"
    )


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "tests": tests_words,
    "agree": agree_words,
    "processes": processes_words,
    "resume": resume_words,
    "step": step_words,
    "kernels": kernels_words,
    "sweep": sweep_words,
    "finetune": finetune_words,
    "evaluate": evaluate_words,
    "plain_loop": step_words,
    "hugging_face": step_words,
    "recipe": recipe_words,
}


def predicted(budget: Path = BUDGET) -> dict[str, dict[str, float]]:
    """{class, "step" or "share of the peak, ...": {column: number}} of a committed budget."""
    with budget.open(newline="") as file:
        head, *lines = csv.reader(file)
    return {
        name: {column: float(cell) for column, cell in zip(head[1:], cells, strict=False)}
        for name, *cells in lines
    }


def compared(found: Mapping[str, Any]) -> str:
    """What step_budget.csv predicts of a step, and the trainings of others, beside what the parts
    found so far measured.
    """
    budget, parts = predicted(), []
    if step := found.get("step"):
        parts.append(classes_words(step["classes"], budget))
        parts.append(ways_words(step, budget))
    if ours := found.get("kernels"):
        parts.append(classes_words(ours["step"]["classes"], budget, "our kernels"))
    if others := [found[part] for part in ("step", "plain_loop", "hugging_face") if part in found]:
        parts.append(others_words(others))
    return "\n\n".join(parts)


def classes_words(
    classes: Mapping[str, Mapping[str, float]],
    budget: Mapping[str, Mapping[str, float]],
    way: str = "compiled",
) -> str:
    """Kernels and milliseconds of the first way, by class, beside those of a `way`."""
    rows = []
    total = {
        name: sum(row[name] for row in classes.values()) for name in ("launches", "milliseconds")
    }
    for name in (*CLASSES, "step"):
        expected, row = budget[name], total if name == "step" else classes[name]
        ms = row["milliseconds"]
        rows.append(
            [
                name,
                f"{expected[f'launches, {way}']:,.0f}",
                f"{row['launches']:,.0f}",
                f"{expected[f'ms, {way}']:.1f}",
                f"{ms:.1f}",
                f"{ms / expected[f'ms, {way}']:.2f}",
            ]
        )
    head = [
        f"class of kernel, {way}",
        "launches: predicted",
        "measured",
        "ms: predicted",
        "measured",
        "times",
    ]
    return table(head, rows)


def ways_words(step: Mapping[str, Any], budget: Mapping[str, Mapping[str, float]]) -> str:
    """A step by the clock, compiled and not, and whether the prediction holds."""
    rows, tokens = [], step["batch"] * step["context"]
    for way, column in (("ours", "compiled"), ("ours-eager", "not compiled")):
        measured = 1e3 * tokens / step["ways"][way]["tokens_per_second"]["median"]
        expected = budget["step"][f"ms, {column}"]
        rows.append(
            [
                f"{way} ({column})",
                f"{expected:.1f}",
                f"{measured:.1f}",
                f"{measured / expected:.2f}",
                "yes" if abs(measured / expected - 1) <= HOLDS else "no",
            ]
        )
    head = ["a step", "ms: predicted", "measured", "times", f"within {HOLDS:.0%}"]
    return (
        f"{table(head, rows)}\n\nPredicted for 64 x 512 tokens of 117m on an H100; measured:"
        f" {step['batch']} x {step['context']} of {step['size']}."
    )


def others_words(found: list[Mapping[str, Any]]) -> str:
    """Tokens a second and the share of the nominal peak: of all ways, and as published."""
    rows = [
        [
            f"{way}, {part['batch']} x {part['context']} of {part['size']}",
            f"{row['tokens_per_second']['median']:,.0f}",
            peak_share(part, row),
        ]
        for part in found
        for way, row in part["ways"].items()
    ]
    rows += [[what, f"{rate:,}", f"{share:.1%}"] for what, (rate, share) in PUBLISHED.items()]
    return table(["who", "tokens/s of a GPU", "share of the nominal peak"], rows)


def report(folder: Path) -> str:
    """Of the machine and every part that lies in the folder."""
    sections, found = [f"# This machine\n\n{heading(read_json(folder / 'machine.json'))}"], {}
    for part, words in WORDS.items():
        path = folder / f"{part}.json"
        if path.exists():
            taken = read_json(path)
            said = taken.get("said")
            if said is None:
                found[part] = taken["found"]
                said = words(taken["found"])
            sections.append(f"## {part} ({taken['seconds']:.0f} s)\n\n{said}")
    if beside := compared(found):
        sections.append(f"## Predicted beside measured\n\n{beside}")
    return "\n\n".join(sections) + "\n"
