"""Settings by name: a mistyped one would be passed over in silence."""

import difflib
import os

from gpt1.pipeline.doctor.finding import Finding
from gpt1.pipeline.settings import INTERNAL, KNOWN


def unknown_settings() -> list[Finding]:
    """Settings of the environment or .env that begin as ours do and that nothing reads."""
    from dotenv import dotenv_values

    given = dict.fromkeys(os.environ, "the environment") | dict.fromkeys(
        dotenv_values(".env"), ".env"
    )
    findings = []
    for name, place in given.items():
        if name.startswith("GPT1_") and name not in KNOWN + INTERNAL:
            near = difflib.get_close_matches(name, KNOWN, 1)
            findings.append(
                Finding(
                    "settings",
                    "do",
                    f"{name} in {place} is nothing that gpt1 knows",
                    f"did you mean {near[0]}?"
                    if near
                    else "take it out; docs/parameters.md lists the settings",
                )
            )
    return findings
