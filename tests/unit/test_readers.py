"""What other programs find in an exported run: the counts and durations that were recorded, rank by rank and kind by kind."""

import io
import zipfile
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dashboard.bench import hta as reader
from dashboard.bench.synthetic import Shape, steps
from dashboard.runs import state
from dashboard.runs.exports.hta import KERNELS, hta_zip
from dashboard.runs.exports.source import Source
from tests.people import gather
from trainer.folder import run_folder, store_folder
from trainer.presets import PRESETS
from trainer.trace.kinds import Kind, Lane
from trainer.trace.store import StoreWriter

SHAPE = Shape(copies=2, stages=4)
COMMUNICATION = (Lane.COLLECTIVE, Lane.POINT_TO_POINT)


@pytest.fixture
def frames():
    return [frame for step in steps(SHAPE, 12) for frame in step]


@pytest.fixture
def unpacked(db, settings, tmp_path, frames):
    """The folder with the files of a run of eight ranks, in several segments, as the zip has them."""
    settings.CONF = replace(settings.CONF, redis_url="", home=tmp_path)
    people = gather(PRESETS["pipeline-1f1b"].spec)
    writer = StoreWriter(store_folder(run_folder(tmp_path, people.run.pk)), most_spans=900)
    for at, frame in enumerate(frames):
        writer.add(frame, f"{at + 1}-0")
        if writer.is_full:
            writer.seal()
    writer.seal(complete=True)
    source, packed = Source.of(people.run, state.for_page(people.run), tmp_path), io.BytesIO()
    assert len(source.reader.segments) > 3
    hta_zip(source, packed, lambda *_: None)
    zipfile.ZipFile(packed).extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def merged(starts, ends):
    """[start, end) of what any of the spans covers, by start."""
    order = np.argsort(starts)
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    begins = np.append(True, starts[1:] > ends[:-1])
    return starts[begins], np.append(ends[:-1][begins[1:]], ends[-1])


def common_ns(one, other):
    return sum(max(0, min(a1, b1) - max(a0, b0)) for a0, a1 in zip(*one, strict=True) for b0, b1 in zip(*other, strict=True))


@pytest.mark.skipif(not reader.is_here(), reason=reader.MISSING)
def test_holistic_trace_analysis_finds_what_was_recorded(unpacked, frames):
    counts, total_ns = Counter(), Counter()
    for frame in frames:
        for kind, duration in zip(frame.spans["kind"].tolist(), frame.spans["duration_ns"].tolist(), strict=True):
            counts[frame.rank, KERNELS[kind]] += 1
            total_ns[frame.rank, KERNELS[kind]] += duration
    found = reader.read(unpacked)
    assert {(rank, name): count for rank, name, count, _ in found["spans"]} == counts
    assert {(rank, name): total * 1e3 for rank, name, _, total in found["spans"]} == pytest.approx(total_ns, rel=1e-9)
    assert sum(counts.values()) == 12 * SHAPE.spans_a_step

    for row in found["idle"]:
        spans = {name: np.concatenate([one.spans[name] for one in frames if one.rank == row["rank"]])
                 for name in ("kind", "lane", "start_ns", "duration_ns")}
        ends, works = spans["start_ns"] + spans["duration_ns"], (spans["lane"] != Lane.HOST) & (spans["kind"] != Kind.WAIT)
        communicates = np.isin(spans["lane"], COMMUNICATION)
        starts, until = merged(spans["start_ns"][works], ends[works])
        assert row["kernel_time(us)"] * 1e3 == pytest.approx(until[-1] - starts[0], rel=1e-9)
        assert row["idle_time(us)"] * 1e3 == pytest.approx(until[-1] - starts[0] - (until - starts).sum(), rel=1e-6)
        compute = merged(spans["start_ns"][works & ~communicates], ends[works & ~communicates])
        talk = merged(spans["start_ns"][communicates], ends[communicates])
        overlap = next(one["comp_comm_overlap_pctg"] for one in found["overlap"] if one["rank"] == row["rank"])
        assert overlap == pytest.approx(100 * common_ns(compute, talk) / (talk[1] - talk[0]).sum(), abs=0.006)
        assert 1 < overlap < 99 and row["idle_time(us)"] > 1000


def test_a_rank_that_cannot_be_read_is_said(tmp_path):
    if not reader.is_here():
        with pytest.raises(reader.NoReader, match="make readers"):
            reader.read(tmp_path)
        return
    (tmp_path / "rank-00000.json.gz").write_bytes(b"no gzip file")
    with pytest.raises(reader.NoReader, match="HolisticTraceAnalysis failed"):
        reader.read(tmp_path)
