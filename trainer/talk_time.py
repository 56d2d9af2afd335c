"""What ranks talk takes over a job's modelled links, by algorithm and port. Nothing here loads torch."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from trainer.collectives.cost import ALL_REDUCE_SECONDS, bus_share
from trainer.collectives.delivered import exchange_seconds
from trainer.collectives.plans import plan_of
from trainer.collectives.plans.plan import Move, Plan
from trainer.collectives.ported import Network, network_of, ranked, repeated
from trainer.collectives.ported import together as together_of
from trainer.emulate.link_classes import NUMBER_BYTES, LinkClass
from trainer.grid import Grid, averaging_axes
from trainer.spec import JobSpec
from trainer.traffic import END, Talk, calls, letters
from trainer.traffic import talks as talks_of

ALL = "all"
NORM = Talk(ALL, "all_reduce", NUMBER_BYTES, 1, END)  # of the gradient, which ranks that clip it tell each other
UNORDERED = ("parameter-server", "everyone")
MOST_REQUESTS = 4000  # of ranks in a step that is played: some tens of milliseconds for all steps that are
MOST_PLAYED = 32  # ranks of a group whose collectives are played through; of larger ones the formulas are taken


def left_out(spec: JobSpec) -> list[str]:
    """Axes whose modelled links are not in a step's time: copies that share in the older ways are too many to play what they
    send, and not alone on their links."""
    if spec.links.kind == "real" or not spec.pace.is_emulated:
        return []
    axis, mode = averaging_axes(spec), spec.splits.data.mode
    tied = spec.grid.pp > 1 or (mode == "parameter-server" and spec.ranks > spec.grid.copies)
    return [axis] * bool(axis and mode in UNORDERED and tied and not is_short(spec))


def is_short(spec: JobSpec) -> bool:
    """Whether its ranks' steps are played one by one."""
    actions = 2 * spec.ranks * spec.schedule.chunks * spec.schedule.micro_batches
    if actions > MOST_REQUESTS:
        return False
    requests = 0
    for place in range(spec.grid.pp):
        of_place = 2 * letters(spec, place)
        for talk in talks_of(spec, place):
            ranks = Grid.of(spec.grid).size_of(talk.axis)
            of_place += calls(spec, talk) * (2 if talk.collective == "all_reduce" else 1) * (ranks - 1)
        requests += of_place * spec.ranks // spec.grid.pp
    return actions + requests <= MOST_REQUESTS


