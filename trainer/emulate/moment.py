"""The moment until which a rank at an emulated pace is busy.

A device and its links begin what comes next when what was before is over; their host prepares it meanwhile. Here the host is a
process that shares two cores with many others, and gets to it a little later. So durations are counted from the modelled moment
and not from when Python came to it: what Python takes in between is no part of a step, as long as it fits into what comes next.
"""

from __future__ import annotations

import time


class Moment:
    """`ns` is of this process's monotonic clock; at the real pace it is simply now."""

    def __init__(self, is_emulated: bool = False, links_are_modelled: bool = False):
        self._is_emulated, self._links_are_modelled = is_emulated, links_are_modelled
        self._ns = time.monotonic_ns()
        self.beside_from_ns = self._ns  # what goes on beside this rank begins then, or at its moment if that is later
        self._beside: dict[str, int] = {}  # by thread, when what it did last was over

    @property
    def ns(self) -> int:
        return self._ns if self._is_emulated else time.monotonic_ns()

    @property
    def beside_ns(self) -> int:
        return max(self.ns, self.beside_from_ns)

    def reach(self, ns: int) -> None:
        self._ns = max(self._ns, ns)

    def catch_up(self) -> None:
        """What this rank did since took its real time."""
        self._ns = time.monotonic_ns()

    def beside(self, thread: str, until_ns: int) -> None:
        """Another thread's messages are under way until then."""
        self._beside[thread] = until_ns

    def meet(self, waited_ns: int) -> int:
        """When all was here that went on beside this rank, which waited for it until `waited_ns`: real messages were then,
        modelled ones when their links say."""
        here_ns = max(self._beside.values(), default=self._ns) if self._links_are_modelled else waited_ns
        self.reach(here_ns)
        return here_ns
