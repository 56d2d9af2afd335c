"""Redis and the stream on bad days: what the ranks recorded is in the store, or the page says how much is not."""

import random
import signal

import pytest

from tests.stack.emulated_ranks import RANKS, Ranks, assert_whole, sums_in
from tests.stack.recorder_stack import until
from tests.unit.frames import frame_of, gpipe_rows, spans_of
from trainer.trace import checksum
from trainer.trace.frame import decode, encode
from trainer.trace.stream import FRAME, frames_key

pytestmark = pytest.mark.stack


def spans_in(recording, run_id):
    frames = [decode(data) for data in recording.reader(run_id).frames(0, 10**9)[1]]
    return sorted(span for frame in frames for span in spans_of(frame))


def test_a_redis_that_stands_still_longer_than_any_patience(recording, run):
    """Stopped, not killed: connections stay open and nobody answers, past the time-outs of writers and recorder."""
    recording.start_recorder()
    ranks = Ranks(recording, run)
    ranks.work(50)
    until("it has begun", lambda: recording.row(run)["figures"].get("spans", 0) > 0)
    recording.valkey.send_signal(signal.SIGSTOP)
    ranks.work_until("writers have lost patience", lambda: recording.spilled_bytes(run))
    until("the recorder has lost it too", lambda: b"Redis does not answer" in recording.log_file.read_bytes())
    recording.valkey.send_signal(signal.SIGCONT)
    ranks.work(50)
    ranks.close()
    recording.end(run)
    assert_whole(recording, run, ranks)


def test_a_redis_without_memory_refuses_frames_and_gets_them_later(recording, run):
    ranks = Ranks(recording, run)
    ranks.work(20)
    until("they are there", lambda: recording.client.xlen(frames_key(run)) >= RANKS)
    recording.client.config_set("maxmemory-policy", "noeviction")
    recording.client.config_set("maxmemory", 1)
    for _ in range(5):
        before = recording.spilled_bytes(run)
        ranks.work_until("more frames lie on disk", lambda before=before: recording.spilled_bytes(run) > before)
    recording.client.config_set("maxmemory", 0)
    recording.start_recorder()
    ranks.work(20)
    ranks.close()
    recording.end(run)
    assert_whole(recording, run, ranks)


def test_a_stream_that_is_trimmed_behind_a_slow_recorder_is_counted_exactly(recording, run):
    recorder = recording.start_recorder()
    ranks = Ranks(recording, run)
    ranks.work(10)
    until("it has taken them", lambda: recording.row(run)["figures"].get("spans") == ranks.spans)
    recorder.send_signal(signal.SIGSTOP)
    key = frames_key(run)
    ranks.work_until("there is much to lose", lambda: recording.client.xlen(key) > 10 * RANKS, steps=30)
    recording.client.xtrim(key, maxlen=2 * RANKS, approximate=False)
    ranks.close()
    recording.end(run)
    recorder.send_signal(signal.SIGCONT)
    figures = recording.wait_until_sealed(run)["figures"]
    assert figures["dropped_spans"] == ranks.spans - figures["spans"] > 0
    assert figures["checked_ranks"] < RANKS
    totals = recording.reader(run).manifest.ranks
    assert sums_in(recording.reader(run)) == {rank: one.checksum for rank, one in totals.items()}
    assert all(one.missing_frames > 0 for one in totals.values() if not one.is_checked)


def frames_of(rank, steps=12):
    """A rank's frames as its writer sends them, with the sums that travel along."""
    total, frames = 0, []
    for step in range(steps):
        frame = frame_of(rank, step + 1, gpipe_rows(rank, step), 17 * step, final=step == steps - 1)
        total = checksum.added(total, checksum.total(frame.spans))
        frame.checksum = total
        frames.append(frame)
    return frames


def test_doubled_frames_count_once(recording, run):
    dice = random.Random(1)
    queues = [frames_of(rank) for rank in range(RANKS)]
    wanted = sorted(span for frames in queues for frame in frames for span in spans_of(frame))
    while any(queues):
        frames = dice.choice([frames for frames in queues if frames])
        for _ in range(dice.choice([1, 1, 2, 3])):
            recording.client.xadd(frames_key(run), {FRAME: encode(frames[0])})
        frames.pop(0)
    recording.start_recorder()
    recording.end(run)
    figures = recording.wait_until_sealed(run)["figures"]
    assert spans_in(recording, run) == wanted
    assert (figures["dropped_spans"], figures["checked_ranks"]) == (0, RANKS)


def test_a_frame_out_of_its_turn_is_lost_and_counted(recording, run):
    for rank in range(RANKS):
        frames = frames_of(rank)
        if rank == 2:
            frames[4], frames[5] = frames[5], frames[4]
        for frame in frames:
            recording.client.xadd(frames_key(run), {FRAME: encode(frame)})
    recording.start_recorder()
    recording.end(run)
    figures = recording.wait_until_sealed(run)["figures"]
    assert (figures["dropped_spans"], figures["checked_ranks"]) == (17, RANKS - 1)
    assert [step["step"] for step in recording.reader(run).steps() if not step["complete"]] == [3, 4, 5]


def test_a_clock_that_jumps_loses_nothing_and_leaves_the_rest_sharp(recording, run):
    jump_ns = 3600 * 10**9
    for rank in range(RANKS):
        for frame in frames_of(rank):
            if rank == 1 and frame.sequence > 6:
                frame.spans["start_ns"] += jump_ns
            recording.client.xadd(frames_key(run), {FRAME: encode(frame)})
    recording.start_recorder()
    recording.end(run)
    figures = recording.wait_until_sealed(run)["figures"]
    assert (figures["spans"], figures["dropped_spans"]) == (RANKS * 12 * 17, 0)
    assert recording.reader(run).manifest.end_ns > jump_ns
    assert figures["checked_ranks"] == RANKS - 1  # what came is not what the rank had summed up


def test_a_rank_killed_in_the_middle_of_a_frame_leaves_the_whole_ones(recording, run):
    """Half of an entry reaches no stream; half of a frame in a spill file, or in an entry, is refused."""
    frames = frames_of(0, 5)
    for frame in frames[:4]:
        recording.client.xadd(frames_key(run), {FRAME: encode(frame)})
    recording.client.xadd(frames_key(run), {FRAME: encode(frames[4])[:200]})
    recording.start_recorder()
    recording.end(run)
    figures = recording.wait_until_sealed(run)["figures"]
    assert (figures["spans"], figures["checked_ranks"]) == (4 * 17, 1)
    assert recording.reader(run).manifest.bad_frames == 1
