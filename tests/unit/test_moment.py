"""From which moment a rank at an emulated pace counts, and when modelled ports have room."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trainer.emulate.moment import Moment
from trainer.emulate.pace import Pacer
from trainer.emulate.port_book import PortBook
from trainer.schedules.actions import Action, Do
from trainer.spec import JobSpec, LinksSpec, Pace

MS = 1_000_000
FORWARD = Action(Do.FORWARD, 0, 0)


class Clock:
    """Stands for the machine's: time passes when somebody sleeps, and when Python is said to have taken some."""

    def __init__(self) -> None:
        self.now_ns = 5_000 * MS

    def pass_ms(self, ms: float) -> None:
        self.now_ns += round(ms * MS)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.monotonic_ns", lambda: clock.now_ns)
    monkeypatch.setattr("time.sleep", lambda seconds: clock.pass_ms(seconds * 1000))
    return clock


def paced(links: str = "real", **pace: float) -> tuple[Pacer, Moment]:
    spec = JobSpec(pace=Pace(kind="paced", **pace), links=LinksSpec(kind=links))  # type: ignore[arg-type]
    moment = Moment(spec.pace.is_emulated, links == "modelled")
    moment.catch_up()
    return Pacer(spec, moment), moment


def test_what_python_does_between_two_actions_is_no_part_of_either(clock: Clock) -> None:
    pacer, moment = paced(forward_ms=30)
    first_ns = start_ns = moment.ns
    for _ in range(3):
        assert pacer.begin(0) == start_ns
        clock.pass_ms(3)
        pacer.rest(FORWARD, start_ns, work_last=False, averages_beside=False)
        start_ns = pacer.finish(FORWARD, start_ns, time.monotonic_ns())
    assert start_ns == moment.ns == first_ns + 3 * 30 * MS
    assert time.monotonic_ns() >= moment.ns, "nothing is over before its time"


def test_an_action_whose_work_takes_longer_than_its_model_is_as_long_as_that() -> None:
    pacer, moment = paced(forward_ms=1)
    start_ns = moment.ns
    pacer.rest(FORWARD, start_ns, work_last=False, averages_beside=False)
    computed_ns = start_ns + 7 * MS
    assert pacer.finish(FORWARD, start_ns, computed_ns) == computed_ns == moment.ns


@pytest.mark.parametrize("late_ms, over_ms", [(4, 50), (9, 59)])
def test_an_action_that_talked_longer_is_over_with_its_last_message(late_ms: int, over_ms: int) -> None:
    """Where Python came to that by an eighth of the action later, at most."""
    pacer, moment = paced("modelled", forward_ms=40)
    start_ns = moment.ns
    pacer.rest(FORWARD, start_ns, work_last=False, averages_beside=False)
    moment.reach(start_ns + 50 * MS)
    assert pacer.finish(FORWARD, start_ns, start_ns + (50 + late_ms) * MS) == start_ns + over_ms * MS


def test_a_rank_that_is_behind_by_more_than_its_next_action_goes_on_from_now(clock: Clock) -> None:
    pacer, moment = paced(forward_ms=5)
    before_ns = moment.ns
    clock.pass_ms(4)
    pacer.begin_step(0, FORWARD)
    assert moment.ns == before_ns
    clock.pass_ms(2)
    pacer.begin_step(1, FORWARD)
    assert moment.ns == before_ns + 6 * MS


def test_data_that_came_later_than_its_rank_was_free(clock: Clock) -> None:
    pacer, moment = paced("modelled")
    assert pacer.begin(moment.ns + 9 * MS) == moment.ns + 9 * MS, "at its arrival, whenever Python woke up"
    pacer, moment = paced("real")
    sent_ns = moment.ns + 1
    clock.pass_ms(2)
    assert pacer.begin(sent_ns) == sent_ns - 1 + 2 * MS, "a real message takes its real time"


def test_waiting_for_what_goes_on_beside() -> None:
    moment = Moment(is_emulated=True, links_are_modelled=True)
    moment.beside_from_ns = moment.ns + 5
    assert moment.beside_ns == moment.ns + 5
    until_ns = moment.ns + 8
    moment.beside("dp", until_ns)
    assert moment.meet(time.monotonic_ns() + MS) == until_ns == moment.ns
    real = Moment(is_emulated=True)
    waited_ns = real.ns + 3
    assert real.meet(waited_ns) == waited_ns == real.ns


def test_at_the_real_pace_the_moment_is_now() -> None:
    moment = Moment()
    moment.reach(time.monotonic_ns() + 1000 * MS)
    assert moment.ns == time.monotonic_ns()


def test_a_port_has_room_between_what_was_booked(tmp_path: Path) -> None:
    """A rank that comes late to what it was to send earlier does not queue behind what is later."""
    book = PortBook(tmp_path / "ports", 4)
    assert book.reserve((0, 1), 100, 10) == 110
    assert book.reserve((0, 2), 150, 10) == 160
    assert book.reserve((0, 3), 120, 30) == 150, "it fits exactly"
    assert book.reserve((1, 3), 105, 10) == 120, "behind the first at port 1, before the third at port 3"
    assert book.reserve((0, 1), 100, 5) == 165, "port 0 is taken from 100 to 160"
    assert book.reserve((2, 3), 150, 1) == 161
    assert PortBook(tmp_path / "ports", 4).reserve((3, 2), 0, 200) == 361, "all ranks have the same book"


def test_a_book_forgets_what_was_earliest(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports", 2)
    ends = [book.reserve((0, 1), 100 * number, 10) for number in range(40)]
    assert ends == [100 * number + 10 for number in range(40)]
    assert book.reserve((0, 1), 3810, 90) == 3900, "the latest are told apart"
    assert book.reserve((0, 1), 20, 10) > 1000, "between the earliest ones there is no room"
