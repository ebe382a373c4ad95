"""Lanes of the CPU, and GPUs by number, for stages side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpt1.base.errors import UserError
from gpt1.base.machine import cores, setting, usable_gpus, visible_gpus
from gpt1.estimate import parameters
from gpt1.params.schema import read_params

PROCESS_BYTES = 2e9  # Python with torch, a micro-batch, an evaluation
CONTROL_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
BYTES_A_PARAMETER = 100  # gradient, Adam's averages, a checkpoint in the making


@dataclass
class Lanes:
    """The lanes of a machine, and its GPUs."""

    count: int
    threads: int | None  # of a lane
    gpus: list[str]  # that are free
    together: int = 0  # GPUs of a pre-training
    taken: dict[str, list[str]] = field(default_factory=dict)  # GPUs by stage

    @classmethod
    def of_machine(cls, requested: int | None = None) -> "Lanes":
        """Return as many lanes as cores and memory allow, or as `requested`; one where
        GPT1_PROCESSES gives all to one training. Raises UserError.
        """
        if requested is not None and requested < 1:
            raise UserError(f"lanes: expected a number above 0, found {requested}")
        gpus = visible_gpus()
        gpus = gpus[: usable_gpus()] if gpus else []  # which takes torch, and so a second
        params, processes = read_params(), setting("GPT1_PROCESSES") or ""
        several = processes not in ("", "1")
        training_bytes = PROCESS_BYTES + BYTES_A_PARAMETER * parameters(params, "transformer")
        bearable = int(memory_bytes() // training_bytes)
        count = requested or (1 if several and not gpus else max(1, min(cores(), bearable)))
        threads = None if setting("GPT1_THREADS") else max(1, cores() // (len(gpus) or count))
        most = min(len(gpus), int(processes)) if processes.isdigit() else len(gpus)
        shared = (n for n in range(most, 0, -1) if not params.pretrain.batch_size % n)
        return cls(count, threads, gpus, most if processes else next(shared, 0))

    def fill(self, ready: Mapping[str, bool]) -> dict[str, dict[str, str]]:
        """Return the environments of the stages that start now. `ready`: whether each runs a
        network, the most urgent first. Once one finds no GPU, no later one takes any, so that a
        pre-training, which needs several, gets them.
        """
        places, waiting = dict[str, dict[str, str]](), False
        for name, runs_network in ready.items():
            if not (runs_network and waiting):
                if (environment := self._take(name, runs_network)) is not None:
                    places[name] = environment
                elif runs_network:
                    waiting = True
        return places

    def _take(self, name: str, runs_network: bool) -> dict[str, str] | None:
        needed = 0
        if runs_network and self.together:
            needed = self.together if name.startswith("pretrain") else 1
        if len(self.taken) == self.count or len(self.gpus) < needed:
            return None
        given, self.gpus = self.gpus[:needed], self.gpus[needed:]
        self.taken[name] = given
        threads = {"GPT1_THREADS": str(self.threads)} if self.threads else {}
        devices = {"CUDA_VISIBLE_DEVICES": ",".join(given), "GPT1_PROCESSES": str(len(given))}
        return threads | (devices if given else {})

    def give_back(self, name: str) -> None:
        """Free the lane and the GPUs of a stage."""
        self.gpus += self.taken.pop(name)


def memory_bytes() -> float:
    """Return the memory of this machine or container, whether free or not: threads follow from it,
    and rounding from threads.
    """
    import psutil

    total = float(psutil.virtual_memory().total)
    try:
        return min(total, float(CONTROL_GROUP_LIMIT.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no limit says max
        return total
