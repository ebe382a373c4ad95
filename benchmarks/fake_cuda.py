"""For the benchmarks and tests: what a GPU would be asked to do, counted without one. Tensors are
fake (shapes, types and a device, no numbers), so a step of any size takes seconds and no memory.

Needs a C++ compiler, and a process of its own: torch believes from then on that it has a GPU.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest import mock

import no_gpu  # noqa: F401  (before torch)
import numpy as np
import torch
from operators import Kernel, changed_by, flops_of, is_on_gpu, launches_of
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpt1.train import ahead

aten = torch.ops.aten
# what asks the GPU for nothing: memory and names for it
NO_LAUNCH = ("empty", "new_empty", "detach", "alias", "lift", "_unsafe_view", "view", "is_pinned")
COPIES = ("_to_copy", "copy_", "_copy_from")
# which take their indices as masks, too: then the host waits to learn how many there are
BY_INDEX = (
    aten.index.Tensor,
    aten.index_put_.default,
    aten.index_put.default,
    aten._index_put_impl_.default,
    aten._unsafe_index.Tensor,
)
NUMBERS = {torch.bool: True, torch.float32: 2.0, torch.float64: 2.0}  # what .item() gives, else 1


class Count(TorchDispatchMode):
    """Counts inside: kernels; copies that block the host; other waits of the host; operators that
    mix a CPU's tensor with the GPU's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.kernels: list[Kernel] = []
        self.kept: dict[int, Any] = {}  # a graph keeps those of its recording, too
        self.copies, self.waits, self.mixes = Counter[str](), Counter[str](), Counter[str]()

    def figures(self) -> dict[str, Any]:
        """The counts, and what is behind them."""
        by_name = Counter[str]()
        for kernel in self.kernels:
            by_name[kernel.name] += kernel.launches
        products = [kernel for kernel in self.kernels if kernel.flops]
        return {
            "launches": by_name.total(),
            "blocking_copies": self.copies.total(),
            "waits": self.waits.total(),
            "mixes": self.mixes.total(),
            "flops": sum(kernel.flops for kernel in products),
            "flops_in_bf16": sum(k.flops for k in products if k.dtype == torch.bfloat16),
            "flops_aligned": sum(kernel.flops for kernel in products if kernel.aligned),
            "by_name": {
                "launches": dict(by_name.most_common()),
                "blocking_copies": dict(self.copies),
                "waits": dict(self.waits),
                "mixes": dict(self.mixes),
            },
        }

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), options: dict[str, Any] | None = None
    ) -> Any:
        """Called by torch for each of its operators."""
        options = options or {}
        ours = function in (aten.item.default, aten.is_pinned.default)  # answered below
        if torch.is_inference_mode_enabled() and function.namespace == "aten" and not ours:
            # where operators come whole
            with self:
                parts = function.decompose(*arguments, **options)
            if parts is not NotImplemented:
                return parts
        name = str(function).removeprefix("aten.")
        given = [leaf for leaf in tree_leaves((arguments, options)) if isinstance(leaf, Tensor)]
        on_gpu = [tensor for tensor in given if is_on_gpu(tensor)]
        if function in (aten._local_scalar_dense.default, aten.item.default):
            self.waits[name] += len(on_gpu)
            return NUMBERS.get(given[0].dtype, 1)
        if function is aten._pin_memory.default:
            return pinned(torch.empty_like(given[0]))
        if function is aten.is_pinned.default:
            return getattr(given[0], "pinned", False)
        if function is aten.nonzero.default:  # as though all were true
            self.waits[name] += len(on_gpu)
            made = given[0].new_empty((given[0].numel(), given[0].ndim), dtype=torch.int64)
        else:
            if function in BY_INDEX and on_gpu:
                arguments = self._without_masks(name, arguments)
            made = function(*arguments, **options)
        if options.get("pin_memory"):
            pinned(made)
        self._note(
            function,
            name,
            given,
            [one for one in tree_leaves(made) if isinstance(one, Tensor)],
            arguments,
            options,
        )
        return made

    def _bytes(self, tensors: list[Tensor]) -> dict[int, int]:
        """Bytes of these tensors by the memory they lie in, which is kept, so that none has the
        number of another.
        """
        found: dict[int, int] = {}
        for tensor in tensors:
            memory = tensor.untyped_storage()
            self.kept[memory._cdata] = memory
            size = tensor.numel() * tensor.element_size()
            found[memory._cdata] = max(size, found.get(memory._cdata, 0))
        return found

    def _without_masks(self, name: str, arguments: Any) -> Any:
        """An index's arguments with whole numbers for masks, as though all were true."""
        indices = []
        for index in arguments[1]:
            if index is not None and index.dtype == torch.bool:
                self.waits[f"{name} by a mask"] += 1
                indices += [index.new_empty(index.numel(), dtype=torch.int64)] * index.ndim
            else:
                indices.append(index)
        return (arguments[0], indices, *arguments[2:])

    def _note(
        self,
        function: Any,
        name: str,
        given: list[Tensor],
        made: list[Tensor],
        arguments: Any,
        options: dict[str, Any],
    ) -> None:
        tensors = [*given, *made]
        on_gpu = [tensor for tensor in tensors if is_on_gpu(tensor)]
        on_cpu = [tensor for tensor in tensors if not is_on_gpu(tensor) and tensor.dim()]
        if (
            not on_gpu
            or function.is_view
            or function.namespace == "prim"
            or name.startswith(NO_LAUNCH)
        ):
            return
        if name.startswith(COPIES):
            host = [tensor for tensor in tensors if not is_on_gpu(tensor)]
            free = options.get("non_blocking") or arguments[2:] == (True,)
            if host and not (free and all(getattr(tensor, "pinned", False) for tensor in host)):
                self.copies[f"{name} {'to' if is_on_gpu(made[0]) else 'from'} the GPU"] += 1
        elif on_cpu:
            self.mixes[name] += 1
        self.kernels.append(
            Kernel(
                name,
                launches_of(name, arguments),
                self._bytes([tensor for tensor in given if is_on_gpu(tensor)]),
                self._bytes([*filter(is_on_gpu, made), *changed_by(function, arguments)]),
                flops_of(function, arguments, options, made),
                (made or on_gpu)[0].dtype,
                tuple(max(on_gpu, key=Tensor.numel).shape),
                all(
                    max(one.stride()) * one.element_size() % 16 == 0
                    for one in on_gpu
                    if one.dim() > 1 and one.is_floating_point()
                ),
            )
        )


