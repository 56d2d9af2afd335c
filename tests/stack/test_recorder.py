"""The recorder in a process of its own: nothing is lost or doubled, whoever is killed meanwhile."""

import itertools
import json
import signal

import pytest

from dashboard.runs import pictures
from tests.stack.emulated_ranks import MS, Ranks, assert_whole
from tests.stack.recorder_stack import until
from tests.unit.frames import gpipe_rows
from trainer.trace.stream import EVENT, FRAME, LIVE_RUNS, RECORDERS, frames_key

pytestmark = pytest.mark.stack


def test_a_run_is_recorded_to_its_end(recording):
    (run_id,) = recording.make_runs()
    recorder = recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(20)
    until("figures while it runs", lambda: recording.row(run_id)["figures"].get("steps_figured", 0) >= 19)
    assert recording.row(run_id)["sealed_at"] is None
    assert recording.beat()["pid"] == recorder.pid and recording.beat()["lag"] < 5
    ranks.work(10)
    ranks.close()
    recording.end(run_id)
    row = assert_whole(recording, run_id, ranks)
    figures = row["figures"]
    assert figures["bubble_share"] == pytest.approx(3 / 11) == figures["bubble_share_theory"]
    assert figures["bubble_share_ideal"] == pytest.approx(3 / 8)
    assert (figures["loss_first"], figures["loss_last"], figures["steps_figured"]) == (4.0, 3.971, 30)
    assert figures["step_seconds"] == pytest.approx(0.66) and figures["step_seconds_theory"] is None, "at the real pace"
    assert figures["zero_unix_ns"] == "1780000000000000000"
    assert row["realtime"] == 1
    drawn = pictures.svg(row["picture"])
    assert "kind-forward" in drawn and "kind-backward" in drawn
    entries = [fields for _, fields in recording.client.xrange(frames_key(run_id))]
    told = [json.loads(fields[EVENT]) for fields in entries if EVENT in fields]
    steps = [row["step"] for event in told if event["type"] == "steps" for row in event["rows"]]
    assert steps == list(range(30))
    assert 0 < recording.client.ttl(frames_key(run_id)) <= 60
    assert recording.client.xpending(frames_key(run_id), RECORDERS)["pending"] == 0


def test_a_recorder_killed_again_and_again_loses_and_doubles_nothing(recording):
    (run_id,) = recording.make_runs()
    ranks = Ranks(recording, run_id)
    recorder = recording.start_recorder()
    for life in range(3):
        recording.wait_for_beat_of(recorder)
        ranks.work(1500)  # 102,000 spans: more than one segment
        # the first time with much unread, then right after a segment was sealed
        until("it has begun", lambda least=life: len(recording.reader(run_id).segments) > least)
        recorder.kill()
        recorder.wait()
        ranks.work(100)
        recorder = recording.start_recorder()
    ranks.close()
    recording.end(run_id)
    assert_whole(recording, run_id, ranks)


def test_what_waits_unsealed_when_a_recorder_is_killed_is_taken_by_the_next(recording):
    (run_id,) = recording.make_runs()
    recorder = recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(40)
    until("it has taken them", lambda: recording.row(run_id)["figures"].get("steps_figured", 0) >= 39)
    assert recording.client.xpending(frames_key(run_id), RECORDERS)["pending"] > 0 or recording.reader(run_id).segments
    recorder.kill()
    recorder.wait()
    ranks.close()
    recording.end(run_id)
    recording.start_recorder()
    assert_whole(recording, run_id, ranks)


def test_redis_may_be_killed_in_the_middle(recording):
    (run_id,) = recording.make_runs()
    recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(200)
    until("it has begun", lambda: recording.row(run_id)["figures"].get("steps_figured", 0) > 0)

    def go_on_without():
        ranks.work_until("writers have noticed", lambda: recording.spilled_bytes(run_id), steps=40)

    recording.restart_valkey(go_on_without)
    ranks.work(200)
    ranks.close()
    recording.end(run_id)
    assert_whole(recording, run_id, ranks)


