"""What a GPU's kernels are for, by class: of a step as it is counted (step_budget.py), and as the
profiler saw one (training_step.py --profile), so that the two can stand side by side.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from torch.autograd import DeviceType

from gpt1.pipeline.plan.kernels import CLASSES

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_addmm_activation")


def class_of(name: str, shape: Sequence[int], vocabulary: int, product: bool) -> str:
    """What a kernel is for: the operator or the compiler's kernel `name`, whose largest tensor has
    that shape; `product`: whether it multiplies matrices.
    """
    if "attention" in name:
        return "attention"
    if product:
        return "products of the head" if max(shape) >= vocabulary else "products of blocks"
    if name.startswith(("_foreach", "_fused")):
        return "clipping and Adam"
    of_logits = "index_copy" in name and max(shape) >= vocabulary  # which lie there in one row
    if "softmax" in name or of_logits or (len(shape) > 1 and shape[-1] >= vocabulary):
        return "softmax"
    of_matrix = "embedding" in name or max(shape, default=0) >= vocabulary
    return "embeddings" if of_matrix else "masks, norms, GELU, casts"


def measured(events: Iterable[Any], vocabulary: int) -> dict[str, dict[str, float]]:
    """{class: kernels and milliseconds} of the profiler's events, with sizes of inputs: on a GPU of
    its kernels, each classed by the operator that launched it, else by its own name; where there is
    none, of the operators themselves.
    """
    found = {name: {"launches": 0.0, "milliseconds": 0.0} for name in CLASSES}

    def add(class_: str, launches: int, microseconds: float) -> None:
        found[class_]["launches"] += launches
        found[class_]["milliseconds"] += microseconds / 1e3

    kernels = defaultdict[str, list[float]](list)
    launched, seconds = Counter[str](), Counter[str]()
    operators = []
    for event in events:
        if event.device_type == DeviceType.CPU:
            operators.append(event)
        elif not event.is_user_annotation:
            kernels[event.name].append(event.self_device_time_total)
    for event in operators:
        name, shape = event.name.removeprefix("aten::"), largest(event.input_shapes)
        class_ = class_of(name, shape, vocabulary, name in PRODUCTS)
        if not kernels:
            add(class_, 1, event.self_cpu_time_total)
        for kernel in event.kernels:
            launched[kernel.name] += 1
            seconds[kernel.name] += kernel.duration
            add(class_, 1, kernel.duration)
    for name, times in kernels.items():
        count = len(times) - launched[name]
        if count > 0:
            add(class_of(name, (), vocabulary, False), count, sum(times) - seconds[name])
    return found


def largest(shapes: Iterable[Any]) -> tuple[int, ...]:
    """The sizes of the largest tensor; those of lists of tensors are not known."""
    flat = [tuple(shape) for shape in shapes or () if all(isinstance(one, int) for one in shape)]
    return max(flat, key=math.prod, default=())