def done_now(work: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """What a thread would do, in this one."""
    future = Future[Any]()
    future.set_result(work(*arguments))
    return future


def pinned(tensor: Tensor) -> Tensor:
    """The tensor, marked as lying in memory that the GPU reads by itself."""
    tensor.pinned = True  # type: ignore[attr-defined]
    return tensor


class _Functions(TorchFunctionMode):
    """What does not come down to operators: attention, which asks for CUDA's choice of a kernel,
    and lists of numbers.
    """

    def __init__(self, count: Count) -> None:
        super().__init__()
        self.count = count

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: dict[str, Any] | None = None
    ) -> Any:
        options = options or {}
        if function is F.scaled_dot_product_attention and arguments[0].is_cuda:
            query, key, value = arguments
            rate, causal = options.get("dropout_p", 0.0), options.get("is_causal", False)
            if query.dtype == torch.float32:
                return aten._scaled_dot_product_efficient_attention(
                    query, key, value, None, True, rate, causal
                )[0]
            return aten._scaled_dot_product_flash_attention(query, key, value, rate, causal)[0]
        if function in (Tensor.tolist, Tensor.numpy):
            self.count.waits["tolist"] += arguments[0].is_cuda
            numbers = np.full(arguments[0].shape, NUMBERS.get(arguments[0].dtype, 1))
            return numbers if function is Tensor.numpy else numbers.tolist()
        return function(*arguments, **options)


@contextmanager
def counting() -> Iterator[Count]:
    """Inside, tensors are fake, "cuda" is a device, and what it is asked to do is counted."""
    count = Count()

    def wait(*_: object, **__: object) -> None:
        count.waits["synchronize"] += 1

    with ExitStack() as stack:

        def patch(place: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(place, name, value))

        # what is made from Python's numbers for the GPU comes by way of the CPU
        patch(FakeTensorMode, "avoid_device_init", True)
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))

        class Event:
            """Of CUDA, of which all is over at once; a host that waits for one is counted."""

            def __init__(self, *_: object, **__: object) -> None:
                self.record = self.wait = lambda *_: None
                self.synchronize = lambda: count.waits.update(["event"])
                self.query = lambda: True

        class CUDAGraph:
            """What is done in a recording, counted at each replay with one launch for all."""

            def replay(self) -> None:
                first, *others = self.kernels
                count.kernels.append(first._replace(launches=1))
                count.kernels += [kernel._replace(launches=0) for kernel in others]

        @contextmanager
        def recording(graph: CUDAGraph, **_: object) -> Iterator[None]:
            before = len(count.kernels)
            yield
            graph.kernels, graph.kept = count.kernels[before:], count.kept
            del count.kernels[before:]

        for name, value in {
            "CUDAGraph": CUDAGraph,
            "graph": recording,
            "graph_pool_handle": lambda: None,
            "manual_seed": lambda _: None,
            "Event": Event,
            "Stream": Event,
            "stream": lambda _: nullcontext(),
            "current_stream": lambda *_: Event(),
            "is_available": lambda: True,
            "is_bf16_supported": lambda *_, **__: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": lambda *_: None,
            "empty_cache": lambda: None,
            "synchronize": wait,
        }.items():
            patch(torch.cuda, name, value)
        # fake tensors are this thread's alone
        patch(ahead, "ThreadPoolExecutor", lambda *_: mock.Mock(submit=done_now))
        for name in ("to", "to_empty"):  # torch would swap tensors, which fake ones do not allow
            patch(nn.Module, name, placed)
        stack.enter_context(count)
        stack.enter_context(_Functions(count))
        yield count


def placed(module: nn.Module, device: Any = "cuda") -> nn.Module:
    """The module, its parameters fake and on that device."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                made = torch.empty(parameter.shape, dtype=parameter.dtype, device=device)
                part._parameters[name] = nn.Parameter(made)
    return module
