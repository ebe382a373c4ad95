"""Settings by name: a mistyped one would be passed over in silence."""

import difflib
import os

from gpt1.doctor.finding import Finding

KNOWN = (
    "GPT1_ACCEPT_CHECKPOINT",
    "GPT1_ATTENTION",
    "GPT1_CACHE",
    "GPT1_COMPILE",
    "GPT1_DEVICE",
    "GPT1_GOLDEN",
    "GPT1_HOSTFILE",
    "GPT1_MICRO_BATCH",
    "GPT1_MLFLOW",
    "GPT1_MLFLOW_PORT",
    "GPT1_OFFLINE",
    "GPT1_PROCESSES",
    "GPT1_SILENT_SECONDS",
    "GPT1_THREADS",
    "GPT1_ZERO_STAGE",
)
INTERNAL = (
    "GPT1_FLOW_RUN_URL",
    "GPT1_HEARTBEAT",
    "GPT1_MARK",
    "GPT1_MLFLOW_URL",
    "GPT1_SERVICE",
)  # from one process of ours to another


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
                    else "take it out; README.md lists the settings",
                )
            )
    return findings
