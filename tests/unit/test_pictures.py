"""A run's small picture shows the shape of its schedule, without a colour of its own."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from dashboard.runs import pictures
from tests.unit.frames import frame_of, gpipe_rows
from trainer.trace.kinds import Kind
from trainer.trace.step_figures import StepFigures
from trainer.trace.store import StoreReader, StoreWriter

MS = 1_000_000


def stored(folder, steps=7, ranks=4):
    writer, figures = StoreWriter(folder), StepFigures(ranks)
    for step in range(steps):
        for rank in range(ranks):
            rows = gpipe_rows(rank, step, ranks, forward_ns=20 * MS, backward_ns=40 * MS)
            frame = frame_of(rank, step + 1, rows, 17 * step)
            writer.add(frame, "1-0")
            figures.add(frame)
    writer.add_steps(figures.ready(all_ended=True))
    writer.seal(complete=True)
    return StoreReader(folder)


def test_the_first_column_of_a_step_shows_the_first_rank_alone_at_work(tmp_path):
    picture = pictures.make(stored(tmp_path))
    version, lanes, columns = picture[:3]
    assert (version, lanes, columns) == (1, 4, 96)
    pixels = np.frombuffer(picture, np.uint8, offset=3).reshape(lanes, columns, 2)
    assert pixels[0, 0, 0] == Kind.FORWARD and pixels[0, 0, 1] > 200
    assert (pixels[2:, 0, 1] == 0).all()
    busy = pixels[:, :, 1].mean() / 255
    assert busy == pytest.approx(8 / 11, abs=0.06)
    assert {Kind.FORWARD, Kind.BACKWARD} <= set(pixels[:, :, 0].ravel().tolist())


def test_a_large_run_shows_eight_of_its_ranks(tmp_path):
    assert pictures.make(stored(tmp_path, steps=1, ranks=20))[1] == 8


def test_a_run_without_spans_has_no_picture(tmp_path):
    assert pictures.make(StoreReader(tmp_path)) == b""
    assert pictures.svg(b"") == ""


def test_a_run_that_ended_within_its_first_step_has_a_picture(tmp_path):
    writer = StoreWriter(tmp_path)
    writer.add(frame_of(0, 1, [(Kind.FORWARD, 5, 5, 0, 0, 0, -1, -1, -1, "", "")]), "1-0")
    writer.seal(complete=True)
    assert pictures.make(StoreReader(tmp_path))[:3] == bytes([1, 1, 1])


def test_the_drawing_is_well_formed_small_and_coloured_by_classes(tmp_path):
    drawn = pictures.svg(pictures.make(stored(tmp_path)))
    bars = ElementTree.fromstring(drawn)
    assert {bar.get("class") for bar in bars} >= {"kind-forward", "kind-backward"}
    assert not re.search(r"fill|style|#|rgb", drawn)
    assert len(drawn) < 4_000
    outlines = [part for bar in bars for part in re.findall(r"M(\d+) (\d+)h(\d+)v3h-(\d+)z", bar.get("d"))]
    assert outlines and all(int(x) + int(width) <= 96 and int(y) <= 12 for x, y, width, _ in outlines)


def test_a_picture_of_another_version_or_of_strange_kinds_does_no_harm():
    assert pictures.svg(bytes([9, 1, 1, 1, 255])) == ""
    assert 'class="kind-other"' in pictures.svg(bytes([1, 1, 1, 250, 255]))
