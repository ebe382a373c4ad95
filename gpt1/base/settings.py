"""Settings of this machine: docs/parameters.md says what each one means."""

import os

from dotenv import dotenv_values


def setting(name: str) -> str | None:
    """Return a setting by name from the environment, else from .env."""
    return {**dotenv_values(".env"), **os.environ}.get(name)
