"""A viewer that stops reading costs the server bounded memory, and catches up complete, whoever trimmed what meanwhile."""

import json
from contextlib import closing

import pytest

from dashboard.bench.server_cost import resident_mb
from tests.stack.socket_viewer import Viewer
from tests.stack.stack import running_stack, wait_for
from tests.unit.frames import gpipe_rows
from trainer.folder import run_folder, spill_file
from trainer.trace.sinks import RedisSink
from trainer.trace.stream import EVENT, LIVE_RUNS, frames_key
from trainer.trace.writer import Writer

pytestmark = [pytest.mark.stack, pytest.mark.timed]

SPANS = 1_200_000  # 55 MB as frames: more than three times the tail that the server keeps
MOST_GROWN_MB = 40  # that tail, 16 MB, and some batches on their way
SEGMENTS_READ_MB = 80  # what reading one segment after another leaves with the allocator, however many there are


@pytest.fixture
def stack():
    with running_stack("--no-worker") as running:
        yield running


@pytest.fixture
def shared(stack):
    """(the run's id, the token of a link to it): a run that goes on, for all that the database says."""
    run_id = stack.python("services.launch(PRESETS['pipeline-1f1b'].spec, None).pk")
    assert stack.python(f"Run.objects.filter(pk={run_id!r}).update(state='finished', started_at='2026-01-01T00:00:00Z')") == 1
    stack.client.sadd(LIVE_RUNS, run_id)
    return run_id, stack.python(f"links.share(Run.objects.get(pk={run_id!r}), None)[1]")


def work(writer, spans, from_step):
    """Record so many spans; which step comes next."""
    step = from_step
    while spans > 0:
        rows = gpipe_rows(0, step)
        for row in rows:
            writer.add(*row)
        spans, step = spans - len(rows), step + 1
    writer.flush(60)
    return step


def test_a_viewer_that_sleeps_costs_bounded_memory_and_catches_up_complete(stack, shared):
    run_id, token = shared
    writer = Writer(0, RedisSink(stack.redis_url, run_id), spill_file(run_folder(stack.home, run_id), 0))
    writer.set_zero(0)
    server = stack.pid_of("web")
    with closing(Viewer(stack, token)) as sleeper, closing(Viewer(stack, token)) as awake:
        step = work(writer, 10_000, 0)
        for viewer in (sleeper, awake):
            viewer.pull()
            viewer.read()
        sleeper.pull()  # what answers this is never read while it sleeps
        before_mb = resident_mb(server)
        most_mb, recorded = before_mb, 0
        while recorded < SPANS:
            step = work(writer, 50_000, step)
            recorded = step * 17
            while awake.counted.spans < recorded:
                awake.pull()
                awake.read()
            most_mb = max(most_mb, resident_mb(server))
        wait_for(lambda: stack.run(run_id)["figures"].get("spans") == recorded, 120, "the recorder to have it all")
        assert most_mb - before_mb < MOST_GROWN_MB
        writer.close(30)
        stack.client.xadd(frames_key(run_id), {EVENT: json.dumps({"type": "end"})})
        wait_for(lambda: stack.run(run_id)["sealed_at"], 120, "all to be sealed")
        sleeper.read_to_the_end()  # it wakes up, and begins with what was sent before
        awake.pull()
        awake.read_to_the_end()
        assert sleeper.counted.spans == awake.counted.spans == recorded
        read_mb = resident_mb(server)
        print(f"at most {most_mb - before_mb:.0f} MB more while it slept, {read_mb - before_mb:.0f} MB when all was read")
        assert read_mb - before_mb < MOST_GROWN_MB + SEGMENTS_READ_MB
