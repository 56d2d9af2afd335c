"""Spans are packed alike by the compiled packer and by the plain one, whatever is added to them."""

from __future__ import annotations

import shutil
import sysconfig
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.trace import packer
from trainer.trace.clock_line import Line
from trainer.trace.frame import COUNTER_COLUMNS, MARK_COLUMNS, Frame, empty, encode, encode_around
from trainer.trace.kinds import Kind
from trainer.trace.packer import plain
from trainer.trace.row import MOST_ROWS, Row, Taken
from trainer.trace.steady_clock import THIS_CLOCK, SteadyClock

compiled = pytest.mark.skipif(not packer.IS_COMPILED, reason="the compiled packer is missing: `make setup` compiles it")
MAKERS = [pytest.param(packer.new_packer, id="compiled", marks=compiled), pytest.param(plain.Packer, id="plain")]

ZERO_NS = 1_700_000_000_000_000_000
number = st.one_of(
    st.integers(-2, 2), st.integers(), st.none(), st.text(max_size=1),
    st.sampled_from([2**15 - 1, 2**15, -2**15, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**60, 2**63 - 1, 2**63]),
)
text = st.one_of(st.sampled_from(["F0", "B7", "größer 🚀", ""]), st.text(max_size=3), st.none())
any_row = st.tuples(st.one_of(st.sampled_from(list(Kind)), number), *[number] * 8, text, text)
moment_ns = st.integers(ZERO_NS - 2**50, ZERO_NS + 2**50)
good_row = st.builds(
    lambda kind, start, lasts, small, size, texts: (kind, start, start + lasts, *small, size, small[0], *texts),
    st.sampled_from(list(Kind)), moment_ns, st.integers(0, 2**40), st.tuples(*[st.integers(-1, 2**15 - 1)] * 4),
    st.integers(-1, 2**52), st.tuples(st.sampled_from("abc"), st.text(max_size=2)),
)
lines = st.builds(Line, moment_ns, st.integers(-10**12, 10**12), st.floats(-1e-4, 1e-4))


@st.composite
def clocks(draw: st.DrawFn) -> SteadyClock:
    clock = SteadyClock.of(draw(lines))
    for line in draw(st.lists(lines, max_size=4)):
        clock = clock.towards(line, draw(moment_ns))
    return clock


def row(step: int, name: str = "F0") -> Row:
    return (Kind.FORWARD, step, step + 1, step, 0, 0, -1, -1, -1, name, "")


def as_rows(taken: Taken) -> list[tuple[object, ...]]:
    columns = [column.tolist() for name, column in taken.spans.items() if name not in ("name", "group")]
    texts = [[taken.texts[place] for place in taken.spans[name]] for name in ("name", "group")]
    return list(zip(*columns, *texts, strict=True))


@compiled
@given(st.lists(st.one_of(good_row, good_row, good_row, any_row, st.tuples(number)), max_size=30), clocks())
def test_both_pack_the_same_and_refuse_the_same(rows: list[Row], clock: SteadyClock) -> None:
    one, other = packer.new_packer(), plain.Packer()
    for given_row in rows:
        one.add(*given_row)
        other.add(*given_row)
    assert len(one) == len(other) == len(rows)
    found, expected = (pack.take(clock, ZERO_NS) for pack in (one, other))
    assert as_rows(found) == as_rows(expected)
    assert found.refused == expected.refused and found.checksum == expected.checksum
    whole = Frame(0, 1, found.spans, empty(COUNTER_COLUMNS), empty(MARK_COLUMNS))
    assert encode_around(replace(whole, spans={}), found.count, found.laid_out) == encode(whole)
    assert len(one) == len(other) == 0


@compiled
@given(st.lists(st.tuples(st.integers(0, 2), number, number, number), max_size=20))
def test_tracepoints_of_both_record_the_same(spans: list[tuple[int, int, int, int]]) -> None:
    found = []
    for pack in (packer.new_packer(), plain.Packer()):
        points = [pack.tracepoint(Kind.FORWARD, "F0", micro_batch=3, stage=1), pack.tracepoint(Kind.OPTIMIZER, "Adam"),
                  pack.tracepoint(Kind.ALL_REDUCE, "größer 🚀", "dp", peer=2, size_bytes=2**40)]
        for place, *times_and_step in spans:
            points[place].between(*times_and_step)
        found.append(pack.take(THIS_CLOCK, 0))
    assert as_rows(found[0]) == as_rows(found[1]) and found[0].refused == found[1].refused


