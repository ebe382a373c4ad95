"""`python -m gpt1.stages VERB [ITEM ...]` runs one stage. The stage is imported in here, so that
Ctrl-C is one line from the start.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path

from gpt1.base.errors import TEMPORARY_STATUS, UserError, run_stage
from gpt1.base.files import refuse_links
from gpt1.base.interrupts import end_with_parent, interrupts_held
from gpt1.base.locks import locked
from gpt1.base.settings import setting

VERBS = {
    "check": "",
    "world": "NAME",
    "download": "SOURCE",
    "acquire": "SOURCE",
    "clean": "",
    "bpe": "",
    "shard": "",
    "encode": "TASK",
    "prompt": "SET",
    "baselines": "",
    "pretrain": "NETWORK SEED",
    "finetune": "TASK",
    "ablate": "VARIANT TASK",
    "transfer": "TASK",
    "zero_shot": "NETWORK SEED",
    "generate": "SEED",
    "dev_scores": "",
    "report": "NAME",
    "scores": "",
}
TRAINS = ("pretrain", "finetune", "ablate", "transfer")
FUNCTIONS = {
    "ablate": "finetune",
    "transfer": "finetune",
}  # verbs that are functions of another verb's module, under their own name


def main() -> None:
    """Run the stage that the command line names. Raises UserError for any other command line."""
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
    with alone_of_experiments() if verb in TRAINS else nullcontext():
        getattr(module, verb if verb in FUNCTIONS else "main")(*items)


@contextmanager
def alone_of_experiments() -> Iterator[None]:
    """One training of DVC's experiments at a time has this machine, or the GPUs that it is given,
    however many workers a queue has; threads set by hand say that several share the cores. Ranks
    of a training train beside the process that started them, which has the lock.
    """
    alone = os.environ.get("DVC_EXP_NAME") and "RANK" not in os.environ
    if not alone or setting("GPT1_THREADS"):
        yield
        return
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").replace("/", "-")
    path = Path(tempfile.gettempdir()) / f"gpt1-experiments-{os.getuid()}{gpus and '-'}{gpus}.lock"

    with ExitStack() as held:
        try:
            held.enter_context(locked(path, wait=False))
        except BlockingIOError:
            print("waiting for another experiment's training to end", file=sys.stderr, flush=True)
            held.enter_context(locked(path))
        yield


run_stage(main)
