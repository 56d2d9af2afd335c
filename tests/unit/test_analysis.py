"""What an analysis says of known runs, against plain loops over their spans and against paths drawn by hand."""

import random
from collections import defaultdict

import numpy as np
import pytest

from dashboard.bench import synthetic
from dashboard.bench.synthetic import Shape
from tests.unit.frames import frame_of, gpipe_rows, stored
from trainer.grid import Grid
from trainer.trace.analysis.collectives import matched
from trainer.trace.analysis.critical_path import critical_path
from trainer.trace.analysis.run import analysed
from trainer.trace.analysis.spans import Groups, of_frames
from trainer.trace.analysis.steps import tabled
from trainer.trace.kinds import LANE_OF, MODEL_WORK, Kind, Lane
from trainer.trace.step_figures import StepFigures
from trainer.trace.store import StoreReader

SHAPE, STEPS = Shape(copies=2, stages=3, micro_batches=4), 6
GRID = Grid((2, 1, 3, 1, 1))
FRAMES = [frame for frames in synthetic.steps(SHAPE, STEPS) for frame in frames]


def span(kind, start, end, step=0, micro_batch=-1, stage=-1, peer=-1, size=-1, sequence=-1, group=""):
    return (kind, start, end, step, micro_batch, stage, peer, size, sequence, "", group)


def spans_of(ranks, *rows_by_rank, grid=None):
    frames = [frame_of(rank, 1, list(rows)) for rank, rows in enumerate(rows_by_rank)]
    return of_frames(frames, Groups(ranks, grid))


def rows_of(frames):
    """(rank, kind, start, end, step, peer, bytes, sequence, group) of every span."""
    for frame in frames:
        names = ("kind", "start_ns", "duration_ns", "step", "peer", "bytes", "sequence", "group")
        columns = [frame.spans[name].tolist() for name in names]
        for kind, start, duration, step, peer, size, sequence, group in zip(*columns, strict=True):
            yield frame.rank, kind, int(start), int(start + duration), step, peer, size, sequence, frame.strings[group]


