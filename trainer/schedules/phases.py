"""What schedules have in common: the three phases of 1F1B, and weight gradients that are put off."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from trainer.schedules.actions import Action, Do


def one_in_turn(forwards: list[Action], backwards: list[Action], ahead: int) -> list[Action]:
    """Warm-up: `ahead` forwards. Steady: a forward and a backward in turn. Cool-down: the backwards that are left."""
    ahead = min(ahead, len(forwards))
    steady = zip(forwards[ahead:], backwards, strict=False)
    return [*forwards[:ahead], *chain.from_iterable(steady), *backwards[len(forwards) - ahead:]]


def put_off_weights(actions: list[Action], lag: int) -> list[Action]:
    """Every backward in its two halves, a gradient of the weights `lag` backwards behind its gradient of the input.

    The gradient that the previous stage waits for leaves half a backward earlier; what has been put off fills
    the time in which the rank would wait, here at the end of its step.
    """
    done: list[Action] = []
    waiting: list[Action] = []
    for action in actions:
        if action.do is not Do.BACKWARD:
            done.append(action)
            continue
        done.append(replace(action, do=Do.BACKWARD_INPUT, with_next=False))
        waiting.append(replace(action, do=Do.BACKWARD_WEIGHT, with_next=False))
        if len(waiting) > lag:
            done.append(waiting.pop(0))
    return done + waiting