@dataclass(frozen=True)
class TalkTime:
    spec: JobSpec

    @cached_property
    def network(self) -> Network:
        return network_of(self.spec)

    @cached_property
    def talks(self) -> list[list[Talk]]:
        return [talks_of(self.spec, place) for place in range(self.spec.grid.pp)]

    @cached_property
    def groups(self) -> dict[str, list[list[list[int]]]]:
        """By axis and place in the pipeline."""
        grid = Grid.of(self.spec.grid)
        found: dict[str, list[list[list[int]]]] = {}
        for axis in {talk.axis for own in self.talks for talk in own}:
            of_places: list[list[list[int]]] = [[] for _ in range(self.spec.grid.pp)]
            for group in grid.groups(*axis.split("×")):
                for place in sorted({grid.address(rank).pp for rank in group}):  # two of mirrored ranks
                    of_places[place].append(group)
            found[axis] = of_places
        return found

    @cached_property
    def _left_out(self) -> list[str]:
        return left_out(self.spec)

    @cached_property
    def together(self) -> dict[tuple[str, int], list[Sequence[int]]]:
        """By axis and place, what is played of its groups."""
        return {(axis, place): together_of(self.network, groups) for axis, of_places in self.groups.items()
                for place, groups in enumerate(of_places) if groups}

    @cached_property
    def _known_ms(self) -> dict[Hashable, float]:
        """Of groups that lie alike: most places of a pipeline do."""
        return {}

    def ms(self, talk: Talk, place: int) -> float:
        if self.spec.links.kind == "real" or talk.axis in self._left_out:
            return 0.0
        groups = self.groups[talk.axis][place]
        return self._of_groups(talk, groups, self.together[talk.axis, place])

    @cached_property
    def norm_ms(self) -> float:
        """What it takes all ranks to tell the length of the gradient."""
        everyone = range(self.spec.ranks)
        return 0.0 if self.spec.links.kind == "real" else self._of_groups(NORM, [everyone], [everyone])

    def _of_groups(self, talk: Talk, groups: Sequence[Sequence[int]], played: Sequence[Sequence[int]]) -> float:
        """Of these, some are played."""
        if len(groups[0]) > MOST_PLAYED:
            return 1000 * talk.count * self._by_formula(talk, groups)
        key = talk.collective, talk.size_bytes, talk.count, self.network.lie_of(played)
        if key not in self._known_ms:
            self._known_ms[key] = 1000 * repeated(self.network, played, self.plan(talk, played), talk.size_bytes, talk.count)
        return self._known_ms[key]

    @cached_property
    def loss_ms(self) -> float:
        return max((self.ms(talk, place) for place, own in enumerate(self.talks) for talk in own if talk.is_loss), default=0.0)

    @cached_property
    def exchange_ms(self) -> float:
        """What copies send that share in the older ways."""
        if self.spec.links.kind == "real" or averaging_axes(self.spec) in self._left_out:
            return 0.0
        groups = {tuple(group): float(talk.size_bytes) for place, own in enumerate(self.talks) for talk in own
                  if talk.during == END and talk.collective == "send" for group in self.groups[talk.axis][place]}
        return 1000 * exchange_seconds(self.network, self.spec.splits.data.mode, groups) if groups else 0.0

    def plan(self, talk: Talk, groups: Sequence[Sequence[int]]) -> Plan:
        ranks, name = len(groups[0]), getattr(self.spec.collectives, talk.collective, "")
        if talk.collective == "send":
            return _hop(ranks)
        if name == "auto":
            return ranked(self.network, groups, talk.collective, talk.size_bytes)[0][1]
        return plan_of(talk.collective, "ring" if name == "backend" else name, ranks)

    def _by_formula(self, talk: Talk, groups: Sequence[Sequence[int]]) -> float:
        """Seconds by α and β of the slowest link, which as many groups share as have ranks in one server."""
        group, ranks = groups[0], len(groups[0])
        around = zip(group, [*group[1:], group[0]], strict=True)
        link = min((self.network.link(one, other) for one, other in around), key=lambda link: link.bytes_per_second)
        server = self.network.placement.servers[group[0]]
        at_server = sum(self.network.placement.servers[one] == server for other in groups for one in other)
        shared = max(1.0, at_server / self.spec.links.ports_per_server) if len(set(self._servers(group))) > 1 else 1.0
        seen = LinkClass(link.word, link.latency_seconds, link.bytes_per_second / shared)
        name = getattr(self.spec.collectives, talk.collective, "ring")
        if talk.collective == "all_reduce":
            by_name = ALL_REDUCE_SECONDS if name == "auto" else {name: ALL_REDUCE_SECONDS.get(name, ALL_REDUCE_SECONDS["ring"])}
            return min(formula(ranks, talk.size_bytes, seen) for formula in by_name.values())
        share = bus_share(talk.collective, ranks) if talk.collective != "send" else 1.0
        steps = ranks - 1 if name == "ring" else math.ceil(math.log2(ranks))
        return steps * seen.latency_seconds + (share or 0.0) * talk.size_bytes / seen.bytes_per_second

    def _servers(self, group: Sequence[int]) -> list[int]:
        return [self.network.placement.servers[rank] for rank in group]


def _hop(ranks: int) -> Plan:
    """Each rank to the next one."""
    return Plan("send", "hop", ranks, 1, (tuple(Move(rank, (rank + 1) % ranks, (0,)) for rank in range(ranks)),))
