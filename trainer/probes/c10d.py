"""Every collective of this process as a span, whichever framework called it.

torch.distributed, DDP's reducer, FSDP2, DTensor and functional collectives all end in the dispatcher's
operators `c10d::*`. The probe takes the place of their kernels and does what they did, with all that it was
given: reduce operation, root, time-out.

A span runs from the call to the completion of the work, not to its launch. Works may be under way at once
(DDP starts a bucket before the last one is done), but spans of a lane may not overlap: a span is made to start
no earlier than the one that completed before it ended.
"""

from __future__ import annotations

import queue
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.probes.backend import as_returned, original
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Add

OPERATORS = {
    "allreduce_": Kind.ALL_REDUCE,
    "allreduce_coalesced_": Kind.ALL_REDUCE,
    "allgather_": Kind.ALL_GATHER,
    "_allgather_base_": Kind.ALL_GATHER,
    "allgather_coalesced_": Kind.ALL_GATHER,
    "allgather_into_tensor_coalesced_": Kind.ALL_GATHER,
    "reduce_scatter_": Kind.REDUCE_SCATTER,
    "_reduce_scatter_base_": Kind.REDUCE_SCATTER,
    "reduce_scatter_tensor_coalesced_": Kind.REDUCE_SCATTER,
    "alltoall_": Kind.ALL_TO_ALL,
    "alltoall_base_": Kind.ALL_TO_ALL,
    "broadcast_": Kind.BROADCAST,
    "reduce_": Kind.REDUCE,
    "gather_": Kind.GATHER,
    "scatter_": Kind.SCATTER,
    "barrier": Kind.BARRIER,
}
NAMES = {kind: kind.name.lower().replace("_", "-") for kind in OPERATORS.values()}


class Call(NamedTuple):
    """An operator's call with its arguments by name. `axis` is the group's name, `sequence` the call's number in it."""

    operator: str
    group: dist.ProcessGroup
    arguments: dict[str, Any]
    sequence: int
    step: int
    axis: str


class Substituted(NamedTuple):
    """What takes a call's place: the work, what its span is called, and once it is done from when to when that was, ns, if not
    as long as the caller saw it under way."""

    work: dist.Work
    name: str
    times_ns: Callable[[], tuple[int, int] | None] = lambda: None


Substitute = Callable[[Call], Substituted | None]


class CollectiveProbe:
    """Records from `install` to `remove`. `axes` gives names to groups, by torch's `group_name`.

    A `substitute` is asked first, and does what the backend would: for None the backend is called.
    """

    def __init__(self, add: Add, axes: Mapping[str, str], where: Callable[[], int],
                 substitute: Substitute | None = None):
        self._add, self._axes, self._step, self._substitute = add, axes, where, substitute
        self._library: torch.library.Library | None = None
        self._calls: Counter[str] = Counter()  # of each group
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._under_way = 0
        self._last_end_ns = time.monotonic_ns()  # whose zero may be anywhere
        self._device_ends: queue.SimpleQueue[tuple[torch.cuda.Event, Callable[[], None]]] | None = None

    def install(self, device: str = "CPU") -> None:
        """`device` is the dispatcher's key, CPU or CUDA: where the collectives' tensors live."""
        self._library = torch.library.Library("c10d", "IMPL")
        if device == "CUDA":
            self._device_ends = queue.SimpleQueue()
            threading.Thread(target=self._await_device, name="collectives-on-device", daemon=True).start()
        with warnings.catch_warnings():
            # It is said once for all operators, and replacing them is what we are here for.
            warnings.filterwarnings("ignore", "Warning only once for all operators", UserWarning)
            for operator, kind in OPERATORS.items():
                self._library.impl(operator, self._replacement(operator, kind, device), device, with_keyset=True)

    def remove(self, timeout_seconds: float = 5.0) -> None:
        """Put torch's kernels back, once no collective is under way any more."""
        self.settle(timeout_seconds)
        if self._library is not None:
            self._library._destroy()
            self._library = None

    def settle(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until every collective has its span, and say whether that came to be. A caller that waited for a
        collective can be ahead of its span by a moment."""
        with self._idle:
            return self._idle.wait_for(lambda: not self._under_way, timeout_seconds)

    def _replacement(self, operator: str, kind: Kind, device: str) -> Callable[..., Any]:
        call = original(operator, device)
        schema = getattr(torch.ops.c10d, operator).default._schema
        names = [argument.name for argument in schema.arguments]
        group_at = names.index("process_group")

        def replacement(keys: Any, *given: Any) -> Any:
            group = dist.ProcessGroup.unbox(given[group_at])
            with self._lock:
                sequence = self._calls[group.group_name]
                self._calls[group.group_name] += 1
                self._under_way += 1
            start_ns = time.monotonic_ns()
            step = self._step()
            size = _array_bytes(kind, given[:group_at], group.size())
            axis = self._axes.get(group.group_name, group.group_name)
            name = NAMES[kind]

            def completed(_: Any = None) -> None:
                times_ns = own.times_ns() if own else None
                called_ns, end_ns = times_ns or (start_ns, time.monotonic_ns())
                with self._idle:
                    begin_ns = max(called_ns, self._last_end_ns)
                    self._last_end_ns = end_ns = max(begin_ns, end_ns)
                    self._add(kind, begin_ns, end_ns, step, NONE, NONE, NONE, size, sequence, name, axis)
                    self._under_way -= 1
                    self._idle.notify_all()

            own = None
            try:
                if self._substitute is not None:
                    arguments = dict(zip(names, given, strict=False))
                    own = self._substitute(Call(operator, group, arguments, sequence, step, axis))
                if own is None:
                    returned, work = call(keys, *given)
                else:
                    work, name = own.work, own.name
                    returned = as_returned(schema, given, work)
            except BaseException:
                completed()
                raise
            future = _future_of(work)
            if future is None:
                completed()
            else:
                future.add_done_callback(completed if self._device_ends is None else self._on_device(completed))
            return returned

        return replacement

    def _on_device(self, completed: Callable[[], None]) -> Callable[[Any], None]:
        """On CUDA a work's future is done once the work is queued, and its callback runs on a stream that
        waits for the work. So the callback puts an event there, and a thread waits for that."""
        def queued(_: Any) -> None:
            assert self._device_ends is not None
            event = torch.cuda.Event(blocking=True)
            event.record()
            self._device_ends.put((event, completed))

        return queued

    def _await_device(self) -> None:
        assert self._device_ends is not None
        while True:
            event, completed = self._device_ends.get()
            event.synchronize()
            completed()


def _future_of(work: dist.Work) -> torch.futures.Future[Any] | None:
    """The work's future; None if it has none, and is complete now.

    gloo makes a reduce-scatter of other collectives, and does the last part of it in `wait`. The caller may wait
    again, at no cost; but one who meant to overlap it with something else cannot, as long as the probe is there.
    """
    try:
        return work.get_future()
    except RuntimeError:
        work.wait()
        return None


def _array_bytes(kind: Kind, given: tuple[Any, ...], ranks: int) -> int:
    """Size of the whole array that the collective is about, as nccl-tests counts it: a gathering one's output,
    a scattering one's input."""
    if kind is Kind.BARRIER:
        return 0
    by_argument = [sum(tensor.nbytes for tensor in _tensors(argument)) for argument in given]
    if kind in (Kind.GATHER, Kind.SCATTER):  # only the root has the whole array; every rank has one part
        parts = [size for size in by_argument if size]
        return min(parts, default=0) * ranks
    return max(by_argument)


def _tensors(given: Any) -> Iterator[Tensor]:
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for item in given:
            yield from _tensors(item)
