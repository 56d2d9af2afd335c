"""Who looks at a run, over all server processes, and whose view the others are shown.

Each process tells the others in the run's group of the channel layer who looks through it, on every change and
every BEAT_SECONDS; of a process that fell silent nobody is there any more. Nothing is kept anywhere else: when the
layer is away one sees those of one's own process.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

BEAT_SECONDS = 10.0
SILENT_SECONDS = 25.0
PEOPLE, HELLO, LEAD = "run.people", "run.hello", "run.lead"


@dataclass(frozen=True)
class Visitor:
    """Who watches: a person by her account, or the holders of one link."""

    key: str
    name: str
    is_guest: bool


@dataclass(frozen=True)
class Lead:
    """A person shows her view: what stands behind the # of her page's address."""

    key: str
    name: str
    view: str


class Presence:
    """One process's knowledge. `messages` it makes are for the group, `hear` takes in those of the others."""

    def __init__(self, clock: Any = time.monotonic):
        self.process = secrets.token_hex(8)
        self.lead: Lead | None = None
        self._clock = clock
        self._own: list[Visitor] = []
        self._others: dict[str, tuple[float, list[dict[str, Any]]]] = {}

    def set_own(self, visitors: Iterable[Visitor]) -> None:
        """Those who watch through this process; whoever leaves leads no more."""
        keys_before = {visitor.key for visitor in self._own}
        self._own = list(visitors)
        keys = {visitor.key for visitor in self._own}
        if self.lead and self.lead.key in keys_before - keys:
            self.lead = None

    def people(self) -> list[dict[str, Any]]:
        """Everybody, once each: key, name, is_guest, how many pages they have open, whether they lead; by name."""
        now = self._clock()
        self._others = {process: heard for process, heard in self._others.items() if now - heard[0] < SILENT_SECONDS}
        found = [asdict(visitor) for visitor in self._own] + [one for _, people in self._others.values() for one in people]
        pages = Counter(one["key"] for one in found)
        once = {one["key"]: one for one in found}
        everybody = [
            one | {"pages": pages[key], "leads": self.lead is not None and self.lead.key == key} for key, one in once.items()
        ]
        return sorted(everybody, key=lambda one: (one["is_guest"], one["name"].casefold()))

    def beat(self) -> dict[str, Any]:
        return {"type": PEOPLE, "process": self.process, "people": [asdict(visitor) for visitor in self._own]}

    def hello(self) -> dict[str, Any]:
        """Asks the others to say who is there."""
        return {"type": HELLO, "process": self.process}

    def lead_message(self) -> dict[str, Any]:
        return {"type": LEAD, "process": self.process, "lead": asdict(self.lead) if self.lead else None}

    def leads_here(self) -> bool:
        return self.lead is not None and self.lead.key in {visitor.key for visitor in self._own}

    def hear(self, message: dict[str, Any]) -> None:
        if message["process"] == self.process:
            return
        if message["type"] == PEOPLE:
            self._others[message["process"]] = self._clock(), message["people"]
        elif message["type"] == LEAD:
            self.lead = Lead(**message["lead"]) if message["lead"] else None
