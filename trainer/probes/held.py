"""What forwards leave in memory for their backwards, counted by storages: a tensor's views cost nothing more.

Two parts make it up. Tensors that someone holds by name (a stage's input and output, what a backward put off) are looked
at each time. What autograd saves beside them can only be seen while it does so, by a hook that costs 3 µs a tensor, a
third of a small model's forward. But it is the same for inputs of the same shape: so it is weighed once a shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks


def local(tensor: Tensor) -> Tensor:
    """Of a DTensor this rank's part."""
    part: Tensor = getattr(tensor, "_local_tensor", tensor)
    return part


def storages(tensors: Iterable[Tensor]) -> dict[int, int]:
    """Bytes of every storage that the tensors lie in, by its address. Those without memory (of FSDP, between its
    uses of a whole parameter) count nothing."""
    found = (local(tensor).untyped_storage() for tensor in tensors)
    return {storage.data_ptr(): storage.nbytes() for storage in found}


def owned(module: nn.Module) -> list[Tensor]:
    """Parameters, buffers, and tensors that a module keeps as plain attributes."""
    attributes = (value for part in module.modules() for value in vars(part).values())
    return [*module.parameters(), *module.buffers(), *(value for value in attributes if isinstance(value, Tensor))]


def bytes_of(tensors: Iterable[Tensor]) -> int:
    return sum(storages(tensors).values())


class Saved:
    """The storages that autograd saved within `saving`."""

    def __init__(self) -> None:
        self._storages: list[torch.UntypedStorage] = []

    def bytes(self, apart_from: Iterable[Tensor]) -> int:
        """Of what lies elsewhere than the given tensors, with what was freed meanwhile counted as nothing."""
        known = storages(apart_from)
        return sum({one.data_ptr(): one.nbytes() for one in self._storages if one.data_ptr() not in known}.values())

    def _note(self, tensor: Tensor) -> Tensor:
        self._storages.append(local(tensor).untyped_storage())
        return tensor.detach()  # an output that holds itself would never be freed


@contextmanager
def saving() -> Iterator[Saved]:
    saved = Saved()
    with saved_tensors_hooks(saved._note, lambda tensor: tensor):
        yield saved


class Held:
    """What is held at the moment, `bytes`, and under which keys. What is in memory anyway does not count:
    what the `module` owns, and the step's samples."""

    def __init__(self, module: nn.Module):
        self.bytes = 0
        self._module = module
        self._samples: list[Tensor] = []
        self._saved_bytes: dict[Hashable, int] = {}  # of a forward, by its kind
        self._held: dict[Hashable, tuple[int, dict[int, int]]] = {}  # by key: saved bytes, storages held by name
        self._holders: Counter[int] = Counter()  # of each storage

    def begin_step(self, samples: list[Tensor]) -> None:
        self._samples = samples

    def forward(self, kind: Hashable, call: Callable[[], Any], named: Callable[[], Iterable[Tensor]]) -> Any:
        """What `call`, a forward, returns; weighs what it saves, beside the tensors `named` then, if its `kind` is new.

        All forwards of a kind have to save as much as each other: the same module, inputs of the same shape.
        """
        if kind in self._saved_bytes:
            return call()
        with saving() as saved:
            returned = call()
        self._saved_bytes[kind] = saved.bytes([*owned(self._module), *self._samples, *named()])
        return returned

    def keep(self, key: Hashable, named: Iterable[Tensor], kind: Hashable = None) -> None:
        """From now on `key` holds the tensors `named`, and what a forward of `kind` saved, in place of what it held before."""
        before = self._held.pop(key, None)
        held = storages(named)
        for place in storages(self._samples):
            held.pop(place, None)
        if held or kind is not None:
            self._take(key, self._saved_bytes.get(kind, 0), held)
        if before is not None:
            self._let_go(*before)

    def _take(self, key: Hashable, saved_bytes: int, held: dict[int, int]) -> None:
        self._held[key] = saved_bytes, held
        self.bytes += saved_bytes + sum(size for place, size in held.items() if not self._holders[place])
        self._holders.update(held.keys())

    def _let_go(self, saved_bytes: int, held: dict[int, int]) -> None:
        self._holders.subtract(held.keys())
        gone = [place for place in held if not self._holders[place]]
        self.bytes -= saved_bytes + sum(held[place] for place in gone)
        for place in gone:
            del self._holders[place]
