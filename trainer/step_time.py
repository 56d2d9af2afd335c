"""How long a step of a job at an emulated pace will take, with what its modelled links take. Nothing here loads torch.

Inside an action of a stage ranks talk, and an action that this makes longer than its model is longer. Between stages a
message arrives when its link says so. Behind a stage's last backward its copies average, and what it hands on waits for that.
Not in it is what the machine really takes: the optimizer, the next samples, and some 2 ms of Python for each collective on
two cores that many ranks share. `tests/ranks/test_step_time.py` holds it to paced runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from trainer.collectives.cost import ALL_REDUCE_SECONDS, bus_share
from trainer.collectives.plans import plan_of
from trainer.collectives.plans.plan import Move, Plan
from trainer.collectives.ported import Network, ranked, repeated, together
from trainer.emulate.durations import durations_ms
from trainer.emulate.link_classes import LinkClass
from trainer.grid import Grid, averaging_axes
from trainer.memory.activations import hand_off_bytes
from trainer.schedules import schedule_of
from trainer.schedules.actions import Action, Do
from trainer.schedules.cuts import shares_of
from trainer.schedules.simulate import simulate
from trainer.schedules.theory import bubble_share
from trainer.spec import JobSpec
from trainer.traffic import BACKWARD, END, FORWARD, LAST_BACKWARD, Talk, talks, unknown_axes

MOST_SIMULATED = 4096  # stages × micro-batches
UNORDERED = ("parameter-server", "everyone")
MOST_PLAYED = 32  # ranks of a group whose collectives are played through; of larger ones the formulas are taken

_DURING = {FORWARD: (Do.FORWARD,), BACKWARD: (Do.BACKWARD, Do.BACKWARD_INPUT)}


def step_ms(spec: JobSpec) -> float | None:
    """From one step's end to the next one's; None at the real pace, which is for the run to tell."""
    if not spec.pace.is_emulated:
        return None
    if spec.links.kind == "real":
        return _work_ms(spec) / (1 - bubble_share(spec))
    return StepTime(spec).ms


def left_out(spec: JobSpec) -> list[str]:
    """Axes whose modelled links are not in `step_ms`: there are no formulas for what goes over them, or, where copies share in
    older ways, for the order in which all that is sent at once passes the ports. Mirrored ranks come to their averages at
    different moments of a step, and wait for each other as nobody here foretells."""
    if spec.links.kind == "real" or not spec.pace.is_emulated:
        return []
    axis = averaging_axes(spec)
    return unknown_axes(spec) + [axis] * bool(axis and (spec.splits.data.mode in UNORDERED or spec.ways == 2))


def _work_ms(spec: JobSpec) -> float:
    """What every rank works in one step, on average where their stages are unequal."""
    lasts = durations_ms(spec)
    return spec.schedule.micro_batches * (lasts[Do.FORWARD] + lasts[Do.BACKWARD])


@dataclass(frozen=True)
class StepTime:
    """Of a job at an emulated pace, on modelled links."""

    spec: JobSpec

    @cached_property
    def _network(self) -> Network:
        return Network(self.spec)

    @cached_property
    def _talks(self) -> list[list[Talk]]:
        return [talks(self.spec, place) for place in range(self.spec.grid.pp)]

    @cached_property
    def inside_ms(self) -> dict[tuple[Do, int], float]:
        """What ranks talk inside an action of a stage."""
        found: dict[tuple[Do, int], float] = {}
        for place, own in enumerate(self._talks):
            for talk in own:
                for do in _DURING.get(talk.during, ()):
                    key = do, talk.stage
                    found[key] = found.get(key, 0.0) + self._ms(talk, place)
        return found

    @cached_property
    def averaging_ms(self) -> list[float]:
        """Of each stage, what its copies' averaging takes at the end of its last backward."""
        found = [0.0] * len(shares_of(self.spec))
        for place, own in enumerate(self._talks):
            for talk in own:
                if talk.during == LAST_BACKWARD:
                    found[talk.stage] += self._ms(talk, place)
        return found

    def end_ms(self, place: int) -> float:
        """What the ranks of a place talk when all their backwards are over."""
        return sum(self._ms(talk, place) for talk in self._talks[place] if talk.during == END)

    def longer(self, action: Action, modelled_ms: float) -> float:
        """What an action takes with what its ranks talk in it: DDP averages when the gradients are there, FSDP on the way."""
        inside_ms = self.inside_ms.get((action.do, action.stage), 0.0)
        if action != self._last_backwards[action.stage]:
            return max(modelled_ms, inside_ms)
        averaging_ms = self.averaging_ms[action.stage]
        if self.spec.splits.data.mode == "ddp":
            return max(modelled_ms, inside_ms) + averaging_ms
        return max(modelled_ms, inside_ms + averaging_ms)

    @cached_property
    def _last_backwards(self) -> dict[int, Action]:
        """By stage, the action in which its gradients are complete."""
        return {action.stage: action for actions in schedule_of(self.spec) for action in actions
                if action.do in (Do.BACKWARD, Do.BACKWARD_WEIGHT)}

    @cached_property
    def hand_off_ms(self) -> list[float]:
        """From each place in the pipeline to the next one, around to the first. Pipelines that share a port queue at it once,
        and are apart from then on: each waits for its own message, unless all that they send takes longer than an action."""
        lasts = durations_ms(self.spec)
        return [own if queued <= min(lasts.values()) * min(shares_of(self.spec)) else queued for own, queued in self._sent_ms]

    @cached_property
    def queue_ms(self) -> float:
        """What the last of the pipelines that share a port waits in every step: those that average begin each step together."""
        if not averaging_axes(self.spec):
            return 0.0
        waited = zip(self._sent_ms[:-1], self.hand_off_ms[:-1], strict=True)
        return max((queued - passes for (_, queued), passes in waited), default=0.0)

    @cached_property
    def _sent_ms(self) -> list[tuple[float, float]]:
        """By place: what its slowest message to the next one takes alone, and if all pipelines send theirs at once."""
        pipelines, size_bytes = Grid.of(self.spec.grid).groups("pp"), hand_off_bytes(self.spec)
        p = self.spec.grid.pp
        found = []
        for place in range(p):
            waiting: dict[int, float] = {}
            alone = longest = 0.0
            for pipeline in pipelines:
                source, target = pipeline[place], pipeline[(place + 1) % p]
                link, passed = self._network.link(source, target), 0.0
                own = size_bytes / link.bytes_per_second
                for port in self._network.ports.between(source, target):
                    waiting[port] = waiting.get(port, 0.0) + own
                    passed = max(passed, waiting[port])
                alone = max(alone, own + link.latency_seconds)
                longest = max(longest, passed + link.latency_seconds)
            found.append((1000 * alone, 1000 * longest))
        return found

    @cached_property
    def ms(self) -> float:
        """A place begins its next step when its end is through, and the order of the next step is that of this one."""
        spec, p = self.spec, self.spec.grid.pp
        if p * spec.schedule.chunks * spec.schedule.micro_batches > MOST_SIMULATED:
            return self._roughly_ms
        step = simulate(schedule_of(spec), durations_ms(spec), self._passes, shares=shares_of(spec), longer=self.longer)
        own = [[timed for timed in step.timed if timed.rank == place] for place in range(p)]
        return self.queue_ms + max(
            max(timed.end for timed in timeds) + self.end_ms(place) - min(timed.start for timed in timeds)
            for place, timeds in enumerate(own))

    def _passes(self, source: int, target: int) -> float:
        """Between neighbours, around the pipeline too."""
        p = self.spec.grid.pp
        return self.hand_off_ms[source if (source + 1) % p == target else target]

    @property
    def _roughly_ms(self) -> float:
        """Of a step too long to go through: its theory, longer by what the slowest stage's actions are."""
        lasts, shares = durations_ms(self.spec), shares_of(self.spec)
        longer = max((sum(max(0.0, self.inside_ms.get((do, stage), 0.0) - lasts[do] * shares[stage])
                          for do in (Do.FORWARD, Do.BACKWARD)) for stage in range(len(shares))), default=0.0)
        alone = _work_ms(self.spec) / (1 - bubble_share(self.spec))
        once = self.queue_ms + 2 * sum(self.hand_off_ms[:-1]) + self.averaging_ms[0] + self.end_ms(0)
        return alone + self.spec.schedule.micro_batches * longer + once

    @cached_property
    def _groups(self) -> dict[str, list[list[list[int]]]]:
        """By axis and place in the pipeline."""
        grid = Grid.of(self.spec.grid)
        found: dict[str, list[list[list[int]]]] = {}
        for axis in {talk.axis for own in self._talks for talk in own}:
            of_places: list[list[list[int]]] = [[] for _ in range(self.spec.grid.pp)]
            for group in grid.groups(*axis.split("×")):
                of_places[grid.address(group[0]).pp].append(group)
            found[axis] = of_places
        return found

    def _ms(self, talk: Talk, place: int) -> float:
        if talk.axis in left_out(self.spec):
            return 0.0
        groups = self._groups[talk.axis][place]
        if len(groups[0]) > MOST_PLAYED:
            return 1000 * talk.count * self._by_formula(talk, groups)
        played = together(self._network, groups)
        return 1000 * repeated(self._network, played, self._plan(talk, played), talk.size_bytes, talk.count)

    def _plan(self, talk: Talk, groups: Sequence[Sequence[int]]) -> Plan:
        ranks, name = len(groups[0]), getattr(self.spec.collectives, talk.collective, "")
        if talk.collective == "send":
            return _hop(ranks)
        if name == "auto":
            return ranked(self._network, groups, talk.collective, talk.size_bytes)[0][1]
        return plan_of(talk.collective, "ring" if name == "backend" else name, ranks)

    def _by_formula(self, talk: Talk, groups: Sequence[Sequence[int]]) -> float:
        """Seconds by α and β of the slowest link, which as many groups share as have ranks in one server."""
        group, ranks = groups[0], len(groups[0])
        around = zip(group, [*group[1:], group[0]], strict=True)
        link = min((self._network.link(one, other) for one, other in around), key=lambda link: link.bytes_per_second)
        server = self._network.placement.servers[group[0]]
        at_server = sum(self._network.placement.servers[one] == server for other in groups for one in other)
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
        return [self._network.placement.servers[rank] for rank in group]


def _hop(ranks: int) -> Plan:
    """Each rank to the next one."""
    return Plan("send", "hop", ranks, 1, (tuple(Move(rank, (rank + 1) % ranks, (0,)) for rank in range(ranks)),))
