"""Step figures: the bubble of a known schedule, whatever the order of frames, and honesty about what is missing."""

import random

import pytest

from tests.unit.frames import frame_of, gpipe_rows
from trainer.trace.figures import DEFINITIONS, RUN_DEFINITIONS, STEP_DEFINITIONS, bubble_shares
from trainer.trace.frame import BrokenFrame
from trainer.trace.kinds import Kind
from trainer.trace.run_figures import RunFigures, residual_ns
from trainer.trace.step_figures import StepFigures
from trainer.trace.stragglers import Stragglers

STEPS, RANKS = 6, 4
STEP_NS = 11 * 60


def frames_of(rank, spans_a_frame, steps=STEPS, loss=True):
    """A rank's frames of a whole run; the last rank reports the loss."""
    rows = [row for step in range(steps) for row in gpipe_rows(rank, step)]
    frames, sequence = [], 1
    for at in range(0, len(rows), spans_a_frame):
        part = rows[at : at + spans_a_frame]
        ended = [row[3] for row in part if row[0] == Kind.STEP]
        counters = [
            counter for step in ended if rank == RANKS - 1 and loss
            for counter in (("loss", 3.0 - step, step, 0), ("samples", 32.0, step, 0))
        ]
        frames.append(frame_of(rank, sequence, part, at, counters, final=at + spans_a_frame >= len(rows)))
        sequence += 1
    return frames


def mixed(dice, queues):
    frames = []
    while any(queues):
        frames.append(dice.choice([queue for queue in queues if queue]).pop(0))
    return frames


@pytest.mark.parametrize("seed", range(12))
def test_the_bubble_of_gpipe_is_found_in_any_order_of_frames(seed):
    dice = random.Random(seed)
    figures, rows = StepFigures(RANKS), []
    for frame in mixed(dice, [frames_of(rank, dice.randrange(1, 60)) for rank in range(RANKS)]):
        figures.add(frame)
        rows += figures.ready()
    assert [row["step"] for row in rows] == list(range(STEPS))
    for row in rows:
        assert row["bubble_share"] == pytest.approx(3 / 11, abs=1e-12)
        assert row["ideal_share"] == pytest.approx(3 / 8, abs=1e-12)
        assert row["busy_ns"] == [8 * 60] * RANKS
        assert (row["start_ns"], row["duration_ns"], row["complete"]) == (row["step"] * STEP_NS, STEP_NS, True)
        assert row["period_ns"] == STEP_NS
        assert (row["loss"], row["samples"]) == (3.0 - row["step"], 32.0)
        assert row["samples_per_second"] == pytest.approx(32 / STEP_NS * 1e9)
    assert not figures._open


def test_a_row_comes_once_all_ranks_have_closed_the_step_and_not_before():
    figures = StepFigures(RANKS)
    for rank in range(RANKS - 1):
        figures.add(frame_of(rank, 1, gpipe_rows(rank, 0)))
        assert figures.ready() == []
    figures.add(frame_of(3, 1, gpipe_rows(3, 0), counters=[("loss", 1.0, 0, 0)]))
    assert [row["step"] for row in figures.ready()] == [0]
    assert figures.ready() == []


def test_a_loss_that_comes_one_frame_later_is_waited_for():
    figures = StepFigures(1)
    figures.add(frame_of(0, 1, gpipe_rows(0, 0, ranks=1)))
    assert figures.ready() == []
    figures.add(frame_of(0, 2, gpipe_rows(0, 1, ranks=1), counters=[("loss", 1.5, 0, 0)]))
    assert [row["loss"] for row in figures.ready()] == [1.5]


def test_a_job_without_a_loss_is_not_waited_for_for_ever():
    figures = StepFigures(1)
    for frame in frames_of(0, 1000, loss=False):
        figures.add(frame)
    assert [row["step"] for row in figures.ready()] == list(range(STEPS))


def test_a_step_that_a_rank_died_in_is_flagged_and_not_averaged():
    figures, summary = StepFigures(2), RunFigures()
    for step in range(3):
        figures.add(frame_of(0, step + 1, gpipe_rows(0, step, ranks=2)))
    for step in range(2):
        figures.add(frame_of(1, step + 1, gpipe_rows(1, step, ranks=2)))
    figures.add(frame_of(1, 3, gpipe_rows(1, 2, ranks=2)[:5]))
    rows = figures.ready()
    assert [row["step"] for row in rows] == [0]
    rows += figures.ready(all_ended=True)
    assert [(row["step"], row["complete"]) for row in rows] == [(0, True), (1, True), (2, False)]
    assert rows[2]["bubble_share"] is None and rows[2]["busy_ns"] == [8 * 60, 5 * 20]
    for row in rows:
        summary.add(row)
    assert summary.as_dict()["steps_figured"] == 2


