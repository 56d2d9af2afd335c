"""Calls a collective as torch's kernels for `c10d::*` do, by the group's backend, and without Python's global lock.

That is not for speed. A gloo thread lets go of a work, and so of its tensors, while it holds the mutex of its queue; a
tensor that Python has known takes the global lock to be freed. Whoever enters that queue with the global lock held,
as a kernel's `call_boxed` does, can wait for the mutex while the thread waits for the lock: for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

# Operator: the backend's method and the class of its options.
METHODS: dict[str, tuple[str, Callable[[], Any]]] = {
    "allreduce_": ("allreduce", c10d.AllreduceOptions),
    "allreduce_coalesced_": ("allreduce_coalesced", c10d.AllreduceCoalescedOptions),
    "allgather_": ("allgather", c10d.AllgatherOptions),
    "_allgather_base_": ("_allgather_base", c10d.AllgatherOptions),
    "allgather_coalesced_": ("allgather_coalesced", c10d.AllgatherOptions),
    "reduce_scatter_": ("reduce_scatter", c10d.ReduceScatterOptions),
    "_reduce_scatter_base_": ("_reduce_scatter_base", c10d.ReduceScatterOptions),
    "alltoall_": ("alltoall", c10d.AllToAllOptions),
    "alltoall_base_": ("alltoall_base", c10d.AllToAllOptions),
    "broadcast_": ("broadcast", c10d.BroadcastOptions),
    "reduce_": ("reduce", c10d.ReduceOptions),
    "gather_": ("gather", c10d.GatherOptions),
    "scatter_": ("scatter", c10d.ScatterOptions),
    "barrier": ("barrier", c10d.BarrierOptions),
}
# Torch gives two more no name in Python: all-gather and reduce-scatter of many tensors in one. DTensor and functional
# collectives give them a single tensor, for which this is the same; of several they stay with their kernels.
OF_ONE = {
    "allgather_into_tensor_coalesced_": "_allgather_base_",
    "reduce_scatter_tensor_coalesced_": "_reduce_scatter_base_",
}
# Arguments of operators that are fields of the options. Those that are left out have the same defaults in both.
OPTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "reduce_op": ("reduceOp", lambda boxed: dist.ReduceOp(dist.ReduceOp.RedOpType(boxed.op()))),
    "root_rank": ("rootRank", int),
    "root_tensor": ("rootTensor", int),
    "device_ids": ("device_ids", list),
    "async_op": ("asyncOp", bool),
    "timeout": ("timeout", lambda ms: timedelta(milliseconds=ms)),
}


def original(operator: str, device: str) -> Callable[..., tuple[Any, dist.Work]]:
    """A function of the dispatcher's keys and the operator's arguments, that gives what its kernel returns, and the work.

    `device` is the dispatcher's key, CPU or CUDA. To be called before the kernel is replaced.
    """
    kernel = torch.library.get_kernel(f"c10d::{operator}", device)
    schema = getattr(torch.ops.c10d, operator).default._schema
    names = [argument.name for argument in schema.arguments]

    def by_kernel(keys: Any, *given: Any) -> tuple[Any, dist.Work]:
        returned = kernel.call_boxed(keys, *given)
        return returned, dist.Work.unbox(returned[-1] if isinstance(returned, tuple) else returned)

    def by_backend(keys: Any, *given: Any) -> tuple[Any, dist.Work]:
        arguments = dict(zip(names, given, strict=False))
        if operator in OF_ONE:
            if any(isinstance(value, list) and len(value) > 1 for value in arguments.values()):
                return by_kernel(keys, *given)
            arguments = {name: value[0] if isinstance(value, list) else value for name, value in arguments.items()}
        if not _can_be_told(arguments):
            return by_kernel(keys, *given)
        options = options_of()
        for name in OPTIONS.keys() & arguments.keys():
            field, converted = OPTIONS[name]
            setattr(options, field, converted(arguments[name]))
        group = dist.ProcessGroup.unbox(arguments["process_group"])
        passed = [value for name, value in arguments.items() if name not in not_passed]
        work = getattr(group._get_backend(torch.device(device.lower())), method)(*passed, options)
        return as_returned(schema, given, work), work

    method, options_of = METHODS[OF_ONE.get(operator, operator)]
    not_passed = {"process_group", "sparse_indices", *OPTIONS} | ({"tensor"} if operator == "barrier" else set())
    return by_backend


def as_returned(schema: Any, given: tuple[Any, ...], work: dist.Work) -> Any:
    """What an operator's kernel returns for `work`; some return their first argument as well."""
    return (given[0], work.boxed()) if len(schema.returns) == 2 else work.boxed()


def _can_be_told(arguments: dict[str, Any]) -> bool:
    """Two rare requests cannot be made from Python: sparse tensors' indices, and a factor before the sum."""
    scaled = "reduce_op" in arguments and arguments["reduce_op"].op() == dist.ReduceOp.PREMUL_SUM.value
    return not scaled and arguments.get("sparse_indices") is None
