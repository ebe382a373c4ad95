"""`gpt1 doctor`: one examination after the other, what each found, and what to do."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpt1.base.errors import ELSEWHERE, UserError
from gpt1.base.terminal import console, plain, print_json
from gpt1.pipeline.doctor import checkout, machine, services
from gpt1.pipeline.doctor.finding import Finding, to_do
from gpt1.pipeline.status import at_work

STYLES = {"ok": "green", "note": "yellow", "do": "bold red"}
EXAMINATIONS: dict[str, Callable[[], list[Finding]]] = {
    "Python": machine.python,
    "packages": machine.packages,
    "settings": machine.settings,
    "memory": machine.memory,
    "GPU": machine.accelerators,
    "DeepSpeed": machine.tools,
    "disk": machine.disk,
    "ports": services.ports,
    "git": checkout.git,
    "params": checkout.parameters,
    "DVC": checkout.locks,
    "stages": checkout.last_run,
    "MLflow": services.mlflow_database,
    "data": checkout.data,
}
ANY_RUN = ("packages", "disk", "DVC")  # what any run would trip over, and moments tell


def examine() -> list[Finding]:
    """All findings. Raises UserError outside the checkout's root."""
    if not Path("dvc.yaml").is_file():
        raise UserError(f"no dvc.yaml in {Path.cwd()}: {ELSEWHERE}")
    findings, screen = list[Finding](), Console(stderr=True, highlight=False)
    with screen.status("") as looking:
        for name, examination in EXAMINATIONS.items():
            looking.update(name)
            try:
                findings += examination()
            except UserError as error:
                findings += to_do(name, str(error), "")
            except (OSError, ImportError) as error:
                cure = "make setup, where a package is at fault"
                findings += to_do(name, f"cannot be looked at: {error}", cure)
    unsound = [one.found for one in findings if (one.name, one.state) == ("params", "do")]
    return [one for one in findings if one.name == "params" or one.found not in unsound]


def in_the_way() -> list[Finding]:
    """What must be done about packages, disk or DVC's lock before anything runs."""
    return [one for name in ANY_RUN for one in EXAMINATIONS[name]() if one.state == "do"]


def doctor_and_show(as_json: bool) -> bool:
    """Say what was found, as text or as JSON; whether nothing must be done. Raises UserError."""
    told = plain_values(findings := examine())
    if as_json:
        print_json(told)
    else:
        print_findings(console(), findings)
    return bool(told["well"])


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
        text, state = Text(plain(finding.found)), finding.state
        if finding.what_to_do:
            text.append(f"\n→ {plain(finding.what_to_do)}", style="bold")
        mark = Text("DO" if state == "do" else state, style=STYLES[state])
        table.add_row(mark, finding.name, text)
    screen.print(table)
    screen.print()
    count = sum(finding.state == "do" for finding in findings)
    if count:
        last = f"{count} {'thing' if count == 1 else 'things'} to do: see DO above"
    elif who := at_work():
        last = f"nothing to do: {who} is at work, and gpt1 status says how far it is"
    else:
        last = "nothing to do: gpt1 run runs what is out of date"
    screen.print(Text(last, style="bold"))
