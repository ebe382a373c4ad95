"""The process of a flow run: Prefect's engine, in this clone, with a file for what it says.

A worker gives it a pipe, and a run that outlives its worker would fail at the next line that it
writes.
"""

import os
import runpy
from pathlib import Path

from gpt1.base.files import LOGS

LOG = LOGS / "serve" / "runs.log"


def main() -> None:
    """Become the engine; which flow run is meant, the environment says."""
    os.chdir(Path(__file__).resolve().parents[1])  # where prefect.toml and .env are
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("ab") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
    runpy.run_module("prefect.engine", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
