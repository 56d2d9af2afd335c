"""A step as all of a job's ranks go through it at once: their actions, what they talk in these, what they hand on, and what they
do at the end, each message by message through ports that all of it shares. Nothing here loads torch.

A rank's course is written here in the order in which the real one goes (trainer.splits.pipeline, trainer.training). What is
talked in an action begins with it; where the action averages, so late that it ends with it, as the one before of its kind did
(trainer.emulate.pace).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from random import Random
from typing import NamedTuple

from trainer.collectives.delivered import gradients, parameters
from trainer.collectives.ported import Course, Network, Request, Turn, turns_of
from trainer.emulate.durations import durations_ms
from trainer.emulate.link_classes import LinkClass
from trainer.emulate.pace import others_hand_on_ns
from trainer.grid import Grid, averaging_axes, norm_is_told
from trainer.memory.activations import hand_off_bytes
from trainer.schedules import schedule_of
from trainer.schedules.actions import Action, Do, homes, needs
from trainer.schedules.cuts import layers_of, shares_of
from trainer.spec import JobSpec
from trainer.talk_time import ALL, NORM, UNORDERED, TalkTime
from trainer.traffic import BACKWARD, END, FORWARD, LAST_BACKWARD, Talk

STEPS = 4
# Real ranks are never ready at the very same moment, so what they average in the midst of a pipeline does not pass its ports in
# the best of orders. Each action is late by chance, by this much at most, which counts for some percent; how much, for little.
LATE_SECONDS = 1e-4
GRADIENTS = (Do.BACKWARD, Do.BACKWARD_INPUT)  # of what a stage was given
COMPLETES = (Do.BACKWARD, Do.BACKWARD_WEIGHT)  # a micro-batch's gradients of a stage

Part = Generator[Request, float, float]  # of a course; it returns when it is over


class Letter(NamedTuple):
    """What one stage hands on to another."""

    is_forward: bool
    stage: int
    micro_batch: int


class PlayedSteps:
    """Some steps of a job at an emulated pace, one after the other."""

    def __init__(self, spec: JobSpec):
        self.spec, self._time = spec, TalkTime(spec)
        self._grid, self._axis, self._mode = Grid.of(spec.grid), averaging_axes(spec), spec.splits.data.mode
        self._schedule = schedule_of(spec)
        self._homes = homes(self._schedule)
        self._lasts = {(do, stage): ms * share / 1000 for do, ms in durations_ms(spec).items()
                       for stage, share in enumerate(shares_of(spec))}
        self._last_stage = len(layers_of(spec)) - 1
        sharded = self._mode.startswith("zero") and spec.grid.pp > 1 and spec.links.kind == "modelled"
        self._chance, self._late_seconds = Random(0), LATE_SECONDS if sharded else 0.0
        self._ends: list[list[float]] = [[] for _ in range(spec.ranks)]

    @cached_property
    def ms(self) -> float:
        """A step's time, once the first ones are over."""
        network = self._time.network
        if self.spec.links.kind == "real":
            network = Network(self.spec, lambda one, other: LinkClass("real", 0.0, math.inf))
        courses = [(rank, self._course(rank)) for rank in range(self.spec.ranks)]
        losing = [(rank, self._averaging_loss(rank, talk)) for rank in range(self.spec.ranks)
                  if (talk := self._loss(self._grid.address(rank).pp))]
        network.run([*courses, *losing])
        ends = [max(own[step] for own in self._ends) for step in range(STEPS)]
        return 1000 * (ends[-1] - ends[STEPS // 2 - 1]) / (STEPS - STEPS // 2)

    def _course(self, rank: int) -> Course:
        place, now = self._grid.address(rank).pp, 0.0
        worked: dict[tuple[Do, int], float] = {}  # how long what was talked in an action that averages took the last time
        for step in range(STEPS):
            calls: Counter[str] = Counter()
            for action in self._schedule[place]:
                now = yield from self._act(rank, place, step, action, now, worked, calls)
            now = yield from self._end(rank, place, step, now, calls)
            self._ends[rank].append(now)

    def _act(self, rank: int, place: int, step: int, action: Action, now: float, worked: dict[tuple[Do, int], float],
             calls: Counter[str]) -> Part:
        key = action.do, action.stage
        lasts, averages = self._lasts[key], self._averages(place, action)
        if letter := self._awaited(place, action):
            now = yield Request(now, (), ((step, letter),))
        now += self._late_seconds * self._chance.random()
        late = lasts - worked.get(key, 0.0) if averages else others_hand_on_ns(round(lasts * 1e9)) / 1e9
        begins = over = now + max(0.0, late)
        inside, behind = self._talked(place, action)
        for talk in inside:
            over = yield from self._talk(rank, talk, step, over, calls)
        if averages:
            worked[key] = over - begins
        over = max(now + lasts, over if inside else 0.0)
        for talk in behind:
            over = yield from self._talk(rank, talk, step, over, calls)
        letter = self._handed_on(action)
        if letter and (home := self._homes[letter.stage, letter.micro_batch]) != place:
            target = self._grid.rank(replace(self._grid.address(rank), pp=home))
            yield Request(over, ((target, hand_off_bytes(self.spec), (step, letter)),))
        return over

    def _averages(self, place: int, action: Action) -> bool:
        if not self._axis or self._mode in UNORDERED or action.do not in COMPLETES:
            return False
        return self._mode in ("zero-2", "zero-3") or self._last_backwards[place][action.stage] == action

    @cached_property
    def _last_backwards(self) -> list[dict[int, Action]]:
        return [{action.stage: action for action in actions if action.do in COMPLETES} for actions in self._schedule]

    def _talked(self, place: int, action: Action) -> tuple[list[Talk], list[Talk]]:
        """What is talked in an action, and behind it: DDP averages when the gradients are there, FSDP on the way."""
        is_last = self._last_backwards[place].get(action.stage) == action
        key = place, action.do, action.stage, is_last
        if key not in self._known_talks:
            own = [talk for talk in self._time.talks[place] if talk.stage == action.stage]
            averaging = [talk for talk in own if talk.during == LAST_BACKWARD and is_last]
            inside = [talk for talk in own if _is_inside(talk, action.do, self._axis)]
            self._known_talks[key] = (inside, averaging) if self._mode == "ddp" else (inside + averaging, [])
        return self._known_talks[key]

    @cached_property
    def _known_talks(self) -> dict[tuple[int, Do, int, bool], tuple[list[Talk], list[Talk]]]:
        return {}

    def _talk(self, rank: int, talk: Talk, step: int, now: float, calls: Counter[str]) -> Part:
        """All calls of it, one after the other."""
        calls[talk.axis] += 1
        return self._turn(self._turns(rank, talk), (step, talk.axis, calls[talk.axis]), now)

    @staticmethod
    def _turn(turns: list[Turn], call: Hashable, now: float) -> Part:
        """Messages of different calls have different names."""
        for sends, awaits in turns:
            now = yield Request(now, tuple((target, size, (call, name)) for target, size, name in sends),
                                tuple((call, name) for name in awaits))
        return now

    def _turns(self, rank: int, talk: Talk) -> list[Turn]:
        key = rank, talk.axis, talk.collective, talk.size_bytes, talk.count
        if key not in self._known_turns:
            group, groups = self._group(talk.axis, rank)
            plan = self._time.plan(talk, groups)
            self._known_turns[key] = turns_of(group, group.index(rank), [(plan, talk.size_bytes)] * talk.count)
        return self._known_turns[key]

    @cached_property
    def _known_turns(self) -> dict[Hashable, list[Turn]]:
        return {}

    def _group(self, axis: str, rank: int) -> tuple[Sequence[int], Sequence[Sequence[int]]]:
        """A rank's group, and those with which an algorithm is chosen."""
        if axis == ALL:
            everyone = range(self.spec.ranks)
            return everyone, [everyone]
        place = self._grid.address(rank).pp
        return next(group for group in self._time.groups[axis][place] if rank in group), self._time.together[axis, place]

    def _awaited(self, place: int, action: Action) -> Letter | None:
        """What has to come from another rank before an action."""
        need = needs(action, self._last_stage + 1)
        if need is None or self._homes[need[1], action.micro_batch] == place:
            return None
        return Letter(action.do is Do.FORWARD, action.stage, action.micro_batch)

    def _handed_on(self, action: Action) -> Letter | None:
        """What an action makes for another stage."""
        stage = action.stage + (1 if action.do is Do.FORWARD else -1)
        if action.do is Do.BACKWARD_WEIGHT or not 0 <= stage <= self._last_stage:
            return None
        return Letter(action.do is Do.FORWARD, stage, action.micro_batch)

    def _end(self, rank: int, place: int, step: int, now: float, calls: Counter[str]) -> Part:
        """From the last backward to the next step: whole gradients, their norm, the optimizer, what it changed."""
        own = [talk for talk in self._time.talks[place] if talk.during == END]
        losing = self._loss(place) is not None
        if losing:
            yield Request(now, ((rank, 0, (step, "loss")),))
        sent = next((talk.size_bytes for talk in own if talk.collective == "send"), 0)
        if sent:
            now = yield from self._turn(gradients(self._mode, self._group(self._axis, rank)[0], rank, sent), (step,), now)
        for talk in own:
            if talk.collective not in ("send", "all_gather") and talk != self._loss(place):
                now = yield from self._talk(rank, talk, step, now, calls)
        if norm_is_told(self.spec):
            now = yield from self._talk(rank, NORM, step, now, calls)
        if sent:
            now = yield from self._turn(parameters(self._mode, self._group(self._axis, rank)[0], rank, sent), (step,), now)
        for talk in own:
            if talk.collective == "all_gather":
                now = yield from self._talk(rank, talk, step, now, calls)
        return (yield Request(now, (), ((step, "averaged"),))) if losing else now

    def _loss(self, place: int) -> Talk | None:
        return next((talk for talk in self._time.talks[place] if talk.is_loss), None)

    def _averaging_loss(self, rank: int, talk: Talk) -> Course:
        """Beside all else, in a thread of its own."""
        now = 0.0
        for step in range(STEPS):
            now = yield Request(now, (), ((step, "loss"),))
            now = yield from self._turn(self._turns(rank, talk), (step, "loss"), now)
            yield Request(now, ((rank, 0, (step, "averaged")),))


def _is_inside(talk: Talk, do: Do, axis: str) -> bool:
    """Whether it is talked in each action of a kind. A micro-batch's gradients are averaged when they are complete."""
    if talk.during == FORWARD:
        return do is Do.FORWARD
    if talk.during != BACKWARD:
        return False
    return do in (COMPLETES if talk.collective == "reduce_scatter" and talk.axis == axis else GRADIENTS)
