"""`python -m gpt1.stages VERB [ITEM ...]` runs one stage."""

import os
import sys
from importlib import import_module

from gpt1.base.errors import TEMPORARY_STATUS, UserError, run_stage
from gpt1.base.files import refuse_links
from gpt1.base.interrupts import end_with_parent, interrupts_held

VERBS = {
    "check": "",
    "town": "",
    "acquire": "SOURCE",
    "clean": "",
    "bpe": "",
    "shard": "",
    "encode": "TASK",
    "prompt": "SET",
    "baselines": "",
    "pretrain": "NETWORK SEED",
    "finetune": "TASK",
    "ablation": "ABLATION TASK",
    "transfer": "TASK",
    "zero_shot": "NETWORK SEED",
    "generate": "SEED",
    "report": "NAME",
}
FUNCTIONS = {
    "ablation": "finetune",
    "transfer": "finetune",
}  # verbs that are functions of another verb's module, under their own name


def main() -> None:
    """Run the stage of the command line. Raises UserError for another command line."""
    if "DVC_STAGE" in os.environ:  # or else a stage outlives a DVC that is killed
        end_with_parent()
        orphan = os.getpgid(os.getppid()) != os.getpgrp()  # DVC was killed before that line
        if orphan and "RANK" not in os.environ:  # a launcher may put its processes into groups
            sys.exit(TEMPORARY_STATUS)
        refuse_links()
    verb, *items = sys.argv[1:] or [""]
    if verb not in VERBS:
        raise UserError(f"expected a stage, one of {', '.join(VERBS)}; found {verb or 'none'}")
    if len(items) != len(VERBS[verb].split()):
        expected = f"{verb} {VERBS[verb] or 'alone'}"
        raise UserError(f"expected {expected}; found {' '.join([verb, *items])}")
    with interrupts_held():  # libraries swallow a Ctrl-C, or abort, at import
        module = import_module(f"gpt1.stages.{FUNCTIONS.get(verb, verb)}")
    getattr(module, verb if verb in FUNCTIONS else "main")(*items)


run_stage(main)
