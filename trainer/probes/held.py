"""What forwards leave in memory for their backwards, counted by storages: a tensor's views cost nothing more.

What autograd saves can only be seen while it does so, by a hook that costs 3 µs a tensor: a third of a small model's
forward. But it is the same each time the same module computes on inputs of the same shape. So each kind of thing
that is held is weighed once, on the first occasion, and from then on counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

T = TypeVar("T")


def local(tensor: Tensor) -> Tensor:
    """Of a DTensor this rank's part."""
    part: Tensor = getattr(tensor, "_local_tensor", tensor)
    return part


def storages(tensors: Iterable[Tensor]) -> dict[int, int]:
    """Bytes of every storage that the tensors lie in, by its address. Those without memory (of FSDP, between its
    uses of a whole parameter) count nothing."""
    found = (local(tensor).untyped_storage() for tensor in tensors)
    return {storage.data_ptr(): storage.nbytes() for storage in found}


def bytes_of(tensors: Iterable[Tensor]) -> int:
    return sum(storages(tensors).values())


def owned(module: nn.Module) -> list[Tensor]:
    """Parameters, buffers, and tensors that a module keeps as plain attributes."""
    attributes = (value for part in module.modules() for value in vars(part).values())
    return [*module.parameters(), *module.buffers(), *(value for value in attributes if isinstance(value, Tensor))]


@contextmanager
def saving() -> Iterator[list[Tensor]]:
    """A list of all that autograd saves within."""
    saved: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        saved.append(tensor.detach())
        return saved[-1]  # not the tensor itself: an output that holds itself would never be freed

    with saved_tensors_hooks(note, lambda tensor: tensor):
        yield saved


class Held:
    """How many `bytes` are held at the moment. What is in memory anyway does not count: what the `module` owns, and
    the tensors that a caller names as lying `elsewhere`."""

    def __init__(self, module: nn.Module):
        self.bytes = 0
        self._module = module
        self._weights: dict[Hashable, int] = {}  # bytes, by kind

    def forward(self, kind: Hashable, call: Callable[[], T], named: Callable[[], list[Tensor]], elsewhere: list[Tensor]) -> T:
        """What `call` returns, a forward; from now on what it saved is held, beside the tensors `named` then."""
        if kind in self._weights:
            returned = call()
        else:
            with saving() as saved:
                returned = call()
            self._weigh(kind, [*saved, *named()], elsewhere)
        self.bytes += self._weights[kind]
        return returned

    def put_off(self, kind: Hashable, named: Callable[[], list[Tensor]], elsewhere: list[Tensor]) -> None:
        """From now on the tensors `named` are held."""
        if kind not in self._weights:
            self._weigh(kind, named(), elsewhere)
        self.bytes += self._weights[kind]

    def let_go(self, kind: Hashable) -> None:
        self.bytes -= self._weights[kind]

    def _weigh(self, kind: Hashable, held: list[Tensor], elsewhere: list[Tensor]) -> None:
        known = storages([*owned(self._module), *elsewhere])
        self._weights[kind] = sum(size for place, size in storages(held).items() if place not in known)
