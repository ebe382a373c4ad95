"""What our kernels (gpt1/model/kernels) ask of a GPU in a pre-training step of the paper's size, told
without one: registers, spills and shared memory, compiled ahead of time for sm_80 and sm_90 by
Triton's own ptxas; bytes read and written, counted by Triton's interpreter, against the least
possible, each number of their inputs once and each of their outputs once; and how far their numbers
are from those of float64.

    python benchmarks/our_kernels.py [--csv benchmarks/our_kernels.csv]

In the root of the checkout; needs triton (pip install --no-deps triton==3.7.1). What is read again
comes from a GPU's caches where they are large enough; whether they are only a GPU can tell.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = str(int("--interpreted" in sys.argv))  # before Triton is there

import numpy as np
import torch
import triton
from side_by_side import in_own_process, table
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from gpt1.model.dropout import BLOCKS, Dropout
from gpt1.model.kernels import attention, attention_backward, dropout_residual_norm, softmax
from gpt1.params.profile import compose
from gpt1.params.schema import validate
from gpt1.train.losses import OTHER_BLOCKS

PARAMS = validate(compose("paper", ()))
SIZES, TOKENS = PARAMS.model, PARAMS.pretrain.batch_size * PARAMS.model.context
VOCABULARY, RATE = 40_478, PARAMS.pretrain.dropout
ROWS_OF_LOGITS = -(-VOCABULARY // OTHER_BLOCKS.multiple) * OTHER_BLOCKS.multiple
HEAD = {"HEADS": SIZES.heads, "WIDTH": SIZES.width // SIZES.heads, "BLOCK": 64}
NORMS = 2 * SIZES.layers
ROW = {"WIDTH": SIZES.width, "BLOCK": 1024, "ROUNDED": 1, "num_warps": dropout_residual_norm.WARPS}
# launches a step, the kernel, its constants and options
KERNELS: dict[str, tuple[int, Any, dict[str, int]]] = {
    "dropout, residual, norm: forward": (
        NORMS,
        dropout_residual_norm.forward_kernel,
        ROW,
    ),
    "dropout, residual, norm: backward": (
        NORMS,
        dropout_residual_norm.backward_kernel,
        {**ROW, "ROWS": dropout_residual_norm.ROWS_A_PROGRAM},
    ),
    "attention: forward": (SIZES.layers, attention.forward_kernel, HEAD | attention.FORWARD),
    "attention: gradient of queries": (
        SIZES.layers,
        attention_backward.queries_kernel,
        HEAD | attention_backward.OF_QUERIES,
    ),
    "attention: gradient of keys, values": (
        SIZES.layers,
        attention_backward.keys_kernel,
        HEAD | attention_backward.OF_KEYS,
    ),
    "softmax: losses and gradient": (
        -(-TOKENS // OTHER_BLOCKS.rows),
        softmax.kernel,
        {"GRADIENTS": 1, "BLOCK": softmax.BLOCK, "num_warps": softmax.WARPS},
    ),
}
FLOATS = {"scale", "epsilon", "sharpness", "root"}
WHOLE = {
    "targets_ptr": "*i64",
    "sequences_ptr": "*i64",
    "keys_ptr": "*i32",
    "positions_ptr": "*i32",
}
WAYS = ("read", "written")
INTERPRETED_ROWS, INTERPRETED_LOGITS, INTERPRETED_HEADS = 64, 2, 2


def compiled(kernel: Any, constants: dict[str, int], capability: int) -> dict[str, Any]:
    """Registers of a thread, bytes that they spill, shared memory, warps, and the widest loads."""
    options = {name: constants[name] for name in ("num_warps", "num_stages") if name in constants}
    of_attention = "qkv_ptr" in kernel.arg_names

    def type_of(name: str) -> str:
        if name in constants:
            return "constexpr"
        if not name.endswith("_ptr"):
            return "fp32" if name in FLOATS else "i32"
        low = name.startswith(("change", "rounded", "logits"))
        low |= of_attention and name not in ("logs_ptr", "along_ptr")
        return WHOLE.get(name, "*bf16" if low else "*fp32")

    signature = {name: type_of(name) for name in kernel.arg_names}
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, (name, type_) in enumerate(signature.items())
        if type_.startswith("*") or name == "width"  # multiples of 16
    }
    values = {name: constants[name] for name in signature if name in constants}
    source = ASTSource(kernel, signature, constexprs=values, attrs=aligned)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        used, code = (
            subprocess.run(
                [tool, flag, file.name], check=True, capture_output=True, text=True
            ).stdout
            for flag in ("-res-usage", "-sass")
        )
    registers, stack = (int(re.search(rf"{what}:(\d+)", used)[1]) for what in ("REG", "STACK"))
    return {
        "registers": registers,
        "bytes spilled": stack,
        "loads and stores of spills": len(re.findall(r"\b(?:LDL|STL)\b", code)),
        "shared memory": made.metadata.shared,
        "warps": made.metadata.num_warps,
        "tensor cores by": "/".join(sorted(set(re.findall(r"\b(?:HGMMA|HMMA)\b", code)))) or "-",
    }


class Counted:
    """Bytes that the interpreter loads and stores, by kernel, and how many different ones."""

    def __init__(self) -> None:
        from triton.runtime import interpreter

        self.bytes = Counter[tuple[str, str]]()
        self.places = defaultdict[tuple[str, str], set[int]](set)
        builder, run = interpreter.InterpreterBuilder, interpreter.GridExecutor.__call__
        load, store = builder.create_masked_load, builder.create_masked_store

        def named(executor: Any, *arguments: Any, **options: Any) -> Any:
            self.kernel = f"{executor.fn.__module__}.{executor.fn.__name__}"
            return run(executor, *arguments, **options)

        def loading(this: Any, pointers: Any, mask: Any, *more: Any) -> Any:
            self.note(WAYS[0], pointers, mask)
            return load(this, pointers, mask, *more)

        def storing(this: Any, pointers: Any, value: Any, mask: Any, *more: Any) -> Any:
            self.note(WAYS[1], pointers, mask)
            return store(this, pointers, value, mask, *more)

        interpreter.GridExecutor.__call__ = named
        builder.create_masked_load, builder.create_masked_store = loading, storing

    def note(self, what: str, pointers: Any, mask: Any) -> None:
        each, at = pointers.get_element_ty().primitive_bitwidth // 8, (self.kernel, what)
        found = np.broadcast_to(pointers.data, mask.data.shape)[mask.data]
        self.bytes[at] += each * len(found)
        self.places[at] |= {each << 60 | int(place) for place in np.unique(found)}

    def of(self, kernel: Any, share: float) -> dict[str, float]:
        """GB of a step, of which `share` was interpreted: read, written, and the least possible."""
        ways = [(f"{kernel.fn.__module__}.{kernel.fn.__name__}", way) for way in WAYS]
        least = sum(place >> 60 for way in ways for place in self.places[way])
        moved = dict(zip(WAYS, (self.bytes[way] for way in ways), strict=True)) | {"least": least}
        return {what: bytes_ / share / 1e9 for what, bytes_ in moved.items()}


def interpreted() -> dict[str, dict[str, float]]:
    """Bytes of each kernel, and how far numbers and gradients are from the twins' in float64."""
    counted, draw, found = Counted(), torch.Generator().manual_seed(0), {}

    def drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(*shape, generator=draw).to(dtype).requires_grad_()

    def off(ours: Any, plain: Any, given: list[torch.Tensor]) -> float:
        """The greatest difference of values and gradients, as a share of the greatest number."""
        twins = [one.detach().double().requires_grad_() for one in given]
        made, expected = ours(*given), plain(*twins)
        towards = torch.randn(made.shape, generator=draw)
        made.backward(towards.to(made.dtype))
        expected.backward(towards.double())
        pairs = [(made, expected), *((a.grad, b.grad) for a, b in zip(given, twins, strict=True))]
        return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)

    rows, width, context = INTERPRETED_ROWS, SIZES.width, SIZES.context
    keys = Dropout(RATE, 2018, np.arange(1)).keys([BLOCKS])[0, 1:]
    masks = keys, torch.zeros(rows, dtype=torch.int64), torch.arange(rows, dtype=torch.int32)
    norm_off = off(
        lambda x, change, gain, bias: dropout_residual_norm.dropout_residual_norm(
            x, change, *masks, gain, bias, RATE, 1e-5
        )[0],
        lambda x, change, gain, bias: dropout_residual_norm.plain(
            x, change, *masks, gain, bias, RATE, 1e-5
        ),
        [drawn(rows, width), drawn(rows, width), drawn(width), drawn(width)],
    )
    heads, of_head = INTERPRETED_HEADS, width // SIZES.heads
    attention_off = off(
        lambda qkv: attention.attention(qkv, keys, heads, context, context, RATE),
        lambda qkv: attention.plain(qkv, keys, heads, context, context, RATE),
        [drawn(context, 3 * heads * of_head)],
    )
    logits = drawn(INTERPRETED_LOGITS, ROWS_OF_LOGITS).detach()
    twin, targets = logits.double(), torch.arange(INTERPRETED_LOGITS) * 40_000
    of_rows = targets, torch.ones(INTERPRETED_LOGITS), VOCABULARY, True
    losses = softmax.softmax_losses(logits, *of_rows), softmax.plain(twin, *of_rows)
    softmax_off = max(
        float((a - b).abs().max() / b.abs().max()) for a, b in [losses, (logits, twin)]
    )
    # the bytes anew, of the types that a step has
    counted.bytes.clear()
    counted.places.clear()
    low = torch.bfloat16
    given = drawn(rows, width), drawn(rows, width, dtype=low)
    affine = drawn(width), drawn(width)
    normed = dropout_residual_norm.dropout_residual_norm(*given, *masks, *affine, RATE, 1e-5)
    (normed[0].sum() + normed[1].sum()).backward()
    qkv = drawn(context, 3 * heads * of_head, dtype=low)
    attention.attention(qkv, keys, heads, context, context, RATE).sum().backward()
    softmax.softmax_losses(logits.to(low), *of_rows)
    shares = {
        "dropout": (rows / TOKENS / NORMS, norm_off),
        "attention": (context * heads / TOKENS / SIZES.heads / SIZES.layers, attention_off),
        "softmax": (INTERPRETED_LOGITS / TOKENS, softmax_off),
    }
    for name, (_, kernel, _) in KERNELS.items():
        share, apart = shares[re.split(r"\W", name)[0]]
        found[name] = counted.of(kernel, share) | {"off": apart}
    return found


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--csv", type=Path, metavar="FILE", help="write the table there too")
    options.add_argument("--interpreted", action="store_true")
    arguments = options.parse_args()
    if arguments.interpreted:
        print(json.dumps(interpreted()))
        return
    moved = in_own_process([__file__, "--interpreted"], None)
    lines = []
    for name, (launches, kernel, constants) in KERNELS.items():
        cells = dict[str, object]()
        for capability in (80, 90):
            for what, value in compiled(kernel, constants, capability).items():
                cells[f"{what}, sm_{capability}"] = value
        cells |= {f"GB {what}": f"{moved[name][what]:.1f}" for what in (*WAYS, "least")}
        cells["off float64"] = f"{moved[name]['off']:.0e}"
        head = ["kernel", "launches a step", *cells]
        lines.append([name, launches, *cells.values()])
    print(table(head, lines))
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *lines])


if __name__ == "__main__":
    main()
