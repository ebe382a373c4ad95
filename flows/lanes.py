"""Where stages run side by side: lanes of the CPU, GPUs by number."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from gpt1.base.cores import cores
from gpt1.base.errors import UserError
from gpt1.base.machine import output
from gpt1.base.settings import setting
from gpt1.estimate import parameters
from gpt1.params.schema import read_params

PROCESS_BYTES = 2e9  # Python with torch, a micro-batch, an evaluation
CONTROL_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
BYTES_A_PARAMETER = 100  # gradient, Adam's averages, a checkpoint in the making


@dataclass
class Lanes:
    """The places of a machine, `count` of them, with so many threads each; its GPUs that are free;
    by stage, those `taken`.
    """

    count: int
    threads: int | None
    gpus: list[str]
    taken: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of_machine(cls, asked: int | None = None) -> "Lanes":
        """As many as cores and memory bear, or as `asked`; one where GPT1_PROCESSES gives a
        training all there is. No threads where GPT1_THREADS says them. Raises UserError.
        """
        if asked is not None and asked < 1:
            raise UserError(f"lanes: expected a number above 0, found {asked}")
        gpus = visible_gpus()
        several = setting("GPT1_PROCESSES") not in (None, "1")
        training_bytes = PROCESS_BYTES + BYTES_A_PARAMETER * parameters(
            read_params(), "transformer"
        )
        bearable = int(memory_bytes() // training_bytes)
        count = asked or (1 if several and not gpus else max(1, min(cores(), bearable)))
        threads = None if setting("GPT1_THREADS") else max(1, cores() // (len(gpus) or count))
        return cls(count, threads, gpus)

    def take(self, name: str, runs_network: bool) -> dict[str, str] | None:
        """The environment that keeps a stage to its place; None where none is free. Pre-training
        takes every GPU, other stages that run a network one.
        """
        needed = 0
        if runs_network and (every := sum(map(len, self.taken.values()), len(self.gpus))):
            needed = every if name.startswith("pretrain") else 1
        if len(self.taken) == self.count or len(self.gpus) < needed:
            return None
        given, self.gpus = self.gpus[:needed], self.gpus[needed:]
        self.taken[name] = given
        threads = {"GPT1_THREADS": str(self.threads)} if self.threads else {}
        devices = {"CUDA_VISIBLE_DEVICES": ",".join(given), "GPT1_PROCESSES": str(len(given))}
        return threads | (devices if given else {})

    def give_back(self, name: str) -> None:
        """Free the place and the GPUs of a stage."""
        self.gpus += self.taken.pop(name)


def visible_gpus() -> list[str]:
    """GPUs by number, as CUDA_VISIBLE_DEVICES or else nvidia-smi has them; none with
    GPT1_DEVICE=cpu.
    """
    if setting("GPT1_DEVICE") == "cpu":
        return []
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return named.split(",") if named else []
    return output("nvidia-smi", "--query-gpu=index", "--format=csv,noheader").split()


def memory_bytes() -> float:
    """Memory of this machine or container; not what is free now, for threads follow from it, and
    bits from threads.
    """
    import psutil

    total = float(psutil.virtual_memory().total)
    try:
        return min(total, float(CONTROL_GROUP_LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no limit says max
        return total
