"""Machines by name as their data sheets have them, and what this one has."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpt1.base.cores import cores, nvidia_smi
from gpt1.pipeline.plan.kernels import Gpu
from gpt1.pipeline.schedule import Allocation, Slots, Stage, shares
from gpt1.pipeline.slots import memory_bytes

# of the GPUs' own power: host, network, cooling fans (NVIDIA DGX data sheets: 10.2 kW for 8 x 700 W
# is more)
WATTS_BESIDE_GPUS = 0.25


@dataclass(frozen=True)
class Hardware:
    """A machine as its data sheet has it, or several of them. devices 0: a CPU; flops: dense bf16
    operations a second of a device (or of the whole CPU); bandwidth: of a device's memory, bytes a
    second; watts: of a device.
    """

    name: str
    devices: int
    cores: int
    flops: float
    bandwidth: float
    memory_bytes: float
    watts: float
    machines: int = 1

    @property
    def gpu(self) -> Gpu:
        """The rates of a device."""
        return Gpu(self.flops, self.bandwidth)

    @property
    def slots(self) -> Slots:
        """As gpt1/pipeline/slots.py would find them, of all machines."""
        return Slots(
            self.machines * self.cores, tuple(map(str, range(self.machines * self.devices)))
        )

    def shares(self, stages: Mapping[str, Stage]) -> dict[str, Allocation]:
        """What each stage has: no more than one machine, for stages are what is spread."""
        found = shares(stages, self.slots, self.machines * self.cores)
        return {
            name: replace(share, devices=min(share.devices, self.devices))
            for name, share in found.items()
        }

    @property
    def full_watts(self) -> float:
        """Power at full load: of its devices and what stands beside them."""
        return self.machines * (self.devices * self.watts * (1.0 + WATTS_BESIDE_GPUS) or self.watts)


# bf16 dense, summed in fp32; bandwidth, size of memory; power. NVIDIA's data sheets: "H100 Tensor
# Core GPU", SXM (989.4 TFLOP/s, half of what it gives with sparsity; 3.35 TB/s); "A100 Tensor Core
# GPU", 80GB SXM (312 TFLOP/s, 2,039 GB/s); the white paper "Ada GPU architecture", appendix A, RTX
# 4090 (165.2 TFLOP/s; 1,008 GB/s). Cores: what clouds put beside.
H100 = (989e12, 3.35e12, 80e9, 700.0)
A100 = (312e12, 2.039e12, 80e9, 400.0)
RTX_4090 = (165e12, 1.008e12, 24e9, 450.0)
# Two cores: Zen 4 with AVX512-BF16, where a 4096^3 product made 362-417 GFLOP/s; their bandwidth is
# in no formula. Several machines: stages are spread over them, one stage in one machine.
NAMED = (
    Hardware("1 x H100", 1, 16, *H100),
    Hardware("1 x A100", 1, 16, *A100),
    Hardware("1 x RTX 4090", 1, 16, *RTX_4090),
    Hardware("8 x H100", 8, 96, *H100),
    Hardware("2 x 8 x H100", 8, 96, *H100, 2),
    Hardware("8 x 8 x H100", 8, 96, *H100, 8),
    Hardware("8 x A100", 8, 96, *A100),
    Hardware("two cores", 0, 2, 0.4e12, 0.0, 16e9, 30.0),
)


@dataclass(frozen=True)
class Room:
    """What this machine has: memory, memory of one GPU (0: none), free disk (bytes); cores."""

    memory: float
    device_memory: float
    disk: float
    cores: int


def room_here() -> Room:
    """The room here."""
    device_mebibytes = next(iter(nvidia_smi("memory.total")), 0.0)
    disk = float(shutil.disk_usage(".").free)
    return Room(memory_bytes(), device_mebibytes * 2**20, disk, cores())
