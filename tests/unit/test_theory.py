"""The bubble's formulas against known values, and against the simulator."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from trainer.emulate.durations import durations_ms
from trainer.schedules import formulas, schedule_of, split_backward
from trainer.schedules.actions import Do
from trainer.schedules.cuts import shares_of
from trainer.schedules.dualpipe import dualpipe
from trainer.schedules.family import SCHEDULES
from trainer.schedules.formulas import Shape, Times, idle_of
from trainer.schedules.simulate import simulate
from trainer.schedules.theory import bubble_formula, bubble_share, ideal_formula, ideal_share
from trainer.spec import Gpt, GridSpec, JobSpec, Pace, ScheduleSpec, parse

EQUAL = Times(Fraction(1), Fraction(1), Fraction(1))
TIMES = [EQUAL, Times(Fraction(1), Fraction(6, 5), Fraction(4, 5)), Times(Fraction(2), Fraction(1), Fraction(1)),
         Times(Fraction(1), Fraction(2), Fraction(2)), Times(Fraction(1), Fraction(2), Fraction(1)),
         Times(Fraction(5), Fraction(2), Fraction(1)), Times(Fraction(2), Fraction(5), Fraction(1))]


def job(name: str, stages: int, micro_batches: int, split: bool = False, forward_ms: float = 20, backward_ms: float = 40,
        chunks: int | None = None, csv: str = "") -> JobSpec:
    chunks = chunks or SCHEDULES[name].fewest_chunks
    return JobSpec(
        model=Gpt(layers=24), grid=GridSpec(pp=stages),
        schedule=ScheduleSpec.model_validate({"name": name, "micro_batches": micro_batches, "split_backward": split,
                                              "chunks": chunks, "csv": csv}),
        pace=Pace(kind="paced", forward_ms=float(forward_ms), backward_ms=float(backward_ms)),
    )


def durations(times: Times, chunks: int = 1) -> dict[Do, float]:
    return {
        Do.FORWARD: float(times.forward / chunks), Do.BACKWARD: float(times.backward / chunks),
        Do.BACKWARD_INPUT: float(times.input / chunks), Do.BACKWARD_WEIGHT: float(times.weights / chunks),
    }


@pytest.mark.parametrize(("name", "stages", "micro_batches", "share", "ideal"), [
    ("gpipe", 4, 8, 3 / 11, 3 / 8),
    ("1f1b", 4, 8, 3 / 11, 3 / 8),
    ("1f1b", 8, 32, 21 / 117, 7 / 32),
    ("interleaved", 4, 8, 3 / 19, 3 / 16),  # 15.79 %
    ("interleaved", 8, 32, 10.5 / 106.5, 7 / 64),
    ("zb-h1", 4, 8, 3 / 27, 3 / 24),
    ("zb-h1", 8, 32, 7 / 103, 7 / 96),
    ("zb-v", 4, 8, 1.5 / 25.5, 1.5 / 24),  # nothing inside a rank, but ranks start one after the other
    ("dualpipe", 4, 8, 1 / 25, 1 / 24),
    ("dualpipe", 8, 20, 3 / 63, 3 / 60),  # forward and backward in turn; side by side 6/66, see below
    ("gpipe", 4, 1, 3 / 4, 3),
    ("naive", 4, 8, 3 / 4, 3),
    ("1f1b", 1, 8, 0, 0),
    ("naive", 1, 3, 0, 0),
])
def test_known_values(name: str, stages: int, micro_batches: int, share: float, ideal: float) -> None:
    assert bubble_share(job(name, stages, micro_batches)) == pytest.approx(share, abs=1e-12)
    assert ideal_share(job(name, stages, micro_batches)) == pytest.approx(ideal, abs=1e-12)


def test_zb_h1_with_unequal_halves() -> None:
    found = idle_of("zb-h1", False, Shape(4, 8), TIMES[1])
    assert found is not None
    assert found.time / (8 * TIMES[1].work + found.time) == Fraction(42, 282)


def test_zb_v_leaves_no_rank_idle_once_it_has_begun() -> None:
    for p in range(2, 9):
        for m in (2 * p - 1, 2 * p, 64):
            schedule = SCHEDULES["zb-v"].make(p, m, 2)
            assert simulate(schedule, durations(EQUAL, 2)).idle_inside == pytest.approx(0, abs=1e-12)
    assert simulate(SCHEDULES["1f1b"].make(4, 8, 1), durations(EQUAL)).idle_inside == 9


def test_dualpipe_with_forward_and_backward_side_by_side() -> None:
    step = simulate(dualpipe(8, 20), durations(EQUAL), together=3.0)
    assert (step.makespan, step.bubble_share) == (66, pytest.approx(6 / 66, abs=1e-12))
    step = simulate(SCHEDULES["dualpipe-v"].make(4, 10, 2), durations(EQUAL, 2), together=1.5)
    assert (step.makespan, step.bubble_share) == (33, pytest.approx(3 / 33, abs=1e-12))
    half = Times(Fraction(1, 2), Fraction(1, 2), Fraction(1, 2))
    for p in (2, 4, 6, 8):
        for m in (2 * p, 2 * p + 2, 64):
            step = simulate(dualpipe(p, m), durations(EQUAL), together=3.0)
            assert step.makespan - step.busy / p == pytest.approx(float(formulas.dualpipe(p, Fraction(3), EQUAL)), abs=1e-9)
            step = simulate(SCHEDULES["dualpipe-v"].make(p, m, 2), durations(EQUAL, 2), together=1.5)
            assert step.makespan - step.busy / p == pytest.approx(float(formulas.dualpipe_v(p, Fraction(3, 2), half)), abs=1e-9)


def defined(name: str, most: int) -> Iterator[tuple[int, int, int]]:
    """Ranks, micro-batches and chunks that the schedule allows."""
    family = SCHEDULES[name]
    for p in range(2, 9):
        for m in sorted({1, p - 1, p, p + 1, 2 * p - 1, 2 * p, 3 * p, most // p * p, most}):
            for v in sorted({family.fewest_chunks, min(3, family.most_chunks)}):
                fits = not (family.in_rounds and m % p) and p % family.ways == m % family.ways == 0
                if fits and m >= max(1, family.least_a_rank * p):
                    yield p, m, v


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_closed_formulas_meet_the_simulator(name: str, split: bool) -> None:
    known = 0
    for p, m, v in defined(name, 64):
        schedule = SCHEDULES[name].make(p, m, v)
        for times in TIMES if m < 64 else TIMES[:1]:
            found = idle_of(name, split, Shape(p, m, v), times)
            if found is not None:
                known += 1
                step = simulate(split_backward(schedule) if split else schedule, durations(times, v))
                work = m * times.work
                assert step.bubble_share == pytest.approx(float(found.time / (work + found.time)), abs=1e-12), (p, m, v, times)
    assert known or (name, split) in {("dualpipe-v", True), ("dualpipe", True)}, "nothing was compared"


@pytest.mark.parametrize(("name", "split"), [("zb-v", False), ("dualpipe-v", False), ("dualpipe-v", True), ("interleaved", True)])
@pytest.mark.parametrize(("forward_ms", "backward_ms"), [(40, 40), (20, 100), (30, 35)])
def test_without_a_formula_theory_is_the_simulators(name: str, split: bool, forward_ms: float, backward_ms: float) -> None:
    for p in (2, 3, 6):
        for m in (2 * p, 6 * p, 9 * p):  # more than what is simulated
            spec = job(name, p, m, split, forward_ms, backward_ms)
            simulated = simulate(schedule_of(spec), durations_ms(spec), shares=shares_of(spec))
            assert bubble_share(spec) == pytest.approx(simulated.bubble_share, abs=1e-12)


def test_stages_share_a_ranks_pace_by_their_layers() -> None:
    assert durations_ms(job("zb-v", 4, 8)) == {
        Do.FORWARD: 20, Do.BACKWARD: 40, Do.BACKWARD_INPUT: 20, Do.BACKWARD_WEIGHT: 20}
    assert shares_of(job("zb-v", 4, 8)) == [0.5] * 8
    assert shares_of(cut_by_hand("1f1b", [1, 1, 2, 4], 8)) == [0.5, 0.5, 1, 2]


def cut_by_hand(name: str, layers: list[int], micro_batches: int, chunks: int = 1) -> JobSpec:
    return parse({
        "model": {"name": "gpt", "layers": sum(layers)}, "grid": {"pp": len(layers) // chunks}, "batch": micro_batches,
        "schedule": {"name": name, "micro_batches": micro_batches, "chunks": chunks, "layers": layers},
    })


def test_even_cuts_by_hand_have_the_closed_formula() -> None:
    assert bubble_formula(cut_by_hand("1f1b", [2, 2, 2, 2], 8)) == "(p−1)/(m+p−1) = 3/11"


def test_a_stage_of_twice_the_layers_holds_the_others_up() -> None:
    """GPipe's flood: the slowest stage works all the time, between the first way to it and the last way back."""
    spec = cut_by_hand("gpipe", [1, 1, 2, 4], 8)
    makespan = (0.5 + 0.5 + 1) * 60 + 8 * 2 * 60
    assert bubble_share(spec) == pytest.approx(1 - 8 * 60 / makespan, abs=1e-12)
    assert bubble_formula(spec) == "by simulation = 5/9"


