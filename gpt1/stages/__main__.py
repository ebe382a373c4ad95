"""`python -m gpt1.stages VERB [ITEM]` runs one stage. The stage is imported in here, so that Ctrl-C is one line from the start."""

import sys
from importlib import import_module

from gpt1.errors import UserError, run_stage

VERBS = {"check": None, "world": "NAME", "acquire": "SOURCE", "clean": None, "bpe": None, "shard": None, "encode": "TASK",
         "pretrain": "NETWORK", "finetune": "TASK", "report": "TABLE"}


def main() -> None:
    """Run the stage that the command line names. Raises UserError for any other command line."""
    verb, items = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if verb not in VERBS:
        raise UserError(f"expected a stage, one of {', '.join(VERBS)}; found {verb or 'none'}")
    item = VERBS[verb]
    if len(items) != (item is not None):
        raise UserError(f"expected {verb}{f' {item}' if item else ' alone'}; found {' '.join([verb, *items])}")
    import_module(f"gpt1.stages.{verb}").main(*items)


run_stage(main)
