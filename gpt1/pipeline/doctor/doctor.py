"""`gpt1 doctor`: one examination after the other, what each found, and what to do."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpt1.base.errors import UserError
from gpt1.base.terminal import console, plain, print_json
from gpt1.pipeline.doctor import checkout, machine, services
from gpt1.pipeline.doctor.finding import Finding
from gpt1.pipeline.status import at_work

STYLES = {"ok": "green", "note": "yellow", "do": "bold red"}
MARKS = {"ok": "ok", "note": "note", "do": "DO"}
EXAMINATIONS: tuple[tuple[str, Callable[[], list[Finding]]], ...] = (
    ("Python", machine.python),
    ("packages", machine.packages),
    ("settings", machine.settings),
    ("memory", machine.memory),
    ("GPU", machine.accelerators),
    ("DeepSpeed", machine.tools),
    ("disk", machine.disk),
    ("ports", services.ports),
    ("git", checkout.git),
    ("params", checkout.parameters),
    ("DVC", checkout.locks),
    ("stages", checkout.last_run),
    ("MLflow", services.mlflow_database),
    ("data", checkout.data),
)
ANY_RUN = ("packages", "disk", "DVC")  # what any run would trip over, and moments tell


def examine() -> list[Finding]:
    """All findings. Raises UserError outside the checkout's root."""
    if not Path("dvc.yaml").is_file():
        raise UserError(f"no dvc.yaml in {Path.cwd()}: run this in the root of the checkout")
    findings, screen = [], Console(stderr=True, highlight=False)
    for name, examination in EXAMINATIONS:
        if screen.is_terminal:
            print(f"\r{name:10}\r", end="", file=sys.stderr, flush=True)
        try:
            findings += examination()
        except UserError as error:
            findings.append(Finding(name, "do", str(error)))
        except (OSError, ImportError) as error:
            findings.append(
                Finding(
                    name,
                    "do",
                    f"cannot be looked at: {error}",
                    "make setup, where a package is at fault",
                )
            )
    if screen.is_terminal:
        print(f"\r{'':10}\r", end="", file=sys.stderr, flush=True)
    unsound = [
        finding for finding in findings if finding.name == "params" and finding.state == "do"
    ]
    return [
        finding
        for finding in findings
        if not any(finding is not one and finding.found == one.found for one in unsound)
    ]


def in_the_way() -> list[Finding]:
    """What must be done about packages, disk or DVC's lock before anything runs."""
    looked = [examination() for name, examination in EXAMINATIONS if name in ANY_RUN]
    return [finding for findings in looked for finding in findings if finding.state == "do"]


def doctor_and_show(as_json: bool) -> bool:
    """Say what was found, as text or as JSON; whether nothing must be done. Raises UserError."""
    findings = examine()
    if as_json:
        print_json(plain_values(findings))
    else:
        print_findings(console(), findings)
    return not any(finding.state == "do" for finding in findings)


def plain_values(findings: Sequence[Finding]) -> dict[str, Any]:
    """All of it for a program."""
    return {
        "well": not any(finding.state == "do" for finding in findings),
        "findings": [finding._asdict() for finding in findings],
    }


def print_findings(screen: Console, findings: Sequence[Finding]) -> None:
    """A line or two each; what is to be done below what was found."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for finding in findings:
        text = Text(plain(finding.found))
        if finding.what_to_do:
            text.append(f"\n→ {plain(finding.what_to_do)}", style="bold")
        table.add_row(Text(MARKS[finding.state], style=STYLES[finding.state]), finding.name, text)
    screen.print(table)
    to_do = sum(finding.state == "do" for finding in findings)
    screen.print()
    who = at_work()
    well = (
        f"{who} is at work, and gpt1 status says how far it is"
        if who
        else "gpt1 run runs what is out of date"
    )
    last = (
        f"{to_do} {'thing' if to_do == 1 else 'things'} to do: see DO above"
        if to_do
        else f"nothing to do: {well}"
    )
    screen.print(Text(last, style="bold"))