@pytest.mark.parametrize(("name", "layers", "chunks"), [
    ("1f1b", [3, 1, 2, 7, 1, 1, 4, 2], 1), ("zb-h1", [5, 6, 6, 5], 1), ("interleaved", [1, 2, 3, 4, 5, 6, 7, 8], 2),
    ("zb-v", [9, 8, 8, 8, 9, 8], 2), ("dualpipe-v", [9, 1, 1, 1, 1, 9], 2),
    ("dualpipe", [5, 6, 7, 6], 1),
])
def test_unequal_stages_beyond_what_is_simulated(name: str, layers: list[int], chunks: int) -> None:
    """Every further round of micro-batches takes what the last ones took."""
    spec = cut_by_hand(name, layers, 2304 // len(layers) * len(layers), chunks)
    step = simulate(schedule_of(spec), durations_ms(spec), shares=shares_of(spec))
    assert bubble_share(spec) == pytest.approx(step.bubble_share, abs=1e-12)


def test_running_a_layer_again_is_part_of_its_backward() -> None:
    spec = job("zb-h1", 4, 8).model_copy(update={"checkpointing": "layer"})
    assert durations_ms(spec) == {Do.FORWARD: 20, Do.BACKWARD: 60, Do.BACKWARD_INPUT: 40, Do.BACKWARD_WEIGHT: 20}
    assert bubble_share(spec) == pytest.approx(3 * 40 / (8 * 80 + 3 * 40), abs=1e-12), "(p−1)(F+I−W) with a longer I"


def test_formulas_as_they_are_shown() -> None:
    shown: list[tuple[Any, str, str]] = [
        (job("1f1b", 4, 8), "(p−1)/(m+p−1) = 3/11", "(p−1)/m = 3/8"),
        (job("naive", 4, 8), "(p−1)/p = 3/4", "p−1 = 3"),
        (job("1f1b", 4, 8, split=True), "(p−1)(F+I)/(m(F+B)+(p−1)(F+I)) = 1/5", "(p−1)(F+I)/(m(F+B)) = 1/4"),
        (job("naive", 4, 8, split=True), "(p−1)(F+I)/(F+B+(p−1)(F+I)) = 2/3", "(p−1)(F+I)/(F+B) = 2"),
        (job("interleaved", 4, 8), "(p−1)/(v·m+p−1) = 3/19", "(p−1)/(v·m) = 3/16"),
        (job("zb-h1", 4, 8), "(p−1)(F+I−W)/(m(F+B)+(p−1)(F+I−W)) = 1/9", "(p−1)(F+I−W)/(m(F+B)) = 1/8"),
        (job("zb-v", 4, 8), "½(p−1)F/(m(F+B)+½(p−1)F) = 1/17", "½(p−1)F/(m(F+B)) = 1/16"),
        (job("dualpipe", 4, 8), "(½p−1)(F+I−W)/(m(F+B)+(½p−1)(F+I−W)) = 1/25", "(½p−1)(F+I−W)/(m(F+B)) = 1/24"),
        (job("zb-v", 4, 8, forward_ms=30), "by simulation = 11/123", "by simulation = 11/112"),
        (job("1f1b", 1, 8), "no pipeline, no bubble: 0", "no pipeline, no bubble: 0"),
    ]
    for spec, share, ideal in shown:
        assert (bubble_formula(spec), ideal_formula(spec)) == (share, ideal)
    assert bubble_formula(job("1f1b", 8, 7, split=True, forward_ms=20.123)).endswith(" = 0.4002")


def test_schedules_and_theory_load_without_torch() -> None:
    program = "import sys, trainer.schedules, trainer.schedules.theory; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
