"""How long a step of a job at an emulated pace will take, with what its modelled links take. Nothing here loads torch.

A step of few messages is played as all ranks go through it (trainer.step_played). Of larger jobs it is put together here: inside
an action of a stage ranks talk, and an action that this makes longer than its model is longer. Between stages a message arrives
when its link says so. Behind a stage's last backward its copies average, and what it hands on waits for that. A step is played
after the other until one takes as long as the one before.
Not in it is what the machine really takes: the optimizer, and over real links what is handed on (trainer.emulate.moment).
`tests/ranks/test_step_time.py` holds it to paced runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from trainer.emulate.durations import durations_ms
from trainer.grid import Grid, averaging_axes, norm_is_told
from trainer.memory.activations import hand_off_bytes
from trainer.schedules import schedule_of
from trainer.schedules.actions import Action, Do, Schedule
from trainer.schedules.cuts import shares_of
from trainer.schedules.simulate import Meeting, simulate
from trainer.schedules.theory import bubble_share, shortened
from trainer.spec import JobSpec
from trainer.step_played import PlayedSteps
from trainer.talk_time import UNORDERED, TalkTime, is_short
from trainer.traffic import BACKWARD, END, FORWARD, LAST_BACKWARD, Talk

SAME_MS = 1e-6
MOST_OVERLAPPED = 512  # stages × micro-batches
MOST_SIMULATED = 4096  # stages × micro-batches
SHORT, SHORTER, SHORTEST = 6, 4, 2  # micro-batches for each place of the pipeline: steps that a longer one follows from
LONG = SHORT + 2  # from so many on
MOST_STEPS = 24  # that are played until two take the same

_DURING = {FORWARD: (Do.FORWARD,), BACKWARD: (Do.BACKWARD, Do.BACKWARD_INPUT)}
_COMPLETES = (Do.BACKWARD, Do.BACKWARD_WEIGHT)  # a micro-batch's gradients of a stage


def step_ms(spec: JobSpec) -> float | None:
    """From one step's end to the next one's; None at the real pace, which is for the run to tell."""
    if not spec.pace.is_emulated:
        return None
    if spec.links.kind == "real" and spec.ways == 1:
        return _alone_ms(spec) - (0.0 if norm_is_told(spec) else _overlap_ms(spec))
    return PlayedSteps(spec).ms if is_short(spec) else StepTime(spec).ms


def leaves_out_mirrors(spec: JobSpec) -> bool:
    """Whether mirrored ranks' waiting for each other is not, or not all, in `step_ms`: in a step too long to go through, and
    under ZeRO in one of too many messages to play them."""
    return spec.pace.is_emulated and spec.ways == 2 and not is_short(spec) and (
        spec.splits.data.mode.startswith("zero") or not _is_simulated(_shortened_to(spec, LONG)))


def _is_simulated(spec: JobSpec) -> bool:
    return spec.grid.pp * spec.schedule.chunks * spec.schedule.micro_batches <= MOST_SIMULATED


def _shortened_to(spec: JobSpec, micro_batches_a_place: int) -> JobSpec:
    """With so many for each place, and as many more as the job's own are beyond whole rounds of two a place."""
    p = spec.grid.pp
    return shortened(spec, micro_batches_a_place * p + spec.schedule.micro_batches % (2 * p))


def _alone_ms(spec: JobSpec) -> float:
    """A step from end to end, if nothing takes time but its work."""
    return _work_ms(spec) / (1 - bubble_share(spec))


