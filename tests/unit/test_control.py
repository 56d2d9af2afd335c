"""A stop falls between the same two steps on every rank."""

from __future__ import annotations

import os

from trainer.job import Control


def test_without_a_stop_every_step_may_begin() -> None:
    control = Control(2)
    assert control.steps() == [-1, -1]
    assert all(control.may_begin(rank, 10**9) for rank in range(2))


def test_a_stop_lets_the_step_end_that_others_may_be_in() -> None:
    control = Control(2)
    control.request_stop()
    assert control.may_begin(1, 6), "rank 0 has not said yet where to stop"
    assert control.may_begin(0, 5)
    assert control.may_begin(0, 6) and control.may_begin(1, 6)
    assert not control.may_begin(0, 7) and not control.may_begin(1, 7)


def test_another_process_sees_it() -> None:
    control = Control(2)
    child = os.fork()
    if child == 0:
        control.begin_step(1, 4)
        control.request_stop()
        os._exit(0)
    os.waitpid(child, 0)
    assert control.steps() == [-1, 4]
    assert control.may_begin(0, 0) and control.may_begin(0, 1) and not control.may_begin(0, 2)