def test_a_stream_that_redis_lost_is_begun_anew_and_what_was_taken_before_is_kept(recording):
    (run_id,) = recording.make_runs()
    recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(10)
    until("it has taken them", lambda: recording.row(run_id)["figures"].get("spans") == ranks.spans)
    recording.client.flushall()
    recording.client.sadd(LIVE_RUNS, run_id)
    ranks.work(10)
    ranks.close()
    recording.end(run_id)
    assert_whole(recording, run_id, ranks)


def test_entries_that_are_broken_are_counted_and_passed_over(recording):
    (run_id,) = recording.make_runs()
    key = frames_key(run_id)
    broken = [{FRAME: b"LKF1 but not a frame"}, {EVENT: b"{"}, {EVENT: b"[]"}, {b"x": b"y"}, {FRAME: b""}]
    for fields in broken:
        recording.client.xadd(key, fields)
    recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(5)
    ranks.close()
    recording.end(run_id)
    assert_whole(recording, run_id, ranks)
    assert recording.reader(run_id).manifest.bad_frames == 4  # a field that nobody knows is no harm


def test_what_the_disk_refuses_stays_in_the_stream_until_it_can_be_written(recording):
    (run_id,) = recording.make_runs()
    recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(5)
    until("it has taken them", lambda: recording.row(run_id)["figures"].get("spans") == ranks.spans)
    in_the_way = recording.reader(run_id).folder / "manifest.json.part"
    in_the_way.mkdir()
    ranks.close()
    recording.end(run_id)
    until("it has tried", lambda: "cannot be sealed" in recording.log_file.read_text())
    assert recording.row(run_id)["sealed_at"] is None
    assert recording.client.xpending(frames_key(run_id), RECORDERS)["pending"] > 0
    in_the_way.rmdir()
    assert_whole(recording, run_id, ranks)


def test_several_runs_are_recorded_at_once_and_one_that_is_not_known_is_left_to_expire(recording):
    runs = recording.make_runs(3)
    recording.client.sadd(LIVE_RUNS, "unknownrun")
    recording.client.xadd(frames_key("unknownrun"), {EVENT: b"{}"})
    recording.start_recorder()
    several = {run_id: Ranks(recording, run_id) for run_id in runs}
    for run_id, steps in zip(runs, itertools.count(3), strict=False):
        several[run_id].work(steps)
        several[run_id].close()
        recording.end(run_id)
    for run_id in runs:
        assert_whole(recording, run_id, several[run_id])
    until("all are off the list", lambda: recording.client.smembers(LIVE_RUNS) == set())
    assert 0 < recording.client.ttl(frames_key("unknownrun")) <= 60


def test_a_second_recorder_waits_for_the_first_and_takes_over_when_it_is_killed(recording):
    (run_id,) = recording.make_runs()
    first = recording.start_recorder()
    recording.wait_for_beat_of(first)
    second = recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(5)
    until("the first takes them", lambda: recording.row(run_id)["figures"].get("spans") == ranks.spans)
    assert recording.beat()["pid"] == first.pid and second.poll() is None
    first.kill()
    ranks.close()
    recording.end(run_id)
    assert_whole(recording, run_id, ranks)
    assert recording.beat()["pid"] == second.pid


def test_a_recorder_that_is_told_to_end_ends_at_once_and_cleanly(recording):
    (run_id,) = recording.make_runs()
    recorder = recording.start_recorder()
    recording.wait_for_beat_of(recorder)
    ranks = Ranks(recording, run_id)
    ranks.work(1)
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(5) == 0
    ranks.close()
    assert recording.row(run_id)["sealed_at"] is None


def test_a_run_of_which_a_rank_died_is_sealed_with_its_last_step_flagged(recording):
    (run_id,) = recording.make_runs()
    recording.start_recorder()
    ranks = Ranks(recording, run_id)
    ranks.work(3)
    for row in gpipe_rows(0, 3, forward_ns=20 * MS, backward_ns=40 * MS)[:4]:
        ranks.writers[0].add(*row)
    ranks.close()
    recording.end(run_id)
    row = recording.wait_until_sealed(run_id)
    assert [step["complete"] for step in recording.reader(run_id).steps()] == [True, True, True, False]
    assert row["figures"]["steps_figured"] == 3 and row["figures"]["spans"] == ranks.spans + 4
