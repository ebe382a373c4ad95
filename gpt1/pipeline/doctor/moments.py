"""What any run would trip over, as far as that is found in moments; for `gpt1 status`."""

from gpt1.pipeline.doctor import checkout, machine, packages
from gpt1.pipeline.doctor.finding import Finding


def in_the_way() -> list[Finding]:
    """What must be done about packages, disk or DVC's lock before anything runs."""
    findings = [
        finding
        for examination in (packages.packages, machine.disk, checkout.locks)
        for finding in examination()
    ]
    return [finding for finding in findings if finding.state == "do"]