def test_a_rank_whose_last_frame_came_in_the_middle_of_a_step_leaves_it_incomplete():
    figures = StepFigures(2)
    figures.add(frame_of(0, 1, gpipe_rows(0, 0, ranks=2), final=True))
    figures.add(frame_of(1, 1, gpipe_rows(1, 0, ranks=2)[:3], final=True))
    (row,) = figures.ready()
    assert not row["complete"] and row["bubble_share"] is None


def test_a_step_in_which_frames_are_missing_is_flagged_and_its_neighbours_are_not():
    figures = StepFigures(1)
    frames = [frame_of(0, number + 1, gpipe_rows(0, number, ranks=1), number * 17) for number in range(6)]
    for frame in frames[:2]:
        figures.add(frame)
    half = frame_of(0, 4, gpipe_rows(0, 2, ranks=1)[5:], 2 * 17 + 5)
    figures.add(half, gap=True)
    for frame in frames[3:]:
        figures.add(frame)
    rows = figures.ready(all_ended=True)
    # What is missing lies after the last span of step 1 that came: nothing says that it was not of step 1.
    assert [row["complete"] for row in rows] == [True, False, False, True, True, True]


def test_a_gap_before_a_frame_without_steps_lasts_until_the_next_step_is_seen():
    figures = StepFigures(1)
    figures.add(frame_of(0, 1, gpipe_rows(0, 0, ranks=1), counters=[("loss", 1.0, 0, 0)]))
    assert [row["complete"] for row in figures.ready()] == [True]
    figures.add(frame_of(0, 5, []), gap=True)
    for step in (1, 2):
        figures.add(frame_of(0, 5 + step, gpipe_rows(0, step, ranks=1)))
    assert [row["complete"] for row in figures.ready(all_ended=True)] == [False, True]


def test_figures_go_on_in_the_middle_from_what_was_open():
    figures = StepFigures(1, next_step=2)
    for step in range(4):
        figures.add(frame_of(0, step + 1, gpipe_rows(0, step, ranks=1)))
    assert [row["step"] for row in figures.ready(all_ended=True)] == [2, 3]


def test_steps_that_overlap_take_no_longer_than_the_time_between_their_ends():
    figures = StepFigures(2)
    for step in range(3):  # rank 0 begins each step 40 ns before rank 1 has ended the last one
        rows = [(Kind.FORWARD, 100 * step, 100 * step + 60, step, 0, 0, -1, -1, -1, "", "")]
        later = [(Kind.FORWARD, 100 * step + 80, 100 * step + 140, step, 0, 1, -1, -1, -1, "", "")]
        figures.add(frame_of(0, step + 1, rows))
        figures.add(frame_of(1, step + 1, later))
    rows = figures.ready(all_ended=True)
    assert [row["duration_ns"] for row in rows] == [140, 140, 140]
    assert [row["period_ns"] for row in rows] == [140, 100, 100]


def test_memory_holds_open_steps_only():
    figures, told = StepFigures(1), 0
    for step in range(2_000):
        figures.add(frame_of(0, step + 1, gpipe_rows(0, step, ranks=1, micro_batches=1), counters=[("loss", 1.0, step, 0)]))
        told += len(figures.ready())
    assert told == 2_000 and not figures._open and not figures._gaps


def test_a_loss_that_is_no_number_is_shown_as_missing():
    figures = StepFigures(1)
    figures.add(frame_of(0, 1, gpipe_rows(0, 0, ranks=1), counters=[("loss", float("nan"), 0, 0)]))
    assert [row["loss"] for row in figures.ready()] == [None]


def test_a_rank_outside_the_run_is_refused():
    with pytest.raises(BrokenFrame, match="rank 4"):
        StepFigures(4).add(frame_of(4, 1, []))


