"""Checkpoints of a rank: parameters and optimizer state on disk, written beside the training, by torch.distributed.checkpoint.

Each rank that holds something of its own writes it by itself, so that nobody waits for others and no collective is needed;
a checkpoint is one as soon as all of them have finished.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from trainer.lives import checkpoint_folder, checkpoints_folder, holder_of
from trainer.spec import JobSpec

log = logging.getLogger(__name__)

# Of each rank: while this one finishes a checkpoint, others may be one behind, and the one before must then be whole.
_KEPT = 3


class Checkpoints:
    """Of one rank's `parameters` by name and the `optimizer` that updates them. `say` gets what is to be known, and the step."""

    def __init__(self, spec: JobSpec, rank: int, folder: Path, parameters: Mapping[str, Tensor],
                 optimizer: torch.optim.Optimizer | None, say: Callable[[str, int], None]):
        self._every, self._steps = spec.checkpoint_every, spec.steps
        self._folder, self._holder = folder, holder_of(spec, rank)
        self._writes = self._holder == rank
        self._parameters, self._optimizer, self._say = parameters, optimizer, say
        self._writer = ThreadPoolExecutor(1, "checkpoints")
        self._under_way: Future[None] | None = None
        self._taken: list[int] = []

    def after(self, steps_done: int) -> None:
        """Begin a checkpoint if one is due after so many steps. It waits for the one before, and for nothing else."""
        if not self._every or steps_done % self._every or steps_done >= self._steps or not self._writes:
            return
        self._settle()
        copied = {name: tensor.detach().to("cpu", copy=True) for name, tensor in self._state().items()}
        self._under_way = self._writer.submit(self._write, steps_done, copied)

    def restore(self, steps_done: int) -> None:
        """Bring parameters and optimizer to where they were after so many steps."""
        with _quiet():
            reader = dcp.FileSystemReader(checkpoint_folder(self._folder, steps_done, self._holder))
            stored = reader.read_metadata().state_dict_metadata
            found = {name: torch.empty(meta.size, dtype=meta.properties.dtype)
                     for name, meta in stored.items() if isinstance(meta, TensorStorageMetadata)}
            dcp.load(found, storage_reader=reader, no_dist=True)
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                if parameter.numel():
                    parameter.copy_(found[f"parameters/{name}"])
        if self._optimizer is not None:
            self._optimizer.load_state_dict(self._optimizer.state_dict() | {"state": _optimizer_state(found)})

    def close(self) -> None:
        """Return once what was begun is on disk."""
        self._settle()
        self._writer.shutdown()

    def _state(self) -> dict[str, Tensor]:
        """All that training needs to go on, but for what is empty."""
        state = {f"parameters/{name}": parameter for name, parameter in self._parameters.items()}
        if self._optimizer is not None:
            for place, values in self._optimizer.state_dict()["state"].items():
                state |= {f"optimizer/{place}/{name}": value for name, value in values.items() if isinstance(value, Tensor)}
        return {name: tensor for name, tensor in state.items() if tensor.numel()}

    def _write(self, steps_done: int, state: dict[str, Tensor]) -> None:
        began = time.monotonic()
        try:
            with _quiet():
                dcp.save(state, storage_writer=dcp.FileSystemWriter(self._path(steps_done)), no_dist=True)
        except Exception as error:  # a full disk, say: the job goes on, its last checkpoint is an older one
            log.exception("the checkpoint after %s steps failed", steps_done)
            self._say(f"failed, the one before stays: {error}", steps_done - 1)
            return
        size_bytes = sum(tensor.nbytes for tensor in state.values())
        self._say(f"{size_bytes} bytes, on disk within {(time.monotonic() - began) * 1e3:.0f} ms", steps_done - 1)
        self._taken.append(steps_done)
        for old in self._taken[:-_KEPT]:
            shutil.rmtree(self._path(old), ignore_errors=True)
            with contextlib.suppress(OSError):  # others still have theirs in it
                (checkpoints_folder(self._folder) / str(old)).rmdir()
        del self._taken[:-_KEPT]

    def _path(self, steps_done: int) -> Path:
        return checkpoint_folder(self._folder, steps_done, self._holder)

    def _settle(self) -> None:
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None


def _optimizer_state(found: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for path, tensor in found.items():
        kind, place, *rest = path.split("/")
        if kind == "optimizer":
            state.setdefault(int(place), {})[rest[0]] = tensor
    return state


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """torch warns that a save without a process group is of one process, which here it is."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="torch.distributed.checkpoint")
        yield
