"""Our algorithms in the place of the backend's, beneath whatever framework calls: see `trainer.probes.c10d`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from trainer.collectives.cost import by_cost
from trainer.collectives.exchange import Exchange, Trip
from trainer.collectives.operators import Request, request_of
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.collectives.plans.plan import Plan
from trainer.collectives.ported import Network, ranked, together
from trainer.emulate.link_classes import LOOPBACK
from trainer.emulate.links import Links, now_ns
from trainer.grid import AXES, Grid
from trainer.probes.c10d import Call, Substituted
from trainer.trace.row import Add


class OwnCollectives:
    """`choices` are names of algorithms by collective, or "backend", or "auto". `say` gets what "auto" chose, and why.

    What is called asynchronously runs in a thread of its group, so that it goes on while the caller computes; what is
    not, in the caller's.
    """

    def __init__(self, choices: Mapping[str, str], add: Add, say: Callable[[str], None],
                 links: Links | None = None):
        self._choices, self._add, self._say, self._links = choices, add, say, links
        self._exchanges: dict[str, Exchange] = {}
        self._queues: dict[str, _Queue] = {}
        self._chosen: dict[tuple[str, str, int, int], Plan] = {}
        self._failed: list[Exception] = []

    def __call__(self, call: Call) -> Substituted | None:
        """A work that carries the call out, and its span; None if that is the backend's to do.

        Raises what a peer's loss raises, and after an asynchronous call has failed RuntimeError for every other: a
        work that torch makes of a future tells its future's error, but does not raise it in `wait`.
        """
        if self._failed:
            raise RuntimeError(f"a collective before this one has failed: {self._failed[0]}") from self._failed[0]
        group = call.group
        request = request_of(call.operator, call.arguments, group.rank(), group.size())
        if request is None or group.size() == 1 or self._choices[request.collective] == "backend":
            return None
        if group.group_name not in self._exchanges:
            self._exchanges[group.group_name] = Exchange(group, self._add, self._links)
        exchange = self._exchanges[group.group_name]
        plan = self._plan(request, exchange, call.axis)
        timeout_ms = call.arguments.get("timeout", -1)
        moment = None if self._links is None else self._links.moment
        is_beside = bool(call.arguments.get("async_op", True))
        called_ns = moment.beside_ns if moment is not None and is_beside else now_ns(self._links)
        timeout = timedelta(milliseconds=timeout_ms) if timeout_ms > 0 else None
        trip = Trip(call.sequence, call.step, call.axis, called_ns, timeout)
        until_ns: list[int] = []

        def carry_out() -> None:
            request.carry_out(lambda memory, combine: exchange.run(plan, memory, combine, trip))
            until_ns.append(exchange.until_ns)
            if moment is not None and is_beside:
                moment.beside(group.group_name, exchange.until_ns)
            elif moment is not None:
                moment.reach(exchange.until_ns)

        def times_ns() -> tuple[int, int] | None:
            """Over modelled links, from the moment of the call to when the links say."""
            return None if moment is None or not until_ns else (called_ns, until_ns[0])

        work = self._begin(carry_out, request, call, is_beside)
        return Substituted(work, f"{request.collective.replace('_', '-')} · {plan.algorithm}", times_ns)

    def _begin(self, carry_out: Callable[[], None], request: Request, call: Call, is_beside: bool) -> dist.Work:
        if is_beside:
            name = call.group.group_name
            if name not in self._queues:
                self._queues[name] = _Queue(f"collectives-{call.axis}", self._failed.append)
            return _work(self._queues[name].put(carry_out, request.result))
        carry_out()
        done: torch.futures.Future[Any] = torch.futures.Future()
        done.set_result(request.result)
        return _work(done)

    def _plan(self, request: Request, exchange: Exchange, axis: str) -> Plan:
        """By name, or the quickest. What has chunks of several sizes goes straight to its ranks: nobody in between knows them."""
        name = "ring" if request.uneven else self._choices[request.collective]
        if name != "auto":
            return plan_of(request.collective, name, exchange.size, request.root)
        shape = request.collective, axis, request.size_bytes, request.root
        if shape not in self._chosen:
            self._chosen[shape] = self._quickest(request, exchange, axis)
        return self._chosen[shape]

    def _quickest(self, request: Request, exchange: Exchange, axis: str) -> Plan:
        links, root = self._links, request.root
        if links is None:
            plans = [plan_of(request.collective, name, exchange.size, root) for name in ALGORITHMS[request.collective]]
            found, by = by_cost(plans, request.size_bytes, lambda one, other: LOOPBACK), "α and β of the loopback device"
        else:
            groups = self._at_once(links, exchange, axis)
            found = ranked(Network(links.spec, links.as_counted), groups, request.collective, request.size_bytes, root)
            beside = f", with {len(groups) - 1} groups beside it" if len(groups) > 1 else ""
            by = f"α, β and shared ports of the modelled links{beside}"
        (best_seconds, best), *others = found
        rest = ", ".join(f"{plan.algorithm} {_short(duration)}" for duration, plan in others)
        self._say(f"{request.collective.replace('_', '-')} of {request.size_bytes} bytes over {axis}: {best.algorithm}, "
                  f"{_short(best_seconds)} by {by}" + (f"; {rest}" if rest else ""))
        return best

    @staticmethod
    def _at_once(links: Links, exchange: Exchange, axis: str) -> list[Sequence[int]]:
        """Groups along the same axes, which do the same at about the same time, as far as they share ports. They are the same
        for all ranks of the axes, so all of them choose alike."""
        axes, grid = axis.split("×"), Grid.of(links.spec.grid)
        if not set(axes) <= set(AXES):
            return [exchange.ranks]
        groups = [group for group in grid.groups(*axes) if len(group) == exchange.size]
        return together(Network(links.spec, links.as_counted), groups) if groups else [exchange.ranks]


class _Queue:
    """A thread that does one thing after the other."""

    def __init__(self, name: str, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._todo: queue.SimpleQueue[tuple[Callable[[], None], torch.futures.Future[Any], Any]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def put(self, function: Callable[[], None], result: Any) -> torch.futures.Future[Any]:
        """A future that gets `result` once `function` has returned, or what it raised."""
        future: torch.futures.Future[Any] = torch.futures.Future()
        # To C++, such as DDP's reducer, an exception that is set from Python is a result. One that a callback raises is not.
        outcome = future.then(lambda done: done.value())
        self._todo.put((function, future, result))
        return outcome

    def _work(self) -> None:
        while True:
            function, future, result = self._todo.get()
            try:
                function()
            except Exception as error:  # whoever waits for it is to hear of it
                self._failed(error)
                future.set_exception(error)
            else:
                future.set_result(result)
            del function, future, result  # tensors live no longer than their collective


def _work(future: torch.futures.Future[Any]) -> dist.Work:
    """A work that is done when `future` is. A Python subclass of Work would not do: once boxed, its Python half is gone."""
    return c10d._create_work_from_future(future)  # type: ignore[attr-defined]


def _short(duration_seconds: float) -> str:
    return f"{duration_seconds * 1e3:.3g} ms"
