"""Recorders killed while they seal, disks that are full, ranks killed in the middle of a frame: nothing is lost unseen."""

import signal
import subprocess
import sys

import pytest

from tests.stack.dying_recorder import POINTS
from tests.stack.emulated_ranks import RANKS, SPANS_A_STEP, Ranks, assert_whole, sums_in
from tests.stack.recorder_stack import ROOT, RecorderStack, until
from tests.unit.frames import frame_of, gpipe_rows
from trainer.folder import run_folder, spill_file
from trainer.trace.frame import decode, encode
from trainer.trace.sinks import append_frame, read_frames
from trainer.trace.stream import frames_key
from workers.ending import close_stream

pytestmark = pytest.mark.stack

REFUSALS = (b"No space left on device", b"disk I/O error")  # of a segment; of the database, whichever comes first
STEPS_A_SEGMENT = 1000  # 68,000 spans: a segment is full and is sealed at once


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def cramped(tmp_path, small_disk):
    """A recorder whose home folder is on the small disk; Valkey and the log are not."""
    recording = RecorderStack(small_disk, beside=tmp_path)
    yield recording
    recording.close()


def fill(folder, leave_bytes=0):
    """Take all of a disk but `leave_bytes`; the file that takes it."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        file.truncate(max(0, file.tell() - leave_bytes))
    return ballast


@pytest.mark.parametrize("point", POINTS)
def test_a_recorder_killed_in_the_middle_of_sealing_twice_loses_and_doubles_nothing(recording, point):
    (run_id,) = recording.make_runs()
    ranks = Ranks(recording, run_id)
    for _ in range(2):
        ranks.work(STEPS_A_SEGMENT)
        dying = recording.start_recorder("-m", "tests.stack.dying_recorder", point)
        until(f"it dies when {point}", lambda dying=dying: dying.poll() is not None, seconds=60)
        assert dying.returncode == -signal.SIGKILL
    ranks.work(10)
    ranks.close()
    recording.end(run_id)
    recording.start_recorder()
    assert_whole(recording, run_id, ranks)


def test_what_a_full_disk_refuses_is_sealed_once_there_is_room(cramped, small_disk):
    """The database is on the same disk, and is refused as well."""
    (run_id,) = cramped.make_runs()
    cramped.start_recorder()
    ranks = Ranks(cramped, run_id)
    ranks.work(10)
    until("it has taken them", lambda: cramped.row(run_id)["figures"].get("spans") == ranks.spans)
    ballast = fill(small_disk)
    ranks.work(STEPS_A_SEGMENT)
    until("it was refused", lambda: any(words in cramped.log_file.read_bytes() for words in REFUSALS))
    assert cramped.client.xlen(frames_key(run_id)) > 0
    ballast.unlink()
    ranks.work(10)
    ranks.close()
    cramped.end(run_id)
    assert_whole(cramped, run_id, ranks)


@pytest.mark.parametrize("leave_bytes", [0, 5000, 20_000])
@pytest.mark.parametrize("spans", [5, 12, 17, 200])
def test_a_frame_for_which_the_disk_has_no_room_leaves_the_spill_as_it_was(small_disk, leave_bytes, spans):
    """Disks take the first pages of what they refuse: nothing of it may stay, or what comes after could not be read."""
    path = small_disk / "rank-0.frames"
    rows = [row for step in range(12) for row in gpipe_rows(0, step)][:spans]
    frames = [encode(frame_of(0, number + 1, rows)) for number in range(100)]
    append_frame(path, frames[0])
    ballast = fill(small_disk, leave_bytes)
    kept = 1
    with pytest.raises(OSError, match="No space left"):
        for frame in frames[1:]:
            append_frame(path, frame)
            kept += 1
    assert [data for data, _ in read_frames(path)] == frames[:kept]
    assert path.stat().st_size == sum(map(len, frames[:kept]))
    ballast.unlink()
    append_frame(path, frames[kept])
    assert [data for data, _ in read_frames(path)] == frames[: kept + 1]


def test_without_redis_and_without_room_on_disk_frames_wait_in_memory(cramped, small_disk):
    (run_id,) = cramped.make_runs()
    cramped.start_recorder()
    ranks = Ranks(cramped, run_id)
    ranks.work(10)
    until("it has taken them", lambda: cramped.row(run_id)["figures"].get("spans") == ranks.spans)
    ballast = fill(small_disk, leave_bytes=20_000)

    def go_on_without():
        ranks.work_until("the disk refuses frames", lambda: cramped.spilled_bytes(run_id) > 10_000, steps=5)
        ranks.work(200)

    cramped.restart_valkey(go_on_without)
    ballast.unlink()
    ranks.work(10)
    ranks.close()
    cramped.end(run_id)
    assert_whole(cramped, run_id, ranks)


RANK = """
import itertools, sys
from pathlib import Path
from tests.unit.frames import gpipe_rows
from trainer.trace.sinks import RedisSink
from trainer.trace.writer import Writer
writer = Writer(0, RedisSink(sys.argv[1], sys.argv[2]), Path(sys.argv[3]), flush_ms=1)
writer.set_zero(0)
for step in itertools.count():
    for row in gpipe_rows(0, step):
        writer.add(*row)
    if step % 50 == 0:
        writer.flush()
"""


@pytest.mark.parametrize("redis_is_there", [True, False], ids=["into Redis", "into the spill file"])
def test_a_rank_killed_in_the_middle_of_a_frame_leaves_what_it_had_recorded_up_to_a_frame(recording, redis_is_there):
    """A real process that sends as fast as it can is killed; the next life of the rank's place begins where it ended."""
    (run_id,) = recording.make_runs()
    folder = run_folder(recording.home, run_id)
    spill, key = spill_file(folder, 0), frames_key(run_id)
    if not redis_is_there:
        recording.valkey.kill()
        recording.valkey.wait()
    rank = subprocess.Popen([sys.executable, "-c", RANK, recording.url, run_id, str(spill)], cwd=ROOT, env=recording.env)
    recording.recorders.append(rank)
    if redis_is_there:
        until("it is at it", lambda: recording.client.xlen(key) > 300)
    else:
        until("it is at it", lambda: recording.spilled_bytes(run_id) > 300_000)
    rank.kill()
    rank.wait()
    if not redis_is_there:
        recording.restart_valkey()
    recorder = recording.start_recorder()
    close_stream(recording.client, recording.url, run_id, folder, RANKS)
    figures = recording.wait_until_sealed(run_id)["figures"]
    reader = recording.reader(run_id)
    frames = [decode(data) for data in reader.frames(0, 10**9)[1]]
    steps = [step for frame in frames for step in frame.spans["step"].tolist()]
    assert len(steps) == figures["spans"] > 1000
    assert steps == [at // SPANS_A_STEP for at in range(len(steps))], "all spans from the first to the last, without a gap"
    assert (figures["dropped_spans"], figures["checked_ranks"], reader.manifest.bad_frames) == (0, 1, 0)
    assert sums_in(reader) == {0: reader.manifest.ranks[0].recorded_checksum}
    assert not spill.exists() and recorder.poll() is None
