"""What a job orders of its ranks' pace and of what goes wrong. Nothing here loads torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from trainer.part import Part


class Pace(Part):
    """`real` slows nothing. `paced` stretches every action of a stage to a modelled duration, the same for each rank's even
    share of the layers; `device` to what a named card would take for it (trainer.emulate.devices), times `slow_down`.
    What ranks have in memory is held against `memory_mb`, or if that is 0 against the named card's own memory."""

    kind: Literal["real", "paced", "device"] = "real"
    forward_ms: Annotated[float, Field(gt=0, le=60_000)] = 20.0
    backward_ms: Annotated[float, Field(gt=0, le=60_000)] = 40.0
    device: Literal["h100", "a100", "b200"] = "h100"
    slow_down: Annotated[float, Field(ge=1, le=1e9)] = 100_000.0
    memory_mb: Annotated[float, Field(ge=0, le=1e9)] = 0.0

    @property
    def is_emulated(self) -> bool:
        return self.kind != "real"


class Fault(Part):
    """Something that goes wrong at the start of `step`, on `rank`; what is left out is drawn from the job's seed.

    A slow rank's actions take `factor` times as long from then on, whoever replaces it: its device is slow. So do, over
    a slow link, messages between `rank` and `peer` (without one, all of its messages). A lost message is the first that
    the rank sends to a neighbour of its pipeline in that step; it is sent again after `resend_ms`. What is killed or
    hangs does so once: the rank that takes its place is well.
    """

    kind: Literal["slow-rank", "slow-link", "lost-message", "kill", "hang"]
    rank: Annotated[int, Field(ge=0, le=4095)] | None = None
    step: Annotated[int, Field(ge=0, le=999_999)] | None = None
    factor: Annotated[float, Field(gt=1, le=1000)] = 2.0
    peer: Annotated[int, Field(ge=0, le=4095)] | None = None
    resend_ms: Annotated[float, Field(gt=0, le=60_000)] = 200.0


# A tuple, so that a JobSpec can be a key; what JSON has is a list.
Faults = Annotated[tuple[Fault, ...], Field(max_length=64),
                   BeforeValidator(lambda given: tuple(given) if isinstance(given, list) else given)]