def test_the_summary_takes_medians_and_the_first_and_last_loss():
    summary = RunFigures()
    for step, (bubble, duration, loss) in enumerate([(0.5, 9e9, None), (0.3, 1e9, 2.0), (0.2, 2e9, 1.0), (None, 3e9, None)]):
        ideal = bubble and bubble / (1 - bubble)
        shares = {"bubble_share": bubble, "ideal_share": ideal}
        talk = {"communication_ns": [30, 10], "hidden_ns": [step, 0], "collective_ns": [step, 0], "end_apart_ns": 5 * step}
        talk["end_off_ns"] = [-step, step, None]
        talk |= {"exposed_share": step / 10, "samples_per_second": bubble and 10 * bubble}
        talk["busy_ns"] = [20, 20, 30 if step else 20]
        summary.add({"step": step, "period_ns": duration, "loss": loss, "complete": True, **shares, **talk})
    assert summary.as_dict() == {
        "bubble_share": 0.3, "bubble_share_ideal": pytest.approx(3 / 7), "loss_first": 2.0, "loss_last": 1.0,
        "step_seconds": 2.5, "steps_figured": 4, "overlap_share": 6 / 160, "ends_apart_ns": 10.0,
        "clock_residual_ns": 2.0,
        "exposed_share": pytest.approx(0.15), "samples_per_second": 3.0,
        "slow_ranks": [{"rank": 2, "from_step": 1, "factor": 1.5}],
    }


def test_the_summary_of_no_step_says_that_nothing_is_known():
    assert set(RunFigures().as_dict().values()) == {None, 0}


def test_the_residual_is_that_of_the_rank_that_is_most_off_whatever_single_steps_did():
    noticing_late = [[-10, 10, 0], [-8, 12, 9_000], [-9_000, 8, 1], [-12, None, 2]]
    assert residual_ns(noticing_late) == 11.0
    assert residual_ns([]) is residual_ns([[None, None]]) is None


def test_the_two_conventions_agree_with_the_formulas():
    for stages, micro_batches in ((4, 8), (8, 32), (4, 1)):
        window = stages + micro_batches - 1
        whole, ideal = bubble_shares(stages * micro_batches, stages, window)
        assert whole == pytest.approx((stages - 1) / (micro_batches + stages - 1))
        assert ideal == pytest.approx((stages - 1) / micro_batches)


def test_every_figure_of_a_row_and_of_a_run_has_its_definition():
    figures = StepFigures(1)
    figures.add(frame_of(0, 1, gpipe_rows(0, 0, ranks=1), final=True))
    (row,) = figures.ready()
    assert set(row) == set(STEP_DEFINITIONS)
    assert set(RunFigures().as_dict()) < set(RUN_DEFINITIONS)
    assert all(definition.title and definition.definition.endswith(".") for definition in DEFINITIONS.values())
    assert not set(STEP_DEFINITIONS) & set(RUN_DEFINITIONS) - {"bubble_share", "exposed_share", "samples_per_second"}


def test_a_rank_is_slow_for_as_long_as_it_is():
    stragglers = Stragglers()
    for step, busy_ns in enumerate([[10, 10, 10], [10, 20, 10], [10, 20, 10], [10, 26, 10]]):
        stragglers.add(step, busy_ns)
    assert stragglers.found() == [{"rank": 1, "from_step": 1, "factor": pytest.approx(2.2)}]
    stragglers.add(4, [10, 11, 10])
    assert stragglers.found() == []
    for step in range(5):
        stragglers.add(step, [50])
    assert stragglers.found() == [], "nobody to compare it with"


def test_steps_done_again_come_as_they_were_done_again():
    figures = StepFigures(2)
    for rank in range(2):
        for step in range(2):
            figures.add(frame_of(rank, step + 1, gpipe_rows(rank, step, ranks=2), counters=[("loss", 1.0, step, 0)]))
    figures.add(frame_of(0, 3, gpipe_rows(0, 2, ranks=2)[:5]))  # and rank 1 is killed
    assert [row["step"] for row in figures.ready()] == [0, 1]
    figures.begin_again(1)
    for rank in range(2):
        for step in (1, 2):
            figures.add(frame_of(rank, 3 + step, gpipe_rows(rank, step, ranks=2)))
    rows = figures.ready(all_ended=True)
    assert [(row["step"], row["complete"]) for row in rows] == [(1, True), (2, True)]
    assert rows[1]["busy_ns"] == [8 * 60, 8 * 60]