@pytest.mark.parametrize("new", MAKERS)
def test_a_tracepoint_reads_pythons_clock_and_goes_on_in_the_next_frames(new) -> None:
    pack = new()
    point = pack.tracepoint(Kind.OPTIMIZER, "Adam", "dp")
    for frame in range(3):
        pack.add(*row(0, f"first {frame}"))
        before_ns = time.monotonic_ns()
        point.start()
        between_ns = time.monotonic_ns()
        point.end(frame)
        after_ns = time.monotonic_ns()
        taken = pack.take(THIS_CLOCK, 0)
        start_ns, end_ns = taken.spans["start_ns"][1], taken.spans["start_ns"][1] + taken.spans["duration_ns"][1]
        assert before_ns <= start_ns <= between_ns <= end_ns <= after_ns
        assert [taken.texts[taken.spans[name][1]] for name in ("name", "group")] == ["Adam", "dp"]
        assert taken.spans["step"][1] == frame


@pytest.mark.parametrize("new", MAKERS)
def test_what_tracepoints_and_pythons_clock_say_is_in_one_order_over_many_frames(new) -> None:
    """Whatever they read by themselves, and however far frames are apart."""
    pack = new()
    point = pack.tracepoint(Kind.FORWARD, "F0")
    told, found = [], []
    for pause_seconds in (0, 0, 0.001, 0.03, 0, 0.1, 0.001, 0):
        for _ in range(50):
            told.append(time.monotonic_ns())
            point.start()
            told.append(time.monotonic_ns())
            point.end(0)
        time.sleep(pause_seconds)
        spans = pack.take(THIS_CLOCK, 0).spans
        found += [moment for start, length in zip(spans["start_ns"], spans["duration_ns"], strict=True)
                  for moment in (int(start), int(start + length))]
    woven = [moment for both in zip(told, found, strict=True) for moment in both]
    assert woven == sorted(woven)


@pytest.mark.parametrize("new", MAKERS)
def test_an_end_without_a_start_is_refused_and_so_is_a_second_end(new) -> None:
    pack = new()
    point = pack.tracepoint(Kind.FORWARD, "F0")
    point.end(1)
    point.start()
    point.end(2)
    point.end(3)
    taken = pack.take(THIS_CLOCK, 0)
    assert taken.spans["step"].tolist() == [2] and [refused[3] for refused in taken.refused] == [1, 3]


@pytest.mark.parametrize("new", MAKERS)
def test_rows_come_back_in_their_order_a_frames_worth_at_once(new) -> None:
    pack = new()
    for step in range(2 * MOST_ROWS + 5):
        pack.add(*row(step, f"F{step % 7}"))
    steps = []
    for expected in (MOST_ROWS, MOST_ROWS, 5, 0):
        taken = pack.take(THIS_CLOCK, 0)
        assert len(taken.spans["kind"]) == expected and not taken.refused
        assert [taken.texts[place] for place in taken.spans["name"]] == [f"F{step % 7}" for step in taken.spans["step"]]
        steps += taken.spans["step"].tolist()
    assert steps == list(range(2 * MOST_ROWS + 5))


@pytest.mark.parametrize("new", MAKERS)
def test_every_row_of_several_threads_is_taken_once(new) -> None:
    pack, found, done = new(), [], threading.Event()

    def work(first: int) -> None:
        for step in range(first, first + 30_000):
            pack.add(*row(step, f"F{step}"))

    def take() -> None:
        while not done.is_set() or len(pack):
            taken = pack.take(THIS_CLOCK, 0)
            assert [taken.texts[place] for place in taken.spans["name"]] == [f"F{step}" for step in taken.spans["step"]]
            found.extend(taken.spans["step"].tolist())

    taker = threading.Thread(target=take)
    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 30_000, 60_000)]
    for thread in (taker, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    taker.join()
    assert sorted(found) == list(range(90_000))


def test_it_is_compiled_where_that_can_be_done() -> None:
    if shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("there is no C compiler, or none of Python's headers")
    assert packer.IS_COMPILED, "`make setup` compiles it"


@compiled
def test_what_no_clock_or_kind_is_like_is_an_error() -> None:
    from trainer.trace.packer.packed import Packer

    with pytest.raises(ValueError, match="256 bytes"):
        Packer(b"lanes")
    with pytest.raises(ValueError, match="one piece or more of 24 bytes"):
        Packer(bytes(256)).take(b"", 0)
    with pytest.raises(ValueError, match="kind 99"):
        packer.new_packer().tracepoint(99, "F0")