def union(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def expected_by_step_and_rank():
    """The same figures by plain loops."""
    found = defaultdict(lambda: np.zeros((STEPS, SHAPE.ranks), np.int64))
    talk, work, calls = defaultdict(list), defaultdict(list), defaultdict(list)
    for rank, kind, start, end, step, _, _, sequence, group in rows_of(FRAMES):
        lane = LANE_OF[kind]
        if kind in MODEL_WORK:
            found["busy_ns"][step, rank] += end - start
        if kind == Kind.WAIT:
            found["wait_ns"][step, rank] += end - start
        if lane == Lane.COMPUTE and kind != Kind.WAIT:
            work[step, rank].append((start, end))
        if lane in (Lane.COLLECTIVE, Lane.POINT_TO_POINT):
            talk[step, rank].append((start, end))
        if lane == Lane.COLLECTIVE:
            found["collective_ns"][step, rank] += end - start
            calls[group, rank % SHAPE.stages, sequence].append((start, end, step, rank))
    for (step, rank), intervals in talk.items():
        for start, end in union(intervals):
            found["communication_ns"][step, rank] += end - start
            found["hidden_ns"][step, rank] += sum(max(0, min(end, e) - max(start, s)) for s, e in work[step, rank])
    for members in calls.values():
        assert len(members) == SHAPE.copies
        least, first = min(end - start for start, end, *_ in members), min(member[0] for member in members)
        for start, _, step, rank in members:
            found["transfer_ns"][step, rank] += least
            found["late_ns"][step, rank] += start - first
    return found


def test_figures_of_steps_are_those_of_plain_loops():
    spans = of_frames(FRAMES, Groups(SHAPE.ranks, GRID))
    table = tabled(spans, np.arange(STEPS), SHAPE.ranks)
    for name, wanted in expected_by_step_and_rank().items():
        assert np.array_equal(getattr(table, name), wanted), name


@pytest.mark.parametrize("seed", range(4))
def test_the_recorder_finds_the_same_live_whatever_the_batches(seed):
    dice = random.Random(seed)
    figures, rows = StepFigures(SHAPE.ranks, grid=GRID), []
    for frame in FRAMES:
        figures.add(frame)
        if dice.random() < 0.3:
            rows += figures.ready()
    rows += figures.ready(all_ended=True)
    assert [row["step"] for row in rows] == list(range(STEPS)) and all(row["complete"] for row in rows)
    for name, wanted in expected_by_step_and_rank().items():
        assert [row[name] for row in rows] == wanted.tolist(), name


@pytest.mark.parametrize("seal_every", [1, 5, 1000])
def test_a_stored_run_adds_up_to_the_same(tmp_path, seal_every):
    batches = []
    found = analysed(stored(tmp_path, FRAMES, seal_every), SHAPE.ranks, GRID, lambda table, path: batches.append((table, path)))
    wanted = expected_by_step_and_rank()
    for name in ("busy_ns", "communication_ns", "hidden_ns", "transfer_ns", "late_ns"):
        assert np.array_equal(getattr(found, name), wanted[name].sum(axis=0)), name
    assert np.concatenate([table.numbers for table, _ in batches]).tolist() == list(range(STEPS))
    rows = list(rows_of(FRAMES))
    assert found.spans == len(rows) and found.steps == STEPS
    sent = np.zeros((SHAPE.ranks, SHAPE.ranks))
    for rank, kind, _, _, _, peer, size, _, _ in rows:
        if kind == Kind.SEND:
            sent[rank, peer] += size
    assert np.array_equal(found.sent_bytes, sent) and sent.sum() > 0
    for kind in Kind:
        assert found.by_kind_ns[:, kind].sum() == sum(end - start for _, one, start, end, *_ in rows if one == kind)


def test_parts_of_every_critical_path_add_up_to_its_extent(tmp_path):
    paths = []
    analysed(stored(tmp_path, FRAMES, 5), SHAPE.ranks, GRID, lambda _, path: paths.append(path))
    for path in paths:
        assert np.allclose(path.by_kind_ns.sum(axis=1) + path.idle_ns, path.extent_ns)
        assert np.allclose(path.by_rank_ns.sum(axis=1) + path.idle_ns, path.extent_ns)
        assert (path.idle_ns <= 0.01 * path.extent_ns).all()  # a pipeline in the making: there is always work somewhere


def path_of(spans, ranks):
    return critical_path(spans, np.unique(spans["step"]), ranks, matched(spans))


def test_a_path_goes_through_the_send_to_the_rank_that_made_others_wait():
    spans = spans_of(
        2,
        [span(Kind.FORWARD, 0, 1_000_000, micro_batch=0), span(Kind.SEND, 1_000_000, 1_200_000, 0, 0, 1, 1, 8, 0)],
        [
            span(Kind.FORWARD, 0, 100_000, micro_batch=7), span(Kind.WAIT, 100_000, 1_200_000, micro_batch=0),
            span(Kind.RECEIVE, 1_000_000, 1_200_000, 0, 0, 1, 0, 8, 0), span(Kind.FORWARD, 1_210_000, 1_500_000, micro_batch=0),
        ],
    )
    path = path_of(spans, 2)
    assert path.extent_ns.tolist() == [1_500_000]
    assert path.by_kind_ns[0, [Kind.FORWARD, Kind.SEND, Kind.RECEIVE, Kind.WAIT]].tolist() == [1_290_000, 200_000, 0, 0]
    assert path.by_rank_ns[0].tolist() == [1_200_000, 290_000] and path.idle_ns.tolist() == [10_000]


def test_a_path_goes_through_the_member_of_a_collective_that_came_last():
    def reduce(start, end):
        return span(Kind.ALL_REDUCE, start, end, size=8, sequence=3, group="dp")

    spans = spans_of(
        2,
        [span(Kind.BACKWARD, 0, 300_000), reduce(300_000, 1_000_000), span(Kind.OPTIMIZER, 1_000_000, 1_100_000)],
        [span(Kind.BACKWARD, 0, 900_000), reduce(900_000, 1_000_000), span(Kind.OPTIMIZER, 1_000_000, 1_050_000)],
    )
    path = path_of(spans, 2)
    assert path.by_rank_ns[0].tolist() == [100_000, 1_000_000] and path.idle_ns.tolist() == [0]
    table = tabled(spans, np.array([0]), 2)
    assert table.transfer_ns.tolist() == [[100_000, 100_000]] and table.late_ns.tolist() == [[0, 600_000]]
    assert (table.collective_ns - table.transfer_ns).tolist() == [[600_000, 0]]


def test_groups_of_one_axis_are_kept_apart_and_ends_are_compared():
    grid = Grid((2, 1, 1, 1, 2))
    rows = [
        [span(Kind.ALL_REDUCE, start, end, sequence=0, group="dp")]
        for start, end in ((0, 100), (5000, 5100), (40, 103), (5050, 5100))
    ]
    spans = spans_of(4, *rows, grid=grid)  # ranks 0 and 2 are one dp group, 1 and 3 the other
    found = matched(spans)
    assert found.members.tolist() == [2, 2, 2, 2]
    table = tabled(spans, np.array([0]), 4)
    assert table.transfer_ns.tolist() == [[63, 50, 63, 50]] and table.end_apart_ns.tolist() == [3]
    assert table.end_off_ns.tolist() == [[-1.5, 0.0, 1.5, 0.0]]
    alone = spans_of(2, [span(Kind.ALL_REDUCE, 0, 100, sequence=0, group="dp")], [span(Kind.FORWARD, 0, 10)])
    assert np.isnan(tabled(alone, np.array([0]), 2).end_off_ns).all()


def test_mirrored_places_of_a_pipeline_are_a_group():
    rows = [[span(Kind.ALL_REDUCE, start, start + 100, sequence=0, group="mirror")] for start in (0, 5000, 5050, 40)]
    found = matched(spans_of(4, *rows, grid=Grid((1, 1, 4, 1, 1))))
    assert found.members.tolist() == [2, 2, 2, 2]
    table = tabled(spans_of(4, *rows, grid=Grid((1, 1, 4, 1, 1))), np.array([0]), 4)
    assert table.late_ns.tolist() == [[0, 0, 50, 40]]


def test_a_send_that_comes_again_under_the_same_numbers_is_paired_in_order():
    def letters(kind, peer, times):
        return [span(kind, start, start + 100_000, 0, 0, 1, peer, 8) for start in times]

    spans = spans_of(2, letters(Kind.SEND, 1, (0, 500_000)), [
        *letters(Kind.RECEIVE, 0, (0, 500_000, 900_000)), span(Kind.FORWARD, 1_000_000, 1_100_000, micro_batch=0),
    ])
    path = path_of(spans, 2)
    assert path.extent_ns.tolist() == [1_100_000] and path.by_rank_ns.sum() + path.idle_ns[0] == 1_100_000


def test_of_nothing_nothing_is_said(tmp_path):
    found = analysed(StoreReader(tmp_path), 2)
    assert found.spans == found.steps == 0 and found.as_dict()["bubble_share"] is None
    spans = spans_of(1, [span(Kind.DATA, 0, 5, step=0)])
    assert path_of(spans, 1).extent_ns.tolist() == [5]


def test_a_segment_that_is_broken_is_named_and_the_rest_is_analysed(tmp_path):
    reader = stored(tmp_path, FRAMES, 6)
    (tmp_path / "000003.spans.parquet").write_bytes(b"PAR1")
    found = analysed(reader, SHAPE.ranks, GRID)
    assert found.steps == STEPS - 1 and "000003.spans.parquet" in found.broken_segments[0]


def test_a_rank_that_falls_silent_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("trainer.trace.step_figures.MOST_OPEN_SPANS", 500)
    figures, rows = StepFigures(2), []
    for step in range(300):
        figures.add(frame_of(0, step + 1, [span(Kind.FORWARD, step * 10, step * 10 + 5, step) for _ in range(20)]))
        rows += figures.ready()
    assert len(rows) > 250 and not any(row["complete"] for row in rows)


def test_a_run_that_began_again_is_as_long_as_its_steps_and_not_as_its_gap(tmp_path):
    """Two lives of steps 0 to 2 and 1 to 3; in the first one rank 1 is killed in the middle of step 2."""
    gap_ns, length_ns, frames = 1_000_000, 9 * 60, []
    for step in range(3):
        frames += [frame_of(0, step + 1, gpipe_rows(0, step, ranks=2)),
                   frame_of(1, step + 1, gpipe_rows(1, step, ranks=2)[:5 if step == 2 else None])]
    marks = [("restart", "Restart 1", 1, 3 * length_ns)]
    for step in range(1, 4):
        for rank in range(2):
            rows = [(kind, start + gap_ns, end + gap_ns, *rest) for kind, start, end, *rest in gpipe_rows(rank, step, ranks=2)]
            frames.append(frame_of(rank, 3 + step, rows, marks=marks if step == 1 else None))
    numbers = []
    for seal_every in (3, 4, 50):
        seen = []
        totals = analysed(stored(tmp_path / str(seal_every), frames, seal_every), 2,
                          on_steps=lambda table, path, seen=seen: seen.extend(table.numbers.tolist()))
        numbers.append(seen)
        assert totals.window_ns == 5 * length_ns and totals.busy_ns.tolist() == [5 * 8 * 60] * 2
    assert numbers == [[0, 1, 1, 2, 3]] * 3
