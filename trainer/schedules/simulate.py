"""What a schedule would take: every action's start and end, from durations alone, without running it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from trainer.schedules.actions import Action, Do, Schedule, homes, needs

HandOff = Callable[[int, int], float]
Alone = Callable[[int, Action], float]
Longer = Callable[[Action, float], float]


class Meeting(NamedTuple):
    """What so many `ranks` do together, each in an action of its own. It takes `lasts` from when the last of these actions is
    over, or if it goes on `beside` them from when the last one begins; before it is over none of them is."""

    key: Hashable
    ranks: int
    lasts: float
    beside: bool


Meets = Callable[[int, Action], Meeting | None]


@dataclass(frozen=True)
class Timed:
    rank: int
    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Simulation:
    """Times in the unit of the given durations, from 0."""

    timed: list[Timed]
    ranks: int

    @property
    def makespan(self) -> float:
        return max(item.end for item in self.timed)

    @property
    def busy(self) -> float:
        return sum(item.end - item.start for item in self.timed)

    @property
    def bubble_share(self) -> float:
        """Idle share of the whole: of all ranks, from the first start to the last end."""
        return 1 - self.busy / (self.ranks * self.makespan)

    @property
    def idle_inside(self) -> float:
        """The longest that any rank idles between its own first start and its own last end."""
        idle = []
        for own in self._of_ranks:
            idle.append(max(item.end for item in own) - own[0].start - sum(item.end - item.start for item in own))
        return max(idle)

    @property
    def peak_held(self) -> list[int]:
        """By rank, of how many micro-batches the activations lay on it at once."""
        return [_peak_held(own) for own in self._of_ranks]

    @cached_property
    def _of_ranks(self) -> list[list[Timed]]:
        found: list[list[Timed]] = [[] for _ in range(self.ranks)]
        for item in self.timed:
            found[item.rank].append(item)
        return found


class Stuck(ValueError):
    """Every rank waits for another."""


def simulate(
    schedule: Schedule, durations: Mapping[Do, float], hand_off: float | HandOff = 0.0, side_by_side: bool = False,
    together: float | None = None, shares: Sequence[float] = (), slowness: Sequence[float] = (),
    longer: Longer | None = None, meets: Meets | None = None, begin: Sequence[float] = (),
) -> Simulation:
    """Run `schedule` by the clock.

    Every stage takes `durations`, or with `shares` its share of them, and with `slowness` its rank's multiple of that;
    `longer` says of an action and what it would take so what it takes indeed. `hand_off` passes between the end of an action
    and the earliest start of one that needs it on another rank; a function gets both ranks. With `side_by_side` a rank's
    forwards and backwards are two queues that do not wait for each other, as on a device that has room for both. `together`
    is what an action that is meant to run with the next one takes together with it (DualPipe's F&B); without it they take turns.
    `meets` says of a rank's action in which meeting it is. Ranks `begin` at 0, or at moments of their own from there on.
    """
    def alone(rank: int, action: Action) -> float:
        share = (shares[action.stage] if shares else 1) * (slowness[rank] if slowness else 1)
        lasts = together / 2 if together is not None and action.with_next else durations[action.do] * share
        return longer(action, lasts) if longer else lasts

    queues = [_Queue(rank, queue, begin[rank] if begin else 0.0)
              for rank, actions in enumerate(schedule) for queue in _queues(actions, side_by_side)]
    passes = hand_off if callable(hand_off) else lambda one, other: hand_off
    course = _Course(schedule, passes, alone, meets, in_pairs=together is not None)
    while sum([course.go_on(queue) for queue in queues]):  # as long as any of them gets on
        pass
    if waiting := [str(queue) for queue in queues if not queue.is_over]:
        raise Stuck("each waits for another: " + "; ".join(waiting))
    return Simulation(sorted(course.timed, key=lambda item: (item.start, item.rank)), len(schedule))


@dataclass(eq=False)
class _Queue:
    """Actions of a rank that wait for each other."""

    rank: int
    actions: list[Action]
    free: float  # when it can go on
    at: int = 0

    @property
    def is_over(self) -> bool:
        return self.at == len(self.actions)

    def __str__(self) -> str:
        action = self.actions[self.at]
        return f"rank {self.rank}, row {self.at}, {action} of stage {action.stage}"


@dataclass
class _Course:
    """What has been done so far. With `in_pairs` an action that is meant to run with the next one does."""

    schedule: Schedule
    passes: HandOff
    alone: Alone
    meets: Meets | None
    in_pairs: bool
    timed: list[Timed] = field(default_factory=list)
    _ended: dict[tuple[Do, int, int], float] = field(default_factory=dict)
    _came: dict[Hashable, dict[_Queue, tuple[float, float]]] = field(default_factory=dict)  # start and end alone, by meeting

    def __post_init__(self) -> None:
        self._stages = 1 + max(action.stage for actions in self.schedule for action in actions)
        self._home = homes(self.schedule)

    def go_on(self, queue: _Queue) -> bool:
        """Do what a queue can do before it has to wait for another; False if that is nothing."""
        at_first = queue.at
        while not queue.is_over:
            first = queue.actions[queue.at]
            group = queue.actions[queue.at: queue.at + (2 if self.in_pairs and first.with_next else 1)]
            start = self._start(queue, group)
            lasts = None if start is None else self._lasts(queue, first, start)
            if start is None or lasts is None:
                break
            for action in group:
                self.timed.append(Timed(queue.rank, action, start, start := start + lasts))
            for action in group:  # both are over when the later one is
                self._end(action, start)
            queue.free = start
            queue.at += len(group)
        return queue.at > at_first

    def _start(self, queue: _Queue, group: Sequence[Action]) -> float | None:
        """When the queue's next actions can begin; None as long as something that they need is not done."""
        start = queue.free
        for action in group:
            ready = self._ready(action, queue.rank)
            if ready is None:
                return None
            start = max(start, ready)
        return start

    def _ready(self, action: Action, rank: int) -> float | None:
        """When what an action needs is there; None as long as it is not done."""
        need = needs(action, self._stages)
        if need is None:
            return 0.0
        do, stage = need
        end = self._ended.get((do, stage, action.micro_batch))
        if end is None:
            return None
        source = self._home[stage, action.micro_batch]
        return end if source == rank else end + self.passes(source, rank)

    def _lasts(self, queue: _Queue, action: Action, start: float) -> float | None:
        """How long each of the queue's next actions takes; None as long as not all have come whom this one meets."""
        lasts = self.alone(queue.rank, action)
        meeting = self.meets(queue.rank, action) if self.meets else None
        if meeting is None:
            return lasts
        come = self._came.setdefault(meeting.key, {})
        come[queue] = start, start + lasts
        return None if len(come) < meeting.ranks else _over(meeting, come, queue) - start

    def _end(self, action: Action, end: float) -> None:
        self._ended[action.do, action.stage, action.micro_batch] = end
        if action.do is Do.BACKWARD_INPUT:
            self._ended[Do.BACKWARD, action.stage, action.micro_batch] = end


def _over(meeting: Meeting, come: Mapping[_Queue, tuple[float, float]], queue: _Queue) -> float:
    """When the action of a queue is over, with what it does together with the others that have come."""
    starts, ends = zip(*come.values(), strict=True)
    return max(come[queue][1], max(starts) + meeting.lasts) if meeting.beside else max(ends) + meeting.lasts


def _queues(actions: list[Action], side_by_side: bool) -> list[list[Action]]:
    if not side_by_side:
        return [actions]
    return [[a for a in actions if a.do is Do.FORWARD], [a for a in actions if a.do is not Do.FORWARD]]


def _peak_held(timed: Sequence[Timed]) -> int:
    """Of a rank: a forward's activations are held from its start until the last of its backward is over."""
    changes = []
    for item in timed:
        if item.action.do is Do.FORWARD:
            changes.append((item.start, 1))
        elif item.action.do in (Do.BACKWARD, Do.BACKWARD_WEIGHT):
            changes.append((item.end, -1))
    held = peak = 0
    for _, change in sorted(changes):  # at the same moment the release comes first
        held += change
        peak = max(peak, held)
    return peak
