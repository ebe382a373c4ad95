"""The budget of a pre-training step on an H100 in ms by class of kernel, from the bytes and
operations that are counted without one (fake_cuda.py), and the share of the peak that it predicts.

    python benchmarks/step_budget.py [--csv benchmarks/step_budget.csv]

In the root of the checkout. "not compiled": each operator reads and writes for itself. "compiled":
what stands between two products is one kernel, which reads what it is given once and writes only
what is needed later; so an ideal compiler, of which torch's falls short by some kernels. "our kernels":
the same with GPT1_KERNELS=1, where they stand for themselves (needs triton).
"""

import argparse
import csv
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fake_cuda import counting
from kernel_classes import CLASSES, class_of
from launches import ONE_GPU, OUR_KERNELS, of_pretraining
from operators import Kernel
from our_step import PROFILES, named_size
from side_by_side import table

from gpt1.params.profile import compose
from gpt1.params.schema import validate

# assumed of an H100: what products of these sizes reach (8192^3: 798 measured elsewhere), attention
# with dropout forward and backward, memory; from Python to a launch. Peak: NVIDIA's data sheet
PRODUCTS, ATTENTION, MEMORY, LAUNCH, PEAK = 620e12, 140e12, 3.0e12, 6e-6, 989e12


class Row(NamedTuple):
    """A class's launches, operations, bytes, and milliseconds."""

    launches: int
    flops: float
    bytes_: float
    milliseconds: float


def is_light(kernel: Kernel) -> bool:
    """Whether a compiler makes one kernel of it and its like."""
    heavy = ("_foreach", "_fused", "embedding", "gpt1")  # of ours
    return not kernel.flops and not kernel.name.startswith(heavy)


def fused(kernels: list[Kernel], is_light: Callable[[Kernel], bool] = is_light) -> list[Kernel]:
    """The same work by an ideal compiler: neighbours without products as one kernel each class."""
    last_read = {memory: n for n, kernel in enumerate(kernels) for memory in kernel.read}
    found, n = list[Kernel](), 0
    while n < len(kernels):
        first, n = n, n + 1
        if not is_light(kernels[first]):
            found.append(kernels[first])
            continue
        while n < len(kernels) and is_light(kernels[n]):
            n += 1
        found += as_one(kernels[first:n], {memory for memory, at in last_read.items() if at >= n})
    return found


def as_one(group: list[Kernel], needed: set[int]) -> list[Kernel]:
    """Neighbours as one launch: each memory that was there before is read once, each that is needed
    later is written once, by the kernel that touches most of it.
    """
    born, read, written = set[int](), dict[int, tuple[int, int]](), dict[int, tuple[int, int]]()
    for place, kernel in enumerate(group):
        for memory, bytes_ in kernel.read.items():
            if memory not in born:
                read[memory] = max((bytes_, place), read.get(memory, (0, 0)))
        for memory, bytes_ in kernel.written.items():
            born |= {memory} - read.keys()
            if memory in needed:
                written[memory] = max((bytes_, place), written.get(memory, (0, 0)))
    return [
        kernel._replace(
            launches=int(place == 0 and any(one.launches for one in group)),
            read={memory: bytes_ for memory, (bytes_, at) in read.items() if at == place},
            written={memory: bytes_ for memory, (bytes_, at) in written.items() if at == place},
        )
        for place, kernel in enumerate(group)
    ]


def rows_of(kernels: list[Kernel], vocabulary: int) -> dict[str, Row]:
    """Each class's row: products by their operations, or by their bytes where those take longer."""
    grouped = defaultdict[str, list[Kernel]](list)
    for kernel in kernels:
        class_ = class_of(kernel.name, kernel.shape, vocabulary, bool(kernel.flops))
        grouped[class_].append(kernel)
    found = {}
    for name in CLASSES:
        seconds = total = 0.0
        for kernel in grouped[name]:
            bytes_ = sum(kernel.read.values()) + sum(kernel.written.values())
            rate = ATTENTION if name == "attention" else PRODUCTS
            seconds += max(kernel.flops / rate, bytes_ / MEMORY)
            total += bytes_
        launches = sum(kernel.launches for kernel in grouped[name])
        flops = float(sum(kernel.flops for kernel in grouped[name]))
        found[name] = Row(launches, flops, total, 1e3 * seconds)
    found["step"] = Row(*map(sum, zip(*found.values(), strict=True)))
    return found


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--csv", type=Path, metavar="FILE", help="write the table there too")
    arguments = options.parse_args()
    profile, overrides, vocabulary = PROFILES["117m"]
    params = validate(compose(profile, overrides))
    counts = []
    with tempfile.TemporaryDirectory() as name, counting() as count:
        for machine in (ONE_GPU, OUR_KERNELS):
            next(of_pretraining(count, params, vocabulary, Path(name), machine))
            counts.append(count.kernels)
    plain, ours = counts
    ways = {"not compiled": plain, "compiled": fused(plain)}
    ways |= {"our kernels, not compiled": ours, "our kernels": fused(ours)}
    found = {way: rows_of(each, vocabulary) for way, each in ways.items()}
    head = ["class"] + [
        f"{what}, {way}" for way in ways for what in ("launches", "TFLOP", "GB", "ms")
    ]
    lines = [
        [name, *(cell for rows in found.values() for cell in shown(rows[name]))]
        for name in (*CLASSES, "step")
    ]
    size = named_size("117m", params.pretrain.batch_size, None, "bf16", 0.1)
    work = params.pretrain.batch_size * params.model.context * size.flops_per_token()
    print(table(head, lines))
    for way, rows in found.items():
        step = max(rows["step"].milliseconds, 1e3 * LAUNCH * rows["step"].launches)
        share = work / PEAK / step * 1e3
        print(f"\n{way}: {step:.0f} ms, {share:.0%} of {PEAK / 1e12:.0f} TFLOP/s")
        lines.append([f"share of the peak, {way}", f"{share:.3f}"])
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *lines])


def shown(row: Row) -> list[str]:
    return [
        str(row.launches),
        f"{row.flops / 1e12:.2f}",
        f"{row.bytes_ / 1e9:.1f}",
        f"{row.milliseconds:.1f}",
    ]


if __name__ == "__main__":
    main()
