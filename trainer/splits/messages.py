"""Activations and their gradients on their way between stages.

Every message says first when its sender began to send it, on the run's clock. So the receiver can tell the time in
which there was nothing to receive yet (WAIT, in the compute lane: a bubble, caused by the sender) from the time that
the transfer took (RECEIVE). Behind that it says when it arrives, if the link is modelled: then the receiver has it at
that moment and not before.
"""

from __future__ import annotations

import math
import threading
import time
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.emulate.links import Links, now_ns, sleep_until
from trainer.splits.run_clock import RunClock
from trainer.splits.sizes import STAMP_BYTES
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Add


class Letter(NamedTuple):
    """What a message is: activations ("F") or gradients ("B") of one micro-batch, for one stage."""

    content: str
    stage: int
    micro_batch: int
    way: str = ""  # as an action's

    @property
    def tag(self) -> int:
        """Unique among the letters of a step: gloo matches sends and receives by it, whatever their order."""
        return ((self.stage << 16 | self.micro_batch) << 1) | (self.content == "B")

    def __str__(self) -> str:
        return f"{self.content}{self.micro_batch}{self.way}"


class Envelope:
    """A message's bytes, with the views into them made beforehand: on the way between stages every 0.1 ms is a bubble."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device):
        content_bytes = math.prod(shape) * dtype.itemsize
        self.whole = torch.empty(STAMP_BYTES + content_bytes, dtype=torch.uint8, device=device)
        self.content = self.whole[STAMP_BYTES:].view(dtype).view(shape)
        stamp = self.whole[:STAMP_BYTES].view(torch.float64)
        self.stamp = stamp.numpy() if device.type == "cpu" else stamp


class Messages:
    """All letters have one `shape` and `dtype`. Peers are places in the pipeline's groups.

    `ranks` are the job's ranks at those places; spans name peers by them.
    """

    def __init__(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, clock: RunClock,
        add: Add, groups: dict[str, dist.ProcessGroup], ranks: list[int], axis: str,
        links: Links | None = None,
    ):
        self._shape, self._dtype, self._device = shape, dtype, device
        self._road = road_of(groups, device)
        self._content_bytes = math.prod(shape) * dtype.itemsize
        self._clock, self._add, self._groups, self._ranks, self._axis = clock, add, groups, ranks, axis
        self._links = links
        self._incoming: dict[Letter, tuple[int, Envelope, dist.Work]] = {}
        self._outgoing: list[tuple[Envelope, dist.Work]] = []
        self._spare: list[Envelope] = []
        self._resend_seconds = 0.0  # not 0: the next letter is to be lost
        self._resending: list[threading.Timer] = []

    def post(self, letter: Letter, source: int) -> None:
        """Make room for a letter ahead of its arrival, so that its sender need not wait for us."""
        envelope = Envelope(self._shape, self._dtype, self._road)  # a new one: its content stays until the backward
        work = self._groups[letter.content].recv([envelope.whole], source, letter.tag)
        self._incoming[letter] = source, envelope, work

    def take(self, letter: Letter, step: int) -> tuple[Tensor, int]:
        """The content of a posted letter, waiting for it if need be, and when it was on its way, ns: over a real link since
        its sender began to send it, over a modelled one as soon as it is here."""
        source, envelope, work = self._incoming.pop(letter)
        asked_ns = time.monotonic_ns()
        work.wait()
        sent, arrives = map(float, envelope.stamp)  # on CUDA this waits for the data as well
        arrived_ns = time.monotonic_ns()
        if self._links is not None:
            arrival_ns = self._clock.to_local(int(arrives))
            sleep_until(arrival_ns)
            arrived_ns = max(asked_ns, arrival_ns)
        sent_ns = self._clock.to_local(int(sent))
        began_ns = min(max(asked_ns, sent_ns), arrived_ns)  # clocks agree to microseconds, not exactly
        where = (step, letter.micro_batch, letter.stage, self._ranks[source], self._content_bytes, NONE,
                 self._name(letter, source), self._axis)
        if began_ns > asked_ns:
            self._add(Kind.WAIT, asked_ns, began_ns, *where)
        self._add(Kind.RECEIVE, began_ns, arrived_ns, *where)
        return envelope.content.to(self._device), sent_ns if self._links is None else arrival_ns

    def send(self, letter: Letter, peer: int, content: Tensor, step: int) -> None:
        """Send without blocking.

        The SEND span ends when the message is handed over: gloo tells the end of a point-to-point transfer
        only to those who block for it. The transfer itself is the peer's RECEIVE.
        """
        start_ns = now_ns(self._links)
        envelope = self._spare.pop() if self._spare else Envelope(self._shape, self._dtype, self._road)
        envelope.content.copy_(content)
        if self._resend_seconds:
            self._lose(letter, peer, envelope, step, start_ns)
        else:
            self._dispatch(letter, peer, envelope, step, start_ns)

    def lose_next(self, resend_seconds: float) -> None:
        """The next letter is lost on its way. Nobody tells its sender, who sends it again after so long."""
        self._resend_seconds = resend_seconds

    def _lose(self, letter: Letter, peer: int, envelope: Envelope, step: int, start_ns: int) -> None:
        again = threading.Timer(self._resend_seconds, lambda: self._dispatch(letter, peer, envelope, step, note="sent again"))
        self._resend_seconds = 0.0
        self._record_send(letter, peer, step, start_ns, "lost")
        again.start()
        self._resending.append(again)

    def _dispatch(self, letter: Letter, peer: int, envelope: Envelope, step: int, start_ns: int = 0, note: str = "") -> None:
        start_ns = start_ns or time.monotonic_ns()
        envelope.stamp[0] = self._clock.to_run(start_ns)
        if self._links is not None:
            envelope.stamp[1] = self._clock.to_run(self._links.arrival_ns(self._ranks[peer], self._content_bytes, start_ns))
        work = self._groups[letter.content].send([envelope.whole], peer, letter.tag)
        self._outgoing.append((envelope, work))
        self._record_send(letter, peer, step, start_ns, note)

    def _record_send(self, letter: Letter, peer: int, step: int, start_ns: int, note: str) -> None:
        name = " · ".join(filter(None, (self._name(letter, peer), note)))
        self._add(Kind.SEND, start_ns, time.monotonic_ns(), step, letter.micro_batch, letter.stage, self._ranks[peer],
                   self._content_bytes, NONE, name, self._axis)

    def _name(self, letter: Letter, peer: int) -> str:
        return str(letter) if self._links is None else f"{letter} · {self._links.word(self._ranks[peer])}"

    @property
    def bytes(self) -> int:
        """Of the envelopes that are on their way in or out, or lie ready; the content of a letter taken is the taker's."""
        return (len(self._incoming) + len(self._outgoing) + len(self._spare)) * (STAMP_BYTES + self._content_bytes)

    def settle(self) -> None:
        """Wait until all that was sent has gone, and take its envelopes back; by the end of a step it has, or is about to."""
        for again in self._resending:
            again.join()
        self._resending.clear()
        for envelope, work in self._outgoing:
            work.wait()
            self._spare.append(envelope)
        self._outgoing.clear()


def road_of(groups: dict[str, dist.ProcessGroup], device: torch.device) -> torch.device:
    """Where messages lie on their way: gloo carries what is in the host's memory, whatever device stages compute on."""
    over_gloo = any(dist.get_backend(group) == dist.Backend.GLOO for group in groups.values())
    return torch.device("cpu") if over_gloo else device
