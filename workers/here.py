"""What a worker knows of itself: found out in its main process, inherited by the processes that run tasks."""

from __future__ import annotations

import importlib.util
import mmap
import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings


@dataclass(frozen=True)
class Here:
    """This worker. `closing` is memory that its processes share."""

    name: str
    host: str
    pid: int  # of the worker's main process
    rank_host: str  # name of the rank host's abstract socket
    closing: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 1), compare=False)

    def close(self) -> None:
        """The worker is about to end: its runs should come to an end too."""
        self.closing[0] = 1

    @property
    def is_closing(self) -> bool:
        return self.closing[0] == 1


_found: Here | None = None


def find_out() -> Here:
    """In the main process, before it forks those that run tasks."""
    global _found
    host, pid = socket.gethostname(), os.getpid()
    _found = Here(f"{host}-{pid}", host, pid, f"lockstep-ranks-{pid}-{secrets.token_hex(8)}")
    return _found


def found() -> Here:
    """What the main process found out."""
    if _found is None:
        raise RuntimeError("this process belongs to no worker")
    return _found


def gpus() -> int:
    """NVIDIA devices that this machine shows; counted without torch, which the worker never loads."""
    return len([path for path in Path("/dev").glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])


def devices() -> list[str]:
    """What jobs this machine can take: as the operator said, else cpu, and cuda where there are GPUs and torch can use them."""
    if settings.CONF.devices:
        return list(settings.CONF.devices)
    torch = importlib.util.find_spec("torch")
    has_cuda = bool(torch and torch.origin and (Path(torch.origin).parent / "lib" / "libtorch_cuda.so").exists())
    return ["cpu", "cuda"] if gpus() and has_cuda else ["cpu"]