def _overlap_ms(spec: JobSpec) -> float:
    """What a step gains as whoever is through begins the next one: as much with many micro-batches as with some."""
    p, chunks = spec.grid.pp, spec.schedule.chunks
    short = shortened(spec, p * max(2, MOST_OVERLAPPED // (p * p * chunks)))
    fits = p * chunks * short.schedule.micro_batches <= MOST_OVERLAPPED
    return _alone_ms(short) - StepTime(short).ms if fits else 0.0


def _work_ms(spec: JobSpec) -> float:
    """What every rank works in one step, on average where their stages are unequal."""
    lasts = durations_ms(spec)
    return spec.schedule.micro_batches * (lasts[Do.FORWARD] + lasts[Do.BACKWARD])


@dataclass(frozen=True)
class StepTime:
    """Of a job at an emulated pace."""

    spec: JobSpec

    @cached_property
    def _time(self) -> TalkTime:
        return TalkTime(self.spec)

    @cached_property
    def _of_stages(self) -> list[list[Talk]]:
        """By place, what is talked in its stages; of a stage that two places have, in the first of these."""
        places = [{talk.stage for talk in own} for own in self._time.talks]
        return [[talk for talk in own if not any(talk.stage in before for before in places[:place])]
                for place, own in enumerate(self._time.talks)]

    @cached_property
    def inside_ms(self) -> dict[tuple[Do, int], float]:
        """What ranks talk inside an action of a stage."""
        found: dict[tuple[Do, int], float] = {}
        for place, own in enumerate(self._of_stages):
            for talk in own:
                dos = _DURING.get(talk.during, ())
                for do in _COMPLETES if dos and talk.collective == "reduce_scatter" and talk.axis == self._axis else dos:
                    key = do, talk.stage
                    found[key] = found.get(key, 0.0) + self._time.ms(talk, place)
        return found

    @cached_property
    def averaging_ms(self) -> list[float]:
        """Of each stage, what its copies' averaging takes at the end of its last backward."""
        found = [0.0] * len(shares_of(self.spec))
        for place, own in enumerate(self._of_stages):
            for talk in own:
                if talk.during == LAST_BACKWARD:
                    found[talk.stage] += self._time.ms(talk, place)
        return found

    def end_ms(self, place: int, *collectives: str) -> float:
        """What the ranks of a place talk when all their backwards are over, or these collectives of it. What copies send each
        other in the older ways is apart."""
        return sum(self._time.ms(talk, place) for talk in self._time.talks[place] if talk.during == END
                   and talk.collective != "send" and (not collectives or talk.collective in collectives))

    def longer(self, action: Action, modelled_ms: float) -> float:
        """What an action takes with what its ranks talk in it: DDP averages when the gradients are there, FSDP on the way.
        Mirrored ranks meet for that."""
        inside_ms = self.inside_ms.get((action.do, action.stage), 0.0)
        if action not in self._last_backwards or self.spec.ways == 2:
            return max(modelled_ms, inside_ms)
        averaging_ms = self.averaging_ms[action.stage]
        if self.spec.splits.data.mode == "ddp":
            return max(modelled_ms, inside_ms) + averaging_ms
        return max(modelled_ms, inside_ms + averaging_ms)

    @cached_property
    def _axis(self) -> str:
        return averaging_axes(self.spec)

    @cached_property
    def _last_backwards(self) -> set[Action]:
        """Of each stage, on each of its ranks, the action in which its gradients are complete."""
        return {action for place in range(self.spec.grid.pp) for action in self._completing(place).values()}

    def _completing(self, place: int) -> dict[int, Action]:
        return {action.stage: action for action in self._schedule[place] if action.do in _COMPLETES}

    @cached_property
    def _schedule(self) -> Schedule:
        return schedule_of(self.spec)

    @cached_property
    def _meetings(self) -> dict[tuple[int, Action], Meeting]:
        """Where micro-batches go both ways, those of the two ranks of a stage: in its last backward, or under zero-2 in each."""
        mode, found = self.spec.splits.data.mode, {}
        if self.spec.ways == 1 or mode in UNORDERED:
            return {}
        for place, actions in enumerate(self._schedule):
            met: dict[int, int] = {}  # how often, by stage
            for action in actions:
                stage = action.stage
                if action.do not in _COMPLETES or (mode != "zero-2" and action not in self._last_backwards):
                    continue
                lasts_ms = self.averaging_ms[stage] if mode == "ddp" else (
                    self.averaging_ms[stage] + self.inside_ms.get((action.do, stage), 0.0))
                found[place, action] = Meeting((stage, met.get(stage, 0)), self.spec.ways, lasts_ms, beside=mode != "ddp")
                met[stage] = met.get(stage, 0) + 1
        return found

    @cached_property
    def hand_off_ms(self) -> list[float]:
        """From each place in the pipeline to the next one, around to the first. Pipelines that share a port queue at it once,
        and are apart from then on: each waits for its own message, unless all that they send takes longer than an action."""
        lasts = durations_ms(self.spec)
        return [own if queued <= min(lasts.values()) * min(shares_of(self.spec)) else queued for own, queued in self._sent_ms]

    @cached_property
    def queue_ms(self) -> float:
        """What the last of the pipelines that share a port waits in every step: those that average begin each step together."""
        if not self._axis or self.spec.links.kind == "real":
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
                link, passed = self._time.network.link(source, target), 0.0
                own = size_bytes / link.bytes_per_second
                for port in self._time.network.ports.between(source, target):
                    waiting[port] = waiting.get(port, 0.0) + own
                    passed = max(passed, waiting[port])
                alone = max(alone, own + link.latency_seconds)
                longest = max(longest, passed + link.latency_seconds)
            found.append((1000 * alone, 1000 * longest))
        return found

    @cached_property
    def ms(self) -> float:
        """Of a step of many micro-batches it follows from shorter ones, if these say so: while a pipeline is full, each round of
        micro-batches takes as long as the one before."""
        if not self._is_long:
            return self._played_ms
        shortest, shorter, short = (StepTime(_shortened_to(self.spec, rounds)) for rounds in (SHORTEST, SHORTER, SHORT))
        grown_ms = short.ms - shorter.ms
        is_even = abs(grown_ms - (shorter.ms - shortest.ms)) < SAME_MS
        if _is_simulated(self.spec) and not (is_even and self._messages_pass):
            return self._played_ms
        more = self.spec.schedule.micro_batches - short.spec.schedule.micro_batches
        return short.ms + grown_ms * more / (2 * self.spec.grid.pp)

    @property
    def _is_long(self) -> bool:
        given = self.spec.schedule
        return given.name != "csv" and given.micro_batches >= LONG * self.spec.grid.pp

    @property
    def _messages_pass(self) -> bool:
        """Whether one stage's message is at the next before that has done one action more. Where they take longer, it takes
        many rounds until one is like the other."""
        return max(self.hand_off_ms) <= min(durations_ms(self.spec).values()) * min(shares_of(self.spec))

    @property
    def _played_ms(self) -> float:
        """A rank begins its next step when its end is through. Once ranks begin as far apart from each other as in the step
        before, all steps take the same."""
        once_ms = self.queue_ms + max(0.0, self._time.exchange_ms - self._time.loss_ms)  # the loss is averaged beside it
        if not _is_simulated(self.spec):
            return once_ms + self._roughly_ms
        moments, lasted = [0.0] * self.spec.grid.pp, []
        for _ in range(MOST_STEPS):
            after = self._after_step(moments)
            first, last = min(after), max(after)
            lasted.append(last - max(moments))
            following = [end - first for end in after]
            if all(abs(one - other) < SAME_MS for one, other in zip(following, moments, strict=True)):
                return once_ms + lasted[-1]
            moments = following
        return once_ms + sum(lasted[MOST_STEPS // 2:]) / (MOST_STEPS - MOST_STEPS // 2)

    def _after_step(self, begin: list[float]) -> list[float]:
        """By place, when its ranks are through with a step that they began then, ms."""
        step = simulate(self._schedule, durations_ms(self.spec), self._passes, shares=shares_of(self.spec),
                        longer=self.longer, meets=lambda place, action: self._meetings.get((place, action)), begin=begin)
        ends = [0.0] * self.spec.grid.pp
        for timed in step.timed:
            ends[timed.rank] = max(ends[timed.rank], timed.end)
        if self.spec.ways == 2:
            ends = self._met(ends)
        gathers = [self.end_ms(place, "all_gather") for place in range(len(ends))]
        ends = [end + self.end_ms(place) - gathers[place] for place, end in enumerate(ends)]
        if norm_is_told(self.spec):
            ends = [max(ends) + self._time.norm_ms] * len(ends)
        return [end + gathered for end, gathered in zip(ends, gathers, strict=True)]

    def _met(self, ends: list[float]) -> list[float]:
        """Mirrored ranks go through the end of a step together, if there is anything that they average there."""
        return [max(one, other) if any(talk.during == END and talk.axis == self._axis for talk in own) else one
                for one, other, own in zip(ends, reversed(ends), self._time.talks, strict=True)]

    def _passes(self, source: int, target: int) -> float:
        """Between neighbours, around the pipeline too."""
        if self.spec.links.kind == "real":
            return 0.0
        p = self.spec.grid.pp
        return self.hand_off_ms[source if (source + 1) % p == target else target]

    @property
    def _roughly_ms(self) -> float:
        """Of a step too long to go through: its theory, longer by what the slowest stage's actions are."""
        lasts, shares = durations_ms(self.spec), shares_of(self.spec)
        longer = max((sum(max(0.0, self.inside_ms.get((do, stage), 0.0) - lasts[do] * shares[stage])
                          for do in (Do.FORWARD, Do.BACKWARD)) for stage in range(len(shares))), default=0.0)
        alone = _alone_ms(self.spec)
        once = 2 * sum(self.hand_off_ms[:-1]) + self.averaging_ms[0] + self.end_ms(0)
        return alone + self.spec.schedule.micro_batches * longer + once
